# SPDX-License-Identifier: Apache-2.0
"""Operand text as values: which registers an operand names, before any opcode gives it a role."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from gpadvisor.model.instruction import Register, RegisterFile, register
from gpadvisor.model.kind import Kind


class OperandKind(Kind):
    """Kinds of operand; the letter is used in operand forms, "P R M R"."""

    GPR = "R"
    PREDICATE = "P"
    UNIFORM = "U"
    UNIFORM_PREDICATE = "Q"
    PREDICATE_SET = "S"  # PR: all predicates at once
    UNIFORM_PREDICATE_SET = "V"  # UPR
    MEMORY = "M"  # [..], with or without a descriptor
    DESCRIPTOR = "D"  # gdesc[..], tmem[..], idesc[..]
    CONSTANT = "C"  # c[bank][offset]
    IMMEDIATE = "I"
    SPECIAL = "X"  # SR_TID.X, B0, SB0, 2D, a symbol


_FILES: Final = {
    "R": RegisterFile.GPR,
    "P": RegisterFile.PREDICATE,
    "UR": RegisterFile.UNIFORM,
    "UP": RegisterFile.UNIFORM_PREDICATE,
}
_KINDS: Final = {
    "R": OperandKind.GPR,
    "P": OperandKind.PREDICATE,
    "UR": OperandKind.UNIFORM,
    "UP": OperandKind.UNIFORM_PREDICATE,
}
_LAST_INDEX: Final = {"R": 254, "P": 6, "UR": 254, "UP": 6}

_REGISTER = re.compile(r"[-+!~|]*(?P<prefix>UR|UP|R|P)(?P<index>[0-9]+|Z|T)(?![A-Za-z0-9_])")
_IN_BRACKETS = re.compile(
    r"(?<![A-Za-z0-9_.])(?P<prefix>UR|R)(?P<index>[0-9]+|Z)(?P<modifiers>(?:\.[A-Za-z0-9]+)*)"
)
_GROUP = re.compile(r"(?P<name>[A-Za-z]*)\[(?P<content>[^\]]*)\]")
_NUMBER = re.compile(
    r"[-+]?(?:0x[0-9a-fA-F]+|[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|(?:Q|S)?NAN|INF)$", re.IGNORECASE
)


class Address(NamedTuple):
    """One register inside brackets."""

    first: Register | None  # None for RZ and URZ
    uniform: bool
    wide: bool  # printed with ".64"
    narrow: bool  # printed with ".U32"
    role: str  # name before the bracket: "", "desc", "gdesc", "tmem", "c", ...
    group: int  # which bracket of the operand


class Operand(NamedTuple):
    """One operand."""

    kind: OperandKind
    text: str
    first: Register | None = None  # None for RZ, PT, URZ, UPT and everything that is no register
    addresses: tuple[Address, ...] = ()
    value: int | None = None  # of an integer immediate
    is_register: bool = False  # of either file
    is_predicate: bool = False  # a single one, of either file

    def registers(self, count: int = 1) -> tuple[Register, ...]:
        """The ``count`` registers that start here; none for RZ and its like."""
        return span(self.first, count)


def span(first: Register | None, count: int) -> tuple[Register, ...]:
    """``count`` registers from ``first`` on, never past the end of its file."""
    if first is None:
        return ()
    if count == 1:
        return (first,)
    return tuple(map(Register, range(first, min(first + count, (first | 255)))))


def split_operands(text: str) -> tuple[str, ...]:
    """Operand texts, split at commas and blanks outside of brackets.

    Some forms print a blank where others print a comma: ``BRX R4 -0x680``.
    """
    if "(" not in text and "{" not in text and "[" not in text:
        return tuple(text.replace(",", " ").split())
    parts: list[str] = []
    depth, part = 0, ""
    for char in text:
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        if depth <= 0 and (char == "," or char.isspace()):
            if part:
                parts.append(part)
            part = ""
        else:
            part += char
    if part:
        parts.append(part)
    return tuple(parts)


@lru_cache(maxsize=1 << 16)
def parse_operand(text: str) -> Operand:
    """The operand that ``text`` prints; what is not understood is a SPECIAL operand without registers."""
    match = _REGISTER.match(text)
    if match is not None and "[" not in text:
        return _register_operand(text, match)
    if "[" in text:
        return _bracket_operand(text)
    bare = text.lstrip("-+!~|")
    if bare in ("PR", "UPR") or bare.startswith(("PR.", "UPR.")):
        uniform = bare.startswith("U")
        return Operand(OperandKind.UNIFORM_PREDICATE_SET if uniform else OperandKind.PREDICATE_SET, text)
    if _NUMBER.match(text):
        return Operand(OperandKind.IMMEDIATE, text, value=_integer(text))
    return Operand(OperandKind.SPECIAL, text)


def _integer(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


def _first(prefix: str, digits: str) -> Register | None:
    """The register of a name; None for RZ, PT and for what no file has."""
    if not digits.isdigit() or len(digits) > 3 or int(digits) > _LAST_INDEX[prefix]:
        return None
    return register(_FILES[prefix], int(digits))


def _register_operand(text: str, match: re.Match[str]) -> Operand:
    prefix = match["prefix"]
    predicate = prefix.endswith("P")
    return Operand(
        _KINDS[prefix],
        text,
        first=_first(prefix, match["index"]),
        is_register=not predicate,
        is_predicate=predicate,
    )


def _bracket_operand(text: str) -> Operand:
    addresses: list[Address] = []
    names: list[str] = []
    for group in _GROUP.finditer(text):
        names.append(group["name"])
        for match in _IN_BRACKETS.finditer(group["content"]):
            modifiers = match["modifiers"].split(".")
            addresses.append(
                Address(
                    first=_first(match["prefix"], match["index"]),
                    uniform=match["prefix"] == "UR",
                    wide="64" in modifiers,
                    narrow="U32" in modifiers or "S32" in modifiers,
                    role=group["name"],
                    group=len(names) - 1,
                )
            )
    return Operand(_bracket_kind(names), text, addresses=tuple(addresses))


def _bracket_kind(names: list[str]) -> OperandKind:
    first = names[0] if names else ""
    if first in ("c", "cx"):
        return OperandKind.CONSTANT
    if len(names) == 1 and first not in ("", "desc", "a"):
        return OperandKind.DESCRIPTOR
    return OperandKind.MEMORY
