# SPDX-License-Identifier: Apache-2.0
"""Conversions: numbers that change their type one by one (beyond GPA Table II).

## What it finds

Conversions from integer to float (`I2F`) that fill the pipe of special functions (XU): of integers that are
only added up as floats, and of unsigned numbers of 8 or 16 bits that could become floats without that pipe.
And from float to half (`F2F.F16.F32`) for the factors of each product, where that pipe does it (sm_70, 75).

## Why warps stall

The pipe of special functions takes a warp every 8 cycles or more where the pipes of integers and floats take
one every other cycle. A conversion for each pixel that a filter reads fills it long before the arithmetic on
the pixels is any load.

## What to try

- Add in `int` and convert the sums.
- Where the numbers come from shared memory: convert as it is filled, once for each element, if L1 has room
  for the larger elements.
- A number below 2^23 in the low bits of 0x4b000000 is the float 8388608 + x: one logical operation and one
  subtraction, on pipes that have room.
- Arrays of floats that are made half for each product: multiply in float, which takes as many instructions
  and no conversion, or keep the arrays as half.

## Example

```cuda
float sum = 0.0f;
for (int i = 0; i < 9; ++i) sum += pixel[i];        // nine conversions

int sum = 0;
for (int i = 0; i < 9; ++i) sum += pixel[i];
float mean = sum / 9.0f;                            // one

float x = __int_as_float(0x4b000000 | pixel) - 8388608.0f;   // none
```

## When this advice is wrong

Sums that do not fit 32 bits have to stay floats, or become 64-bit integers. Where the pipe is full with other
work (square roots, sines), conversions are not what to look at: then the rule is silent.

## How the gain is estimated

GPA Eq. 2 with the waits that are due to these conversions; the load of the pipe falls by those that go, and
the next unit limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.reduced_loads import executions, freed
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.utilisation import ISSUE, L1, L1_DATA, PIPES, measured_loads
from gpadvisor.evidence.accesses import is_shared
from gpadvisor.evidence.conversions import Conversions, conversions, halved_factors
from gpadvisor.evidence.measured import Floats
from gpadvisor.evidence.queries import (
    by_place,
    causes,
    counted,
    kernel_functions,
    line_text,
    regions,
    share,
    stalled,
)
from gpadvisor.model.advice import Adjustment, Category, Match, Region, Rejection, StaticSite
from gpadvisor.model.figures import percent, percentage
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import OpcodeClass, Pipe
from gpadvisor.model.language import Language
from gpadvisor.model.program import Function
from gpadvisor.model.sentence import capitalised

_CODE: Final = "GPA112"
_XU: Final = PIPES[Pipe.XU]
_FLOAT_BYTES: Final = 4
_NAMED: Final = 3
_FROM_BITS: Final = (
    "make the floats of bits instead of converting: 0x4b000000 | x is the float 8388608.0 + x for x below "
    "2^23"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spared:
    """The conversions of one function that can be spared, and what spares them."""

    function: Function
    indices: tuple[int, ...]
    left: float  # share of them that stays
    cure: str
    named: tuple[int, ...] = ()  # whose lines are told, where not theirs
    kind: str = "from integer to float"
    more_issued: float = 0.0  # instructions that come for each


def _match(context: KernelContext) -> Match | Rejection:
    units = {load.name: load.percent for load in measured_loads(context)}
    busy, blame, counts = units.get(_XU, 0.0), context.blame, executions(context)
    if busy < (_enough(units) if blame is not None else constants.HIGH_PERCENT) or counts is None:
        return Rejection(code=_CODE, reason=f"the pipe of conversions, XU, is at {percentage(busy)}")
    functions = kernel_functions(context.program, context.kernel)
    candidates = [
        spared
        for function in functions
        if function.id in counts
        and (spared := _spared(function, counts[function.id], units, context.language)) is not None
    ]
    total = _load_of_xu(functions, counts)
    worst = max(
        candidates, key=lambda candidate: _weight(candidate, counts[candidate.function.id]), default=None
    )
    if worst is None or not total:
        return Rejection(code=_CODE, reason="no conversion that could be spared")
    weight = _weight(worst, counts[worst.function.id])
    if weight < constants.MAJORITY * total:
        return Rejection(code=_CODE, reason=f"conversions are {percent(weight / total)} of the load of XU")
    executed = sum(float(values.sum()) for values in counts.values())
    more = worst.more_issued or worst.left - 1
    issued = units.get(ISSUE, 0.0) * (1 + more * weight / executed)
    if issued > busy:
        return Rejection(code=_CODE, reason=f"the schedulers would issue in {percentage(issued)} of cycles")
    places = [(worst.function.id, index) for index in worst.indices]
    where: tuple[Region, ...] = ()
    if blame is not None:
        rows = by_place(blame, causes(blame), places) & stalled(blame)
        if share(blame, rows) < constants.NOTABLE:
            part = percent(share(blame, rows))
            return Rejection(code=_CODE, reason=f"waits for conversions have {part} of the samples")
        where = regions(blame, context.program, context.kernel, np.flatnonzero(rows))
    return _matched(context, worst, where, weight / total, counts[worst.function.id])


def _enough(units: Mapping[str, float]) -> float:
    """How busy the pipe has to be where samples tell who waits for it: less where no unit is busier."""
    busiest = max(units, key=lambda unit: units[unit], default=None)
    return constants.MAJORITY * constants.PEAK_PERCENT if busiest == _XU else constants.BUSY_PERCENT


def _matched(
    context: KernelContext, worst: _Spared, where: tuple[Region, ...], load: float, counts: Floats
) -> Match:
    places = [(worst.function.id, index) for index in worst.indices]
    reduced_loads = freed(context, dict.fromkeys(places, 1 - worst.left))
    lines = _lines(worst, counts)
    told_index = max(worst.named, key=lambda index: counts[index], default=None)
    return Match(
        title=f"{counted(len(places), 'conversion')} {worst.kind}{lines}, "
        f"{percent(load, 0)} of the load of the XU pipe",
        cure=worst.cure,
        advice=f"{capitalised(worst.cure)}{lines}.",
        regions=where,
        adjustments=(
            Adjustment(
                low=constants.LEAST_PART,
                expected=constants.MOST_OF,
                high=1.0,
                reason="what is done instead takes its time, too",
            ),
        ),
        place=None if told_index is None else (worst.function.id, told_index),
        # Bits take more instructions than they spare; they leave the pipe alone.
        reduced_loads=tuple(
            reduced for reduced in reduced_loads if reduced.resource == _XU or not worst.more_issued
        ),
        static_sites=tuple(
            StaticSite(function=worst.function.id, index=index, detail=worst.kind.removeprefix("from "))
            for index in worst.indices
        ),
    )


def _load_of_xu(functions: Sequence[Function], counts: Mapping[FunctionId, Floats]) -> float:
    return sum(
        float(counts[function.id][index])
        for function in functions
        if function.id in counts
        for index, instruction in enumerate(function.instructions)
        if instruction.info.pipe is Pipe.XU
    )


def _spared(
    function: Function, counts: Floats, units: dict[str, float], language: Language
) -> _Spared | None:
    """Of the kinds the one that is executed most often."""
    groups = conversions(function)
    kinds = (
        _summed(function, counts, groups),
        _short(function, counts, groups, units, language),
        _halved(function),
    )
    return max(filter(None, kinds), key=lambda kind: _weight(kind, counts), default=None)


def _halved(function: Function) -> _Spared | None:
    """Factors that are made half for each product: in float they are what they were loaded as."""
    halved = halved_factors(function)
    if not halved:
        return None
    return _Spared(
        function=function,
        indices=tuple(halved),
        named=tuple(halved.values()),
        left=0.0,
        cure="multiply and add in float, without making halves of the loaded floats, or keep these arrays "
        "as half",
        kind="from float to half",
    )


def _summed(function: Function, counts: Floats, groups: Conversions) -> _Spared | None:
    """Integers that are added up: one conversion for each sum and thread is left."""
    total = float(counts[list(groups.summed)].sum())
    if not total:
        return None
    left = len(groups.sums) * float(counts[0]) / total
    if left > constants.MAJORITY:
        return None
    sums = "the sum" if len(groups.sums) == 1 else f"the {len(groups.sums)} sums"
    return _Spared(
        function=function,
        indices=groups.summed,
        left=left,
        cure=f"add the integers as integers, if the sums fit, and convert {sums}",
    )


def _short(
    function: Function, counts: Floats, groups: Conversions, units: dict[str, float], language: Language
) -> _Spared | None:
    total = float(counts[list(groups.short)].sum())
    if not total:
        return None
    if groups.from_shared is not None:
        grown = _FLOAT_BYTES / groups.from_shared
        left = _elements_stored(function, counts, groups.from_shared) / total
        if (
            left < constants.MAJORITY
            and max(units.get(unit, 0.0) for unit in (L1, L1_DATA)) * grown < units[_XU]
        ):
            return _Spared(
                function=function,
                indices=groups.short,
                left=left,
                cure="keep floats in shared memory: convert each element once, as it is filled, "
                f"which takes {grown:.0f} times the bytes",
            )
    cure = f"{_FROM_BITS}{terms.FLOAT_OF_BITS.of(language)}"
    return _Spared(function=function, indices=groups.short, left=0.0, cure=cure, more_issued=1.0)


def _elements_stored(function: Function, counts: Floats, bytes_each: int) -> float:
    return sum(
        float(counts[index]) * (instruction.width_bytes or bytes_each) / bytes_each
        for index, instruction in enumerate(function.instructions)
        if instruction.info.opclass is OpcodeClass.STORE and is_shared(instruction)
    )


def _weight(spared: _Spared, counts: Floats) -> float:
    return float(counts[list(spared.indices)].sum())


def _lines(spared: _Spared, counts: Floats) -> str:
    """The lines that convert most often; empty without line information."""
    weights = Counter[str]()
    for index in spared.named or spared.indices:
        if spared.function.lines[index] is not None:
            weights[line_text(spared.function, index)] += counts[index]
    first_lines = [line for line, _ in weights.most_common(_NAMED)]
    more = len(weights) - len(first_lines)
    rest = f" and {counted(more, 'more line')}" if more else ""
    return f" at {', '.join(first_lines)}{rest}" if first_lines else ""


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="conversions",
    name="Conversions",
    category=Category.STALL_ELIMINATION,
    match=_match,
    estimate=stall_elimination,
    document=__doc__ or "",
)
