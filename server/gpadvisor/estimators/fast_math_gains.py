# SPDX-License-Identifier: Apache-2.0
"""What goes with exact library math: by fast forms and products, or in single precision."""

from __future__ import annotations

from collections import Counter

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.fast_forms import (
    SINGLE,
    FoundMath,
    gone_as_floats,
    mean_share,
    share_to_go,
)
from gpadvisor.estimators.reduced_loads import freed
from gpadvisor.evidence.library_math import POW, is_of_doubles
from gpadvisor.evidence.patterns import CodeSequence
from gpadvisor.evidence.queries import Mask, by_instruction, by_stall, causes, samples
from gpadvisor.model.advice import Adjustment, ReducedLoad
from gpadvisor.model.blame import Blame
from gpadvisor.model.figures import percent
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import Pipe
from gpadvisor.model.program import Function
from gpadvisor.model.stalls import StallClass


def samples_of_sequences(
    blame: Blame, inline: dict[FunctionId, tuple[CodeSequence, ...]]
) -> dict[tuple[FunctionId, int], int]:
    """Of each sequence, by its start."""
    if not any(inline.values()):
        return {}
    rows, at_place = blame.rows, Counter[tuple[int, int]]()
    for function, index, count in zip(
        rows.function.tolist(), causes(blame).tolist(), rows.samples.tolist(), strict=True
    ):
        at_place[function, index] += count
    return {
        (number, sequence.start): sum(at_place[number, index] for index in sequence.whole)
        for number, sequences in inline.items()
        for sequence in sequences
    }


def _blame(context: KernelContext) -> Blame:
    if context.blame is None:
        raise ValueError("shares of samples need samples")
    return context.blame


def part_to_go(context: KernelContext, found: FoundMath, matched: Mask) -> float:
    """Of the matched samples the part that goes with what is told, fast forms and products."""
    shares, going = dict[tuple[FunctionId, int], float](), 0.0
    for function, sequence in found.sequences():
        share = share_to_go(function, sequence)
        going += share * found.samples_of([(function, sequence)])
        shares.update({(function.id, index): share for index in sequence.whole})
    for helper in found.helpers:
        called = mean_share(context, list(found.calls(helper)), shares) if is_of_doubles(helper) else 1.0
        going += called * _within(context, helper, matched)
    return min(1.0, going / max(1, samples(_blame(context), matched)))


def part_as_floats(context: KernelContext, found: FoundMath, matched: Mask) -> float:
    """Of the matched samples the part that goes with instructions that floats do without."""
    going = sum(SINGLE.get(one.kind, 0.0) * found.samples_of([(at, one)]) for at, one in found.sequences())
    going += sum(
        SINGLE[POW] * _within(context, helper, matched) for helper in found.helpers if POW in helper.name
    )
    return min(1.0, going / max(1, samples(_blame(context), matched)))


def _within(context: KernelContext, helper: Function, matched: Mask) -> int:
    """Matched samples in a routine."""
    blame = _blame(context)
    return samples(blame, matched & (blame.rows.function == helper.id))


def with_fast_forms(part: float) -> Adjustment:
    """The paper's Table III where there is a fast form; of doubles, that only fewer operations help."""
    return Adjustment(
        low=constants.FAST_LEAST * part,
        expected=constants.FAST * part,
        high=constants.FAST_MOST * part + 1 - part,
        reason=f"{percent(part)} of the matched samples have a fast form or become products; in the "
        "paper's Table III fast forms removed 35 to 157 % of the matched stalls, 95 % on average over "
        "three kernels. The rest is double precision, of which only fewer calls or single precision help",
    )


def waits_for_doubles(context: KernelContext) -> Mask:
    """Samples of instructions that wait for the pipe of double precision."""
    blame = _blame(context)
    doubles = by_instruction(
        blame, context.program, blame.rows.use_index, lambda one: one.info.pipe is Pipe.FP64
    )
    return doubles & by_stall(blame, {StallClass.PIPE_THROTTLE})


def in_floats(context: KernelContext, found: FoundMath, matched: Mask) -> Adjustment:
    """What goes with doubles: instructions of the library, and waits for their pipe elsewhere."""
    blame = _blame(context)
    total = max(1, samples(blame, matched))
    helpers = np.isin(blame.rows.function, [helper.id for helper in found.helpers])
    waits = samples(blame, waits_for_doubles(context) & ~helpers) / total
    part = min(1.0, part_as_floats(context, found, matched) + waits)
    return Adjustment(
        low=constants.FAST_LEAST * part,
        expected=part,
        high=1.0,
        reason="in single precision, by the compiler's code of both: instructions of the library with "
        f"{percent(part - waits)} of the matched samples go, and {percent(waits)} wait for the pipe of "
        "doubles elsewhere",
    )


def freed_in_floats(context: KernelContext, found: FoundMath) -> tuple[ReducedLoad, ...]:
    """The pipe of doubles, and the issue slots of what floats do without."""
    moved = [
        (function.id, index)
        for function in found.functions
        for index, instruction in enumerate(function.instructions)
        if instruction.info.pipe is Pipe.FP64
    ]
    return freed(context, gone_as_floats(found), elsewhere=moved)
