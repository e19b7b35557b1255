# SPDX-License-Identifier: Apache-2.0
"""What unrolling a loop can be expected to do, by what stands in its way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

from gpadvisor.analyzer.occupancy import occupancy
from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.launches import lacks_warps
from gpadvisor.evidence.accesses import DEVICE_SPACES, is_ordered
from gpadvisor.evidence.accumulators import is_recurrence
from gpadvisor.evidence.arrays import is_pointer_from_memory, same_array
from gpadvisor.evidence.held_passes import Held, branch_between, held_by, stands_at_an_end
from gpadvisor.evidence.lanes import exit_by_data
from gpadvisor.evidence.loops import (
    LoopFacts,
    divergence,
    every_pass,
    is_counted,
    loop_facts,
    measured_trips,
)
from gpadvisor.evidence.measured import (
    Floats,
    executed_threads,
    executed_warps,
    registers_per_thread,
    shared_bytes,
)
from gpadvisor.evidence.queries import RowIndices, line_text
from gpadvisor.evidence.reordering import may_write
from gpadvisor.evidence.rolled_loops import UNROLL
from gpadvisor.model.advice import Region
from gpadvisor.model.blame import Blame
from gpadvisor.model.figures import percent
from gpadvisor.model.ids import FunctionId, LoopId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.machine import WARP
from gpadvisor.model.program import Function

_RECURRENCE_LIMIT: Final = 128
"""Heaviest defs of a kernel that are checked for a loop-carried chain; the rest count as their mean."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What unrolling a loop can be expected to do, as a share of its latency."""

    share: float
    possible: float  # at the high end: what no order of instructions can overlap is left out
    in_flight: float  # on loads that several passes could have on their way together
    reasons: tuple[str, ...]
    store: int | None = None  # that may write what its loads read
    held: Held | None = None  # what keeps the loads of copies of the body apart


Counts = Mapping[FunctionId, tuple[Floats | None, Floats | None]]
"""Executions of each instruction by warps and by threads, of each function that has a loop in question."""


def counts_of(context: KernelContext, regions: Collection[Region]) -> Counts:
    """How often the functions of these loops are executed; None where nobody counted it."""
    return {
        function.id: (executed_warps(context.profile, function), executed_threads(context.profile, function))
        for function in context.program.functions
        if any(region.scope.function == function.id for region in regions)
    }


def outlook_of(context: KernelContext, blame: Blame, region: Region, counts: Counts) -> Outlook:
    """Differs from GPA: it looks at none of this, which the paper names as the cause of its largest error."""
    if region.scope.function is None or region.scope.loop is None:
        return Outlook(0.0, 1.0, 0.0, ("the loop is not known",))
    function = context.program.functions[region.scope.function]
    loop = region.scope.loop
    facts = loop_facts(function, loop)
    warps, threads = counts[function.id]
    few = lacks_warps(context)
    held = held_by(function, loop)
    joins = (
        facts.copies == 1
        and not (held is not None and held.is_store)
        and is_counted(function, loop)
        and branch_between(function, loop) is not None
    )
    overlap, possible, loads = _overlap(blame, function, loop, region.rows, joins=joins)
    if joins:  # what a pass begins with waits beside the end of the one before
        held, loads = None, 0.0
    load, store = (None, None) if held else _store_in_the_way(blame, function, facts, region.rows)
    checks = (
        _passes(warps, function, loop, facts),
        _threads(warps, threads, facts, lanes_of(context)),
        None if few else _already(facts),
        _barrier(facts),
        _held(context, function, load, store),
    )
    costs = (
        ()
        if facts.copies >= UNROLL and not few
        else (_code_size(context, facts), _registers(context, function, loop, facts))
    )
    applying = [check for check in (*checks, *costs) if check is not None]
    share = prod(part for part, _ in applying)
    if held is not None:  # what else a pass does stays where it is
        overlap = (
            loads,
            f"{percent(loads)} of its latency is on loads that could stand first",
        )
    applying = sorted((*applying, *(() if overlap is None else (overlap,))), key=lambda check: check[0])
    return Outlook(
        share * (1.0 if overlap is None else overlap[0]),
        possible,
        share * loads,
        tuple(reason for _, reason in applying),
        store=store,
        held=held,
    )


_Check = tuple[float, str] | None
_HELD_APART: Final = (
    "loads of several passes that stand first wait together; the rest of a pass stays as it is"
)


def _overlap(
    blame: Blame, function: Function, loop: LoopId, rows: RowIndices, *, joins: bool
) -> tuple[_Check, float, float]:
    """The latency that a later pass could overlap at all, what is left at the high end, and that on loads.

    Values carried from pass to pass come one after the other, whatever the order of instructions; so do
    results of atomics, which the compiler neither moves nor doubles; and a load behind a condition inside the
    pass, or in a loop that the data may end, waits for that condition. Where copies of the body join at its
    ends alone, what is between stays by itself.
    """
    weights: Counter[int] = Counter()
    for row in rows.tolist():
        weights[int(blame.rows.def_index[row])] += int(blame.rows.latency[row])
    heaviest = weights.most_common(_RECURRENCE_LIMIT)
    covered = sum(weight for _, weight in heaviest)
    if not covered:
        return None, 1.0, 0.0
    parts: Counter[str] = Counter()
    loads = 0
    for index, weight in heaviest:
        hindrance = _hindrance(function, loop, index)
        if joins and not hindrance and not stands_at_an_end(function, loop, index):
            hindrance = _BETWEEN
        parts[hindrance] += weight
        opcode_info = function.instructions[index].info
        if not hindrance and opcode_info.opclass is OpcodeClass.LOAD and opcode_info.space in DEVICE_SPACES:
            loads += weight
    phrases = [
        f"{percent(parts[kind] / covered)} of its latency {kind}" for kind in _HINDRANCES if parts[kind]
    ]
    never = (parts[_CARRIED] + parts[_ATOMIC]) / covered
    free = 1 - sum(parts[kind] for kind in _HINDRANCES) / covered
    return (free, " and ".join(phrases)) if phrases else None, 1 - never, loads / covered


_CARRIED: Final = "is on values carried from pass to pass"
_ATOMIC: Final = "is on results of atomics and volatile loads, which stay one after the other"
_CONDITIONAL: Final = "is on loads behind a condition inside the pass"
_EARLY: Final = "is on loads of a loop that the data may end in any pass, before which no later pass loads"
_BETWEEN: Final = "is between branches inside the pass, where no other pass comes beside it"
_HINDRANCES: Final = (_CARRIED, _ATOMIC, _CONDITIONAL, _EARLY, _BETWEEN)


def _hindrance(function: Function, loop: LoopId, index: int) -> str:
    opclass = function.instructions[index].info.opclass
    if opclass is OpcodeClass.ATOMIC or is_ordered(function.instructions[index]):
        return _ATOMIC
    if is_recurrence(function, loop, index):
        return _CARRIED
    if opclass is OpcodeClass.LOAD and not every_pass(function, loop, index):
        return _CONDITIONAL
    if opclass is OpcodeClass.LOAD and exit_by_data(function, index) is not None:
        return _EARLY
    return ""


def _passes(executed: Floats | None, function: Function, loop: LoopId, facts: LoopFacts) -> _Check:
    trips = None if executed is None else measured_trips(function, loop, executed)
    source = "by executed counts"
    if trips is None and facts.trips is not None:
        trips, source = float(facts.trips), "by its constants"
    if trips is None or trips > UNROLL:
        return None
    if trips < UNROLL and facts.trips is None:
        return _in_whole_bodies(trips), (
            f"it runs only {trips:.1f} passes per entry {source}, and not always as many: the {UNROLL} "
            "passes of an unrolled body are seldom there"
        )
    return max(0.0, trips - 1) / UNROLL, f"it runs only {trips:.1f} passes per entry {source}"


def _in_whole_bodies(trips: float) -> float:
    """The share of passes that an unrolled body takes, where each may be the last with the same chance."""
    goes_on = 1 - 1 / max(1.0, trips)
    whole = UNROLL * goes_on ** (UNROLL - 1) / (1 - goes_on**UNROLL)
    return whole / max(1.0, trips)


def lanes_of(context: KernelContext) -> int:
    """Threads of a full warp of the launch; blocks may be smaller than a warp."""
    block = 0 if context.profile is None else context.profile.launch.threads_per_block
    return min(WARP, block) or WARP


def _threads(warps: Floats | None, threads: Floats | None, facts: LoopFacts, lanes: int) -> _Check:
    mean = divergence(warps, threads, facts.indices)
    if mean is None or mean >= constants.EDGE * lanes:
        return None
    return mean / lanes, (
        f"only {mean:.0f} of {lanes} threads of a warp are active in it: passes differ between threads"
    )


def _already(facts: LoopFacts) -> _Check:
    if facts.copies < 2 or facts.copies_reason is None:
        return None
    # The wait for one pass is shared by those in flight: of 1 - 1 / 4, so many copies have had their part.
    remaining = max(0.0, 1 - facts.copies / UNROLL) / (1 - 1 / UNROLL)
    return remaining, f"it is unrolled already: {facts.copies_reason}"


def _barrier(facts: LoopFacts) -> _Check:
    if not facts.barriers:
        return None
    keep = "barrier in each pass keeps" if facts.barriers == 1 else "barriers in each pass keep"
    return constants.HELD, f"{facts.barriers} {keep} its loads from starting earlier"


def _store_in_the_way(
    blame: Blame, function: Function, facts: LoopFacts, rows: RowIndices
) -> tuple[int | None, int | None]:
    """The load that a loop waits for most, and a store of the loop that may write what it reads."""
    weights: Counter[int] = Counter()
    for row in rows.tolist():
        weights[int(blame.rows.def_index[row])] += int(blame.rows.latency[row])
    load = next(
        (
            index
            for index, _ in weights.most_common()
            if function.instructions[index].info.opclass is OpcodeClass.LOAD
        ),
        None,
    )
    if load is None:
        return None, None
    moved = function.instructions[load]
    return load, next(
        (position for position in facts.indices if may_write(moved, function.instructions[position])), None
    )


def _held(context: KernelContext, function: Function, load: int | None, store: int | None) -> _Check:
    if load is None or store is None:
        return None
    if function.instructions[load].info.space not in DEVICE_SPACES or same_array(function, load, store):
        return (
            constants.HELD,
            f"each pass stores at {line_text(function, store)} to the array that it loads from",
        )
    if is_pointer_from_memory(function, load, context.program.form):
        return constants.HELD, (
            f"its store at {line_text(function, store)} may write what the next pass loads by a pointer that "
            f"is no parameter, so that {terms.MARKED.of(context.language)}"
        )
    # __restrict__, which the change names, takes this one away.
    return 1.0, f"its store at {line_text(function, store)} may write what the next pass loads"


def _code_size(context: KernelContext, facts: LoopFacts) -> _Check:
    cache = context.machine.sm.instruction_cache_l0_bytes.value
    if facts.size_bytes * 2 <= cache:
        return None
    return constants.HELD, (
        f"its code has {facts.size_bytes / 1024:.1f} KiB: two copies do not fit the {cache // 1024} KiB "
        "instruction cache of a scheduler"
    )


def _registers(context: KernelContext, function: Function, loop: LoopId, facts: LoopFacts) -> _Check:
    """Each load in flight needs its destination: whether that fits, and what it costs in warps."""
    registers = registers_per_thread(context.program, context.kernel, context.profile)
    if registers is None:
        return None
    loaded = sum(
        max(1, (function.instructions[index].width_bytes or 4) // 4)
        for index in facts.indices
        if function.instructions[index].info.opclass is OpcodeClass.LOAD and every_pass(function, loop, index)
    )
    registers_needed = registers + (UNROLL - 1) * loaded
    cap = context.machine.sm.max_registers_per_thread.value
    if registers_needed > cap:
        return constants.HELD, f"{UNROLL} passes in flight want about {registers_needed} of {cap} registers"
    if context.profile is None or not context.occupancy.warps_per_sm:
        return None
    after = occupancy(
        context.machine.sm,
        threads_per_block=max(1, context.profile.launch.threads_per_block),
        registers_per_thread=registers_needed,
        shared_bytes=shared_bytes(context.program, context.kernel, context.profile) or 0,
    ).warps_per_sm
    warps_now = context.occupancy.warps_per_sm
    if after is None or after >= warps_now:
        return None
    return after / warps_now, (
        f"{UNROLL} passes in flight want about {registers_needed} registers, "
        f"which leaves {after} of {warps_now} warps per SM"
    )
