# SPDX-License-Identifier: Apache-2.0
"""Threads of a warp whose distance alone shows that each needs sectors of its own, which nobody fills."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Final

from gpadvisor.evidence.access_shapes import (
    ARGUMENTS,
    AccessShape,
    Lie,
    access_shape,
    access_width,
    is_for_one_thread,
    lane_addresses,
    steps_of,
)
from gpadvisor.evidence.accesses import is_global
from gpadvisor.evidence.arrays import address_makers, same_array
from gpadvisor.evidence.atomics import has_address_from_before
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.integers import MASK
from gpadvisor.model.machine import SECTOR_BYTES, WARP, CodeForm
from gpadvisor.model.profile import Launch
from gpadvisor.model.program import Function

_WASTE: Final = 2
"""Bytes moved for each that threads access, above which sectors are wasted."""


def are_far(function: Function, index: int, form: CodeForm, launch: Launch) -> bool:
    """Whether threads are a plane apart, a row and an element, or an element of which little is accessed.

    What stays from pass to pass is in L1 soon, and a kernel that loads nothing sets data up. Of a table whose
    rows are also accessed side by side, as beside a border, another layout scatters those accesses.
    """
    shape, loop = access_shape(function, index, form, launch), function.innermost_loop(index)
    if (
        shape.run != WARP
        or not any(_loads(function))
        or (loop is not None and has_address_from_before(function, index, loop))
        or is_for_one_thread(function, index, form, launch)
        or any(
            abs(step) == width and same_array(function, index, other)
            for other, (_, step, width) in _known(function, form, launch).items()
        )
    ):
        return False
    if shape.lie is Lie.APART:
        return shape.distance >= SECTOR_BYTES and _wastes(function, index, shape, form, launch)
    return shape.lie is Lie.ROWS and _is_beyond_a_row(function, index, form, launch)


def _loads(function: Function) -> Iterator[int]:
    for index, instruction in enumerate(function.instructions):
        if is_global(instruction) and instruction.info.opclass is OpcodeClass.LOAD:
            yield index


def _is_beyond_a_row(function: Function, index: int, form: CodeForm, launch: Launch) -> bool:
    """Whether the distance is a product of two arguments, or one argument's and an element more or less."""
    first, second = (
        addresses if addresses is None or isinstance(addresses, Lie) else int(steps_of(addresses)[0])
        for addresses in (lane_addresses(function, index, form, launch, argument) for argument in ARGUMENTS)
    )
    if not isinstance(first, int) or not isinstance(second, int):
        return False
    grows = ARGUMENTS[1] // ARGUMENTS[0]
    slope, rest = divmod(second - first, ARGUMENTS[1] - ARGUMENTS[0])
    in_row = first - slope * ARGUMENTS[0]
    return (grows * grows * first - second) & MASK == 0 or (
        not rest and abs(in_row) == access_width(function, index)
    )


def _wastes(function: Function, index: int, shape: AccessShape, form: CodeForm, launch: Launch) -> bool:
    """Whether all accesses to one access's elements fill less than half of the sectors that they touch.

    Objects that hold pointers are not told to be taken apart.
    """
    known = _known(function, form, launch)
    if index in _makers_of_addresses(function):
        return False
    first, apart, _ = known[index]
    beside = {
        (other, width)
        for other, step, width in known.values()
        if step == apart and abs(other - first) < shape.distance
    }
    accessed = {
        other + thread * apart + byte
        for other, width in beside
        for thread in range(WARP)
        for byte in range(width)
    }
    sectors = {byte // SECTOR_BYTES for byte in accessed}
    return _WASTE * len(accessed) < SECTOR_BYTES * len(sectors)


@lru_cache(maxsize=16)
def _known(function: Function, form: CodeForm, launch: Launch) -> dict[int, tuple[int, int, int]]:
    """By global access: the first thread's address, bytes to the next one's, and the width; where regular."""
    found = {}
    for index in filter(partial(_is_global, function), range(len(function.instructions))):
        addresses = lane_addresses(function, index, form, launch, ARGUMENTS[0])
        if addresses is not None and not isinstance(addresses, Lie):
            steps = steps_of(addresses)
            if (steps == steps[0]).all():
                found[index] = int(addresses[0]), int(steps[0]), access_width(function, index)
    return found


@lru_cache(maxsize=16)
def _makers_of_addresses(function: Function) -> frozenset[int]:
    accesses = filter(partial(_is_global, function), range(len(function.instructions)))
    return frozenset().union(*(address_makers(function, access) for access in accesses))


def _is_global(function: Function, index: int) -> bool:
    return is_global(function.instructions[index])
