# SPDX-License-Identifier: Apache-2.0
"""Grids with far more threads than there is work: most find an index beyond the end and leave no trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpadvisor.evidence.discarded import EFFECTS, deciding
from gpadvisor.evidence.lanes import PREDICATES, comparisons, counted_threads, is_order, numbers_of
from gpadvisor.evidence.measured import Floats, executed_threads
from gpadvisor.model.instruction import MemorySpace, OpcodeClass, register_file
from gpadvisor.model.profile import Evidence, KernelProfile
from gpadvisor.model.program import Function

_ONE_PASS: Final = 1.05
"""Passes of a loop for each thread of the launch: with more, who runs how many is not known."""
_FEW_BLOCKS: Final = 8
"""Blocks of an SM that do not tell what part of the grid its edge is."""
_LEAVING: Final = frozenset({OpcodeClass.CALL, OpcodeClass.RETURN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Oversized:
    """What the threads without work execute."""

    working: float  # of the threads launched, those that leave a trace, at most
    idle: dict[int, float]  # by instruction, the share of its threads that leave none
    store: int
    condition: int  # the comparison that tells who is beyond the end


def edge_by_chance(profile: KernelProfile, evidence: Evidence) -> bool:
    """Whether the few blocks that were simulated, those of one SM, may be the ones at the edge of a grid."""
    few = profile.launch.blocks < _FEW_BLOCKS * profile.sms
    return evidence is Evidence.MODELLED and few


def oversized(profile: KernelProfile, function: Function, *, edge: float) -> Oversized | None:
    """A launch in which ``1 - edge`` of the threads or fewer store, or exchange, anything; by counts.

    None where something but the threads' own numbers, as a flag that is loaded, decides who does.
    """
    threads, present = counted_threads(profile, function), executed_threads(profile, function)
    if threads is None or present is None or not present[0]:
        return None
    if any(present[call.index] for call in function.calls):
        return None  # what is called is not looked at
    traces = [index for index in range(len(function.instructions)) if _leaves_trace(function, index)]
    traces = [index for index in traces if threads[index]]
    working = sum(float(threads[index]) for index in traces)
    if not traces or working > (1 - edge) * present[0]:
        return None
    conditions = {condition for index in traces for condition in deciding(function)[function.block_of[index]]}
    conditions |= {index for index in traces if function.instructions[index].guard is not None}
    compared = sorted(
        comparison for comparison in comparisons(function, conditions) if is_order(function, comparison)
    )
    ends = [index for index in compared if numbers_of(function, index) == {"SR_TID", "SR_CTAID"}]
    if not ends or any(_reads_memory(function, index) for index in compared):
        return None
    idle = {
        index: part for index in range(len(present)) if (part := _idle(function, index, present, working))
    }
    return Oversized(
        working=working / float(present[0]),
        idle={index: part for index, part in idle.items() if part},
        store=max(traces, key=lambda index: threads[index]),
        condition=ends[-1],
    )


def _leaves_trace(function: Function, index: int) -> bool:
    info = function.instructions[index].info
    return info.opclass in EFFECTS - _LEAVING and info.space is not MemorySpace.LOCAL


def _idle(function: Function, index: int, present: Floats, working: float) -> float:
    """At most the working threads come to it once; to what is in a loop only if few make a second pass."""
    most = max((_entered(function, loop, present) for loop in function.enclosing_loops(index)), default=0.0)
    if not present[index] or most > _ONE_PASS * present[0]:
        return 0.0
    return max(0.0, 1 - working / float(present[index]))


def _entered(function: Function, loop: int, present: Floats) -> float:
    inside = function.blocks[function.loops[loop].header]
    return float(present[inside.start : inside.end].max())


def _reads_memory(function: Function, index: int) -> bool:
    """Whether a comparison needs what was loaded, arguments of the kernel apart."""
    pending, visited = [index], {index}
    while pending:
        position = pending.pop()
        info = function.instructions[position].info
        if info.opclass is OpcodeClass.LOAD and info.space is not MemorySpace.CONSTANT:
            return True
        for used in function.instructions[position].uses:
            if register_file(used) not in PREDICATES:
                more = function.reaching.definitions(position, used) - visited
                visited |= more
                pending += more
    return False
