# SPDX-License-Identifier: Apache-2.0
"""What fast forms of library math do without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.library_math import (
    is_of_doubles,
)
from gpadvisor.evidence.measured import executed_warps
from gpadvisor.evidence.patterns import (
    DIVISION_BY_CONSTANT,
    DOUBLE_DIVISION,
    FLOAT_BY_CONSTANT,
    RECIPROCAL,
    CodeSequence,
)
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import Pipe
from gpadvisor.model.program import Function

FAST: Final = {
    "float division": "__fdividef",
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
    "float division": 4,
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


def gone_with_fast_forms(
    context: KernelContext,
    functions: tuple[Function, ...],
    inline: dict[FunctionId, tuple[CodeSequence, ...]],
    helpers: tuple[Function, ...],
    *,
    doubles: float,
) -> dict[tuple[FunctionId, int], float]:
    """By instruction the share that the fast forms do without; of doubles, that a product does without.

    Args:
        context: executed counts say how often each sequence calls its routine for rare arguments.
        functions: the kernel and what it calls.
        inline: sequences expanded in place, by function.
        helpers: routines of the library.
        doubles: share of the operations on doubles that go.
    """
    gone: dict[tuple[FunctionId, int], float] = {}
    replaced: dict[tuple[FunctionId, int], float] = {}
    by_id = {function.id: function for function in functions}
    for function, sequences in inline.items():
        for sequence in sequences:
            remaining = KEPT.get(sequence.kind)
            if remaining is not None:
                share = 1.0 if sequence.kind in FAST else doubles
                replaced.update({(function, index): share for index in sequence.whole})
                gone.update(gone_of_sequence(by_id[function], sequence, share, remaining))
    for helper in helpers:
        calls = [
            (function, call.index)
            for function in functions
            for call in function.calls
            if call.callee == helper.id
        ]
        if not is_of_doubles(helper):
            share = 1.0
            gone.update({(function.id, index): share for function, index in calls})
        else:  # what a double's sequence calls goes with it
            share = _mean_share(context, calls, replaced)
        gone.update({(helper.id, index): share for index in range(len(helper.instructions))})
    return gone


def gone_of_sequence(
    function: Function, sequence: CodeSequence, share: float, remaining: int
) -> dict[tuple[FunctionId, int], float]:
    """Of a sequence's instructions the share that goes: all but what remains, times a share.

    A square root, a reciprocal, an exponential, a sine each are an operation of the special-function unit in
    the accurate form of a float as in the fast one.
    """
    special = {
        index
        for index in sequence.whole
        if sequence.kind in FAST and function.instructions[index].info.pipe is Pipe.XU
    }
    others = sequence.whole - special
    left = max(0, remaining - len(special)) / max(1, len(others))
    return {(function.id, index): share * max(0.0, 1 - left) for index in others}


def _mean_share(
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
