# SPDX-License-Identifier: Apache-2.0
"""Accesses of a warp to as many rows as it has threads, where the machine code alone shows it.

Of a distance that an argument decides nobody knows whether it is a row's length or one. It is a row's where a
loop of that length goes along it, or where the other axis of the block, or the blocks, run along it; and a
plane's, or a row's and an element more, are none that neighbouring threads are at by chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import Final

from gpadvisor.evidence.access_shapes import (
    AccessShape,
    Lie,
    access_shape,
    access_width,
    are_neighbours_in_blocks,
    sectors_of_a_warp,
)
from gpadvisor.evidence.accesses import is_atomic, is_global
from gpadvisor.evidence.addresses import neighbours, step_of_pass
from gpadvisor.evidence.arrays import has_length_of_loop
from gpadvisor.evidence.far_threads import are_far
from gpadvisor.evidence.library_code import in_library_loop
from gpadvisor.model.instruction import Instruction, MemorySpace, Register
from gpadvisor.model.machine import SECTOR_BYTES, WARP, CodeForm
from gpadvisor.model.profile import Launch
from gpadvisor.model.program import Function

_LONGEST_ROW: Final = 1 << 26
"""In bytes; what threads further apart access is of other arrays, or was not followed."""
_USUAL_THREADS: Final = 256
_WASTE: Final = 2
"""Sectors for each that the bytes would fill, from which accesses are scattered: windows of one take two."""


def usual_launch(kernel: str, block: tuple[int, int, int] | None, width: int | None = None) -> Launch:
    """A launch to follow addresses by where there is none: with the code's own block, or a usual one.

    In a usual one warps run along threadIdx.x, for the ``width`` where that is known, and there is a second
    axis for who uses it.
    """
    row = min(width or WARP, _USUAL_THREADS)
    return Launch(
        index=0,
        kernel=kernel,
        demangled=kernel,
        grid=(1, 1, 1),
        block=block or (row, _USUAL_THREADS // row, 1),
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


_OF_BLOCK: Final = re.compile(r"SR_CTAID\.[XYZ]")
_NUMBER: Final = re.compile("0x[0-9a-f]+")
_OTHER_AXES: Final = re.compile(r"SR_TID\.[YZ]")
_OF_THREAD: Final = re.compile(r"SR_TID\.[XYZ]")


def is_one_warp_tile(function: Function) -> bool:
    """Whether blocks stand side by side as tiles of a warp at most: then its threads share the same sectors.

    A tile's side is what the number of a block is multiplied by before that of a thread in it is added.
    """
    sides: dict[str, int] = {}
    for index, instruction in enumerate(function.instructions):
        side = _side(instruction)
        read = [_special(function, index, register) for register in instruction.uses]
        threads = [match[0] for text in read if (match := _OF_THREAD.search(text))]
        if side and len(read) == 2 and threads and any(map(_OF_BLOCK.search, read)):
            sides[threads[0]] = side
    return len(sides) > 1 and prod(sides.values()) <= WARP


@lru_cache(maxsize=64)
def width_of_blocks(function: Function) -> int | None:
    """The threads along x, where an index counts a block's as threadIdx.x + width * threadIdx.y, or .z."""
    for index, instruction in enumerate(function.instructions):
        side = _side(instruction)
        read = [_special(function, index, register) for register in instruction.uses] if side else []
        scaled = f"{instruction.operand_texts[1].removesuffix('.reuse')}," if side else ""
        rows = any(text.startswith(scaled) and _OTHER_AXES.search(text) for text in read)
        if rows and len(read) == 2 and any("SR_TID.X" in text for text in read):
            return side
    return None


def _side(instruction: Instruction) -> int:
    """The factor of a multiplication with a sum, or of a shift with one; 0 elsewhere."""
    if instruction.opcode not in {"IMAD", "LEA"}:
        return 0
    numbers = [int(text, 16) for text in instruction.operand_texts if _NUMBER.fullmatch(text)]
    if len(numbers) != 1:
        return 0
    return numbers[0] if instruction.opcode == "IMAD" else 1 << numbers[0]


def _special(function: Function, index: int, register: Register) -> str:
    """What a register was read from, where that is a special one."""
    makers = function.reaching.definitions(index, register)
    return function.instructions[min(makers)].operands if len(makers) == 1 else ""


def own_rows(function: Function, form: CodeForm, launch: Launch) -> Iterator[int]:
    """Global accesses, in the innermost loops that have any, whose threads are each in a row of their own.

    What a kernel reads as textures counts among these: beside it a result that is stored once is little.
    """
    accesses = [
        index
        for index, instruction in enumerate(function.instructions)
        if is_global(instruction) and not is_atomic(instruction)
    ]
    if is_one_warp_tile(function):
        return
    depth = {
        index: len(function.enclosing_loops(index))
        for index, instruction in enumerate(function.instructions)
        if is_global(instruction) or instruction.info.space is MemorySpace.TEXTURE
    }
    deepest = max(depth.values(), default=0)
    for index in accesses:
        if depth[index] == deepest and not in_library_loop(function, index):
            shape = access_shape(function, index, form, launch)
            apart = shape.lie in {Lie.ROWS, Lie.APART} and shape.distance >= SECTOR_BYTES
            sectors, filled = sectors_of_a_warp(function, index, form, launch) or (0, 1)
            if (
                apart
                and sectors >= _WASTE * filled
                and (is_row(function, index, form, launch) or are_far(function, index, form, launch))
                and not _takes_rest(function, index, shape, form, launch)
            ):
                yield index


def is_row(function: Function, index: int, form: CodeForm, launch: Launch) -> bool:
    """Whether something goes along what a thread accesses: a loop, the other axis of the block, or blocks."""
    shape = access_shape(function, index, form, launch)
    return shape.distance <= _LONGEST_ROW and (
        _goes_on(function, index, shape)
        or _crosses(function, index, form, launch)
        or are_neighbours_in_blocks(function, index, form, launch)
    )


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


def _takes_rest(function: Function, index: int, shape: AccessShape, form: CodeForm, launch: Launch) -> bool:
    """Whether wider accesses outside of loops take the whole row: the loop is for the end of the last one."""
    opcode, width = function.instructions[index].opcode, access_width(function, index)
    taken = sum(
        access_width(function, other)
        for other, instruction in enumerate(function.instructions)
        if instruction.opcode == opcode
        and access_width(function, other) > width
        and function.innermost_loop(other) is None
        and access_shape(function, other, form, launch) == shape
    )
    return taken >= shape.distance


def _crosses(function: Function, index: int, form: CodeForm, launch: Launch) -> bool:
    """Whether threads that follow each other in y access what follows each other."""
    return access_shape(function, index, form, launch, swapped=True).lie is Lie.NEIGHBOURS
