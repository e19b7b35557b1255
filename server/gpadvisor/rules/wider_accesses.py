# SPDX-License-Identifier: Apache-2.0
"""Wider Accesses: neighbouring values that a thread loads or stores one by one (beyond GPA Table II).

## What it finds

Loads or stores of one thread whose addresses follow each other, in an unrolled body or over the passes that
the compiler has unrolled, where one access of 8 or 16 bytes could take their place: all threads of a warp
load the same few values, or a warp's accesses to shared memory conflict because each thread has its own run
of values. Also loads that stand behind a test of what the one before brought. Accesses to device memory that
are scattered for the same reason belong to Memory Transaction Reduction.

In measured kernels without a loop also one narrow load for each thread, where most warps wait for it and the
SMs are full, but DRAM and L2 are not: then too few bytes are on their way. Threads may share what they loaded
side by side, as of a stencil, behind one barrier.

## Why warps stall

The load/store unit takes an instruction of a warp every two cycles, however few bytes it asks for. Four loads
of 4 bytes take four turns, and four addresses to compute, where one of 16 bytes takes one.

## What to try

- `float4` or `int4` loads where the address is a multiple of 16 bytes; `__align__(16)` on the struct or the
  shared array tells the compiler so.
- Unroll the loop by four and load its next four values at once.
- Narrower types: two `half` or four `char` values in one word.

## Example

```cuda
for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];

for (int k = 0; k < n; k += 4) {
    float4 four = *reinterpret_cast<const float4*>(&a[row * n + k]);   // n and a are multiples of four
    sum += four.x * b[k * n + column] + four.y * b[(k + 1) * n + column] + ...
}
```

## When this advice is wrong

Neighbouring threads that access neighbouring words, one each, ask for no more than they need, and `float4`
saves nothing there but requests: where DRAM is full already (one word a thread does that on GeForce cards) it
gained 0.93x to 1.10x, and nothing is told. It loses where it costs parallelism.
Addresses not known to be aligned cannot be widened as the data lie; a library's loop no caller can change.

## How the gain is estimated

Of each run all accesses but one in every 16 bytes go, with the arithmetic of their addresses. Where the
load/store unit, L1 or the issue slots are busy for 80 % of the time or more, their load falls by that, until
another unit limits; the low end is half of the runs. Where no unit is, the waits for these accesses and in
the unit's queue shrink by half of that share (Eq. 2), all of it at the high end, beside the units' time.
One narrow load for each thread: with 16 bytes a thread has a multiple of the bytes on their way, so that by
Little's law the waits shrink as much, until DRAM or L2 is full; so does what each warp asks for once. Four
changes of this kind were measured on an H100: 1.34x with L2 at 72 %, 1.46x and 1.75x at 57 %, 2.2x at 45 %.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.launches import is_as_short_as_a_launch, shape
from gpadvisor.estimators.reduced_loads import freed
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.unit_bounds import L1_UNITS, as_reduced_loads, unit_bound
from gpadvisor.estimators.utilisation import (
    ADU_PIPE,
    CONSTANT_CACHE,
    DRAM,
    ISSUE,
    L1,
    L2,
    PIPES,
    measured_loads,
)
from gpadvisor.evidence.access_shapes import Lie, access_shape, widest_aligned
from gpadvisor.evidence.accesses import is_atomic, is_global, is_shared
from gpadvisor.evidence.addresses import Neighbours, neighbours, step_of_pass, tested_neighbours
from gpadvisor.evidence.library_code import in_library_loop
from gpadvisor.evidence.measured import Floats, executed_threads, executed_warps, metric
from gpadvisor.evidence.queries import (
    Mask,
    by_place,
    causes,
    counted,
    kernel_functions,
    line_text,
    regions,
    samples,
    share,
    stalled,
)
from gpadvisor.model.advice import Adjustment, Category, Match, ReducedLoad, Rejection, Utilisation
from gpadvisor.model.blame import Blame
from gpadvisor.model.figures import percent, percentage
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import OpcodeClass, Pipe, Register
from gpadvisor.model.machine import BANK_BYTES, BANK_ROW_BYTES, SECTOR_BYTES, WARP, WIDEST_BYTES
from gpadvisor.model.profile import Evidence, KernelProfile
from gpadvisor.model.program import Function

_CODE: Final = "GPA108"
_SECTORS: Final = "memory_l2_theoretical_sectors_global"
_WAVEFRONTS: Final = "memory_l1_wavefronts_shared"
_UNITS: Final = frozenset({L1, *L1_UNITS, ISSUE, PIPES[Pipe.ALU], PIPES[Pipe.FMA]})
_ONCE: Final = (CONSTANT_CACHE, ADU_PIPE)  # a warp's arguments and branches, however much it handles
_ADDRESSES: Final = frozenset({OpcodeClass.INTEGER, OpcodeClass.INTEGER_MULTIPLY, OpcodeClass.MOVE})
_Run = tuple[Function, Neighbours]


def _match(context: KernelContext) -> Match | Rejection:
    blame, profile = context.blame, context.profile
    if blame is None or profile is None:
        return Rejection(code=_CODE, reason="needs samples and counted sectors", looked=False)
    runs = list(_runs(context, profile))
    if not runs:
        return _few_bytes(context, blame, profile) or Rejection(
            code=_CODE,
            reason="no accesses of a thread follow each other in memory where one would do for all",
        )
    accesses = [(function.id, index) for function, run in runs for index in run.indices]
    rows = _rows(blame, accesses)
    part = share(blame, rows)
    if part < constants.NOTABLE:
        return Rejection(
            code=_CODE, reason=f"accesses that follow each other have {percent(part)} of the samples"
        )
    measured = measured_loads(context)
    full = busiest_after(measured, ())
    if full is not None and full.unit.percent >= constants.BUSY_PERCENT and full.unit.name not in _UNITS:
        return Rejection(
            code=_CODE,
            reason=f"{full.unit.name} is the busiest unit, at {percentage(full.unit.percent)}: fewer "
            "accesses do not help it",
        )
    gone = _gone(runs)
    left = [
        {
            reduced.resource: reduced.remaining
            for reduced in freed(context, {index: end * some for index, some in gone.items()})
        }
        for end in (constants.LEAST_PART, 1.0)
    ]
    total = sum(len(run.indices) for _, run in runs)
    after = sum(-(-len(run.indices) // run.per_access) for _, run in runs)
    text = f"{total} accesses of a thread become {after}"
    # Below its limit a unit shares the time with the waits, which wider accesses shorten, too.
    is_full = full is not None and full.unit.percent >= constants.HIGH_PERCENT
    bound = unit_bound(measured, left[0], left[1], left[1], text) if is_full else None
    facts, cure = _words(runs, blame)
    return Match(
        title="neighbouring values are accessed one by one",
        cure=cure,
        advice=f"{text}: {facts} {cure}",
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(rows)),
        adjustments=() if bound is not None else (_adjustment(1 - after / total),),
        measured_bound=bound,
        reduced_loads=as_reduced_loads(left[1], left[1]),
    )


def _runs(context: KernelContext, profile: KernelProfile) -> Iterable[_Run]:
    """Runs that a warp's counted transactions allow to be widened."""
    for function in kernel_functions(context.program, context.kernel):
        executed = executed_warps(profile, function)
        if executed is None:
            continue
        sectors, passes = metric(profile, _SECTORS, function), metric(profile, _WAVEFRONTS, function)
        threads = executed_threads(profile, function)
        for narrow in _candidates(function):
            run = _aligned(context, profile, function, narrow)
            shared = is_shared(function.instructions[run.indices[0]])
            per_warp = _per_warp(run, executed, passes if shared else sectors)
            if per_warp is None or run.per_access == 1 or in_library_loop(function, run.indices[0]):
                continue
            if shared:
                # Threads with a run of their own each conflict as often as their runs span rows of banks.
                spans = WARP * run.width_bytes * run.per_access / BANK_ROW_BYTES
                if per_warp >= constants.NEARLY * spans:
                    yield function, run
                continue
            active = _per_warp(run, executed, threads) or WARP
            if per_warp <= max(1.0, active * run.width_bytes / SECTOR_BYTES / 2):
                yield function, run  # fewer sectors than neighbouring threads would take: they share values


def _candidates(function: Function) -> Iterable[Neighbours]:
    """Runs of a block, and those that tests part, which have some of the same accesses."""
    parted = tested_neighbours(function)
    claimed = {index for run in parted for index in run.indices}
    yield from parted
    yield from (run for run in neighbours(function) if claimed.isdisjoint(run.indices))


def _few_bytes(context: KernelContext, blame: Blame, profile: KernelProfile) -> Match | None:
    """Full SMs whose threads wait for one narrow load each: too few bytes are on their way (Little's law)."""
    memory, sms = _memory_below_its_limit(context), profile.device.sms
    launch_shape = shape(context, profile, profile.launch.blocks, profile.launch.threads_per_block)
    functions = kernel_functions(context.program, context.kernel)
    if (
        context.evidence is not Evidence.MEASURED  # the simulator gives it none
        or memory is None
        or is_as_short_as_a_launch(profile)
        or launch_shape is None
        or len(functions) != 1
        or functions[0].loops
        or not _has_elements_of_its_own(context, profile, functions[0])
    ):
        return None
    (function,) = functions
    loads = [
        index for index in range(len(function.instructions)) if _is_narrow(context, profile, function, index)
    ]
    rows = _rows(blame, [(function.id, index) for index in loads])
    if not loads or share(blame, rows) < constants.MAJORITY:
        return None
    first = max(
        loads, key=lambda index: samples(blame, by_place(blame, causes(blame), [(function.id, index)]))
    )
    width = function.instructions[first].width_bytes or BANK_BYTES
    more = WIDEST_BYTES // width
    if not sms or launch_shape.waves(sms) < more:
        return None  # fewer threads would not fill the SMs
    cure = (
        f"Let each thread handle {more} neighbouring elements with accesses of {WIDEST_BYTES} bytes, where "
        "the address is aligned to that."
    )
    return Match(
        title=f"each thread loads {width} bytes, which is too little at once",
        cure=cure,
        advice=f"{cure} {line_text(function, first)} loads {width} bytes for each thread "
        f"({function.instructions[first].opcode}). Every SM is full, but {memory.name} is at "
        f"{percentage(memory.percent)}: what is on its way does not fill it.",
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(rows)),
        adjustments=(
            Adjustment(
                low=0.0,
                expected=1 - 1 / more,
                high=1 - 1 / more,
                reason=f"{more} times the bytes on their way, until {memory.name} is full",
            ),
        ),
        reduced_loads=tuple(
            ReducedLoad(resource=unit, remaining=1 / more, remaining_best=1 / more) for unit in _ONCE
        ),
    )


def _memory_below_its_limit(context: KernelContext) -> Utilisation | None:
    """DRAM or L2, whichever is fuller, where it is what limits once there are fewer instructions for a byte.

    Of the rest only what each warp asks for once may be fuller: it gets less to do by wider accesses.
    """
    units = measured_loads(context)
    memory = max(
        (unit for unit in units if unit.name in {DRAM, L2}), key=lambda unit: unit.percent, default=None
    )
    if memory is None or memory.percent < constants.SPREAD_PERCENT:
        return None
    is_first = all(
        unit.percent < constants.HIGH_PERCENT
        and (unit.name in {L1, *L1_UNITS, ISSUE, *_ONCE} or unit.percent <= memory.percent)
        for unit in units
    )
    return memory if is_first else None


def _has_elements_of_its_own(context: KernelContext, profile: KernelProfile, function: Function) -> bool:
    """Whether no thread needs what others of its block compute: at most what they loaded, as of a stencil."""
    code = function.instructions
    shared = [index for index, instruction in enumerate(code) if is_shared(instruction)]
    barriers = sum(instruction.info.opclass is OpcodeClass.BARRIER for instruction in code)
    if any(is_atomic(instruction) for instruction in code) or barriers > 1 or bool(barriers) != bool(shared):
        return False
    return all(
        access_shape(function, index, context.program.form, profile.launch).lie is Lie.NEIGHBOURS
        for index in shared
    )


def _is_narrow(context: KernelContext, profile: KernelProfile, function: Function, index: int) -> bool:
    """Whether neighbouring threads load neighbouring words of less than 16 bytes from device memory."""
    instruction = function.instructions[index]
    return (
        instruction.info.opclass is OpcodeClass.LOAD
        and is_global(instruction)
        and (instruction.width_bytes or BANK_BYTES) < WIDEST_BYTES
        and access_shape(function, index, context.program.form, profile.launch).lie is Lie.NEIGHBOURS
    )


def _aligned(
    context: KernelContext, profile: KernelProfile, function: Function, run: Neighbours
) -> Neighbours:
    """The run with the widest access that stays aligned from thread to thread and from pass to pass."""
    first = run.indices[0]
    shape = access_shape(function, first, context.program.form, profile.launch)
    return replace(run, widest_bytes=widest_aligned(run, shape, step_of_pass(function, first)))


def _per_warp(run: Neighbours, executed: Floats, transactions: Floats | None) -> float | None:
    """Transactions, or threads, of one access of the run."""
    indices = list(run.indices)
    warps = float(executed[indices].sum())
    return float(transactions[indices].sum()) / warps if transactions is not None and warps else None


def _gone(runs: Iterable[_Run]) -> dict[tuple[FunctionId, int], float]:
    """The instructions that go: accesses, and what computes addresses for them alone."""
    result: set[tuple[FunctionId, int]] = set()
    for function, of_function in groupby(runs, key=lambda pair: pair[0]):
        removed: set[int] = set()
        for _, run in of_function:
            removed.update(index for first, group in run.groups() for index in group if index != first)
        result.update((function.id, index) for index in removed | _only_for(function, removed))
    return dict.fromkeys(result, 1.0)


def _only_for(function: Function, removed: set[int]) -> set[int]:
    """Integer instructions whose results nothing reads but what is removed."""
    reaching = function.reaching
    readers: dict[Register, list[int]] = defaultdict(list)
    for index, instruction in enumerate(function.instructions):
        for register in set(instruction.uses):
            readers[register].append(index)
    gone = set(removed)
    blocks = {function.block_of[index] for index in removed}
    for block in blocks:
        for index in reversed(range(function.blocks[block].start, function.blocks[block].end)):
            instruction = function.instructions[index]
            if instruction.info.opclass not in _ADDRESSES or not instruction.defs:
                continue
            read = {
                use
                for register in instruction.defs
                for use in readers[register]
                if index in reaching.definitions(use, register)
            }
            if read and read <= gone:
                gone.add(index)
    return gone - removed


def _rows(blame: Blame, accesses: list[tuple[FunctionId, int]]) -> Mask:
    """Waits for the accesses and in the queue that they fill."""
    return by_place(blame, causes(blame), accesses) & stalled(blame)


def _words(runs: list[_Run], blame: Blame) -> tuple[str, str]:
    """What is accessed one by one where it costs most, and the change."""
    cause_rows = causes(blame)
    function, run = max(
        runs,
        key=lambda pair: samples(
            blame, by_place(blame, cause_rows, [(pair[0].id, i) for i in pair[1].indices])
        ),
    )
    first = function.instructions[run.indices[0]]
    kind = "stores" if first.info.opclass is OpcodeClass.STORE else "loads"
    wide = f"Use {kind} of {run.width_bytes * run.per_access} bytes"
    parted = len({function.block_of[index] for index in run.indices}) > 1
    return (
        f"{line_text(function, run.indices[0])} {kind} {counted(len(run.indices), 'value')} of "
        f"{run.width_bytes} bytes that follow each other in memory ({first.opcode})"
        f"{', behind tests of those before' if parted else ''}."
    ), (
        f"{wide} in front of the tests between them, where the address is aligned to that."
        if parted
        else f"{wide} where the address is aligned to that; unroll a loop by as many passes first."
    )


def _adjustment(gone: float) -> Adjustment:
    return Adjustment(
        low=0.0,
        expected=gone / 2,
        high=gone,
        reason=f"{percent(gone)} of the accesses go; no unit is full, so that latency stays",
    )


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="wider-accesses",
    name="Wider Accesses",
    category=Category.STALL_ELIMINATION,
    match=_match,
    estimate=stall_elimination,
    usual_gain=constants.WIDER_GAVE,
    document=__doc__ or "",
    replaced_by="GPA107",  # loads that a tile replaces need not become wider first
)
