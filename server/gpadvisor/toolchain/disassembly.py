# SPDX-License-Identifier: Apache-2.0
"""Cubin to listing by nvdisasm: one call, and ever simpler forms where that fails (GPA section III)."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.cubin import CodeSection, Cubin, read_cubin, stamped
from gpadvisor.errors import CubinError, SassError, ToolError, ToolFailedError, ToolTimeoutError
from gpadvisor.files import scratch_folder
from gpadvisor.machine.code import read_as
from gpadvisor.model.ids import INSTRUCTION_BYTES
from gpadvisor.model.machine import sm_number
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.sandbox.tools import run_tool
from gpadvisor.sass.listing import BLANK, Listing, SassLine, parse_cuobjdump, parse_hex_text, parse_json
from gpadvisor.toolchain.discovery import Tool, disassemblers, find_tools

# Start-up of nvdisasm costs as much as about 15,000 instructions, so asking for a part pays above that only.
_PART_PAYS_INSTRUCTIONS: Final = 20_000
_OUTPUT_BYTES_BASE: Final = 1 << 24
_OUTPUT_BYTES_PER_INSTRUCTION: Final = 4096
# Far above every 32-bit immediate, and with room below for targets in front of the code.
_RAW_BASE: Final = 0x5A_0000_0000
_RAW_BASE_DIGITS: Final = "0x5"
_RAW_OFFSET: Final = re.compile(r"^\s*/\*(5[0-9a-fA-F]{9})\*/")
_RAW_ADDRESS: Final = re.compile(r"\b0x5[0-9a-f]{9}\b")
# What came after Volta: a datapath for values that all threads share, scaled addresses in shared memory, and
# moves of whole matrices.
_OPERAND_NOT_IN_VOLTA: Final = re.compile(r"\bU[RP](?:\d+|[TZ])\b|\.X(?:4|8|16)\b")
_NOT_IN_VOLTA: Final = ("U", "R2U", "S2U", "VOTEU", "LDSM", "MOVM", "BMMA")
# nvdisasm 12 leaves out the comma before a bracket in its structured form: "R0[R2.64]".
_KEEPS_COMMAS: Final = (13, 0, 0)
_LOST_COMMA: Final = re.compile(r"\b(U?R(?:\d+|Z)|U?P(?:\d|T))\[")


@dataclass(frozen=True, slots=True)
class Disassembly:
    """The text of the code sections that were asked for."""

    listing: Listing
    tool: str  # "nvdisasm 13.5.37"
    form: str  # "json", "text", "raw" or "cuobjdump"
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class _Request:
    """What all attempts have in common."""

    path: Path  # the cubin as a file
    stand_in: Path | None  # the same, stamped as another architecture, where one may stand in for its own
    cubin: Cubin
    wanted: tuple[CodeSection, ...]
    deadline: float
    cancelled: Callable[[], bool] | None

    def readable_by(self, tool: Tool) -> tuple[Path, str]:
        """The file to give to a tool, and the architecture that it takes it for."""
        if self.stand_in is None or tool.knows(self.cubin.arch):
            return self.path, self.cubin.arch
        return self.stand_in, read_as(self.cubin.arch)

    @property
    def output_bytes(self) -> int:
        """A bound for the text of the whole cubin in its most verbose form."""
        return _OUTPUT_BYTES_BASE + _OUTPUT_BYTES_PER_INSTRUCTION * self.cubin.instruction_count


def disassemble(
    cubin: bytes,
    *,
    sections: Collection[str] | None = None,
    timeout_seconds: float = 120.0,
    cancelled: Callable[[], bool] | None = None,
    nvdisasm: Path | None = None,
) -> Disassembly:
    """Disassemble a cubin, or some of its code sections, within a time limit for all attempts together.

    Raises:
        CubinError: the bytes are no cubin, or lack one of the sections.
        ToolNotFoundError: no disassembler for this architecture is here.
        ToolFailedError: every disassembler and form failed.
        ToolTimeoutError: time ran out.
    """
    image = read_cubin(cubin)
    to_read = _wanted(image, sections)
    tools = disassemblers(image.arch, image.abi, explicit=nvdisasm)
    with scratch_folder() as folder:
        path = folder / "image.cubin"
        path.write_bytes(cubin)
        stand_in = None
        if other_arch := read_as(image.arch):
            stand_in = path.with_stem("stand-in")
            stand_in.write_bytes(stamped(cubin, sm_number(other_arch)))
        request = _Request(path, stand_in, image, to_read, time.monotonic() + timeout_seconds, cancelled)
        return _first_that_works(request, tools)


def _wanted(image: Cubin, names: Collection[str] | None) -> tuple[CodeSection, ...]:
    """The sections asked for, in file order; empty ones have nothing to disassemble."""
    if names is not None:
        section_names = {section.name for section in image.sections}
        for name in names:
            if name not in section_names:
                raise CubinError(f"cubin has no code section {name}; list its kernels to see which it has")
    return tuple(s for s in image.sections if (names is None or s.name in names) and s.code)


_Form = Callable[[_Request, Tool, float], Listing]


def _attempts(request: _Request, tools: Sequence[Tool]) -> Iterator[tuple[str, _Form, Tool]]:
    """Forms and tools, the plainest and fastest first."""
    if not request.cubin.is_loaded:
        # Symbols that hold device addresses make nvdisasm fail or even hang, so loaded images go raw at once.
        for tool in tools:
            if tool.prints_json:
                yield "json", _json, tool
        for tool in tools:
            yield "text", _text, tool
    for tool in tools:
        yield "raw", _raw, tool
    for tool in find_tools("cuobjdump"):
        yield "cuobjdump", _cuobjdump, tool


def _first_that_works(request: _Request, tools: Sequence[Tool]) -> Disassembly:
    """The listing of the first attempt that gives every instruction."""
    failures: list[str] = []
    error_of_latest: ToolError | SassError | None = None
    for form, attempt, tool in _attempts(request, tools):
        remaining = request.deadline - time.monotonic()
        if remaining <= 0:
            break
        try:
            # Half of what is left: a hang must not take the time of the form that would work.
            listing = _complete(attempt(request, tool, remaining / 2), request.wanted)
        except (ToolFailedError, ToolTimeoutError, SassError) as error:
            failures.append(f"{tool} -{form}: {error}")
            error_of_latest = error
            continue
        problems = tuple(
            Problem(ProblemCode.TOOL_FALLBACK, f"{failure}; used {tool} in its {form} form instead")
            for failure in failures
        )
        _, taken_for = request.readable_by(tool)
        problems += _read_as(listing, request.cubin.arch, taken_for)
        return Disassembly(listing=listing, tool=str(tool), form=form, problems=problems)
    kind = (
        ToolTimeoutError
        if isinstance(error_of_latest, ToolTimeoutError) or error_of_latest is None
        else ToolFailedError
    )
    raise kind("no disassembler could read this cubin: " + "; ".join(failures)) from error_of_latest


def _read_as(listing: Listing, arch: str, taken_for: str) -> tuple[Problem, ...]:
    """A problem where the text has what only the other architecture has, so that it may be read wrongly."""
    if arch == taken_for:
        return ()
    doubtful = sorted(
        {
            line.opcode
            for lines in listing.values()
            for line in lines
            if line.opcode.startswith(_NOT_IN_VOLTA) or _OPERAND_NOT_IN_VOLTA.search(line.operands)
        }
    )
    if not doubtful:
        return ()
    message = (
        f"the disassembler took this code of {arch} for {taken_for} and printed what {arch} does not have"
        f" ({', '.join(doubtful[:3])}): install a CUDA toolkit up to 12.9, whose nvdisasm knows {arch}"
    )
    return (Problem(ProblemCode.TOOL_FALLBACK, message),)


def _complete(listing: Listing, sections: Sequence[CodeSection]) -> dict[str, tuple[SassLine, ...]]:
    """The wanted sections of a listing, each with one line for every 16 bytes."""
    result: dict[str, tuple[SassLine, ...]] = {}
    for section in sections:
        lines = _whole(listing, section)
        if len(lines) != section.instruction_count:
            raise SassError(
                f"{section.name} has {section.instruction_count} instructions and {len(lines)} were printed"
            )
        blank = sum(not line.opcode for line in lines)
        if blank:
            raise SassError(f"{blank} of {len(lines)} instructions of {section.name} were not printed")
        result[section.name] = lines
    return result


def _whole(listing: Listing, section: CodeSection) -> tuple[SassLine, ...]:
    """A section's lines, with the helpers that nvdisasm up to 12 lists as functions of their own put back."""
    lines = listing.get(section.name, ())
    if len(lines) >= section.instruction_count:
        return lines
    merged = [*lines, *[BLANK] * (section.instruction_count - len(lines))]
    for symbol in section.symbols:
        start = symbol.offset // INSTRUCTION_BYTES
        # Such a function starts at its offset in the section, filled up from there.
        part = listing.get(symbol.name, ())[start:]
        if symbol.name != section.name and start + len(part) <= len(merged):
            merged[start : start + len(part)] = part
    return tuple(merged)


def _run(request: _Request, command: Sequence[str | Path], seconds: float) -> str:
    """The text that a disassembler prints."""
    output = run_tool(
        command,
        timeout_seconds=seconds,
        output_bytes=request.output_bytes,
        cancelled=request.cancelled,
        directory=request.path.parent,
    )
    return output.stdout.decode("utf-8", "replace")


def _selection(request: _Request) -> list[str | Path]:
    """Options that restrict the work to the wanted sections, where that saves time."""
    total = request.cubin.instruction_count
    part = sum(s.instruction_count for s in request.wanted)
    if total <= _PART_PAYS_INSTRUCTIONS or 2 * part > total or not all(s.symbols for s in request.wanted):
        return []
    return ["-fun", ",".join(str(s.symbols[0].elf_index) for s in request.wanted)]


def _json(request: _Request, tool: Tool, seconds: float) -> Listing:
    """One structured call for the whole cubin or the wanted part."""
    path, _ = request.readable_by(tool)
    listing = parse_json(_run(request, [tool.path, "-json", *_selection(request), path], seconds))
    names = Counter(s.name for section in request.cubin.sections for s in section.symbols)
    if tool.version < _KEEPS_COMMAS:
        listing = _with_commas(listing)
    # Helpers of one name in two sections cannot be told apart where the tool lists them by themselves.
    return {name: lines for name, lines in listing.items() if names[name] <= 1}


def _with_commas(listing: Listing) -> Listing:
    """The listing with a comma between a destination and the address behind it."""
    corrected: dict[SassLine, SassLine] = {}
    for line in {line for lines in listing.values() for line in lines}:
        corrected[line] = line._replace(operands=_LOST_COMMA.sub(r"\1,[", line.operands))
    return {name: tuple(corrected[line] for line in lines) for name, lines in listing.items()}


def _text(request: _Request, tool: Tool, seconds: float) -> Listing:
    """The text form without data flow analysis, which is where the structured form was seen to crash."""
    path, _ = request.readable_by(tool)
    command: list[str | Path] = [tool.path, "-c", "-ndf", *_selection(request), path]
    return parse_hex_text(_run(request, command, seconds))


def _raw(request: _Request, tool: Tool, seconds: float) -> Listing:
    """Code bytes without ELF around them: all wanted sections one behind the other in one call."""
    raw = request.path.with_suffix(".bin")
    raw.write_bytes(b"".join(section.code for section in request.wanted))
    number = request.readable_by(tool)[1].removeprefix("sm_")
    if tool.architectures and number not in tool.architectures:
        number = number.rstrip("af")
    command: list[str | Path] = [tool.path, "-b", f"SM{number}", "-base", f"{_RAW_BASE:#x}", raw]
    return parse_hex_text(_split(_run(request, command, seconds), request.wanted))


def _split(text: str, sections: Sequence[CodeSection]) -> str:
    """The text of concatenated code with a header before each section and addresses relative to it.

    The code was printed from an address that no immediate operand reaches, so what is near it is a position.
    """
    rows: list[str] = []
    place = iter(sections)
    start = end = 0
    for row in text.splitlines():
        match = _RAW_OFFSET.match(row)
        if match is None:
            continue
        offset = int(match[1], 16) - _RAW_BASE
        while offset >= end:
            section = next(place, None)
            if section is None:
                raise SassError("more instructions were printed than the code has")
            start, end = end, end + len(section.code)
            rows.append(f"\t.section\t.text.{section.name}")
        code = row[match.end() :]
        if _RAW_BASE_DIGITS in code:
            code = _relative(code, _RAW_BASE + start)
        rows.append(f"/*{offset - start:04x}*/{code}")
    return "\n".join(rows)


def _relative(operands: str, base: int) -> str:
    """Operands with positions counted from ``base``."""
    return _RAW_ADDRESS.sub(lambda match: f"{int(match[0], 16) - base:#x}", operands)


def _cuobjdump(request: _Request, tool: Tool, seconds: float) -> Listing:
    """The form that also reads images as a driver has loaded them."""
    path, _ = request.readable_by(tool)
    return parse_cuobjdump(_run(request, [tool.path, "-sass", path], seconds))
