# SPDX-License-Identifier: Apache-2.0
"""Data Reuse: values that are loaded again and again instead of kept (beyond GPA Table II).

## What it finds

Loops of multiply-adds that load nearly as many values as they multiply, where each value is loaded by many
threads, and the load/store unit or L1 is what limits the kernel. Two steps of one ladder: operands that come
straight from global memory although neighbouring threads load the same ones, and operands that come from
shared memory although each thread computes too few results to use them twice. Loops may be unrolled, in part
or completely, and the values floating-point numbers or integers, those of bytes included. A constant that
each product loads (`LDC`), and that is the same for all threads of a warp by its address, is such a value
without any count, and the pipe that loads it one of those units. Without samples: such loops with a value or
more for each product, where the report counts one of those units at 80 % or more; where nobody counted
instructions either, the loop is taken for all that the kernel does.

## Why warps stall

A multiply-add takes half a cycle of a scheduler's FMA lanes, but a load takes the load/store unit of the
whole SM for two cycles or more. With two loads for each multiply-add the load/store unit is full while the
arithmetic runs at a tenth of its rate.

## What to try

- From global memory: a tile of each operand in shared memory, filled once by the block.
- From shared memory, and in filters and stencils, where a thread loads next what its neighbour loads now (by
  the addresses, or as a warp takes fewer sectors than its threads' runs side by side) and L1 serves as a tile
  would, or where threads share a constant: several results per thread, 2 x 2, then 4 x 4, then 8 x 8. What a
  thread has in registers is then used by a whole row or column of its results; loads for each multiply-add
  halve with each step.
- Factors of a filter, the same for all threads of a warp: in constant memory.
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
fills today. The low end doubles a tile in one direction by loads as wide as now, the high end in both by
wider ones; expected is between them. A tile in shared memory must load its values, too: one operand by 16
bytes, the other one by one, and both once from global memory and into the tile, so that three quarters of
the loads stay for one of 16 x 16; at the high end the results per thread that come next are in it.
The paper's value, Eq. 2 with the stalls due to these loads, stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from typing import Final

import numpy as np

from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.caps import busiest_after, unit_text
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.reuse import ReuseStep, larger, left_after, steps, tile_edge, units_of
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.unit_bounds import as_reduced_loads, unit_bound
from gpadvisor.estimators.utilisation import DRAM, measured_loads
from gpadvisor.evidence.access_shapes import Lie, access_shape, words_of_a_warp
from gpadvisor.evidence.products import ProductLoop, product_loops, times_loaded, with_sharing
from gpadvisor.evidence.queries import (
    Mask,
    by_place,
    by_stall,
    causes,
    line_text,
    regions,
    samples,
    share,
    stalled,
)
from gpadvisor.evidence.traffic import kernel_traffic
from gpadvisor.model.advice import (
    Adjustment,
    Category,
    Match,
    MeasuredBound,
    ReducedLoad,
    Rejection,
    StaticSite,
    Utilisation,
)
from gpadvisor.model.blame import Blame
from gpadvisor.model.figures import percent, percentage
from gpadvisor.model.language import Language
from gpadvisor.model.machine import WARP, WIDEST_BYTES
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.remedy import Remedy
from gpadvisor.model.stalls import StallClass
from gpadvisor.source.naming import name_tile

_CODE: Final = "GPA107"
_HIDING_WARPS: Final = 4
"""Warps per scheduler of the whole grid below which the four cycles of an FMA are not covered any more."""
_QUEUES: Final = frozenset({StallClass.MEMORY_THROTTLE, StallClass.SHARED_THROTTLE})


def _match(context: KernelContext) -> Match | Rejection:
    blame, profile = context.blame, context.profile
    if profile is None:
        reason = "needs samples: machine code does not show which unit is full"
        return Rejection(code=_CODE, reason=reason, looked=False)
    if blame is None:
        return _counted(context, profile)
    loop = max(
        product_loops(context.program, context.kernel, profile),
        key=lambda product_loop: samples(blame, _rows(blame, product_loop)),
        default=None,
    )
    if loop is None:
        return Rejection(code=_CODE, reason="no loop multiplies values that it loads")
    loop = with_sharing(loop, context.program.form, profile)
    why = _not_worth(context, blame, profile, loop)
    if why is not None:
        return Rejection(code=_CODE, reason=why)
    bound, reduced_loads = _bound_and_loads(context, profile, loop)
    rows = _rows(blame, loop)
    return Match(
        title=_title(loop),
        cure=_cure(context, profile, loop),
        remedies=(Remedy.SEVERAL_RESULTS,) if _several_results(loop) else (),
        advice=_advice(context, profile, loop),
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(rows)),
        adjustments=() if bound is not None else (_adjustment(*steps(loop, profile)),),
        measured_bound=bound,
        reduced_loads=reduced_loads,
    )


def _bound_and_loads(
    context: KernelContext, profile: KernelProfile, loop: ProductLoop
) -> tuple[MeasuredBound | None, tuple[ReducedLoad, ...]]:
    """What a step gives by the units' loads, and what it takes off them."""
    three = steps(loop, profile)
    least, middle, most = (left_after(context, profile, loop, step) for step in three)
    bound = unit_bound(measured_loads(context), least, middle, most, _what(three[1]))
    return bound, as_reduced_loads(middle, most)


def _counted(context: KernelContext, profile: KernelProfile) -> Match | Rejection:
    """Without samples: a unit that the report counts as full, and a loop that loads for each product."""
    measured = measured_loads(context)
    full = busiest_after(measured, ())
    if full is None or full.unit.percent < constants.HIGH_PERCENT:
        reason = "needs samples: no unit is counted as full"
        return Rejection(code=_CODE, reason=reason, looked=False)
    loops = [
        with_sharing(product_loop, context.program.form, profile)
        for product_loop in product_loops(context.program, context.kernel, profile)
        if product_loop.values_per_product >= 1 and full.unit.name in units_of(product_loop)
    ]
    loop = max(loops, key=lambda candidate: (_depth(candidate), len(candidate.products)), default=None)
    if loop is None:
        reason = f"no loop that loads a value for each multiply-add would fill {full.unit.name}"
        return Rejection(code=_CODE, reason=reason)
    why = _seen_once(context, profile, loop, measured)
    if why is not None:
        return Rejection(code=_CODE, reason=why)
    bound, reduced_loads = _bound_and_loads(context, profile, loop)
    return Match(
        title=f"{_title(loop)}: {full.unit.name} at {percentage(full.unit.percent)}",
        cure=_cure(context, profile, loop),
        remedies=(Remedy.SEVERAL_RESULTS,) if _several_results(loop) else (),
        advice=f"{unit_text(full.unit)}. {_advice(context, profile, loop)}",
        regions=(),
        static_sites=(
            StaticSite(function=loop.function.id, index=loop.loads[0], detail="loads for each product"),
        ),
        counted=True,
        measured_bound=bound,
        reduced_loads=reduced_loads,
    )


def _seen_once(
    context: KernelContext, profile: KernelProfile, loop: ProductLoop, measured: Sequence[Utilisation]
) -> str | None:
    """What speaks against values that are loaded again and again, where nobody sampled."""
    times = times_loaded(context.program, profile, loop)
    if times is not None and times < constants.SHARED_OPERANDS and not loop.shares_constants:
        return f"the loop {_where(loop)} loads each value {times:.1f} times: there is nothing to keep"
    if loop.from_shared:
        return None
    if any(
        utilisation.name == DRAM and utilisation.percent >= constants.BUSY_PERCENT for utilisation in measured
    ):
        return "DRAM is busy, too: nothing counted that the loads are of the same values"
    form, launch = context.program.form, profile.launch
    if any(access_shape(loop.function, index, form, launch).lie is Lie.ROWS for index in loop.loads):
        return f"the loads of the loop {_where(loop)} are scattered, which comes first"
    return None


def _depth(loop: ProductLoop) -> int:
    return len(loop.function.enclosing_loops(loop.products[0]))


def _rows(blame: Blame, loop: ProductLoop) -> Mask:
    """Waits for the loads of a loop, and of any of its instructions for their turn in the loads' queue."""
    cause_rows = causes(blame)
    function = loop.function.id
    loads = by_place(blame, cause_rows, [(function, index) for index in (*loop.loads, *loop.constants)])
    inside = by_place(blame, cause_rows, [(function, index) for index in loop.indices])
    return (loads | (inside & by_stall(blame, _QUEUES))) & stalled(blame)


def _not_worth(context: KernelContext, blame: Blame, profile: KernelProfile, loop: ProductLoop) -> str | None:
    """Why larger tiles would not help, where something says so."""
    where = _where(loop)
    part = share(blame, _rows(blame, loop))
    if part < constants.NOTABLE:
        return f"the loads of the loop {where} cost {percent(part)} of the samples"
    if loop.from_shared and loop.values_per_product < constants.FEW_LOADS:
        return (
            f"the loop {where} loads {loop.values_per_product:.2f} values for each multiply-add: its tile "
            "takes as many registers as there are"
        )
    times = times_loaded(context.program, profile, loop)
    if times is None and not loop.shares_constants:
        return f"nothing counted how often the loop {where} loads the same values"
    if times is not None and times < constants.SHARED_OPERANDS and not loop.shares_constants:
        return f"the loop {where} loads each value {times:.1f} times: there is nothing to keep"
    full = busiest_after(measured_loads(context), ())
    if full is not None and full.unit.name not in units_of(loop):
        unit = full.unit
        return f"{unit.name} is the busiest unit, at {percentage(unit.percent)}: fewer loads do not help it"
    if full is not None and full.unit.percent < constants.BUSY_PERCENT:
        return f"no unit is full: {full.unit.name} is the busiest, at {percentage(full.unit.percent)}"
    if loop.keeps_in_registers:
        resident = _warps_per_scheduler(context, profile)
        if resident is not None and resident / 4 < _HIDING_WARPS:
            return (
                f"four times the results per thread would leave {resident / 4:.1f} warps per scheduler: the "
                "problem is too small for larger tiles"
            )
        return None
    traffic = kernel_traffic(context.program, context.kernel, profile)
    places = [(loop.function.id, index) for index in loop.loads]
    tiled = loop.sums is not None and loop.sums > 1  # neighbours' values lie a tile's edge apart then
    if traffic is not None and not tiled and any(map(traffic.is_scattered, places)):
        return f"the loads of the loop {where} are scattered over too many sectors, which comes first"
    return None


def _warps_per_scheduler(context: KernelContext, profile: KernelProfile) -> float | None:
    """Of the whole grid, over all schedulers of the GPU."""
    sms = profile.device.sms
    if not sms:
        return None
    warps = profile.launch.blocks * ceil(profile.launch.threads_per_block / WARP)
    return warps / (sms * context.machine.sm.schedulers.value)


def _where(loop: ProductLoop) -> str:
    return f"at {line_text(loop.function, loop.products[0])}"


def _title(loop: ProductLoop) -> str:
    if loop.from_shared:
        return "each value from shared memory is used by too few results of a thread"
    if loop.shares_constants:
        return "each product loads a constant of its own, the same for all threads of a warp"
    return "threads load the same values from global memory again and again"


def _what(step: ReuseStep) -> str:
    of_constants = f", those of constants to {percent(step.constants)}" if step.constants < 1 else ""
    return (
        f"loads fall to {percent(step.requests)} of what they are, the bytes they move to "
        f"{percent(step.bytes_moved)}{of_constants}"
    )


def _advice(context: KernelContext, profile: KernelProfile, loop: ProductLoop) -> str:
    times = times_loaded(context.program, profile, loop)
    counted = ", one of them a constant that all threads of a warp share" if loop.shares_constants else ""
    if times is not None and not loop.shares_constants:
        counted = (
            f", and the block loads each value of its tile {times:.0f} times"
            if loop.from_shared
            else f", and L1 serves each value that it fetches {times:.0f} times"
        )
    facts = f"The loop {_where(loop)} loads {loop.values_per_product:.3g} values for each multiply-add"
    return f"{facts}{counted}: {_cure(context, profile, loop)}."


def _cure(context: KernelContext, profile: KernelProfile, loop: ProductLoop) -> str:
    if loop.bytes_alone:
        at_once = terms.FOUR_BYTES.of(context.language)
        return f"{_kept_values(profile, loop)}; and multiply four bytes at once{at_once}"
    if loop.windows and _loads_alike(context, profile, loop):
        return f"{_kept_values(profile, loop)}; and {_to_constants(context.language)}"
    return _kept_values(profile, loop)


def _to_constants(language: Language) -> str:
    return (
        "load the factors that all threads of a warp share from constant memory "
        f"({terms.CONSTANT_MEMORY.of(language)})"
    )


def _loads_alike(context: KernelContext, profile: KernelProfile, loop: ProductLoop) -> bool:
    """Whether a factor from device memory is the same for all threads of a warp, as those of a filter are."""
    form, launch = context.program.form, profile.launch
    return any(words_of_a_warp(loop.function, index, form, launch) == 1 for index in loop.loads)


def _several_results(loop: ProductLoop) -> bool:
    """Whether threads are to compute several results each; tiles alone serve a loop with few loads."""
    told_alone = loop.from_shared or loop.windows or loop.shares_constants
    return bool(told_alone) or loop.values_per_product >= constants.FEW_LOADS


def _kept_values(profile: KernelProfile, loop: ProductLoop) -> str:
    if loop.from_shared:
        wide = " by loads of 16 bytes" if loop.values_per_load * loop.factor_bytes < WIDEST_BYTES else ""
        if loop.tile is None:
            return (
                "let each thread compute two to four times as many neighbouring results, so that what it has "
                f"loaded into registers{wide} is used as often"
            )
        then = larger(loop.tile)
        return (
            f"let each thread compute {then[0]} x {then[1]} results ({loop.tile[0]} x {loop.tile[1]} now), "
            f"so that what it has loaded into registers{wide} is used {_times(then)} times"
        )
    if loop.windows:
        constant = ", constants too," if loop.shares_constants else ""
        return (
            "let each thread compute 2 x 2 neighbouring results, so that what it has loaded into registers"
            f"{constant} is used for all of them: their windows overlap"
        )
    if loop.shares_constants:
        return (
            "let each thread compute two to four results, so that a constant, which all threads share, is "
            "loaded once for them"
        )
    edge = int(tile_edge(profile) * sqrt(loop.sums or 1))
    tiles = (
        f"fill tiles of about {edge} x {edge} in shared memory once per block and read the operands "
        "from there"
    )
    if not _several_results(loop):
        return tiles
    return f"{tiles}; then let each thread compute several results, which gains more"


def _times(tile: tuple[int, int]) -> str:
    return " or ".join(dict.fromkeys(map(str, tile)))


def _adjustment(least: ReuseStep, middle: ReuseStep, most: ReuseStep) -> Adjustment:
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
    usual_gain=constants.TILES_GAVE,
    document=__doc__ or "",
    naming=name_tile,
)
