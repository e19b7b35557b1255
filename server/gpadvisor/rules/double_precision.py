# SPDX-License-Identifier: Apache-2.0
"""Double Precision: a pipe that is slow on this GPU sets the pace (beyond GPA Table II).

## What it finds

Kernels that compute in double precision alone, on a GPU that does so at 1/16 of the rate of floats or less,
where the pipe of double precision is the busiest unit. It names the lines that load the pipe most. Doubles in
a kernel of floats are the subject of Strength Reduction (GPA102).

## Why warps stall

GPUs other than those of data centers have two lanes of double precision beside 64 or 128 of single precision.
A warp's operation takes 16 to 64 cycles of them, and the next one waits.

## What to try

- Compute in float what bears it, or keep double only where digits are lost: long sums, differences of numbers
  that are nearly equal.
- A double as the sum of two floats (some 10 operations for each) is still several times faster there.
- Run it on a GPU of a data center.

## Example

```cuda
double zr = 0.0, zi = 0.0;                          // 1/32 of the rate
float zr = 0.0f, zi = 0.0f;
```

## When this advice is wrong

Where the result needs the digits, there is nothing to change but the GPU. Whole numbers of more than 24 bits
that are kept in doubles and cut by powers of two (random numbers of 46 bits) are exact; there the rule is
silent. So it is where a few large blocks fill the pipes of few SMs: smaller blocks share the others' pipes.

## How the gain is estimated

The operations take as much less of the pipe of floats as it is faster, by the rates of the architecture; then
the next unit limits. Time that the pipe does not fill stays, and shrinks with the rest at the high end, where
floats also move half of the bytes. The low end is nearer to none by as much as measured changes spread. The
paper's value is Eq. 2 with the waits that are due to these operations.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.busy_doubles import need_doubles
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.reduced_loads import executions
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.unit_bounds import as_reduced_loads, unit_bound
from gpadvisor.estimators.utilisation import MEMORY_RESOURCES, PIPES, measured_loads
from gpadvisor.evidence.double_excursions import mixes_precision
from gpadvisor.evidence.queries import (
    by_instruction,
    causes,
    kernel_functions,
    line_text,
    regions,
    share,
    stalled,
)
from gpadvisor.machine.timing import SLOW_DOUBLES, times_as_slow
from gpadvisor.model.advice import Category, Match, Region, Rejection, StaticSite
from gpadvisor.model.figures import percent, percentage
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import OpcodeClass, Pipe
from gpadvisor.model.machine import WARP
from gpadvisor.model.sentence import capitalised

_CODE: Final = "GPA113"
_FP64: Final = PIPES[Pipe.FP64]
_NAMED: Final = 3


def _match(context: KernelContext) -> Match | Rejection:
    times = times_as_slow(context.program.arch)
    if times < SLOW_DOUBLES:
        return Rejection(code=_CODE, reason="double precision is fast on this GPU")
    measured = measured_loads(context)
    full = busiest_after(measured, ())
    if full is None or full.unit.name != _FP64 or full.unit.percent < constants.BUSY_PERCENT:
        return Rejection(code=_CODE, reason="the pipe of double precision does not set the pace")
    elsewhere = _other_pipes(context, full.unit.percent)
    if elsewhere:
        return Rejection(code=_CODE, reason=elsewhere)
    functions = kernel_functions(context.program, context.kernel)
    if any(mixes_precision(instruction) for function in functions for instruction in function.instructions):
        return Rejection(code=_CODE, reason="floats become doubles: Strength Reduction (GPA102) names where")
    exact = need_doubles(context)
    if exact is not None:
        return Rejection(code=_CODE, reason=exact)
    where: tuple[Region, ...] = ()
    if context.blame is not None:
        blame = context.blame
        doubles = by_instruction(
            blame, context.program, causes(blame), lambda instruction: instruction.info.pipe is Pipe.FP64
        )
        rows = doubles & stalled(blame)
        if share(blame, rows) < constants.NOTABLE:
            part = percent(share(blame, rows))
            return Rejection(code=_CODE, reason=f"waits for double precision have {part} of the samples")
        where = regions(blame, context.program, context.kernel, np.flatnonzero(rows))
    left = {_FP64: 1 / times}
    halved = dict.fromkeys(MEMORY_RESOURCES, constants.HALF_THE_BYTES)
    text = f"as floats the operations take 1/{times} of the time of their pipe"
    bound = unit_bound(measured, left, left, left | halved, text)
    sites = _sites(context)
    lines = ", ".join(
        line_text(context.program.functions[site.function], site.index) for site in sites[:_NAMED]
    )
    cure = "compute in float what the accuracy allows, and keep double where digits are lost"
    return Match(
        title=f"double precision, at 1/{times} of the rate of float on this GPU, sets the pace",
        cure=cure,
        advice=f"{capitalised(cure)}: double precision runs at 1/{times} of the rate of float here, "
        f"and its pipe is at {percentage(full.unit.percent)} of its peak, most of it at {lines}.",
        regions=where,
        measured_bound=None if bound is None else replace(bound, low=bound.low**constants.SPREAD),
        reduced_loads=as_reduced_loads(left, left | halved),
        static_sites=sites,
    )


def _other_pipes(context: KernelContext, percent_full: float) -> str:
    """Why the pipe is not what is short: blocks on few SMs leave those of the others idle; else empty."""
    profile = context.profile
    sms, blocks = (0, 0) if profile is None else (profile.device.sms or 0, profile.launch.blocks)
    if profile is None or not 0 < blocks < sms:
        return ""
    reached = min(sms, blocks * -(-profile.launch.threads_per_block // WARP))
    spread = percent_full * blocks / reached
    if spread >= constants.BUSY_PERCENT:
        return ""
    return (
        f"the pipe of double precision is busy on {blocks} of {sms} SMs: in blocks of a warp on {reached} of "
        f"them it would be at {percentage(spread)}"
    )


def _sites(context: KernelContext) -> tuple[StaticSite, ...]:
    """One operation of each line, those of the line with most executions first."""
    weights, first = Counter[str](), dict[str, StaticSite]()
    counts = executions(context) or {}
    for function in kernel_functions(context.program, context.kernel):
        executed = counts.get(function.id)
        for index, instruction in enumerate(function.instructions):
            if instruction.info.opclass is OpcodeClass.FLOAT64:
                line = line_text(function, index)
                weights[line] += 1 if executed is None else int(executed[index])
                site = StaticSite(function=FunctionId(function.id), index=index, detail="double precision")
                first.setdefault(line, site)
    return tuple(first[line] for line, _ in weights.most_common())


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="double-precision",
    name="Double Precision",
    category=Category.STALL_ELIMINATION,
    match=_match,
    estimate=stall_elimination,
    document=__doc__ or "",
)
