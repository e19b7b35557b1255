# SPDX-License-Identifier: Apache-2.0
"""Loop Unrolling: latency inside a loop that the next passes could hide (GPA Table II).

## What it finds

Latency samples of memory and execution dependencies whose def and use are in the same loop. For each loop
it looks at what decides whether unrolling helps: how many passes there are (from constants in the code,
or from executed counts), whether the compiler has unrolled it already, whether a value is carried from
pass to pass, comes from an atomic or stands behind a condition inside the pass, whether a barrier divides
the passes, and whether registers and the instruction cache have room. Without samples it names short
counted loops whose global loads could start a pass ahead and that nobody has unrolled; where the source has
a pragma at each of them, which the compiler did not follow, that is a note.

## Why warps stall

In a rolled loop a warp loads, waits, computes, and only then starts the next pass. The load of the next
pass does not depend on this one, but it stands behind it in program order.

## What to try

`#pragma unroll 4` (or 2, or 8) above the loop: the compiler can then start the loads of several passes
before it uses the first. Where it cannot tell that stores do not touch what is loaded, mark pointers
`__restrict__`. Where addresses are consecutive, load `float4`. Sums in floating point keep their order:
use several accumulators. The compiler unrolls four times by itself; where the grid is so small that an SM
holds fewer warps than it could, four times more keep more loads in flight.

The pragma alone does nothing where copies of the body stand one behind the other:

- The pass stores to what it has loaded (`a[i] *= b[i]`): each load stays behind the store before it. Load the
  values of several passes into an array first, in a loop that is unrolled, and store them in a second one.
- A branch divides the pass, as the way around a division's or a root's rare arguments does: no load moves
  over it. Load the values of several passes first here, too, with `__ldca()`: of plain loads the compiler may
  put each back to its use.
- The counter steps by `blockDim.x` or another unsigned size: it may wrap, so that the compiler cannot count
  the passes ahead and each copy tests for the end. With `const int step = blockDim.x;` it can.
- Further copies on a small grid: without `__launch_bounds__` the compiler orders loads so that an SM could
  hold all its threads (32 registers each on an H100), and the copies load one after the other again.

## Example

```cuda
#pragma unroll 4
for (int i = threadIdx.x; i < n; i += blockDim.x) sum += a[i] * b[i];
```

## When this advice is wrong

If most threads run only a few passes (the paper's example is bfs, estimated 1.59 and achieved 1.12), if
each pass needs the value the last one loaded (a linked list) or waits for an atomic, if the loop is
unrolled already, if a barrier stands in each pass, or if more registers cost warps: where half or more of the
latency stays for such reasons, the suggestion is a note. Large unrolled bodies may not fit the instruction
cache: see Function Split.

## How the gain is estimated

GPA Eqs. 4 and 5: a loop's latency samples can be filled only with active samples of that loop and of loops
in it. The expected value lowers what the equations hide by what stands in the way, and to the 0.8 that the
kernels without such an obstacle in the paper's Table III gained on average. Loads of four passes in flight
also wait together, whatever work there is: of the waits for loads from device memory that do not depend on
the pass before, in the loops that are told, a quarter stays. Where that is more, 0.8 of it is expected, and
the equation's value is the low end; units that are busy, DRAM first, leave less. What no order of
instructions can overlap (carried values, atomics) is left out of the high end, too. Counting, stepping
addresses and jumping less often frees issue slots, so that a kernel whose schedulers are busy is capped less.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.context import KernelContext, Optimizer, WhatIf
from gpadvisor.estimators.latency_hiding import fillable, latency_hiding
from gpadvisor.estimators.launches import lacks_warps
from gpadvisor.estimators.reduced_loads import freed
from gpadvisor.estimators.unrolling import Outlook, counts_of, lanes_of, outlook_of
from gpadvisor.estimators.unrolling_words import advice_of, place_of
from gpadvisor.evidence.library_code import library_loops
from gpadvisor.evidence.loops import loop_facts, loop_overhead
from gpadvisor.evidence.queries import (
    RowIndices,
    common_loop,
    kernel_functions,
    latency,
    line_text,
    location_text,
    regions,
    static_match,
    waits_to_hide,
)
from gpadvisor.evidence.rolled_loops import EXPOSED, UNROLL, rolled_loops
from gpadvisor.model.advice import Adjustment, Category, Match, ReducedLoad, Region, Rejection
from gpadvisor.model.blame import Blame
from gpadvisor.model.ids import FunctionId, LoopId
from gpadvisor.model.machine import WARP
from gpadvisor.model.remedy import Remedy
from gpadvisor.source.edits import SiteKind
from gpadvisor.source.naming import name_pragma

_CODE: Final = "GPA201"
_SAID_LOOPS: Final = 2
_NAMED: Final = 3
_Outlooks = Mapping[tuple[FunctionId | None, LoopId | None], Outlook]


def _match(context: KernelContext) -> Match | Rejection:
    if context.blame is None:
        return static_match(
            _CODE,
            title="loop with global loads that is not unrolled",
            advice=_static_advice(context),
            cure=_static_advice(context),
            sites=rolled_loops(context.program, context.kernel),
            missing=f"no innermost counted loop of up to {EXPOSED} instructions whose global loads could "
            "start a pass ahead and that is not unrolled",
        )
    blame = context.blame
    rows, loops = _in_same_loop(context, blame)
    if not latency(blame, rows):
        return Rejection(
            code=_CODE,
            reason=f"no latency sample whose def and use are in the same loop ({_loop_count(context)} loops)",
        )
    result = regions(blame, context.program, context.kernel, rows, loops)
    counts = counts_of(context, result)
    outlooks = {_loop(region): outlook_of(context, blame, region, counts) for region in result}
    best = max(result, key=lambda region: latency(blame, region.rows) * outlooks[_loop(region)].share)
    named_regions = _named(context, blame, result, outlooks, best)
    advice = advice_of(context, best, outlooks[_loop(best)])
    if named_regions[1:]:
        more = " and ".join(
            place_of(context, region).removeprefix("the loop at ") for region in named_regions[1:]
        )
        advice += f" The same for the loop{'s' if named_regions[2:] else ''} at {more}."
    return Match(
        title="latency inside a loop that later passes could hide",
        advice=advice,
        cure=advice,
        regions=result,
        adjustments=_adjustments(
            context, blame, result, [outlooks[_loop(region)] for region in result], named_regions
        ),
        static_sites=rolled_loops(context.program, context.kernel),
        reduced_loads=_reduced_loads(context, result),
        remedies=(Remedy.LOADS_FIRST,) if outlooks[_loop(best)].held else (),
        actionable=lanes_of(context) == WARP  # full warps come first
        and not _is_unrolled(context, best)
        and not _is_librarys(context, best)
        and outlooks[_loop(best)].share >= constants.MAJORITY,
    )


def _loop(region: Region) -> tuple[FunctionId | None, LoopId | None]:
    return region.scope.function, region.scope.loop


def _named(
    context: KernelContext, blame: Blame, matched: tuple[Region, ...], outlooks: _Outlooks, best: Region
) -> list[Region]:
    """The loops that are told, the best first: those whose loads may be in flight together."""
    other_regions = [
        region
        for region in sorted(matched, key=lambda candidate: -latency(blame, candidate.rows))
        if region is not best
        and latency(blame, region.rows) >= constants.NOTABLE * blame.total_samples
        and outlooks[_loop(region)].share >= constants.MAJORITY
        and outlooks[_loop(region)].in_flight
        and not _is_unrolled(context, region)
        and (outlooks[_loop(region)].held is None) is (outlooks[_loop(best)].held is None)
    ]
    return [best, *other_regions[: _NAMED - 1]]


def _is_unrolled(context: KernelContext, region: Region) -> bool:
    """Whether a loop's body stands in the code as often as this rule would have it."""
    function, loop = region.scope.function, region.scope.loop
    if function is None or loop is None:
        return False
    copies = loop_facts(context.program.functions[function], loop).copies
    return copies >= UNROLL and not lacks_warps(context)


def _is_librarys(context: KernelContext, region: Region) -> bool:
    """Whether a loop is a library's, where no caller can write a pragma."""
    function, loop = region.scope.function, region.scope.loop
    return function is not None and loop in library_loops(context.program.functions[function])


def _static_advice(context: KernelContext) -> str:
    places = []
    for site in rolled_loops(context.program, context.kernel):
        function = context.program.functions[site.function]
        loop = function.innermost_loop(site.index)
        location = None if loop is None else function.loops[loop].location
        place = line_text(function, site.index) if location is None else location_text(location)
        places.append(place)
    unique = list(dict.fromkeys(places))
    loops = f"loop{'s' if len(unique) > 1 else ''} at {', '.join(unique[:3])}"
    return (
        f"Unroll the {loops}{terms.UNROLLED.of(context.language, times=UNROLL)}, so that loads of several "
        "passes are in flight together."
    )


def _reduced_loads(context: KernelContext, matched: tuple[Region, ...]) -> tuple[ReducedLoad, ...]:
    """A body that stands four times counts, compares and jumps once for four passes."""
    gone = {}
    for region in matched:
        function, loop = region.scope.function, region.scope.loop
        if function is None or loop is None:
            continue
        code = context.program.functions[function]
        if loop_facts(code, loop).copies == 1:
            gone.update({(function, index): 1 - 1 / UNROLL for index in loop_overhead(code, loop)})
    return freed(context, gone)


def _in_same_loop(context: KernelContext, blame: Blame) -> tuple[RowIndices, list[LoopId | None]]:
    """Dependency stalls inside a loop, each with the innermost loop around its def and its use."""
    table = blame.rows
    rows: list[int] = []
    loops: list[LoopId | None] = []
    for row in np.flatnonzero(waits_to_hide(blame, context.program)).tolist():
        function = context.program.functions[int(table.function[row])]
        loop = common_loop(function, int(table.def_index[row]), int(table.use_index[row]))
        if loop is not None:
            rows.append(row)
            loops.append(loop)
    return np.array(rows, dtype=np.intp), loops


def _loop_count(context: KernelContext) -> int:
    return sum(len(function.loops) for function in kernel_functions(context.program, context.kernel))


def _adjustments(
    context: KernelContext,
    blame: Blame,
    matched: tuple[Region, ...],
    outlooks: list[Outlook],
    named_regions: list[Region],
) -> tuple[Adjustment, ...]:
    weights = [latency(blame, region.rows) for region in matched]
    total = sum(weights)
    mean = sum(weight * outlook.share for weight, outlook in zip(weights, outlooks, strict=True)) / total
    most = sum(weight * outlook.possible for weight, outlook in zip(weights, outlooks, strict=True)) / total
    said = [
        f"{place_of(context, region)}: {'; '.join(outlook.reasons)}"
        for region, outlook in list(zip(matched, outlooks, strict=True))[:_SAID_LOOPS]
        if outlook.reasons
    ]
    told = [
        outlook if region in named_regions else None
        for region, outlook in zip(matched, outlooks, strict=True)
    ]
    together = _in_flight(context, blame, matched, told)
    if constants.UNROLLED * together > mean:
        said.append(
            f"loads of {UNROLL} passes in flight wait together, not only behind work of their own, which is "
            "the low end"
        )
        return (
            Adjustment(
                low=mean,
                expected=constants.UNROLLED * together,
                high=max(together, most),
                reason="; ".join(said),
            ),
        )
    if not said:
        return (
            Adjustment(
                low=constants.UNROLLED_LEAST,
                expected=constants.UNROLLED,
                high=1.0,
                reason="in the paper's Table III this change removed 29 to 95 % of what Eq. 4 says, 69 % on "
                "average over four kernels and 82 % over the three without an obstacle that is checked here",
            ),
        )
    return (
        Adjustment(
            low=0.0,
            expected=constants.UNROLLED * mean,
            high=max(most, together, constants.UNROLLED * mean),
            reason="; ".join(said),
        ),
    )


def _in_flight(
    context: KernelContext, blame: Blame, matched: tuple[Region, ...], outlooks: list[Outlook | None]
) -> float:
    """What loads of the loops that are told would not wait any more, as a multiple of what Eq. 4 hides.

    Differs from GPA: Eq. 4 fills latency with work of the scope, at most as much as there is. Loads of
    several passes in flight also wait at the same time, whatever work there is.
    """
    filled = fillable(context.program, blame, matched)
    loads = sum(
        latency(blame, region.rows) * outlook.in_flight
        for region, outlook in zip(matched, outlooks, strict=True)
        if outlook is not None
    )
    return (1 - 1 / UNROLL) * loads / filled if filled else 0.0


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="loop-unrolling",
    name="Loop Unrolling",
    category=Category.LATENCY_HIDING,
    match=_match,
    estimate=latency_hiding,
    document=__doc__ or "",
    optimized_only=True,
    edits=(SiteKind.UNROLL, SiteKind.RESTRICT),
    naming=name_pragma,
    what_if=WhatIf.EDITED,
)
