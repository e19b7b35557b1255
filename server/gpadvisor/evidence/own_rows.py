# SPDX-License-Identifier: Apache-2.0
"""Accesses of a warp to as many rows as it has threads, where the machine code alone shows it.

Of a distance that an argument decides nobody knows whether it is a row's length or one. It is a row's where a
loop of that length goes along it, or where the other axis of the block runs along it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpadvisor.evidence.access_shapes import AccessShape, Lie, access_shape
from gpadvisor.evidence.accesses import is_atomic, is_global
from gpadvisor.evidence.addresses import neighbours, step_of_pass
from gpadvisor.evidence.arrays import has_length_of_loop
from gpadvisor.evidence.library_code import in_library_loop
from gpadvisor.model.machine import SECTOR_BYTES, WARP, CodeForm
from gpadvisor.model.profile import Launch
from gpadvisor.model.program import Function

_LONGEST_ROW: Final = 1 << 26
"""In bytes; what threads further apart access is of other arrays, or was not followed."""
_USUAL_BLOCK: Final = (WARP, 8, 1)
"""Where nobody knows the launch: warps run along threadIdx.x, and there is a second axis for who uses it."""


def usual_launch(kernel: str, block: tuple[int, int, int] | None) -> Launch:
    """A launch to follow addresses by where there is none: with the code's own block, or a usual one."""
    return Launch(
        index=0,
        kernel=kernel,
        demangled=kernel,
        grid=(1, 1, 1),
        block=block or _USUAL_BLOCK,
        cluster=None,
        registers_per_thread=None,
        static_shared_bytes=None,
        dynamic_shared_bytes=None,
        driver_shared_bytes=None,
        carveout_shared_bytes=None,
        duration_ns=None,
        context=None,
        stream=None,
        failed=False,
    )


def own_rows(function: Function, form: CodeForm, launch: Launch) -> Iterator[int]:
    """Global accesses, in the innermost loops that have any, whose threads are each in a row of their own."""
    accesses = [
        index
        for index, instruction in enumerate(function.instructions)
        if is_global(instruction) and not is_atomic(instruction)
    ]
    depth = {index: len(function.enclosing_loops(index)) for index in accesses}
    deepest = max(depth.values(), default=0)
    for index in accesses:
        if depth[index] == deepest and not in_library_loop(function, index):
            shape = access_shape(function, index, form, launch)
            apart = shape.lie in {Lie.ROWS, Lie.APART} and SECTOR_BYTES <= shape.distance <= _LONGEST_ROW
            if apart and (_goes_on(function, index, shape) or _crosses(function, index, form, launch)):
                yield index


def _goes_on(function: Function, index: int, shape: AccessShape) -> bool:
    """Whether the next pass accesses the next sector at most, or what follows all that this one does.

    Of a distance that an argument decides, the loop has to be as long as the row: windows are shorter, and
    may begin side by side.
    """
    loop, step = function.innermost_loop(index), step_of_pass(function, index)
    if loop is None or step is None or not 0 < abs(step) < shape.distance:
        return False
    run = next((run for run in neighbours(function) if index in run.indices), None)
    in_a_pass = 0 if run is None else len(run.indices) * run.width_bytes
    if abs(step) > max(SECTOR_BYTES, in_a_pass):
        return False
    return shape.lie is Lie.APART or has_length_of_loop(function, index, loop)


def _crosses(function: Function, index: int, form: CodeForm, launch: Launch) -> bool:
    """Whether threads that follow each other in y access what follows each other."""
    return access_shape(function, index, form, launch, swapped=True).lie is Lie.NEIGHBOURS
