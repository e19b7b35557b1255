# SPDX-License-Identifier: Apache-2.0
"""Instructions that few threads of a warp have work in, by the condition that keeps the others out."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpadvisor.evidence.divisions import integer_divisions
from gpadvisor.evidence.lanes import active_share, around_helpers, condition
from gpadvisor.evidence.loops import dominates
from gpadvisor.evidence.measured import Floats, executed_warps
from gpadvisor.evidence.patterns import math_sequences
from gpadvisor.evidence.queries import kernel_functions
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function, FunctionKind, Program

_ATOMIC: Final = frozenset({OpcodeClass.ATOMIC, OpcodeClass.REDUCTION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Instructions with idle threads."""

    shares: dict[tuple[FunctionId, int], float]  # of their threads
    lost: float  # of all executed instructions of the kernel, as a share
    function: Function  # where most of it is lost
    worst: int  # and at which instruction
    group: tuple[int, ...]  # all behind the same condition
    condition: int | None  # that keeps the others out
    active: float  # mean share of a warp's threads behind that condition
    shares_of_function: Floats  # of active threads, by instruction of that function


def idle_threads(
    program: Program, kernel: str, profile: KernelProfile, *, edge: float, guarded: bool
) -> Idle | None:
    """Instructions with less than ``edge`` of their threads; where wanted, those a predicate idles, too.

    What a condition inside of library code idles is left out, as are the corrections of a division.
    """
    shares: dict[tuple[FunctionId, int], float] = {}
    total = lost = 0.0
    by_condition: dict[tuple[FunctionId, int | None], float] = defaultdict(float)
    members: dict[tuple[FunctionId, int | None], list[int]] = defaultdict(list)
    by_function: dict[FunctionId, tuple[Function, Floats, Floats]] = {}
    for function in kernel_functions(program, kernel):
        executed = executed_warps(profile, function)
        active = active_share(profile, function)
        if executed is None or active is None:
            continue
        total += float(executed.sum())
        if function.kind is FunctionKind.MATH_HELPER:
            continue
        rare = around_helpers(program, function) | _corrections(function)
        by_function[function.id] = function, executed, active
        for index in np.flatnonzero(active < edge).tolist():
            if index in rare or (function.instructions[index].guard is not None and not guarded):
                continue
            if function.instructions[index].info.opclass in _ATOMIC:
                continue  # waits for its address, however many threads there are
            decides = condition(function, index, active)
            line = function.lines[index if decides is None else decides]
            if line is not None and line.library:
                continue  # a library's own condition, which its callers cannot arrange
            idle = 1 - float(active[index])
            shares[function.id, index] = idle
            lost += idle * float(executed[index])
            key = function.id, decides
            by_condition[key] += idle * float(executed[index])
            members[key].append(index)
    if not shares:
        return None
    key = max(by_condition, key=lambda condition: by_condition[condition])
    function, executed, active = by_function[key[0]]
    positions = members[key]
    return Idle(
        shares=shares,
        lost=lost / total,
        function=function,
        worst=max(positions, key=lambda index: (1 - active[index]) * executed[index]),
        group=tuple(positions),
        condition=key[1],
        active=float(np.average(active[positions], weights=executed[positions])),
        shares_of_function=active,
    )


def has_another_side(idle: Idle) -> bool:
    """Whether the threads that a condition keeps out have code of their own; the warp goes through both."""
    function = idle.function
    if idle.condition is None:
        return False
    blocks = {function.block_of[index] for index in idle.group}
    for number, block in enumerate(function.blocks):
        guard = function.instructions[block.end - 1].guard
        if len(block.successors) < 2 or guard is None:
            continue
        if idle.condition not in function.reaching.definitions(block.end - 1, guard.register):
            continue
        sides = [
            any(dominates(function, successor, member) for member in blocks)
            for successor, _ in block.successors
            if function.idom[successor] == number
        ]
        if sum(sides) > 1:
            return True
    return False


def _corrections(function: Function) -> set[int]:
    """Instructions of divisions and library math that a predicate of their own switches off."""
    sequences = (*integer_divisions(function), *math_sequences(function))
    return {
        index
        for sequence in sequences
        for index in sequence.indices
        if function.instructions[index].guard is not None
    }
