# SPDX-License-Identifier: Apache-2.0
"""Wider Accesses: neighbouring values that a thread loads or stores one by one (beyond GPA Table II).

## What it finds

Loads or stores of one thread whose addresses follow each other, in an unrolled body or over the passes that
the compiler has unrolled, where one access of 8 or 16 bytes could take their place: all threads of a warp
load the same few values, or a warp's accesses to shared memory conflict because each thread has its own run
of values. Also loads that stand behind a test of what the one before brought. Accesses to device memory that
are scattered for the same reason belong to Memory Transaction Reduction.

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
saves nothing there but requests: it gains where full SMs have too few bytes in flight for their DRAM (1.2x to
1.3x on an H100, one word a thread), of which no figure is made here, and loses where it costs parallelism.
Addresses that are not known to be aligned cannot be widened without a change of the layout. What a library's
own loop accesses is its own affair: no caller can change it.

## How the gain is estimated

Of each run all accesses but one in every 16 bytes go, with the arithmetic of their addresses. Where the
load/store unit, L1 or the issue slots are busy for 80 % of the time or more, their load falls by that, until
another unit limits; the low end is half of the runs. Where no unit is, the waits for these accesses and in
the unit's queue shrink by half of that share (Eq. 2), all of it at the high end, beside the units' time.
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
from gpadvisor.estimators.reliefs import freed
from gpadvisor.estimators.relieved import L1_UNITS, as_reliefs, relieved_bound
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.utilisation import ISSUE, L1, PIPES, measured_loads
from gpadvisor.evidence.access_shapes import access_shape, widest_aligned
from gpadvisor.evidence.accesses import is_shared
from gpadvisor.evidence.addresses import Neighbours, neighbours, step_of_pass, tested_neighbours
from gpadvisor.evidence.library_code import in_library_loop
from gpadvisor.evidence.measured import Values, executed_threads, executed_warps, metric
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
from gpadvisor.model.advice import Adjustment, Category, Match, Rejection
from gpadvisor.model.blame import Blame
from gpadvisor.model.figures import percent, percentage
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import OpcodeClass, Pipe, Register
from gpadvisor.model.machine import BANK_ROW_BYTES, SECTOR_BYTES, WARP
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function

_CODE: Final = "GPA108"
_SECTORS: Final = "memory_l2_theoretical_sectors_global"
_WAVEFRONTS: Final = "memory_l1_wavefronts_shared"
_UNITS: Final = frozenset({L1, *L1_UNITS, ISSUE, PIPES[Pipe.ALU], PIPES[Pipe.FMA]})
_ADDRESSES: Final = frozenset({OpcodeClass.INTEGER, OpcodeClass.INTEGER_MULTIPLY, OpcodeClass.MOVE})
_Run = tuple[Function, Neighbours]


def _match(context: KernelContext) -> Match | Rejection:
    blame, profile = context.blame, context.profile
    if blame is None or profile is None:
        return Rejection(code=_CODE, reason="needs samples and counted sectors", looked=False)
    runs = list(_runs(context, profile))
    if not runs:
        return Rejection(
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
            relief.resource: relief.remaining
            for relief in freed(context, {at: end * some for at, some in gone.items()})
        }
        for end in (constants.LEAST_PART, 1.0)
    ]
    total = sum(len(run.indices) for _, run in runs)
    after = sum(-(-len(run.indices) // run.per_access) for _, run in runs)
    text = f"{total} accesses of a thread become {after}"
    # Below its limit a unit shares the time with the waits, which wider accesses shorten, too.
    is_full = full is not None and full.unit.percent >= constants.HIGH_PERCENT
    bound = relieved_bound(measured, left[0], left[1], left[1], text) if is_full else None
    facts, cure = _words(runs, blame)
    return Match(
        title="neighbouring values are accessed one by one",
        cure=cure,
        advice=f"{text}: {facts} {cure}",
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(rows)),
        adjustments=() if bound is not None else (_adjustment(1 - after / total),),
        measured_bound=bound,
        relieves=as_reliefs(left[1], left[1]),
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
    taken = {index for run in parted for index in run.indices}
    yield from parted
    yield from (run for run in neighbours(function) if taken.isdisjoint(run.indices))


def _aligned(
    context: KernelContext, profile: KernelProfile, function: Function, run: Neighbours
) -> Neighbours:
    """The run with the widest access that stays aligned from thread to thread and from pass to pass."""
    first = run.indices[0]
    shape = access_shape(function, first, context.program.form, profile.launch)
    return replace(run, widest_bytes=widest_aligned(run, shape, step_of_pass(function, first)))


def _per_warp(run: Neighbours, executed: Values, transactions: Values | None) -> float | None:
    """Transactions, or threads, of one access of the run."""
    at = list(run.indices)
    warps = float(executed[at].sum())
    return float(transactions[at].sum()) / warps if transactions is not None and warps else None


def _gone(runs: Iterable[_Run]) -> dict[tuple[FunctionId, int], float]:
    """The instructions that go: accesses, and what computes addresses for them alone."""
    result: set[tuple[FunctionId, int]] = set()
    for function, of_function in groupby(runs, key=lambda one: one[0]):
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
    at = causes(blame)
    function, run = max(
        runs,
        key=lambda one: samples(blame, by_place(blame, at, [(one[0].id, i) for i in one[1].indices])),
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
    document=__doc__ or "",
    replaced_by="GPA107",  # loads that a tile replaces need not become wider first
)
