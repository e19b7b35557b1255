# SPDX-License-Identifier: Apache-2.0
"""Unit at its Limit: the unit that sets the pace, and the instructions that load it (beyond GPA Table II).

## What it finds

A unit of the SM or of the memory that is busy for 80 % of the time or more, with the instructions that load
it most: by executed counts for pipes, issue slots and the load/store unit, by counted wavefronts for the data
stage of L1, by counted sectors for L2 and DRAM.

## Why warps stall

The unit cannot do more: warps wait for their turn in its queue, whatever the reason is called. Only less work
for this unit makes the kernel faster.

## What to try

- Fewer of the instructions that are named, or others that do the same on another unit.
- For L1: values kept in registers, wider accesses. For L2 and DRAM: fewer bytes, data kept on the SM.
- For issue slots and pipes: fewer instructions; invariants out of the loop, cheaper forms.

## Example

```
L1 requests is at 95 % of its peak: LDS sgemm.cu:91 has 57 % of its load, LDS sgemm.cu:90 14 %.
```

## When this advice is wrong

A unit at its limit is no fault where its work is what the kernel is for: a copy at the bandwidth of DRAM, or
a product at the rate of its pipe.

## How the gain is estimated

It is not. What other rules expect takes the unit into account.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.notes import no_estimate
from gpadvisor.estimators.utilisation import DRAM, ISSUE, L1, L1_DATA, L1_REQUESTS, L2, PIPES, measured_loads
from gpadvisor.evidence.accesses import is_memory
from gpadvisor.evidence.measured import Floats, executed_warps, metric
from gpadvisor.evidence.queries import by_place, causes, kernel_functions, line_text, regions
from gpadvisor.model.advice import Category, Match, Rejection
from gpadvisor.model.figures import percent, percentage
from gpadvisor.model.instruction import Pipe
from gpadvisor.model.program import Function

_CODE: Final = "GPA403"
_NAMED: Final = 3
_SECTORS: Final = ("memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_local")
_WAVEFRONTS: Final = ("memory_l1_wavefronts_shared", "memory_l1_tag_requests_global")
_COUNTED: Final = {
    DRAM: _SECTORS,
    L2: _SECTORS,
    L1_DATA: _WAVEFRONTS,
    L1: _WAVEFRONTS,
}


def _match(context: KernelContext) -> Match | Rejection:
    blame, profile = context.blame, context.profile
    if blame is None or profile is None:
        return Rejection(code=_CODE, reason="needs measured units")
    full = busiest_after(measured_loads(context), ())
    if full is None:
        return Rejection(code=_CODE, reason="no unit was measured")
    unit = full.unit
    if unit.percent < constants.HIGH_PERCENT:
        return Rejection(code=_CODE, reason=f"{unit.name} is the busiest unit, at {percentage(unit.percent)}")
    weights = Counter[str]()
    places = []
    for function in kernel_functions(context.program, context.kernel):
        load = _load(context, function, unit.name)
        if load is not None:
            indices = np.flatnonzero(load > 0).tolist()
            places += [(function.id, index) for index in indices]
            for index in indices:
                weights[_text(function, index)] += load[index]
    total = sum(weights.values())
    if not total:
        return Rejection(
            code=_CODE,
            reason=f"{unit.name} is at {percentage(unit.percent)}, and nothing counted what loads it",
        )
    listed = ", ".join(
        f"{text} has {percent(part / total)}"
        for text, part in weights.most_common(_NAMED)
        if part / total >= constants.NOTABLE
    )
    rows = by_place(blame, causes(blame), places)
    return Match(
        title=f"{unit.name} is at its limit",
        advice=f"{unit.name} is at {percentage(unit.percent)} of its peak ({unit.metric}); of its load "
        + (f"{listed}." if listed else f"{len(weights)} places have a small part each."),
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(rows)),
    )


def _load(context: KernelContext, function: Function, unit: str) -> Floats | None:
    """What each instruction of a function puts on a unit; None where that was not counted."""
    counted = _COUNTED.get(unit)
    if counted is not None:
        metrics = [metric(context.profile, name, function) for name in counted]
        measured = [values for values in metrics if values is not None]
        return np.sum(measured, axis=0) if measured else None
    executed = executed_warps(context.profile, function)
    if executed is None:
        return None
    loads = [_uses(function, index, unit) for index in range(len(function.instructions))]
    return np.where(np.array(loads, dtype=bool), executed, 0.0)


def _uses(function: Function, index: int, unit: str) -> bool:
    instruction = function.instructions[index]
    if unit == L1_REQUESTS:
        return instruction.info.pipe is Pipe.LSU and is_memory(instruction)
    return unit == ISSUE or PIPES.get(instruction.info.pipe) == unit


def _text(function: Function, index: int) -> str:
    """Instructions of one kind and line together; of one kind where there are no lines."""
    opcode = function.instructions[index].opcode
    return opcode if function.lines[index] is None else f"{opcode} {line_text(function, index)}"


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="unit-at-limit",
    name="Unit at its Limit",
    category=Category.NOTE,
    match=_match,
    estimate=no_estimate,
    document=__doc__ or "",
)
