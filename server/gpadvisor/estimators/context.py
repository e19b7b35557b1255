# SPDX-License-Identifier: Apache-2.0
"""What an optimizer and an estimator look at: one kernel with everything known about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpadvisor.model.advice import Category, Estimate, Match, Occupancy, Rejection
from gpadvisor.model.blame import Blame
from gpadvisor.model.machine import MachineModel
from gpadvisor.model.profile import Evidence, KernelProfile
from gpadvisor.model.program import Program


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KernelContext:
    """One kernel: its code, and its profile and blame where there are samples."""

    kernel: str  # mangled name of the kernel
    program: Program
    machine: MachineModel
    occupancy: Occupancy
    evidence: Evidence
    profile: KernelProfile | None  # None for a bare cubin or source
    blame: Blame | None  # None without samples
    others: tuple[Program, ...] | None = None  # code that may have lines of this kernel; None: not looked at
    collector: str | None = None  # of the profile, where it is known: "ncu", "cupti", "simulator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """One row of Table II: a pattern, how to find it, and how to estimate its cure."""

    code: str
    slug: str
    name: str
    category: Category
    match: Callable[[KernelContext], Match | Rejection]
    estimate: Callable[[KernelContext, Match], Estimate]
    document: str  # the module docstring: the rule's page
    optimized_only: bool = False  # what it finds in a debug build (-G), the compiler would not leave there
