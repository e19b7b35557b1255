# SPDX-License-Identifier: Apache-2.0
"""Kernels that a reader is spared: no gain in them could be noticed, or nothing was found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from gpadvisor.model.advice import KernelAdvice
from gpadvisor.model.problem import Problem
from gpadvisor.model.profile import Evidence
from gpadvisor.report.words import plural

SMALL_SHARE: Final = 0.01
"""By Amdahl's law nothing done to such a kernel gives the whole more than 1.01x."""


def folded(kernels: Sequence[KernelAdvice]) -> tuple[KernelAdvice, ...]:
    """Kernels that only the overview has: small beside the others, or static ones without a finding."""
    if len(kernels) < 2:
        return ()
    shares = [_share(kernel) for kernel in kernels]
    total = sum(share for share in shares if share is not None)
    return tuple(
        kernel
        for kernel, share in zip(kernels, shares, strict=True)
        if (share is not None and share < SMALL_SHARE * total) or _is_quiet(kernel)
    )


def _is_quiet(kernel: KernelAdvice) -> bool:
    return kernel.evidence is Evidence.STATIC and not kernel.suggestions and not kernel.samples.total


def _share(kernel: KernelAdvice) -> float | None:
    share = kernel.time_share
    return share if share is not None and math.isfinite(share) else None


def folded_words(kernels: Sequence[KernelAdvice]) -> str:
    """Why they are not shown, in one sentence; nothing where there are none."""
    if not kernels:
        return ""
    quiet = sum(1 for kernel in kernels if _is_quiet(kernel))
    small = len(kernels) - quiet
    parts = []
    if small:
        parts.append(f"{plural(small, 'kernel')} with less than 1 % of the time")
    if quiet:
        parts.append(f"{plural(quiet, 'kernel')} without a finding")
    return f"Only in the table above: {' and '.join(parts)} (--kernel NAME shows one)."


def folded_problems(kernels: Sequence[KernelAdvice]) -> tuple[Problem, ...]:
    """Their problems, each once."""
    return tuple(dict.fromkeys(problem for kernel in kernels for problem in kernel.problems))
