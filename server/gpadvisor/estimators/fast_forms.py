# SPDX-License-Identifier: Apache-2.0
"""What fast forms of library math do without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.library_math import (
    POW,
    Divisor,
    divisions_alike,
    divisor_of,
    is_of_doubles,
    is_whole_power,
)
from gpadvisor.evidence.measured import executed_warps
from gpadvisor.evidence.patterns import (
    DIVISION_BY_CONSTANT,
    DOUBLE_DIVISION,
    FLOAT_BY_CONSTANT,
    FLOAT_DIVISION,
    RECIPROCAL,
    CodeSequence,
)
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import Pipe
from gpadvisor.model.language import Language
from gpadvisor.model.program import Function

FAST: Final = {
    FLOAT_DIVISION: "__fdividef",
    RECIPROCAL: "__fdividef",
    "square root": "-prec-sqrt=false",
    "expf": "__expf",
    "logf": "__logf",
    "log2f": "__log2f",
    "tanhf": "__tanhf, before CUDA 13 tanh.approx.f32 of PTX",
    "powf": "__powf",
    "sinf/cosf": "__sinf and __cosf",
    "sinf/cosf slow path": "__sinf and __cosf",
    DIVISION_BY_CONSTANT: "a product with 1 / the divisor, which the compiler may not choose",
    FLOAT_BY_CONSTANT: "a product with 1 / the divisor, which the compiler may not choose",
}


KEPT: Final = {
    # Instructions of the fast form, from its machine code: an approximation with its scaling.
    FLOAT_DIVISION: 4,
    RECIPROCAL: 3,
    "square root": 2,
    "expf": 2,
    "logf": 2,
    "log2f": 1,
    "powf": 3,
    "tanhf": 1,
    "sinf/cosf": 2,
    "sinf/cosf slow path": 0,
    # A product with the reciprocal.
    FLOAT_BY_CONSTANT: 1,
    DOUBLE_DIVISION: 1,
    DIVISION_BY_CONSTANT: 1,
}


SINGLE: Final = {"double reciprocal square root": constants.FLOAT_ROOT, POW: constants.FLOAT_POWER}
"""Instructions that the same function of floats does without, as a share of those on doubles that are found.

Of pow(), whose special cases stand beside its call, those of its routine count. The numbers around it may
have to stay doubles: each conversion is taken off, as four instructions by the rate of its pipe. That is as
much as floats save in a division or a square root.
"""


@dataclass(frozen=True, slots=True, eq=False)
class FoundMath:
    """The library math of a kernel."""

    functions: tuple[Function, ...]  # the kernel and what it calls
    inline: Mapping[FunctionId, Sequence[CodeSequence]]  # expanded in place, by function
    helpers: tuple[Function, ...]  # routines of the library
    language: Language = Language.CUDA
    samples: Mapping[tuple[FunctionId, int], int] = field(default_factory=dict)  # by the start of a sequence

    def sequences(self) -> list[tuple[Function, CodeSequence]]:
        """What is expanded in place, that with most samples first."""
        found = [
            (function, sequence)
            for function in self.functions
            for sequence in self.inline.get(function.id, ())
        ]
        return sorted(found, key=lambda one: -self.samples_of([one]))

    def samples_of(self, sequences: Sequence[tuple[Function, CodeSequence]]) -> int:
        """Their samples."""
        return sum(self.samples.get((function.id, sequence.start), 0) for function, sequence in sequences)

    def calls(self, helper: Function) -> Iterator[tuple[Function, int]]:
        """Where a routine is called."""
        return (
            (function, call.index)
            for function in self.functions
            for call in function.calls
            if call.callee == helper.id
        )


def is_product(function: Function, sequence: CodeSequence) -> bool:
    """Whether a power becomes a product, or a division does, its reciprocal taken before or on the host."""
    return is_whole_power(function, sequence) or divisor_of(function, sequence) in _PRODUCTS


_PRODUCTS: Final = frozenset({Divisor.NUMBER, Divisor.SAME, Divisor.KEPT})


def share_to_go(function: Function, sequence: CodeSequence) -> float:
    """Of the executions of library math the share that what is told does without; 0 where that is nothing."""
    if sequence.kind in FAST or is_product(function, sequence):
        return 1.0
    shared = divisor_of(function, sequence) is Divisor.SHARED
    return 1 - 1 / divisions_alike(function, sequence) if shared else 0.0


def gone_with_fast_forms(
    context: KernelContext, found: FoundMath, *, most: bool = False
) -> dict[tuple[FunctionId, int], float]:
    """By instruction the share that goes with what is told: fast forms, and products with reciprocals.

    Args:
        context: executed counts say how often each sequence calls its routine for rare arguments.
        found: the library math.
        most: at the high end also what is not told, for which nothing but fewer calls would do.
    """
    gone: dict[tuple[FunctionId, int], float] = {}
    replaced: dict[tuple[FunctionId, int], float] = {}
    for function, sequence in found.sequences():
        remaining = KEPT.get(sequence.kind, 0 if most else None)
        if remaining is not None:
            share = 1.0 if most else share_to_go(function, sequence)
            replaced.update({(function.id, index): share for index in sequence.whole})
            gone.update(gone_of_sequence(function, sequence, share, remaining))
    for helper in found.helpers:
        calls = list(found.calls(helper))
        if not is_of_doubles(helper):
            share = 1.0
            gone.update({(function.id, index): share for function, index in calls})
        else:  # what a double's sequence calls goes with it
            share = mean_share(context, calls, replaced)
        gone.update({(helper.id, index): share for index in range(len(helper.instructions))})
    return gone


def gone_as_floats(found: FoundMath) -> dict[tuple[FunctionId, int], float]:
    """By instruction of math on doubles the share that goes where it is of floats."""
    gone: dict[tuple[FunctionId, int], float] = {}
    for function, sequence in found.sequences():
        share = SINGLE.get(sequence.kind, 0.0)
        gone.update({(function.id, index): share for index in sequence.whole})
    for helper in found.helpers:
        if POW in helper.name:
            gone.update({(helper.id, index): SINGLE[POW] for index in range(len(helper.instructions))})
    return gone


def gone_of_sequence(
    function: Function, sequence: CodeSequence, share: float, remaining: int
) -> dict[tuple[FunctionId, int], float]:
    """Of a sequence's instructions the share that goes: all but what remains, times a share.

    A square root, a reciprocal, an exponential, a sine each are an operation of the special-function unit in
    the accurate form of a float as in the fast one. Of a division that becomes a product, nothing else stays.
    """
    product = is_product(function, sequence)
    special = {
        index
        for index in sequence.whole
        if sequence.kind in FAST
        and not product
        and function.instructions[index].info.pipe is Pipe.XU
        and function.instructions[index].opcode != "FCHK"  # which tells rare operands
    }
    others = sequence.whole - special
    left = max(0, (1 if product else remaining) - len(special)) / max(1, len(others))
    return {(function.id, index): share * max(0.0, 1 - left) for index in others}


def mean_share(
    context: KernelContext,
    calls: Sequence[tuple[Function, int]],
    replaced: Mapping[tuple[FunctionId, int], float],
) -> float:
    """Of a routine's executions the share that goes with the sequences that call it."""
    counts = {function.id: executed_warps(context.profile, function) for function, _ in calls}
    weights = [
        1.0 if (executed := counts[function.id]) is None else executed[index] for function, index in calls
    ]
    shares = [replaced.get((function.id, index), 0.0) for function, index in calls]
    return float(np.average(shares, weights=weights)) if sum(weights) else 0.0
