# SPDX-License-Identifier: Apache-2.0
"""Data Reuse: values that are loaded again and again instead of kept (beyond GPA Table II).

## What it finds

Loops of multiply-adds that load nearly as many values as they multiply, where each value is loaded by many
threads, and the load/store unit or L1 is what limits the kernel. Two steps of one ladder: operands that come
straight from global memory although neighbouring threads load the same ones, and operands that come from
shared memory although each thread computes too few results to use them twice. Loops may be unrolled, in part
or completely, and the values floating-point numbers or integers, those of bytes included.

## Why warps stall

A multiply-add takes half a cycle of a scheduler's FMA lanes, but a load takes the load/store unit of the
whole SM for two cycles or more. With two loads for each multiply-add the load/store unit is full while the
arithmetic runs at a tenth of its rate.

## What to try

- From global memory: a tile of each operand in shared memory, filled once by the block.
- From shared memory, and in filters and stencils, where a thread loads next what its neighbour loads now and
  L1 serves as a tile would: several results per thread, 2 x 2, then 4 x 4, then 8 x 8. What a
  thread has in registers is then used by a whole row or column of its results; loads for each multiply-add
  halve with each step.
- Multiply bytes four at a time (`__dp4a`).
- Lay the tiles out so that a thread's values are neighbours and come with one load of 16 bytes.

## Example

```cuda
sum += a_tile[ty][k] * b_tile[k][tx];             // two loads for one multiply-add

for (int i = 0; i < 4; ++i) a[i] = a_tile[k][4 * ty + i];
for (int j = 0; j < 4; ++j) b[j] = b_tile[k][4 * tx + j];
for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) sum[i][j] += a[i] * b[j];   // eight loads for sixteen
```

## When this advice is wrong

Where the problem is small, larger tiles leave too few warps to keep the schedulers busy; the rule counts
them and is silent. Data that is used once (a vector's dot product, the matrix of a matrix-vector product)
has nothing to keep: staging it through shared memory only costs instructions and barriers. Where DRAM limits,
fewer loads do not help.

## How the gain is estimated

Not by the stalls alone: loads, bytes through L1 and address arithmetic fall in proportion to the values
loaded for each multiply-add, and the time is the load of the unit that is busiest then, plus what no unit
fills today. The low end doubles the tile in one direction, the high end in both; expected is between them.
The paper's value, Eq. 2 with the stalls due to these loads, stands beside it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.relieved import L1_UNITS, LSU_PIPE, as_reliefs, relieved_bound
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.utilisation import DRAM, ISSUE, L1, L1_REQUESTS, L1_TO_L2, L2, PIPES, measured_loads
from gpadvisor.evidence.loops import loop_facts
from gpadvisor.evidence.measured import Values, executed_warps, metric
from gpadvisor.evidence.products import WARP, ProductLoop, product_loops, times_loaded, with_windows
from gpadvisor.evidence.queries import (
    Mask,
    by_place,
    by_stall,
    causes,
    line_text,
    percent,
    regions,
    samples,
    share,
    stalled,
)
from gpadvisor.evidence.traffic import kernel_traffic
from gpadvisor.model.advice import Adjustment, Category, Match, Rejection
from gpadvisor.model.blame import Blame
from gpadvisor.model.instruction import Pipe
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.stalls import StallClass

_CODE: Final = "GPA107"
_WIDEST_BYTES: Final = 16
_HIDING_WARPS: Final = 4
"""Warps per scheduler of the whole grid below which the four cycles of an FMA are not covered any more."""
_QUEUES: Final = frozenset({StallClass.MEMORY_THROTTLE, StallClass.SHARED_THROTTLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """What one step leaves of a loop's loads: the instructions, and the bytes that they move."""

    requests: float
    bytes_moved: float
    overhead: float  # of the loop's other instructions

    def between(self, other: _Step) -> _Step:
        """The geometric mean of two outcomes."""
        return _Step(
            requests=sqrt(self.requests * other.requests),
            bytes_moved=sqrt(self.bytes_moved * other.bytes_moved),
            overhead=sqrt(self.overhead * other.overhead),
        )


def _match(context: KernelContext) -> Match | Rejection:
    blame, profile = context.blame, context.profile
    if blame is None or profile is None:
        reason = "needs samples: machine code does not show which unit is full"
        return Rejection(code=_CODE, reason=reason, looked=False)
    found = max(
        product_loops(context.program, context.kernel, profile),
        key=lambda one: samples(blame, _rows(blame, one)),
        default=None,
    )
    if found is None:
        return Rejection(code=_CODE, reason="no loop multiplies values that it loads")
    found = with_windows(found, context.program.form, profile.launch)
    why = _not_worth(context, blame, profile, found)
    if why is not None:
        return Rejection(code=_CODE, reason=why)
    least, most = _steps(found, profile)
    middle = least.between(most)
    left = [_left(context, profile, found, step) for step in (least, middle, most)]
    rows = _rows(blame, found)
    bound = relieved_bound(measured_loads(context), left[0], left[1], left[2], _what(middle))
    return Match(
        title=_title(found),
        cure=_cure(profile, found),
        advice=_advice(context, profile, found),
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(rows)),
        adjustments=() if bound is not None else (_adjustment(least, middle, most),),
        measured_bound=bound,
        relieves=as_reliefs(left[1], left[2]),
    )


def _rows(blame: Blame, found: ProductLoop) -> Mask:
    """Waits for the loads of a loop, and of any of its instructions for their turn in the loads' queue."""
    at = causes(blame)
    function = found.function.id
    loads = by_place(blame, at, [(function, index) for index in found.loads])
    inside = by_place(blame, at, [(function, index) for index in found.indices])
    return (loads | (inside & by_stall(blame, _QUEUES))) & stalled(blame)


def _not_worth(
    context: KernelContext, blame: Blame, profile: KernelProfile, found: ProductLoop
) -> str | None:
    """Why larger tiles would not help, where something says so."""
    where = _where(found)
    part = share(blame, _rows(blame, found))
    if part < constants.NOTABLE:
        return f"the loads of the loop {where} cost {percent(part)} of the samples"
    if found.from_shared and found.values_per_product < constants.FEW_LOADS:
        return (
            f"the loop {where} loads {found.values_per_product:.2f} values for each multiply-add: its tile "
            "takes as many registers as there are"
        )
    times = times_loaded(context.program, profile, found)
    if times is None:
        return f"nothing counted how often the loop {where} loads the same values"
    if times < constants.SHARED_OPERANDS:
        return f"the loop {where} loads each value {times:.1f} times: there is nothing to keep"
    full = busiest_after(measured_loads(context), ())
    if full is not None and full.unit.name not in (L1, *L1_UNITS, L1_TO_L2, L2):
        unit = full.unit
        return f"{unit.name} is the busiest unit, at {unit.percent:.0f} %: fewer loads do not help it"
    if full is not None and full.unit.percent < constants.BUSY_PERCENT:
        return f"no unit is full: {full.unit.name} is the busiest, at {full.unit.percent:.0f} %"
    if found.keeps_in_registers:
        left = _warps_per_scheduler(context, profile)
        if left is not None and left / 4 < _HIDING_WARPS:
            return (
                f"four times the results per thread would leave {left / 4:.1f} warps per scheduler: the "
                "problem is too small for larger tiles"
            )
        return None
    traffic = kernel_traffic(context.program, context.kernel, profile)
    places = [(found.function.id, index) for index in found.loads]
    tiled = found.sums is not None and found.sums > 1  # neighbours' values lie a tile's edge apart then
    if traffic is not None and not tiled and any(map(traffic.is_scattered, places)):
        return f"the loads of the loop {where} are scattered over too many sectors, which comes first"
    return None


def _steps(found: ProductLoop, profile: KernelProfile) -> tuple[_Step, _Step]:
    """The least and the most that one step takes off.

    From shared memory: a tile doubled in one direction loads 3/4 of the values, in both half of them, by
    loads that are up to as much wider. From global memory: a tile in shared memory is filled by a load and a
    store for each of its edge's steps, and what follows itself in it comes with 16 bytes at a time, for one
    operand or for both; its addresses are constants.
    """
    if found.keeps_in_registers:
        wider = 1.0 if found.windows else _WIDEST_BYTES / (found.values_per_load * found.factor_bytes)
        one, both = _kept(found)
        return (
            _Step(requests=one / min(constants.WIDER_ONE, max(1.0, wider)), bytes_moved=one, overhead=one),
            _Step(
                requests=both / min(constants.WIDER_BOTH, max(1.0, wider)),
                bytes_moved=both,
                overhead=both,
            ),
        )
    edge = _tile_edge(profile)
    width = _WIDEST_BYTES / found.factor_bytes
    one, both = (1 + 1 / width) / 2 + 2 / edge, 1 / width + 2 / edge
    return (
        _Step(requests=min(1.0, one), bytes_moved=min(1.0, one), overhead=2 / edge),
        _Step(requests=sqrt(one * both), bytes_moved=sqrt(one * both), overhead=1 / edge),
    )


def _larger(tile: tuple[int, int]) -> tuple[int, int]:
    """Four times the results, as square as doubling makes them."""
    less, more = tile
    for _ in range(2):
        less, more = sorted((2 * less, more))
    return less, more


def _kept(found: ProductLoop) -> tuple[float, float]:
    """The share of the values still loaded with the shorter edge of the tile doubled, and with both."""
    if found.tile is None:
        return constants.ONE_SIDE, constants.BOTH_SIDES
    now, then, values = found.tile, _larger(found.tile), found.values_per_product
    return (
        (1 / (2 * now[0]) + 1 / now[1]) / values,
        (1 / then[0] + 1 / then[1]) / values,
    )


def _tile_edge(profile: KernelProfile) -> int:
    """The edge of a square tile with an element for each thread of the block."""
    return max(4, int(sqrt(profile.launch.threads_per_block)))


def _left(
    context: KernelContext, profile: KernelProfile, found: ProductLoop, step: _Step
) -> dict[str, float]:
    """What a step leaves of each unit's load; what does not come from the loop stays."""
    inside = _share_of_accesses(context, profile, found)
    needed = 1.0 if found.keeps_in_registers else _needed(context, profile, found)
    left = dict.fromkeys(L1_UNITS, 1 - inside * (1 - step.bytes_moved * needed))
    left[L1_REQUESTS] = left[LSU_PIPE] = 1 - inside * (1 - step.requests)
    if found.from_shared:  # the block's tile grows with its threads' tiles
        left[L1_TO_L2] = left[L2] = left[DRAM] = 1 - inside * (1 - step.bytes_moved)
    executed = executed_warps(profile, found.function)
    return left if executed is None else left | _arithmetic(found, executed, step)


def _needed(context: KernelContext, profile: KernelProfile, found: ProductLoop) -> float:
    """The share of a loop's sectors that it needs: rows in shared memory do not begin between two of them."""
    traffic = kernel_traffic(context.program, context.kernel, profile)
    sectors = metric(profile, "memory_l2_theoretical_sectors_global", found.function)
    if traffic is None or sectors is None:
        return 1.0
    asked = float(sectors[list(found.loads)].sum())
    wasted = sum(traffic.scattered.get((found.function.id, index), 0.0) for index in found.loads)
    return 1 - wasted / asked if asked else 1.0


def _share_of_accesses(context: KernelContext, profile: KernelProfile, found: ProductLoop) -> float:
    """Of all accesses through the load/store unit, those of a loop, its copies and loops around it."""
    fills = set(found.indices)
    if found.copies > 1:
        fills.update(range(min(fills), max(fills)))
    for outermost in found.function.enclosing_loops(found.indices[0])[-1:]:
        fills.update(loop_facts(found.function, outermost).indices)
    inside = every = 0.0
    for function in context.program.functions:
        executed = executed_warps(profile, function)
        for index, instruction in enumerate(function.instructions):
            if executed is not None and instruction.info.pipe is Pipe.LSU:
                every += float(executed[index])
                inside += float(executed[index]) if function is found.function and index in fills else 0.0
    return inside / every if every else 1.0


def _arithmetic(found: ProductLoop, executed: Values, step: _Step) -> dict[str, float]:
    """Issue slots and integer work that go with the loads: the loop's own, against all of the function."""
    every, gone = Counter[str](), Counter[str]()
    loads, stay = set(found.loads), set(found.products)
    inside = set(found.indices)
    for index, instruction in enumerate(found.function.instructions):
        for unit in {ISSUE, PIPES.get(instruction.info.pipe, ISSUE)} - {LSU_PIPE}:
            every[unit] += executed[index]
            if index in inside and index not in stay:
                share_left = step.requests if index in loads else step.overhead
                gone[unit] += executed[index] * (1 - share_left)
    return {unit: 1 - gone[unit] / total for unit, total in every.items() if total}


def _warps_per_scheduler(context: KernelContext, profile: KernelProfile) -> float | None:
    """Of the whole grid, over all schedulers of the GPU."""
    sms = profile.device.sms
    if not sms:
        return None
    warps = profile.launch.blocks * ceil(profile.launch.threads_per_block / WARP)
    return warps / (sms * context.machine.sm.schedulers.value)


def _where(found: ProductLoop) -> str:
    return f"at {line_text(found.function, found.products[0])}"


def _title(found: ProductLoop) -> str:
    if found.from_shared:
        return "each value from shared memory is used by too few results of a thread"
    return "threads load the same values from global memory again and again"


def _what(step: _Step) -> str:
    return (
        f"loads fall to {percent(step.requests)} of what they are, the bytes they move to "
        f"{percent(step.bytes_moved)}"
    )


def _advice(context: KernelContext, profile: KernelProfile, found: ProductLoop) -> str:
    times = times_loaded(context.program, profile, found)
    counted = ""
    if times is not None:
        counted = (
            f", and the block loads each value of its tile {times:.0f} times"
            if found.from_shared
            else f", and L1 serves each value that it fetches {times:.0f} times"
        )
    facts = f"The loop {_where(found)} loads {found.values_per_product:.3g} values for each multiply-add"
    return f"{facts}{counted}: {_cure(profile, found)}."


def _cure(profile: KernelProfile, found: ProductLoop) -> str:
    return _kept_values(profile, found) + (
        "; and multiply four bytes at once (__dp4a)" if found.bytes_alone else ""
    )


def _kept_values(profile: KernelProfile, found: ProductLoop) -> str:
    if found.from_shared:
        wide = " by loads of 16 bytes" if found.values_per_load * found.factor_bytes < _WIDEST_BYTES else ""
        if found.tile is None:
            return (
                "let each thread compute two to four times as many neighbouring results, so that what it has "
                f"loaded into registers{wide} is used as often"
            )
        then = _larger(found.tile)
        return (
            f"let each thread compute {then[0]} x {then[1]} results ({found.tile[0]} x {found.tile[1]} now), "
            f"so that what it has loaded into registers{wide} is used {_times(then)} times"
        )
    if found.windows:
        return (
            "let each thread compute 2 x 2 neighbouring results, so that what it has loaded into registers "
            "is used for all of them: their windows overlap"
        )
    edge = int(_tile_edge(profile) * sqrt(found.sums or 1))
    tiles = (
        f"fill tiles of about {edge} x {edge} in shared memory once per block and read the operands "
        "from there"
    )
    if found.values_per_product < constants.FEW_LOADS:
        return tiles
    return f"{tiles}; then let each thread compute several results, which gains more"


def _times(tile: tuple[int, int]) -> str:
    return " or ".join(dict.fromkeys(map(str, tile)))


def _adjustment(least: _Step, middle: _Step, most: _Step) -> Adjustment:
    return Adjustment(
        low=1 - max(least.requests, least.bytes_moved),
        expected=1 - max(middle.requests, middle.bytes_moved),
        high=1 - min(most.requests, most.bytes_moved),
        reason="the stalls go with the loads: no unit's load was measured",
    )


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="data-reuse",
    name="Data Reuse",
    category=Category.STALL_ELIMINATION,
    match=_match,
    estimate=stall_elimination,
    document=__doc__ or "",
)
