# SPDX-License-Identifier: Apache-2.0
"""Whole numbers of more digits than a float has, that are computed exactly in double precision."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import lru_cache
from typing import Final

from gpadvisor.model.instruction import OpcodeClass, RegisterFile, register_file
from gpadvisor.model.program import Function

_DIGITS: Final = 12
"""Bits of a part, from where two parts have more than the 24 of a float."""
_DOWN: Final = frozenset({"TRUNC", "FLOOR"})
_MOST: Final = 1000
"""Instructions that a cut is followed back through."""


@lru_cache(maxsize=64)
def exact_doubles(function: Function) -> frozenset[int]:
    """The double operations that make what is cut into a whole part and the rest by a power of two.

    As random numbers of 46 bits are computed: ``rest = x - 2^23 * (int)(2^-23 * x)``. A float would lose the
    digits that the rest is made of.
    """
    code = function.instructions
    pending = [
        index
        for index, instruction in enumerate(code)
        if instruction.opcode == "DFMA" and _cuts(function, index)
    ]
    visited = set(pending)
    while pending and len(visited) < _MOST:
        for maker in _makers(function, pending.pop()) - visited:
            visited.add(maker)
            pending.append(maker)
    return frozenset(position for position in visited if code[position].info.opclass is OpcodeClass.FLOAT64)


def _cuts(function: Function, index: int) -> bool:
    """Whether an instruction takes a whole multiple of a large power of two away from a number."""
    factors = function.instructions[index].operand_texts
    if not any(_power_of_two(factor) >= _DIGITS for factor in factors):
        return False
    return any(_is_whole(function, maker) for maker in _makers(function, index))


def _is_whole(function: Function, index: int) -> bool:
    instruction = function.instructions[index]
    if instruction.opcode == "FRND":
        return not _DOWN.isdisjoint(instruction.modifiers)
    makers = (
        (function.instructions[maker] for maker in _makers(function, index))
        if instruction.opcode == "I2F"
        else ()
    )
    return any(
        maker.opcode == "F2I" and "F64" in maker.modifiers and not _DOWN.isdisjoint(maker.modifiers)
        for maker in makers
    )


def _makers(function: Function, index: int) -> set[int]:
    """The instructions that write the general registers which one reads."""
    reads = (use for use in function.instructions[index].uses if register_file(use) is RegisterFile.GPR)
    return {definition for read in reads for definition in function.reaching.definitions(index, read)}


def _power_of_two(text: str) -> int:
    """The exponent of a literal that is a power of two, of either sign; 0 for everything else."""
    with suppress(ValueError):
        part, exponent = math.frexp(abs(float(text)))
        return exponent - 1 if part == 0.5 else 0
    return 0
