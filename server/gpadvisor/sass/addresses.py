# SPDX-License-Identifier: Apache-2.0
"""How many registers each part of an address covers, and the descriptors that only the encoding names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gpadvisor.model.instruction import MemorySpace, OpcodeInfo, Register, RegisterFile, register
from gpadvisor.sass.tokens import Address, Operand, OperandKind, span

_SURFACE_ACCESSES: Final = frozenset({"SULD", "SUST", "SUATOM", "SURED", "SUQUERY"})
_SURFACES: Final = {"1D": 1, "2D": 2, "3D": 3, "1D_ARRAY": 2, "2D_ARRAY": 3, "ARRAY_1D": 2, "ARRAY_2D": 3}
_BULK_COPIES: Final = frozenset({"UBLKCP", "UBLKL2CCTL", "UBLKPF", "UBLKRED", "UTMACCTL"})
_BEFORE_COORDINATES: Final = {"UTMALDG": 2, "UTMASTG": 1, "UTMAREDG": 1, "UTMAPF": 0, "UTMAL2CCTL": 0}
"""Uniform registers in front of a tensor's coordinates: the place in shared memory, the barrier of loads."""

_NO_UNIFORM: Final = 63


@dataclass(frozen=True, slots=True)
class Form:
    """What the operand rules need to know about one mnemonic."""

    hides_descriptors: bool  # in this architecture's text
    base: str
    modifiers: tuple[str, ...]
    info: OpcodeInfo


def address_registers(form: Form, operand: Operand, position: int) -> list[Register]:
    """Registers that the brackets of an operand name; ``position`` counts the operands of the instruction."""
    return [
        name
        for address in operand.addresses
        for name in span(address.first, _width(form, operand, address, position))
    ]


def _width(form: Form, operand: Operand, address: Address, position: int) -> int:
    if address.role == "desc":
        return 2
    if operand.kind is OperandKind.CONSTANT:
        return 2 if address.role == "cx" and address.uniform else 1
    if operand.kind is OperandKind.DESCRIPTOR:
        if address.role != "gdesc":
            return 1
        return 4 if form.base.endswith("GMMA") else 2
    special = _by_opcode(form, address, position)
    if special is not None:
        return special
    if address.wide:
        return 2
    return 2 if "E" in form.modifiers and not address.narrow else 1


def _by_opcode(form: Form, address: Address, position: int) -> int | None:
    base = form.base
    if base == "LDGSTS" and position == 0 and address.group == 0:
        return 1  # the place in shared memory
    if base in _SURFACE_ACCESSES:
        return next((count for name, count in _SURFACES.items() if name in form.modifiers), 1)
    if base in _BEFORE_COORDINATES:
        return _BEFORE_COORDINATES[base] + _dimensions(form.modifiers) if position == 0 else 2
    if base in _BULK_COPIES:
        # Global memory takes a pair; shared memory one, and a second for its barrier where it is written to.
        return 1 if position == 1 and form.modifiers[:2] == ("G", "S") else 2
    return None


def _dimensions(modifiers: Sequence[str]) -> int:
    return next((int(name[0]) for name in modifiers if name in ("1D", "2D", "3D", "4D", "5D")), 1)


def hides_descriptor(form: Form) -> bool:
    """Whether the encoding may name a pair of uniform registers that the text leaves out."""
    return form.hides_descriptors and form.info.space in (MemorySpace.GLOBAL, MemorySpace.GENERIC)


def hidden_descriptor(form: Form, operands: str, low: int, high: int) -> Register | None:
    """The first of the pair that describes a 64-bit address on sm_80 to sm_89."""
    if ".64" not in operands or "desc" in operands:
        return None
    index = low >> 32 & 63 if form.base in ("LDG", "LD") else high & 63
    return None if index == _NO_UNIFORM else register(RegisterFile.UNIFORM, index)
