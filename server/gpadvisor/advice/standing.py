# SPDX-License-Identifier: Apache-2.0
"""What is a suggestion, what a note, and what is only counted: decided here, for every output alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from gpadvisor.advice.evaluate import EstimatedMatch
from gpadvisor.analyzer.places import is_prebuilt
from gpadvisor.estimators import constants
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.launches import is_as_short_as_a_launch
from gpadvisor.estimators.utilisation import (
    DRAM,
    ISSUE,
    L1,
    L1_DATA,
    L1_REQUESTS,
    MEMORY_RESOURCES,
    active_loads,
    measured_loads,
)
from gpadvisor.evidence.accesses import is_memory
from gpadvisor.evidence.trees import is_all_that_loops_access, tree_barriers
from gpadvisor.model.advice import Category, Estimate
from gpadvisor.model.profile import LITTLE_OF_RUN, Evidence, first_share
from gpadvisor.model.program import is_launched_by_library

MIN_IMPORTANCE: Final = constants.SMALL
MIN_SAMPLES: Final = int(constants.FEW_SAMPLES)
MIN_SPEEDUP: Final = constants.SHOWN
_OF_L1: Final = frozenset({L1, L1_DATA, L1_REQUESTS})


class Standing(Enum):
    """Where a finding is told."""

    SUGGESTION = "suggestion"  # names a change, rests on enough, and is worth its while
    NOTE = "note"  # nothing in the source would bring it about: in the details
    HIDDEN = "hidden"  # counted only


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Below these a finding is counted and not shown."""

    importance: float = MIN_IMPORTANCE  # share of all samples
    samples: int = MIN_SAMPLES  # matched, or of the kernel where what is launched is at fault
    speedup: float = MIN_SPEEDUP  # expected


DEFAULT_THRESHOLDS: Final = Thresholds()
NO_THRESHOLDS: Final = Thresholds(importance=0.0, samples=0, speedup=0.0)


def standing(context: KernelContext, finding: EstimatedMatch, limits: Thresholds) -> Standing:
    """Where a finding is told; without samples and an estimate there is nothing to measure it by."""
    total = 0 if context.blame is None else context.blame.total_samples
    parallel = finding.optimizer.category is Category.PARALLEL
    if total and finding.match.measured_bound is None:  # counters need no samples
        share = 1.0 if parallel else finding.matched_samples / total
        if share < limits.importance or share * total < limits.samples:
            return Standing.HIDDEN
    if finding.optimizer.category is Category.NOTE or not finding.match.actionable or _is_compiled(context):
        return Standing.NOTE
    if parallel and context.profile is not None and is_launched_by_library(context.profile.launch.demangled):
        return Standing.NOTE
    if limits == NO_THRESHOLDS or finding.match.leads:
        return Standing.SUGGESTION
    if not total and finding.estimate is None:
        beside = _is_beside_the_limit(context, finding) or (not parallel and _is_short(context))
        return Standing.HIDDEN if beside else Standing.SUGGESTION
    worth = finding.estimate is not None and _is_worth(context, finding, finding.estimate, limits.speedup)
    held = not parallel and _is_held_by_dram(context, finding)
    return Standing.SUGGESTION if worth and not held else Standing.HIDDEN


def _is_worth(context: KernelContext, finding: EstimatedMatch, estimate: Estimate, least: float) -> bool:
    """Whether enough is expected, more where it may gain nothing: of launches, which are the host's code.

    Of other changes those with a range from below 1 gained 1.04x to 1.9x on measured pairs, where 1.06x or
    more was expected; but not of kernels as short as a launch, whose times differ by as much from run to run
    (1.00x and 1.16x of one change).
    """
    unsure = estimate.low < 1 and least >= MIN_SPEEDUP
    enough = constants.UNSURE if finding.optimizer.category is Category.PARALLEL else 1 + constants.NOTABLE
    return estimate.expected >= least and not (unsure and (estimate.expected < enough or _is_short(context)))


def _is_short(context: KernelContext) -> bool:
    """Whether a kernel was measured to be as short as a launch, whatever its code does."""
    profile = None if context.evidence is Evidence.MODELLED else context.profile
    return profile is not None and is_as_short_as_a_launch(profile)


def _is_held_by_dram(context: KernelContext, finding: EstimatedMatch) -> bool:
    """Whether DRAM was counted to be about as full as it gets, and the change leaves its load alone."""
    measured = measured_loads(context)
    busiest, after = (
        busiest_after(measured, ()),
        busiest_after(measured, finding.match.reduced_loads, best=True),
    )
    if (
        busiest is None
        or after is None
        or busiest.unit.name != DRAM
        or busiest.load < constants.DRAM_FULL * constants.PRACTICAL_PEAK
    ):
        return False
    return after.load >= busiest.load


def as_told(context: KernelContext, finding: EstimatedMatch) -> EstimatedMatch:
    """The finding without a figure where hardly anything of the run was measured.

    Its first samples say nothing of the rest, while counters are of all of it. The figures of a debug build
    are of that build: those of three measured changes held.
    """
    counted = finding.match.measured_bound is not None
    if _is_little_of_run(context) and not counted:
        return replace(finding, estimate=None)
    return finding


def _is_little_of_run(context: KernelContext) -> bool:
    profile, blame = context.profile, context.blame
    if profile is None or blame is None:
        return False
    sampling = profile.sampling
    part = first_share(blame.total_samples, sampling.expected_samples, truncated=sampling.truncated)
    return part is not None and part <= LITTLE_OF_RUN


def _is_compiled(context: KernelContext) -> bool:
    """Whether nobody here can change the kernel: it comes compiled with a library."""
    profile, program = context.profile, context.program
    return profile is not None and not program.has_line_info and is_prebuilt(profile.launch.demangled)


def _is_beside_the_limit(context: KernelContext, finding: EstimatedMatch) -> bool:
    """Whether a pattern without samples is about something else than the unit that was busy.

    That is one of no access where a part of memory is busy, of accesses alone where another unit is, and of
    latency wherever one is.
    """
    sites, busiest = finding.match.static_sites, busiest_after(active_loads(context), ())
    if not sites or busiest is None or busiest.unit.percent < constants.BUSY_PERCENT:
        return False
    if finding.optimizer.category is Category.LATENCY_HIDING:
        return True
    if busiest.unit.name == ISSUE:
        return False
    functions = context.program.functions
    if busiest.unit.name in _OF_L1 and all(
        site.index in tree_barriers(functions[site.function])
        and is_all_that_loops_access(functions[site.function])
        for site in sites
    ):
        return False  # its levels are what L1 is busy with
    accesses = [is_memory(functions[site.function].instructions[site.index]) for site in sites]
    return not any(accesses) if busiest.unit.name in MEMORY_RESOURCES else all(accesses)
