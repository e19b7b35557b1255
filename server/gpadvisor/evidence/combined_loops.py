# SPDX-License-Identifier: Apache-2.0
"""Loops that only add up, or find the largest: threads could share the passes, and combine what each has."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.evidence.access_shapes import AccessShape, Lie, access_shape, has_one_axis
from gpadvisor.evidence.accesses import is_global
from gpadvisor.evidence.addresses import step_of_pass
from gpadvisor.evidence.divisible_loops import (
    ASKS_OTHERS,
    STORES,
    has_most,
    is_divisible,
    is_step,
    leaves_early,
    loop_samples,
    multiplied,
)
from gpadvisor.evidence.library_math import is_behind_sequence
from gpadvisor.evidence.loops import is_counted, loop_facts, measured_trips
from gpadvisor.evidence.measured import executed_warps
from gpadvisor.evidence.trees import SELECTS
from gpadvisor.graphs import strongly_connected
from gpadvisor.model.blame import Blame
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass, register_name
from gpadvisor.model.kind import Kind
from gpadvisor.model.machine import SECTOR_BYTES, CodeForm
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function

_HIT_RATE: Final = "l1tex__t_sector_hit_rate.pct"
_MOSTLY: Final = 50.0
_BY_COUNTER: Final = re.compile(r"c\[0x\w+\]\[UR")
InstructionsByIndex = dict[int, Instruction]
Floats = NDArray[np.float64]
_SUMS: Final = frozenset({"FADD", "DADD", "HADD2", "IADD3", "IADD", "VIADD", "FFMA", "DFMA", "HFMA2", "IMAD"})
_PRODUCTS: Final = frozenset({"FFMA", "DFMA", "HFMA2", "IMAD"})
_CHOICES: Final = SELECTS | {"FSEL", "SEL", "MOV"}
_COMPARES: Final = frozenset({"FSETP", "DSETP", "HSETP2", "ISETP"})


class Sharing(Kind):
    """Which threads may share the passes."""

    ROW = "row"  # a warp's: each thread goes along a row of its own
    LANES = "lanes"  # any: all threads of a warp load the same
    WARPS = "warps"  # of other warps: those of one warp load what lies side by side


@dataclass(frozen=True, slots=True)
class CombinedLoop:
    """A loop whose passes could be shared, with those that go along the same rows."""

    loops: tuple[LoopId, ...]  # the first has the most samples
    passes: float  # of it for each entry, of the source, as counted
    sharing: Sharing


def combined_loop(
    function: Function, form: CodeForm, profile: KernelProfile, blame: Blame | None
) -> CombinedLoop | None:
    """The outermost loop of which nothing is left but sums and extremes, with most of the samples.

    No pass needs what another one computes but to add to it, or to keep the larger; nothing is stored in it.
    Else loops along rows that have most of them together, some of which store what they make of an element.
    """
    executed = executed_warps(profile, function)
    for loop in sorted(function.loops, key=lambda candidate: (candidate.depth, -len(candidate.blocks))):
        if executed is None or not _combines(function, loop.id) or not has_most(function, loop.id, blame):
            continue
        trips = measured_trips(function, loop.id, executed)
        if trips is None:
            return None
        passes = trips * loop_facts(function, loop.id).copies
        found = CombinedLoop((loop.id,), passes, _sharing(function, loop.id, form, profile))
        return (found.sharing is Sharing.ROW and _rows(function, form, profile, blame, executed)) or found
    return None if executed is None else _rows(function, form, profile, blame, executed)


def has_passes_to_divide(function: Function, profile: KernelProfile, least: float) -> bool:
    """Whether a loop has as many passes that need nothing of each other, or are only added up or compared."""
    executed = executed_warps(profile, function)
    return executed is not None and any(
        (measured_trips(function, loop.id, executed) or 0.0) * loop_facts(function, loop.id).copies >= least
        and (_combines(function, loop.id) or is_divisible(function, loop.id))
        for loop in function.loops
    )


def _rows(
    function: Function, form: CodeForm, profile: KernelProfile, blame: Blame | None, executed: Floats
) -> CombinedLoop | None:
    """Loops one after the other along a row of each thread."""
    if blame is None:
        return None
    samples = {
        loop.id: count
        for loop in function.loops
        if loop.parent is None
        and (count := loop_samples(function, loop.id, blame))
        and (_combines(function, loop.id) or is_divisible(function, loop.id))
        and _sharing(function, loop.id, form, profile) is Sharing.ROW
    }
    if 2 * sum(samples.values()) <= blame.total_samples or not any(
        _combines(function, one) for one in samples
    ):
        return None
    loops = tuple(sorted(samples, key=lambda loop: -samples[loop]))
    trips = measured_trips(function, loops[0], executed)
    return (
        None
        if trips is None
        else CombinedLoop(loops, trips * loop_facts(function, loops[0]).copies, Sharing.ROW)
    )


@lru_cache(maxsize=256)
def _combines(function: Function, loop: LoopId) -> bool:
    code = {index: function.instructions[index] for index in loop_facts(function, loop).indices}
    if not function.loops[loop].reducible or not is_counted(function, loop) or leaves_early(function, loop):
        return False
    if any(_asks_others(function, index) for index in code) or not _ends_by_counters(function, loop, code):
        return False
    readers = _readers(function, code)
    cycles = [
        frozenset(cycle)
        for cycle in strongly_connected(list(code), readers)
        if len(cycle) > 1 or cycle[0] in readers[cycle[0]]
    ]
    results = [cycle for cycle in cycles if not _is_counter(function, cycle, code)]
    own = frozenset(index for cycle in results for index in cycle)
    return bool(results) and all(_is_combination(function, cycle, code, readers, own) for cycle in results)


def _ends_by_counters(function: Function, loop: LoopId, code: InstructionsByIndex) -> bool:
    """Whether what a loop loads decides nothing of its end."""
    blocks = function.loops[loop].blocks
    ends = [
        function.blocks[block].end - 1
        for block in blocks
        if any(successor not in blocks for successor, _ in function.blocks[block].successors)
    ]
    tests = [
        function.reaching.definitions(end, guard.register) & code.keys()
        for end in ends
        if (guard := function.instructions[end].guard) is not None
    ]
    return all(_is_counter(function, frozenset(test), code) for test in tests)


def _asks_others(function: Function, index: int) -> bool:
    """Whether an instruction is more than arithmetic and loads; the rare way of a division is not.

    A constant of the pass stays one instruction for a warp only while all of its threads are in that pass.
    """
    info = function.instructions[index].info
    if info.opclass is OpcodeClass.CALL:
        return not is_behind_sequence(function, index)
    if _BY_COUNTER.search(function.instructions[index].operands):
        return True
    return info.opclass in ASKS_OTHERS | STORES or info.space is MemorySpace.LOCAL


def _readers(function: Function, code: InstructionsByIndex) -> dict[int, list[int]]:
    """By instruction of a loop those that read what it writes, in this pass or the next."""
    readers: dict[int, list[int]] = {index: [] for index in code}
    for index, instruction in code.items():
        for used in instruction.uses:
            for definition in function.reaching.definitions(index, used):
                if definition in readers:
                    readers[definition].append(index)
    return readers


def _is_counter(function: Function, cycle: frozenset[int], code: InstructionsByIndex) -> bool:
    """Whether a cycle steps by what counters, or nothing in the loop, decide: known without its passes."""
    pending, visited = list(cycle), set(cycle)
    while pending:
        index = pending.pop()
        if not is_step(function, index, frozenset(code)) and "X" not in code[index].modifiers:
            return False
        for used in code[index].uses:
            more = (function.reaching.definitions(index, used) & code.keys()) - visited
            visited |= more
            pending += more
    return True


def _is_combination(
    function: Function,
    cycle: frozenset[int],
    code: InstructionsByIndex,
    readers: dict[int, list[int]],
    own: frozenset[int],
) -> bool:
    """Whether a cycle is a sum, or what is chosen by comparing, and tells the rest of the loop nothing."""
    opcodes = {code[index].opcode for index in cycle}
    outside = {reader for index in cycle for reader in readers[index]} - cycle
    if opcodes <= _SUMS:
        carries = all("X" in code[reader].modifiers for reader in outside)
        return carries and all(_is_addend(function, index, cycle) for index in cycle)
    if not opcodes <= _CHOICES | _COMPARES:
        return False
    # What goes with the choice, as the place of the largest, is chosen with it and not counted by it.
    return all(code[reader].opcode in _CHOICES or reader not in own for reader in outside)


def _is_addend(function: Function, index: int, cycle: frozenset[int]) -> bool:
    """Whether what a sum has so far is added, once, with its sign."""
    instruction = function.instructions[index]
    so_far = [used for used in instruction.uses if function.reaching.definitions(index, used) & cycle]
    names = {register_name(used) for used in so_far}
    if any(
        text.startswith("-") and text[1:].partition(".")[0] in names for text in instruction.operand_texts
    ):
        return False
    return instruction.opcode not in _PRODUCTS or multiplied(instruction).isdisjoint(so_far)


def _sharing(function: Function, loop: LoopId, form: CodeForm, profile: KernelProfile) -> Sharing:
    """By how the threads of a warp lie to each other at the loop's loads."""
    loads = [index for index in loop_facts(function, loop).indices if is_global(function.instructions[index])]
    shapes = {index: access_shape(function, index, form, profile.launch) for index in loads}
    covered: dict[tuple[AccessShape, int], int] = defaultdict(int)
    for index, shape in shapes.items():
        if shape.lie in {Lie.ROWS, Lie.APART} and shape.distance >= SECTOR_BYTES:
            step = step_of_pass(function, index)
            # Of a step that an argument decides the hits tell: threads that are alone in their rows find in
            # L1 what they have loaded for the pass before.
            if step is None and has_one_axis(function) and (profile.metric(_HIT_RATE) or 0.0) > _MOSTLY:
                return Sharing.ROW
            covered[shape, abs(step or 0)] += function.instructions[index].width_bytes or 0
    if any(0 < step <= bytes_loaded for (_, step), bytes_loaded in covered.items()):
        return Sharing.ROW
    return Sharing.LANES if all(shape.lie is Lie.SAME for shape in shapes.values()) else Sharing.WARPS
