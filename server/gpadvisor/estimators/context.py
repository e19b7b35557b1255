# SPDX-License-Identifier: Apache-2.0
"""What an optimizer and an estimator look at: one kernel with everything known about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpadvisor.model.advice import Category, Estimate, Match, Rejection
from gpadvisor.model.blame import Blame
from gpadvisor.model.kind import Kind
from gpadvisor.model.language import Language
from gpadvisor.model.machine import MachineModel
from gpadvisor.model.occupancy import Occupancy
from gpadvisor.model.profile import Evidence, KernelProfile
from gpadvisor.model.program import Program
from gpadvisor.source.edits import SiteKind
from gpadvisor.source.naming import Naming


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
    language: Language = Language.CUDA  # whose terms the advice is written in


class WhatIf(Kind):
    """How the change that a rule advises is simulated, beside another launch, which any rule may propose."""

    NOT = "not"
    EDITED = "edited"  # the quick fix or the flag is compiled
    ITS_EDIT = "its edit"  # the same, where the advice is one of those whose quick fix says all of it
    NO_BARRIERS = "no barriers"  # nobody waits at barriers


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """One row of Table II: a pattern, how to find it, how to estimate its cure, and what goes with it."""

    code: str
    slug: str
    name: str
    category: Category
    match: Callable[[KernelContext], Match | Rejection]
    estimate: Callable[[KernelContext, Match], Estimate]
    document: str  # the module docstring: the rule's page
    usual_gain: float = 1.0  # median of its measured changes (docs/validation.md): orders findings
    optimized_only: bool = False  # what it finds in a debug build (-G), the compiler would not leave there
    edits: tuple[
        SiteKind, ...
    ] = ()  # places of a source whose edit answers it, those most to the point first
    flag: str | None = None  # of the compiler, that does what it advises
    naming: Naming | None = None  # the sentence on what the source says there
    twins: tuple[str, ...] = ()  # NVIDIA's rules on the same subject, by their identifiers of 2019 to 2026
    what_if: WhatIf = WhatIf.NOT
    replaced_by: str | None = (
        None  # code of the rule whose change makes this one needless at the same accesses
    )
