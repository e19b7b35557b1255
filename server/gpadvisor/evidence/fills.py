# SPDX-License-Identifier: Apache-2.0
"""Kernels that set up data: they store what they compute, and load nothing."""

from __future__ import annotations

from collections.abc import Iterable

from gpadvisor.evidence.accesses import is_atomic, is_memory
from gpadvisor.evidence.barriers import SHARED_BY_THREADS
from gpadvisor.evidence.patterns import math_sequences
from gpadvisor.evidence.queries import loop_indices
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.program import Function, FunctionKind


def only_fills(functions: Iterable[Function]) -> bool:
    """Whether a kernel stores in each of its loops and reads nothing that threads share.

    Such a kernel runs before the work begins, or is held up by its stores. Where a loop stores nothing,
    values are worked out, as those of a fractal are. What library math does by itself does not count.
    """
    stored = False
    for function in functions:
        if function.kind is FunctionKind.MATH_HELPER:
            continue
        code = function.instructions
        library = {index for sequence in math_sequences(function) for index in sequence.indices}
        accesses = {
            index
            for index, instruction in enumerate(code)
            if is_memory(instruction) and instruction.info.space in SHARED_BY_THREADS
        } - library
        stores = {index for index in accesses if code[index].info.opclass is OpcodeClass.STORE}
        if accesses - stores or any(is_atomic(code[index]) for index in accesses):
            return False
        loops = (set(loop_indices(function, loop.id)) - library for loop in function.loops)
        if any(loop and loop.isdisjoint(stores) for loop in loops):
            return False
        stored |= bool(stores)
    return stored
