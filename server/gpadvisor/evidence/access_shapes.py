# SPDX-License-Identifier: Apache-2.0
"""How the addresses of a warp's threads lie to each other, and what would part those that share a bank."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from gpadvisor.evidence.accesses import is_global
from gpadvisor.evidence.addresses import Neighbours
from gpadvisor.evidence.lane_values import Carried, LaneArray, LaneValues
from gpadvisor.evidence.queries import loop_indices
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import OpcodeClass, Register
from gpadvisor.model.kind import Kind
from gpadvisor.model.machine import BANK_BYTES, SECTOR_BYTES, WARP, CodeForm
from gpadvisor.model.profile import Launch
from gpadvisor.model.program import Function

_PASSING: Final = frozenset({"MOVM", "PRMT", "MOV"})
_OTHER_INDEX: Final = "SR_TID.Y"
_SECOND_AXIS: Final = re.compile(r"SR_(?:CTAID|TID)\.[YZ]")
ARGUMENTS: Final = (0x1000, 0x3000)
"""Two numbers for what is not known: what moves with them is a row's length, what stays a constant."""
_ODD_ARGUMENT: Final = 1021
"""A prime for each argument: products of them are never a multiple of 2^32, which would be no distance."""
MATRIX_ROW_BYTES: Final = 16
"""What the address of each thread stands for in LDSM."""


class Lie(Kind):
    """How neighbouring threads' addresses lie."""

    SAME = "same"
    NEIGHBOURS = "neighbours"
    APART = "apart"  # by a constant distance
    ROWS = "rows"  # by a distance that an argument decides
    BY_DATA = "by data"  # the address is computed from what was loaded
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class AccessShape:
    """The shape of one access."""

    lie: Lie
    distance: int = 0  # in bytes, between threads that follow each other
    run: int = WARP  # threads after which it starts anew: the width of a narrow block


def access_shape(
    function: Function, index: int, form: CodeForm, launch: Launch, *, swapped: bool = False
) -> AccessShape:
    """How the threads of a block's first warp access memory; also as with threadIdx.x and .y swapped."""
    width = access_width(function, index)
    first = lane_addresses(function, index, form, launch, ARGUMENTS[0], swapped=swapped)
    if first is None or isinstance(first, Lie):
        return AccessShape(first or Lie.UNKNOWN)
    second = lane_addresses(function, index, form, launch, ARGUMENTS[1], swapped=swapped)
    if second is None or isinstance(second, Lie):
        return AccessShape(Lie.UNKNOWN)
    steps, second_steps = steps_of(first), steps_of(second)
    run = run_of(steps)
    if run == 1:
        return AccessShape(Lie.UNKNOWN)
    distance = abs(int(steps[0]))
    if distance == 0:
        return AccessShape(Lie.SAME, run=run)
    if distance == width:
        return AccessShape(Lie.NEIGHBOURS, distance, run)
    return AccessShape(Lie.APART if steps[0] == second_steps[0] else Lie.ROWS, distance, run)


def has_one_axis(function: Function) -> bool:
    """Whether the threads of a grid differ in one index alone: no other one is there to be swapped."""
    return not any(_SECOND_AXIS.search(instruction.operands) for instruction in function.instructions)


def distance_of_runs(run: Neighbours, shape: AccessShape) -> int:
    """Bytes between the runs of neighbouring threads; of runs side by side where it is not known.

    A run that all threads share is taken for one of several, as the rows of a filter, that lie side by side.
    """
    regular = shape.lie in {Lie.NEIGHBOURS, Lie.APART}
    return shape.distance if regular else len(run.indices) * run.width_bytes


def widest_aligned(run: Neighbours, shape: AccessShape, step: int | None = None) -> int:
    """Bytes of the widest access for values of a run that stays aligned.

    What keeps it so is the distance between threads, of runs that lie side by side where it is not known, and
    the ``step`` of a loop's pass where that is known.
    """
    apart = [distance_of_runs(run, shape), *([] if step is None else [step])]
    wide = run.width_bytes * run.per_access
    while wide > run.width_bytes and any(distance % wide for distance in apart):
        wide //= 2
    return wide


def scattered_by_swap(function: Function, index: int, form: CodeForm, launch: Launch) -> int | None:
    """An access of the same loop whose threads would part if threadIdx.x and threadIdx.y were swapped."""
    return _scattered_by_swap(function, function.innermost_loop(index), form, launch)


@lru_cache(maxsize=256)
def _scattered_by_swap(function: Function, loop: LoopId | None, form: CodeForm, launch: Launch) -> int | None:
    if not any(_OTHER_INDEX in instruction.operands for instruction in function.instructions):
        return None
    inside = range(len(function.instructions)) if loop is None else loop_indices(function, loop)
    for access in inside:
        if is_global(function.instructions[access]):
            parted = is_spread(access_shape(function, access, form, launch, swapped=True))
            if parted and not is_spread(access_shape(function, access, form, launch)):
                return access
    return None


def are_neighbours_in_blocks(function: Function, index: int, form: CodeForm, launch: Launch) -> bool:
    """Whether the threads of the next block along x each access what follows the same thread's address."""
    first, second = (
        lane_addresses(function, index, form, launch, ARGUMENTS[0], block=block) for block in (0, 1)
    )
    if first is None or second is None or isinstance(first, Lie) or isinstance(second, Lie):
        return False
    return bool((second - first == access_width(function, index)).all())


def is_spread(shape: AccessShape) -> bool:
    """Whether each thread needs a sector of its own."""
    return shape.lie in {Lie.ROWS, Lie.APART} and shape.distance >= SECTOR_BYTES


def access_width(function: Function, index: int) -> int:
    """Bytes at each address of an access."""
    instruction = function.instructions[index]
    return MATRIX_ROW_BYTES if instruction.opcode == "LDSM" else instruction.width_bytes or BANK_BYTES


def steps_of(addresses: LaneArray) -> LaneArray:
    """Bytes from each thread's address to that of the next one, with a sign."""
    steps = np.diff(addresses)
    return (steps + (1 << 31)) % (1 << 32) - (1 << 31)


@lru_cache(maxsize=4096)
def lane_addresses(
    function: Function,
    index: int,
    form: CodeForm,
    launch: Launch,
    argument: int,
    *,
    shared: bool = False,
    swapped: bool = False,
    carried: Carried | None = None,
    block: int = 0,
) -> LaneArray | Lie | None:
    """The addresses of an access, or what keeps them from being known; None where it has none.

    Args:
        function: with the access.
        index: of the access.
        form: of the code.
        launch: whose first warp is looked at.
        argument: stands for what is not known.
        shared: whether the first of two addresses is meant, as of an asynchronous copy.
        swapped: whether threadIdx.x and threadIdx.y are.
        carried: a value to look at in place of that of a loop's first pass.
        block: the number of the block along x.
    """
    values = _values(function, form, launch, argument, swapped=swapped, carried=carried, block=block)
    value = values.address(index, first=shared)
    if value is None:
        return None
    if value.lanes is None:
        return Lie.BY_DATA if value.loaded else Lie.UNKNOWN
    return value.lanes


@lru_cache(maxsize=16)
def _values(
    function: Function,
    form: CodeForm,
    launch: Launch,
    argument: int,
    *,
    swapped: bool = False,
    carried: Carried | None = None,
    block: int = 0,
) -> LaneValues:
    return LaneValues(function, form, launch, argument, swapped=swapped, carried=carried, block=block)


def holds_loaded(function: Function, index: int, register: Register, form: CodeForm, launch: Launch) -> bool:
    """Whether threads have loaded, each for itself, what a register holds before an instruction."""
    value = _values(function, form, launch, ARGUMENTS[0]).register(index, register)
    return value.lanes is None and value.loaded


def words_of_a_warp(function: Function, index: int, form: CodeForm, launch: Launch) -> int | Lie | None:
    """Different words that the threads of a warp access; None where the addresses are not known."""
    addresses = lane_addresses(function, index, form, launch, _ODD_ARGUMENT)
    if addresses is None or isinstance(addresses, Lie):
        return addresses
    return len({*(addresses // BANK_BYTES).tolist()})


def sectors_of_a_warp(
    function: Function, index: int, form: CodeForm, launch: Launch
) -> tuple[int, float] | None:
    """Sectors that the threads of a block's first warp access, and those that their bytes would fill.

    None where the addresses are not known.
    """
    addresses = lane_addresses(function, index, form, launch, ARGUMENTS[0])
    if addresses is None or isinstance(addresses, Lie):
        return None
    width, places = access_width(function, index), {*addresses.tolist()}
    sectors = {end // SECTOR_BYTES for first in places for end in (first, first + width - 1)}
    return len(sectors), len(places) * width / SECTOR_BYTES


def is_for_one_thread(function: Function, index: int, form: CodeForm, launch: Launch) -> bool:
    """Whether an instruction is behind a comparison that holds, or fails, for one thread alone."""
    return _is_for_one_thread(function, function.block_of[index], form, launch)


@lru_cache(maxsize=1024)
def _is_for_one_thread(function: Function, block: int, form: CodeForm, launch: Launch) -> bool:
    chosen = _choices_of_one_thread(function, form, launch)
    return bool(chosen) and any(
        not chosen.isdisjoint(function.reaching.definitions(branch, guard.register))
        for branch in deciding_branches(function, function.blocks[block].start)
        if (guard := function.instructions[branch].guard) is not None
    )


@lru_cache(maxsize=16)
def _choices_of_one_thread(function: Function, form: CodeForm, launch: Launch) -> frozenset[int]:
    """The comparisons that hold, or fail, for one thread of a warp alone."""
    values, found = _values(function, form, launch, ARGUMENTS[0]), set[int]()
    for index, compare in enumerate(function.instructions):
        if compare.opcode == "ISETP" and not {"EQ", "NE"}.isdisjoint(compare.modifiers):
            left, right = (values.operand(index, text).lanes for text in compare.operand_texts[2:4])
            if left is not None and right is not None and int((left == right).sum()) == 1:
                found.add(index)
    return frozenset(found)


def deciding_branches(function: Function, index: int) -> Iterator[int]:
    """The branches and exits above an instruction that keep some threads from it."""
    block = function.block_of[index]
    block_id = function.idom[block]
    while block_id is not None:
        branch, ways = function.blocks[block_id].end - 1, function.blocks[block_id].successors
        instruction = function.instructions[branch]
        leaves = instruction.info.opclass is OpcodeClass.EXIT
        if instruction.guard is not None and (
            leaves or not all(_reaches(function, int(successor), block) for successor, _ in ways)
        ):
            yield branch
        block_id = function.idom[block_id]


def _reaches(function: Function, start: int, target: int) -> bool:
    pending, visited = [start], set[int]()
    while pending and target not in visited:
        block = pending.pop()
        if block not in visited:
            visited.add(block)
            pending += [int(block_id) for block_id, _ in function.blocks[block].successors]
    return target in visited


def run_of(steps: LaneArray) -> int:
    """Threads after which the distance between them changes, where it does so regularly; 1 where not."""
    run = int(np.argmax(steps != steps[0])) + 1 if (steps != steps[0]).any() else WARP
    inside = np.arange(1, WARP) % run != 0
    return 1 if WARP % run or (steps[inside] != steps[0]).any() else run


def feeds_tensor_cores(function: Function, index: int) -> bool:
    """Whether a load brings operands of a matrix instruction, as they are or transposed."""
    definitions = function.reaching.definitions
    readers = _readers_for_tensor_cores(function)
    pending, visited = [index], {index}
    while pending:
        definition = pending.pop()
        for read in function.instructions[definition].defs:
            for use in readers.get(read, ()):
                if use in visited or definition not in definitions(use, read):
                    continue
                if function.instructions[use].opcode not in _PASSING:
                    return True
                visited.add(use)
                pending.append(use)
    return False


@lru_cache(maxsize=64)
def _readers_for_tensor_cores(function: Function) -> Mapping[Register, Sequence[int]]:
    """By register: matrix instructions that read it, and what passes it on; nothing without the former."""
    result: dict[Register, list[int]] = {}
    needed = False
    for use, instruction in enumerate(function.instructions):
        passing = instruction.opcode in _PASSING
        if passing or instruction.info.opclass is OpcodeClass.TENSOR:
            needed = needed or not passing
            for read in dict.fromkeys(instruction.uses):
                result.setdefault(read, []).append(use)
    return result if needed else {}
