# SPDX-License-Identifier: Apache-2.0
"""Issue slots, pipes and requests that a cure frees, since some instructions need not be executed any more.

Differs from GPA: its estimates know stalls only, and no limit that the work itself sets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.utilisation import ISSUE, L1_DATA, L1_REQUESTS, PIPES
from gpadvisor.evidence.accesses import is_memory
from gpadvisor.evidence.measured import Floats, executed_warps, metric
from gpadvisor.evidence.queries import kernel_functions
from gpadvisor.evidence.traffic import SHARED_PASSES, kernel_traffic
from gpadvisor.model.advice import ReducedLoad
from gpadvisor.model.blame import NO_INDEX
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import Pipe
from gpadvisor.model.program import Function
from gpadvisor.model.stalls import StallClass
from gpadvisor.model.thread_use import CodePlace

Shares = Mapping[CodePlace, float]
"""By instruction the share of its executions that go."""


def freed(
    context: KernelContext, gone: Shares, best: Shares | None = None, elsewhere: Collection[CodePlace] = ()
) -> tuple[ReducedLoad, ...]:
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
    total: dict[str, float] = defaultdict(float)
    expected: dict[str, float] = defaultdict(float)
    most: dict[str, float] = defaultdict(float)
    for function in kernel_functions(context.program, context.kernel):
        if function.id not in weights:
            continue
        function_weights = weights[function.id]
        current, then = _shares(function, gone), _shares(function, gone if best is None else best)
        moved = [index for number, index in elsewhere if number == function.id]
        for resource, indices in _loads(function).items():
            total[resource] += float(function_weights[indices].sum())
            for sums, share in ((expected, current), (most, then)):
                went = share[indices] if resource == ISSUE else _with(share, moved)[indices]
                sums[resource] += float((went * function_weights[indices]).sum())
    return tuple(
        ReducedLoad(
            resource=resource,
            remaining=max(1 - expected[resource] / load, constants.ANY_LOAD),
            remaining_best=max(1 - most[resource] / load, 0.0),
        )
        for resource, load in total.items()
        if load and most[resource] / load > constants.ANY_LOAD
    )


def freed_with_passes(context: KernelContext, gone: Shares, best: Shares) -> tuple[ReducedLoad, ...]:
    """The same, and the passes through L1 that accesses of shared memory take, where those were counted."""
    return (*freed(context, gone, best), *_passes_freed(context, gone, best))


def _passes_freed(context: KernelContext, gone: Shares, best: Shares) -> tuple[ReducedLoad, ...]:
    if context.profile is None:
        return ()
    traffic = kernel_traffic(context.program, context.kernel, context.profile)
    if traffic is None or not traffic.l1_wavefronts:
        return ()
    expected = most = 0.0
    for function in kernel_functions(context.program, context.kernel):
        wavefronts = metric(context.profile, SHARED_PASSES, function)
        if wavefronts is not None:
            expected += float((_shares(function, gone) * wavefronts).sum())
            most += float((_shares(function, best) * wavefronts).sum())
    if not most:
        return ()
    return (
        ReducedLoad(
            resource=L1_DATA,
            remaining=1 - expected / traffic.l1_wavefronts,
            remaining_best=1 - most / traffic.l1_wavefronts,
        ),
    )


def _shares(function: Function, shares: Shares) -> Floats:
    result = np.zeros(len(function.instructions))
    for (number, index), share in shares.items():
        if number == function.id:
            result[index] = share
    return result


def _with(shares: Floats, moved: Sequence[int]) -> Floats:
    """The shares of a pipe's load that go, with what moves to another pipe."""
    result = shares.copy()
    result[list(moved)] = 1.0
    return result


def fewer_warps(share: float) -> tuple[ReducedLoad, ...]:
    """What is left of everything that counts warp instructions, if a share of them is left."""
    return tuple(
        ReducedLoad(resource=resource, remaining=share, remaining_best=share)
        for resource in (ISSUE, L1_REQUESTS, *PIPES.values())
    )


def executions(context: KernelContext) -> dict[FunctionId, Floats] | None:
    """Per function and instruction how often warps executed it, as counted or, relatively, as sampled."""
    functions = kernel_functions(context.program, context.kernel)
    counted = {function.id: executed_warps(context.profile, function) for function in functions}
    by_function = {number: values for number, values in counted.items() if values is not None}
    if by_function and any(values.any() for values in by_function.values()):
        return by_function
    sampled = {function.id: _issued(context, function) for function in functions}
    return sampled if any(values.any() for values in sampled.values()) else None


def _issued(context: KernelContext, function: Function) -> Floats:
    result = np.zeros(len(function.instructions))
    if context.blame is None or not context.blame.reasons:
        return result
    rows = context.blame.rows
    issues = np.array(
        [stall_reason.stall_class is StallClass.ISSUED for stall_reason in context.blame.reasons], dtype=bool
    )
    of_function = issues[rows.reason] & (rows.function == function.id) & (rows.use_index != NO_INDEX)
    np.add.at(result, rows.use_index[of_function], rows.samples[of_function])
    return result


@lru_cache(maxsize=64)
def _loads(function: Function) -> dict[str, NDArray[np.intp]]:
    """The instructions of a function that load each resource."""
    by_resource: dict[str, list[int]] = {ISSUE: list(range(len(function.instructions)))}
    for index, instruction in enumerate(function.instructions):
        pipe = PIPES.get(instruction.info.pipe)
        if pipe is not None:
            by_resource.setdefault(pipe, []).append(index)
        if instruction.info.pipe is Pipe.LSU and is_memory(instruction):
            by_resource.setdefault(L1_REQUESTS, []).append(index)
    return {resource: np.array(indices, dtype=np.intp) for resource, indices in by_resource.items()}
