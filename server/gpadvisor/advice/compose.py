# SPDX-License-Identifier: Apache-2.0
"""The whole answer for one input: kernels by their share of GPU time, all launches, sources and problems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpadvisor.model.advice import Advice, KernelAdvice, LaunchSummary, SourceMatch
from gpadvisor.model.problem import Problem
from gpadvisor.model.profile import Profile


def advise(
    kernels: Sequence[KernelAdvice],
    *,
    path: str,
    sha256: str,
    profile: Profile | None = None,
    launches: Sequence[LaunchSummary] = (),
    sources: Sequence[SourceMatch] = (),
    more_problems: Iterable[Problem] = (),
) -> Advice:
    """Put the advice on each kernel together.

    Args:
        kernels: from ``advise_kernel``, in any order.
        path: the input as the user named it.
        sha256: of the input.
        profile: None for a bare cubin or source.
        launches: every launch of the profile.
        sources: how paths of the report were found.
        more_problems: of the input as a whole, beside the profile's own.
    """
    problems = () if profile is None else profile.problems
    return Advice(
        path=path,
        sha256=sha256,
        collector=None if profile is None else profile.collector,
        collector_version=None if profile is None else profile.collector_version,
        kernels=by_time(kernels),
        launches=tuple(launches),
        sources=tuple(sources),
        problems=tuple(dict.fromkeys((*problems, *more_problems))),
    )


def by_time(kernels: Iterable[KernelAdvice]) -> tuple[KernelAdvice, ...]:
    """Those that take the most time first."""
    return tuple(sorted(kernels, key=_rank))


def _rank(kernel: KernelAdvice) -> tuple[float, float, int, str]:
    """By share of GPU time, else by what one launch takes in the model, then in launch order."""
    index = 0 if kernel.launch is None else kernel.launch.index
    return -(kernel.time_share or 0.0), -(kernel.duration_ns or 0.0), index, kernel.name
