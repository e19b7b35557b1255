# SPDX-License-Identifier: Apache-2.0
"""Issue slots, pipes and requests that a cure frees, since some instructions need not be executed any more.

Differs from GPA: its estimates know stalls only, and no limit that the work itself sets.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import numpy as np

from gpadvisor.blamer.measured import Values, executed_warps
from gpadvisor.blamer.patterns import is_memory
from gpadvisor.blamer.queries import kernel_functions
from gpadvisor.estimators.caps import ISSUE, L1_REQUESTS, PIPES
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import Relief
from gpadvisor.model.blame import NO_INDEX
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import Instruction, Pipe
from gpadvisor.model.program import Function
from gpadvisor.model.stalls import StallClass

Place = tuple[FunctionId, int]
Shares = Mapping[Place, float]
"""By instruction the share of its executions that go."""

_NOTABLE: Final = 0.001
"""A thousandth of a unit's load is below what its counters resolve."""


def freed(
    context: KernelContext, gone: Shares, best: Shares | None = None, elsewhere: Collection[Place] = ()
) -> tuple[Relief, ...]:
    """What a cure that removes instructions frees; nothing where executions are not known.

    Args:
        context: the kernel; executed counts weigh its instructions, else the samples of their issue.
        gone: expected.
        best: at the high end; as expected where not given.
        elsewhere: instructions that another pipe does instead: they keep their issue slots.
    """
    weights = executions(context)
    if weights is None:
        return ()
    most = gone if best is None else best
    moved = set(elsewhere)
    found = []
    for resource, members in _members(context).items():
        total = sum(float(weights[function][at].sum()) for function, at in members.items())
        shift = moved if resource != ISSUE else set()
        parts = [_part(members, weights, shares, shift) for shares in (gone, most)]
        if total and parts[1] / total > _NOTABLE:
            left = [max(0.0, 1 - part / total) for part in parts]
            found.append(
                Relief(resource=resource, remaining=max(left[0], _NOTABLE), remaining_best=min(left))
            )
    return tuple(found)


def fewer_warps(share: float) -> tuple[Relief, ...]:
    """What is left of everything that counts warp instructions, if a share of them is left."""
    return tuple(
        Relief(resource=resource, remaining=share, remaining_best=share)
        for resource in (ISSUE, L1_REQUESTS, *PIPES.values())
    )


def executions(context: KernelContext) -> dict[FunctionId, Values] | None:
    """Per function and instruction how often warps executed it, as counted or, relatively, as sampled."""
    functions = kernel_functions(context.program, context.kernel)
    counted = {function.id: executed_warps(context.profile, function) for function in functions}
    known = {number: values for number, values in counted.items() if values is not None}
    if known and any(values.any() for values in known.values()):
        return known
    sampled = {function.id: _issued(context, function) for function in functions}
    return sampled if any(values.any() for values in sampled.values()) else None


def _issued(context: KernelContext, function: Function) -> Values:
    found = np.zeros(len(function.instructions))
    if context.blame is None or not context.blame.reasons:
        return found
    rows = context.blame.rows
    issues = np.array([one.stall_class is StallClass.ISSUED for one in context.blame.reasons], dtype=bool)
    here = issues[rows.reason] & (rows.function == function.id) & (rows.use_index != NO_INDEX)
    np.add.at(found, rows.use_index[here], rows.samples[here])
    return found


def _members(context: KernelContext) -> dict[str, dict[FunctionId, list[int]]]:
    """The instructions that load each resource."""
    found: dict[str, dict[FunctionId, list[int]]] = {}
    for function in kernel_functions(context.program, context.kernel):
        for index, instruction in enumerate(function.instructions):
            for resource in _loads(instruction):
                found.setdefault(resource, {}).setdefault(function.id, []).append(index)
    return found


def _loads(instruction: Instruction) -> list[str]:
    loaded = [ISSUE]
    pipe = PIPES.get(instruction.info.pipe)
    if pipe is not None:
        loaded.append(pipe)
    if instruction.info.pipe is Pipe.LSU and is_memory(instruction):
        loaded.append(L1_REQUESTS)
    return loaded


def _part(
    members: Mapping[FunctionId, list[int]],
    weights: Mapping[FunctionId, Values],
    shares: Shares,
    moved: Collection[Place],
) -> float:
    total = 0.0
    for function, indices in members.items():
        for index in indices:
            share = 1.0 if (function, index) in moved else shares.get((function, index), 0.0)
            total += share * float(weights[function][index])
    return total
