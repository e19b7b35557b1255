# SPDX-License-Identifier: Apache-2.0
"""What a cure would give: the paper's equations, and a range that says why it departs from them (GPA V-B)."""

from __future__ import annotations

from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.latency_hiding import latency_hiding
from gpadvisor.estimators.matched import matched_latency, matched_rows, matched_samples
from gpadvisor.estimators.parallel import issue_ratio, parallel, parallel_equation
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.utilisation import loads, utilisations

__all__ = [
    "KernelContext",
    "Optimizer",
    "issue_ratio",
    "latency_hiding",
    "loads",
    "matched_latency",
    "matched_rows",
    "matched_samples",
    "parallel",
    "parallel_equation",
    "stall_elimination",
    "utilisations",
]
