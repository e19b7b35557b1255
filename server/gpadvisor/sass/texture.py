# SPDX-License-Identifier: Apache-2.0
"""Register counts of texture fetches: two destinations by component mask, coordinates by kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpadvisor.model.instruction import Register
from gpadvisor.sass.tokens import Operand, OperandKind

FETCHES: Final = frozenset({"TEX", "TLD", "TLD4", "TXD", "TMML", "TXQ", "FOOTPRINT", "TXA"})

_DIMENSIONS: Final = {
    "1D": 1, "2D": 2, "3D": 3, "CUBE": 3, "ARRAY_1D": 2, "ARRAY_2D": 3, "ARRAY_3D": 4, "ARRAY_CUBE": 4,
}  # fmt: skip
_PLAIN_DIMENSIONS: Final = {
    "1D": 1,
    "2D": 2,
    "3D": 3,
    "CUBE": 3,
    "ARRAY_1D": 1,
    "ARRAY_2D": 2,
    "ARRAY_CUBE": 3,
}
_LEVEL: Final = frozenset({"LL", "LB", "LLA", "LBA"})
_EXTRA: Final = frozenset({"AOFFI", "DC", "MS", "LC", "CL"})
_ALL_COMPONENTS: Final = 4
_HANDLE: Final = 2  # uniform registers of a bindless handle


def fetch_registers(
    base: str, modifiers: Sequence[str], operands: Sequence[Operand], destinations: int
) -> tuple[list[Register], list[Register]]:
    """Registers written and read by a texture fetch; the first ``destinations`` operands are written."""
    written = [operand for operand in operands[:destinations] if operand.is_register]
    sources = [operand for operand in operands[destinations:] if operand.kind is OperandKind.GPR]
    defs = [r for operand in operands[:destinations] if operand.is_predicate for r in operand.registers()]
    first, second = _component_counts(operands)
    if len(written) == 2:
        # The text prints the destination of the later components first.
        defs += [*written[1].registers(first), *written[0].registers(second)]
    elif written:
        defs += written[0].registers(first + second)
    uses: list[Register] = []
    for operand, count in zip(sources, _source_counts(base, modifiers, operands, len(sources)), strict=False):
        uses += operand.registers(count)
    for operand in operands[destinations:]:
        if operand.kind is not OperandKind.GPR:
            uses += operand.registers(_HANDLE if operand.kind is OperandKind.UNIFORM else 1)
    return defs, uses


def _component_counts(operands: Sequence[Operand]) -> tuple[int, int]:
    """Components in the first and second destination; the mask comes last, or is full and not printed."""
    last_operand = operands[-1].value if operands else None
    count = (last_operand & 15).bit_count() if last_operand is not None else _ALL_COMPONENTS
    return min(count, 2), max(count - 2, 0)


def _dimension(operands: Sequence[Operand]) -> str:
    return next((operand.text for operand in reversed(operands) if operand.text in _DIMENSIONS), "2D")


def _source_counts(
    base: str, modifiers: Sequence[str], operands: Sequence[Operand], sources: int
) -> tuple[int, ...]:
    if base == "TXQ":
        return (1, 1)
    dimension = _dimension(operands)
    coordinates = _DIMENSIONS[dimension]
    handle = _bindless(base, modifiers)
    rest = sum(modifier in _LEVEL or modifier in _EXTRA for modifier in modifiers)
    if base == "TXD":
        return coordinates + handle, rest + 2 * _PLAIN_DIMENSIONS.get(dimension, 2)
    if "SCR" in modifiers:
        # Scalar form: up to four arguments, split evenly over both sources, the first one taking the odd one.
        total = coordinates + rest + handle
        return (total + 1) // 2, total // 2
    return (coordinates, max(rest + handle, 1)) if sources > 1 else (coordinates,)


def _bindless(base: str, modifiers: Sequence[str]) -> bool:
    """Whether a register holds the handle: ``.B``, for TLD4 behind its component's letter."""
    if base == "TLD4":
        return "B" in modifiers and sum(modifier in ("R", "G", "B", "A") for modifier in modifiers) > 1
    return "B" in modifiers
