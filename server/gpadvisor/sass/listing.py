# SPDX-License-Identifier: Apache-2.0
"""Disassembly text of every tool form as lines, one per 16 bytes of a code section (GPA section III)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from gpadvisor.errors import SassError
from gpadvisor.model.ids import INSTRUCTION_BYTES

MAX_LINES: Final = 1 << 23
"""Instructions of one listing; 128 MiB of code, several times the largest library cubin."""

UNNAMED: Final = "Unknown"
"""Section name of a raw binary's code, as ``nvdisasm -json`` calls it."""

_FORMAT: Final = "gpadvisor-listing"
_VERSION: Final = 1


class SassLine(NamedTuple):
    """One printed instruction."""

    predicate: str | None  # "@!P0"
    opcode: str  # "LDG.E.64"; empty where the tool printed nothing for these 16 bytes
    operands: str  # without scheduling annotations, labels as offsets


BLANK: Final = SassLine(None, "", "")

Listing = Mapping[str, tuple[SassLine, ...]]
"""Lines by section name without ``.text.``."""

_ANNOTATION = re.compile(r"(?:^|\s)[&?][A-Za-z]")
"""Scheduling information that some builds append: ``&req={0} &wr=0x1 ?WAIT5_END_GROUP``."""

_INSTRUCTION = re.compile(
    r"/\*(?P<offset>[0-9a-fA-F]{4,16})\*/[ \t]+(?P<body>[@A-Z_][^;\n]*)(?:;|$)",
)
_BODY = re.compile(r"(?P<predicate>@!?[A-Z]+[0-9]*)?\s*(?P<opcode>[A-Z_][\w.]*)\s*(?P<operands>.*)$")
_SECTION = re.compile(r"^\s*\.section\s+(?P<name>[^\s,]+)")
_FUNCTION = re.compile(r"^\s*Function\s*:\s*(?P<name>\S+)")
_LABEL = re.compile(r"^(?P<name>[^\s:/]+):")
_REFERENCE = re.compile(r"(?P<tick>`\()?(?P<name>\.[A-Za-z_][\w.$]*)(?:@srel)?(?(tick)\))")
_SYMBOL = re.compile(r"`\(([^()]*)\)")
_AFTER_REGISTER = re.compile(r"(?<=[RP][0-9ZT])\[|(?<=[RP][0-9][0-9])\[|(?<=R[0-9][0-9][0-9])\[")  # "R4[R2]"
_TWO_PLACES = re.compile(r"(?<=^\[)([^\]]*)\]\[")  # "[R2][R4.64]" for "[R2], [R4.64]"


def parse_json(text: str) -> Listing:
    """The listing of ``nvdisasm -json``; raises SassError when the text is not that."""
    try:
        root = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SassError("the disassembler's JSON output is damaged; run it again") from error
    functions = root[1] if isinstance(root, list) and len(root) > 1 else None
    if not isinstance(functions, list):
        raise SassError("the disassembler's JSON output has no list of functions; use nvdisasm 12 or newer")
    sections: dict[str, list[SassLine]] = {}
    budget = MAX_LINES
    section = UNNAMED
    for function in functions:
        name, start, instructions = _json_function(function)
        if start == 0 or not name.startswith("$"):
            section = name
        # nvdisasm 12 lists a device function inside a kernel's section on its own, after the kernel.
        lines = sections.setdefault(section, [])
        budget -= max(start - len(lines), 0) + len(instructions)
        if budget < 0:
            raise SassError(
                f"the disassembly has more than {MAX_LINES} instructions; analyse fewer functions"
            )
        lines.extend([BLANK] * (start - len(lines)))
        lines[start : start + len(instructions)] = [_json_line(item) for item in instructions]
    return {name: tuple(lines) for name, lines in sections.items()}


def _json_function(function: object) -> tuple[str, int, list[object]]:
    if isinstance(function, dict):
        name, start = function.get("function-name"), function.get("start", 0)
        instructions = function.get("sass-instructions", [])
        if isinstance(name, str) and isinstance(start, int) and isinstance(instructions, list) and start >= 0:
            return name.removeprefix(".text."), start // INSTRUCTION_BYTES, instructions
    raise SassError("the disassembler's JSON output has a function without name or instructions")


def _json_line(item: object) -> SassLine:
    if not isinstance(item, dict):
        raise SassError("the disassembler's JSON output has an instruction that is not an object")
    opcode, operands, predicate = item.get("opcode"), item.get("operands", ""), item.get("predicate")
    if not isinstance(opcode, str) or not isinstance(operands, str):
        raise SassError("the disassembler's JSON output has an instruction without an opcode")
    return _line(opcode, operands, predicate if isinstance(predicate, str) else "")


@lru_cache(maxsize=1 << 16)
def _line(opcode: str, operands: str, predicate: str) -> SassLine:
    """The line as the text form has it; the same few come again and again."""
    guarded = predicate.startswith("@")  # of P2R it holds the operand PR
    return SassLine(predicate if guarded else None, opcode, _as_in_text(opcode, _plain(operands)))


def _as_in_text(opcode: str, operands: str) -> str:
    """The operands as the text form has them; the JSON form of nvdisasm 13 drops or moves some commas."""
    if "desc,[" in operands:  # "R4desc,[UR4]" for "R4, desc[UR4]"
        operands = operands.replace("desc,[", ",desc[").lstrip(",").replace(",,", ",")
    elif "[" in operands:
        operands = _AFTER_REGISTER.sub(",[", operands)
    if opcode.startswith("LDGSTS"):
        operands = _TWO_PLACES.sub(r"\1],[", operands, count=1)
    elif opcode.startswith("P2R") and ",PR" not in operands:
        operands = operands.replace(",", ",PR,", 1)
    return operands


def _plain(operands: str) -> str:
    """The operands without scheduling annotations."""
    if "?" in operands or "&" in operands:
        match = _ANNOTATION.search(operands)
        return operands if match is None else operands[: match.start()].rstrip()
    return operands


@dataclass(slots=True)
class _Section:
    """The lines and labels of one code section while a text is read."""

    lines: list[SassLine] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    pending: list[str] = field(default_factory=list)

    def add(self, offset: int, line: SassLine) -> None:
        index = offset // INSTRUCTION_BYTES
        if index >= MAX_LINES:
            raise SassError(f"the disassembly reaches offset {offset:#x}; analyse fewer functions")
        if self.pending:
            self.labels.update(dict.fromkeys(self.pending, offset))
            self.pending.clear()
        if index > len(self.lines):
            self.lines.extend([BLANK] * (index - len(self.lines)))
        self.lines[index : index + 1] = [line]

    def finish(self) -> tuple[SassLine, ...]:
        self.labels.update(dict.fromkeys(self.pending, len(self.lines) * INSTRUCTION_BYTES))
        return tuple(_resolve(line, self.labels) for line in self.lines)


def parse_hex_text(text: str, *, section: str = UNNAMED) -> Listing:
    """The listing of ``nvdisasm`` without ``-json``, with or without ``-hex``, and of ``nvdisasm -b``.

    ``section`` names code that no section header precedes, which is all of it for a raw binary.
    """
    return _parse_text(text.splitlines(), section)


def parse_cuobjdump(text: str) -> Listing:
    """The listing of ``cuobjdump -sass``; of several images in one text the last one of a name counts."""
    return _parse_text(text.splitlines(), UNNAMED)


def _parse_text(rows: Iterable[str], section: str) -> Listing:
    sections: dict[str, _Section] = {section: _Section()}
    current: _Section | None = sections[section]
    for row in rows:
        match = _INSTRUCTION.search(row) if "/*" in row else None
        if match is not None:
            line = _text_line(match["body"])
            if line is not None and current is not None:
                current.add(int(match["offset"], 16), line)
        elif (function := _FUNCTION.match(row)) is not None:
            current = sections[function["name"]] = _Section()
        elif (header := _section_header(row)) is not None:
            # The ".section" directive is followed by a label of the same name: one section.
            current = sections.setdefault(header, _Section()) if header else None
        elif current is not None and (label := _LABEL.match(row)) is not None:
            current.pending.append(label["name"])
    return {name: body.finish() for name, body in sections.items() if body.lines}


def _section_header(row: str) -> str | None:
    """The code section that starts here, "" for a section of another kind, None for no header at all."""
    if row.startswith(".text."):
        return row.split(":", 1)[0].strip().removeprefix(".text.")
    match = _SECTION.match(row)
    if match is None:
        return None
    return match["name"].removeprefix(".text.") if match["name"].startswith(".text.") else ""


def _text_line(body: str) -> SassLine | None:
    match = _BODY.match(body)
    if match is None:
        return None
    operands = _plain(match["operands"].partition("(*")[0])  # (*"BRANCH_TARGETS .L_x_1,.L_x_2"*)
    return SassLine(match["predicate"], match["opcode"], operands.strip())


def _resolve(line: SassLine, labels: Mapping[str, int]) -> SassLine:
    """The line with label names replaced by their offsets, as the JSON form prints them."""
    operands = line.operands
    if "`" not in operands and "@" not in operands:
        return line

    def offset(match: re.Match[str]) -> str:
        label = labels.get(match["name"])
        return match.group() if label is None else f"{label:#x}"

    if "." in operands:
        operands = _REFERENCE.sub(offset, operands)
    return SassLine(line.predicate, line.opcode, _SYMBOL.sub(r"\1", operands))


def dump_listing(listing: Listing) -> bytes:
    """The listing as compact JSON: each distinct line once, sections as indices."""
    index: dict[SassLine, int] = {}
    sections = {
        name: [index.setdefault(line, len(index)) for line in lines] for name, lines in listing.items()
    }
    table = [list(line) for line in index]
    root = {"format": _FORMAT, "version": _VERSION, "lines": table, "sections": sections}
    return json.dumps(root, separators=(",", ":"), ensure_ascii=False).encode()


def load_listing(data: bytes) -> Listing:
    """The listing that ``dump_listing`` wrote; raises SassError on anything else."""
    try:
        root = json.loads(data)
        if root["format"] != _FORMAT or root["version"] != _VERSION:
            raise SassError("the stored disassembly is of a newer version; import the report again")
        table = [_stored_line(row) for row in root["lines"]]
        sections = {name: _stored_section(table, indices) for name, indices in root["sections"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
        raise SassError("the stored disassembly is damaged; import the report again") from error
    if sum(map(len, sections.values())) > MAX_LINES:
        raise SassError("the stored disassembly is larger than any cubin; import the report again")
    return sections


def _stored_line(row: list[object]) -> SassLine:
    predicate, opcode, operands = row
    if (
        (predicate is None or isinstance(predicate, str))
        and isinstance(opcode, str)
        and isinstance(operands, str)
    ):
        return SassLine(predicate, opcode, operands)
    raise ValueError(row)


def _stored_section(table: list[SassLine], indices: list[int]) -> tuple[SassLine, ...]:
    if any(index < 0 for index in indices):
        raise ValueError(indices)
    return tuple(table[index] for index in indices)
