# SPDX-License-Identifier: Apache-2.0
"""What would bring a warp's accesses to memory together, by the places that they go to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Final

import numpy as np

from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.conflict_words import cure_of_conflict
from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.access_shapes import (
    ARGUMENTS,
    AccessShape,
    Lie,
    access_shape,
    are_neighbours_in_blocks,
    distance_of_runs,
    feeds_tensor_cores,
    has_one_axis,
    is_spread,
    scattered_by_swap,
    widest_aligned,
)
from gpadvisor.evidence.accesses import is_global, is_shared
from gpadvisor.evidence.addresses import Neighbours, factors, neighbours, step_of_pass
from gpadvisor.evidence.arrays import address_makers, same_array
from gpadvisor.evidence.banks import Conflict, conflict
from gpadvisor.evidence.callers import is_chosen_by_callers_data, is_searched
from gpadvisor.evidence.library_code import in_library_loop
from gpadvisor.evidence.measured import Floats, executed_warps
from gpadvisor.evidence.queries import by_instruction, by_stall, causes, counted, line_text
from gpadvisor.evidence.traffic import Traffic
from gpadvisor.model.blame import Blame
from gpadvisor.model.figures import percent
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.machine import SECTOR_BYTES, WARP, WIDEST_BYTES
from gpadvisor.model.profile import KernelProfile, Launch
from gpadvisor.model.program import Function
from gpadvisor.model.stalls import StallClass
from gpadvisor.model.thread_use import CodePlace

THROTTLE: Final = frozenset({StallClass.MEMORY_THROTTLE, StallClass.TEXTURE_THROTTLE})
"""Waits for the queue of the load/store unit."""
LOOKED: Final = 24
"""Places that waste most whose addresses are followed."""
_SPREAD: Final = WARP / 2
"""Sectors of a warp's access from which its threads have nearly one each, whatever their addresses are."""

Cures = Mapping[CodePlace, str]
"""What to change by instruction; empty where nothing in the source would bring its threads together."""


def cures_of(context: KernelContext, profile: KernelProfile, blame: Blame, traffic: Traffic | None) -> Cures:
    """By place; where nobody counted each access, of those that fill the queue, by their addresses alone."""
    if traffic is not None:
        return _cures_by_counts(context, profile, traffic)
    filled: Counter[CodePlace] = Counter()
    accesses = by_instruction(blame, context.program, causes(blame), is_global)
    rows = np.flatnonzero(by_stall(blame, THROTTLE) & accesses)
    for row, index in zip(rows.tolist(), causes(blame)[rows].tolist(), strict=True):
        filled[FunctionId(int(blame.rows.function[row])), index] += int(blame.rows.samples[row])
    return {
        (function, index): cure_of_shape(context, profile, context.program.functions[function], index)
        for (function, index), _ in filled.most_common(LOOKED)
    }


def places_without_cure(traffic: Traffic, cures: Cures) -> set[CodePlace]:
    """Places of which nothing is known that would help; where none of a kind has a cure, all of that kind."""
    result = {place for place in cures if not cures[place]}
    for kind in (traffic.scattered, traffic.conflicting):
        if not any(cures.get(place) for place in kind):
            result.update(kind)
    return result


def _cures_by_counts(context: KernelContext, profile: KernelProfile, traffic: Traffic) -> Cures:
    """Look at the places that waste most; what a library's own loop accesses is not to be changed."""
    result = {}
    for place in islice(traffic.scattered, LOOKED):
        result[place] = _cure_of_scattered(context, profile, traffic, place)
    return {**result, **_cures_of_conflicts(context, profile, list(islice(traffic.conflicting, LOOKED)))}


def _cures_of_conflicts(context: KernelContext, profile: KernelProfile, places: list[CodePlace]) -> Cures:
    """By place; what the addresses of one do not show, those of another of its function may."""
    result: dict[CodePlace, str] = {}
    shown: dict[FunctionId, str] = {}
    for place in places:
        result[place] = cure_of_conflict(context, profile, place)
        if result[place] and _conflict(context, profile, place) is not None:
            shown.setdefault(place[0], result[place])
    return {
        place: shown.get(place[0], cure) if cure and _conflict(context, profile, place) is None else cure
        for place, cure in result.items()
    }


def _conflict(context: KernelContext, profile: KernelProfile, place: CodePlace) -> Conflict | None:
    """What the addresses show."""
    found = conflict(context.program.functions[place[0]], place[1], context.program.form, profile.launch)
    return found if isinstance(found, Conflict) else None


_BY_ROWS: Final = (
    "let {along} run along a row (swap the indices), or go through shared memory: neighbouring threads "
    "access different rows"
)
_A_ROW_EACH: Final = (
    "let neighbouring threads take neighbouring elements of one row (a warp or a block for each row, of "
    "short rows some threads of a warp), or go through shared memory: neighbouring threads access different "
    "rows"
)
_BY_COLUMNS: Final = (
    "let neighbouring threads take the columns that neighbouring blocks take now, or go through shared "
    "memory: neighbouring threads access different rows, where these have more than one element"
)
_BY_TILES: Final = (
    "fill tiles in shared memory with whole rows, or let each thread load 16 bytes of its row at a time: "
    "neighbouring threads access different rows"
)
_BY_TILE_READ: Final = (
    "read the tile in shared memory the other way around, so that {along} runs along the row that is "
    "stored: neighbouring threads store to different rows"
)
_BY_ARGUMENT: Final = (
    "let neighbouring threads access neighbouring addresses: how far apart they are, an argument decides"
)
SEARCHED: Final = (
    "sort what the threads look for beforehand, if its order is free, so that neighbours take the same way: "
    "what a search loads decides where it goes next"
)
"""Queries of four binary searches, sorted, gave 3.2x to 4.0x on an H100."""
GENERAL: Final = "let neighbouring threads access neighbouring addresses, or go through shared memory"


def _cure_of_scattered(
    context: KernelContext, profile: KernelProfile, traffic: Traffic, place: CodePlace
) -> str:
    function, index = context.program.functions[place[0]], place[1]
    if in_library_loop(function, index):
        return ""
    if is_chosen_by_callers_data(context.program, function, index, profile.launch):
        return ""
    if is_searched(function, index):
        return SEARCHED
    executed = executed_warps(profile, function)
    waste = None if executed is None or not executed[index] else traffic.scattered[place] / executed[index]
    shape = access_shape(function, index, context.program.form, profile.launch)
    if feeds_tensor_cores(function, index):
        return _cure_of_fragments(profile)
    if waste is not None and waste <= constants.ABOUT * WARP / shape.run and shape.lie is not Lie.APART:
        return ""  # one sector more: a row seldom begins on one
    spread = executed is None or traffic.requested[place] > _SPREAD * executed[index]
    if shape.lie is Lie.ROWS:
        return cure_of_rows(context, profile.launch, function, index) if spread else _BY_ARGUMENT
    run = next((neighbour for neighbour in neighbours(function) if index in neighbour.indices), None)
    if run is not None:
        text = _cure_of_run(function, index, run, shape, traffic.requested[place], executed)
        if text:
            return text
    if shape.lie is Lie.BY_DATA:
        return ""
    if shape.lie is Lie.APART:
        text = _cure_of_tested(function, index, shape)
        if text:
            return text
    if shape.lie is Lie.SAME and shape.run < WARP:
        return ""  # rows of a block read one value each
    return _cure_of_distance(context, profile.launch, function, index) or (GENERAL if spread else "")


def _cure_of_tested(function: Function, index: int, shape: AccessShape) -> str:
    """What to do where each thread tests each of the values that are its own; empty where it does not."""
    code, block = function.instructions, function.block_of[index]
    for run in neighbours(function, any_guard=True):
        first = run.indices[0]
        alike = code[first].opcode == code[index].opcode and function.block_of[first] == block
        wide = widest_aligned(run, shape)
        if alike and wide > run.width_bytes and _span(run) > constants.MAJORITY * shape.distance:
            return (
                f"use accesses of {wide} bytes where all is inside, and single ones at the edge alone: each "
                f"thread tests and accesses one by one the {shape.distance} bytes that are its own"
            )
    return ""


def _span(run: Neighbours) -> int:
    return len(run.indices) * run.width_bytes


def _cure_of_fragments(profile: KernelProfile) -> str:
    alone = " for several warps of a block (it has one now)" if profile.has_blocks_of_one_warp else ""
    return (
        f"fill tiles in shared memory with whole rows{alone}, and load the fragments from there: "
        "fragments of a matrix come straight from device memory"
    )


def cure_of_rows(
    context: KernelContext, launch: Launch, function: Function, index: int, *, followed: bool = True
) -> str:
    """What to do where a warp's threads are in different rows.

    Args:
        context: the kernel.
        launch: of it.
        function: with the access.
        index: of the access.
        followed: whether all loads could be; swapped indices may scatter one that was not.
    """
    along = terms.ALONG_X.of(context.language)
    if any(is_shared(function.instructions[position]) for position in _stored(function, index)):
        return _BY_TILE_READ.format(along=along)
    swapped = scattered_by_swap(function, index, context.program.form, launch)
    if swapped is None:
        if not followed:
            return _BY_TILES
        if _goes_along_alone(context, launch, function, index):
            return _A_ROW_EACH
        if are_neighbours_in_blocks(function, index, context.program.form, launch):
            return _BY_COLUMNS
        return _BY_TILES if has_one_axis(function) else _BY_ROWS.format(along=along)
    verb = "store" if function.instructions[index].info.opclass is OpcodeClass.STORE else "load"
    return (
        f"fill tiles in shared memory with whole rows, or let each thread {verb} 16 bytes of its row at a "
        "time: neighbouring threads access different rows of one operand, and with the indices swapped "
        f"of another ({line_text(function, swapped)})"
    )


def _goes_along_alone(context: KernelContext, launch: Launch, function: Function, index: int) -> bool:
    """Whether a thread goes along its row by steps that are not a row's, and no other index does."""
    step = step_of_pass(function, index)
    if step is None or not 0 < abs(step) < ARGUMENTS[0]:
        return False
    swapped = access_shape(function, index, context.program.form, launch, swapped=True)
    return has_one_axis(function) or is_spread(swapped)


def _stored(function: Function, index: int) -> frozenset[int]:
    """What may have written the value that a store stores; nothing of other accesses."""
    if function.instructions[index].info.opclass is not OpcodeClass.STORE:
        return frozenset()
    value = function.instructions[index].operands.rpartition(",")[2]
    registers = [use for use in function.instructions[index].uses if f"R{int(use)}" == value.strip()]
    return frozenset().union(*(function.reaching.definitions(index, register) for register in registers))


def _cure_of_distance(context: KernelContext, launch: Launch, function: Function, index: int) -> str:
    """What to do where a constant distance, or a narrow block, keeps threads apart; empty where none does."""
    shape = access_shape(function, index, context.program.form, launch)
    if shape.lie is Lie.APART and shape.distance > SECTOR_BYTES:
        swapped = access_shape(function, index, context.program.form, launch, swapped=True)
        if swapped.lie in {Lie.NEIGHBOURS, Lie.APART} and swapped.distance < SECTOR_BYTES:
            return cure_of_rows(context, launch, function, index)
    if shape.lie is Lie.NEIGHBOURS and shape.run * shape.distance < SECTOR_BYTES:
        return (
            f"make the block wider in x: a row of it is {counted(shape.run, 'thread')} wide, which access "
            f"{shape.run * shape.distance} bytes side by side"
        )
    if shape.lie is Lie.APART:
        return (
            "let what neighbouring threads access follow each other (a structure of arrays, or each thread "
            f"every n-th element), or go through shared memory: they are {shape.distance} bytes apart"
        )
    return ""


def are_followed(context: KernelContext, profile: KernelProfile, function: Function) -> bool:
    """Whether the addresses of all accesses to global memory could be followed."""
    form, launch = context.program.form, profile.launch
    return not any(
        access_shape(function, position, form, launch).lie is Lie.UNKNOWN
        for position, instruction in enumerate(function.instructions)
        if is_global(instruction)
    )


def cure_of_shape(
    context: KernelContext, profile: KernelProfile, function: Function, index: int, *, followed: bool = True
) -> str:
    """What to do by the addresses alone, where nobody counted an access; ``followed`` as for rows."""
    if in_library_loop(function, index):
        return ""
    if feeds_tensor_cores(function, index):
        return _cure_of_fragments(profile)
    shape = access_shape(function, index, context.program.form, profile.launch)
    if shape.lie is Lie.ROWS:
        return cure_of_rows(context, profile.launch, function, index, followed=followed)
    return _cure_of_distance(context, profile.launch, function, index)


def _cure_of_run(
    function: Function,
    index: int,
    run: Neighbours,
    shape: AccessShape,
    sectors: float,
    executed: Floats | None,
) -> str:
    """What to do where each thread accesses several values that follow each other; empty for nothing."""
    if executed is None or shape.lie is Lie.NEIGHBOURS:
        return ""  # a run of neighbouring threads overlaps the next one's: rows begin between sectors
    # As many sectors as runs side by side take; where there are fewer, runs overlap; from a whole sector on,
    # all distances look alike.
    span, warps = _span(run), float(executed[index])
    fewest = WARP * min(1.0, span / SECTOR_BYTES) * warps
    overlapping = constants.TWICE * sectors < fewest
    if shape.lie is not Lie.APART and (
        overlapping or sectors > fewest + constants.ABOUT * warps or span >= SECTOR_BYTES
    ):
        return ""  # nobody knows how far apart the runs are, nor whether a wider access is aligned
    several = f"each thread accesses {len(run.indices)} values that follow each other there"
    wide = widest_aligned(run, shape)
    if wide == run.width_bytes:
        distance = distance_of_runs(run, shape)
        padded = 1 << (distance - 1).bit_length()
        if padded > WIDEST_BYTES or not _may_be_elements(function, index, run, distance):
            return ""
        return (
            f"move whole rows through shared memory by {WIDEST_BYTES} bytes a thread, or pad the elements of "
            f"{distance} bytes to {padded}, which moves {percent(padded / distance - 1)} more, "
            f"and access each at once: {several}, one by one"
        )
    other_accesses = [
        position
        for position, instruction in enumerate(function.instructions)
        if is_global(instruction)
        and (instruction.width_bytes or 0) >= wide
        and instruction.info.opclass in {OpcodeClass.LOAD, OpcodeClass.STORE}
    ]
    if other_accesses:
        same = any(same_array(function, index, access) for access in other_accesses)
        elsewhere = ", as elsewhere in the kernel" if same else ""
        return f"use accesses of {wide} bytes{elsewhere}: {several}, one by one"
    looped = span >= SECTOR_BYTES and function.innermost_loop(index) is not None
    if sectors > constants.ABOUT * fewest or overlapping or looped:
        return ""
    return (
        "give each thread one value, or every n-th with n the number of threads, so that neighbouring "
        f"threads access neighbouring values, or use accesses of {wide} bytes: {several}"
    )


def _may_be_elements(function: Function, index: int, run: Neighbours, distance: int) -> bool:
    """Whether values that follow each other may be an element of so many bytes, by how its address is made.

    An index that is multiplied by the bytes of one value, and by nothing else, counts values: those are a
    window that moves on by one, as the top of a stack.
    """
    made = factors(function, address_makers(function, index))
    odd = distance // (distance & -distance)
    return run.width_bytes not in made or any(factor % odd == 0 for factor in made)
