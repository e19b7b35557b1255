# SPDX-License-Identifier: Apache-2.0
"""Which share of the GPU time a profile's samples cover, and which kernel matters more than those it has."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Final

from gpadvisor.advice.launches import KernelKey, kernel_key, time_shares
from gpadvisor.model.figures import percent
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import KernelProfile, Profile
from gpadvisor.report.names import base_name, core_name, short_name
from gpadvisor.report.words import clean

_NAME_WIDTH: Final = 60
_NAMES: Final = 2
_PLAIN: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeCoverage:
    """How much of the kernel time in a profile belongs to kernels with samples, or with counts."""

    share: float  # of all kernel time that the profile has
    counted: bool  # by executed counts, as there are no samples
    covered: tuple[str, ...]  # demangled names, the heaviest first
    missed: str | None  # the heaviest kernel that has none
    missed_share: float

    @property
    def wrong_kernel(self) -> bool:
        """Whether one kernel without samples takes more time than all that have some."""
        return self.missed is not None and self.missed_share > self.share


def time_coverage(profile: Profile) -> TimeCoverage | None:
    """The coverage; None where it is not known, or where nothing was measured."""
    if any(problem.code is ProblemCode.UNKNOWN_TIME_COVERAGE for problem in profile.problems):
        return None
    shares = time_shares(profile)
    measured = {kernel_key(entry) for entry in profile.kernels if entry.total_samples}
    counted = not measured
    if counted:
        measured = {kernel_key(entry) for entry in profile.kernels if entry.counts is not None}
    if not measured or not measured <= shares.keys():
        return None
    names = _names(profile.kernels)
    ranked = sorted(shares, key=lambda key: -shares[key])
    missed = next((key for key in ranked if key not in measured), None)
    return TimeCoverage(
        share=sum(shares[key] for key in measured),
        counted=counted,
        covered=tuple(dict.fromkeys(names[key] for key in ranked if key in measured)),
        missed=None if missed is None else names[missed],
        missed_share=0.0 if missed is None else shares[missed],
    )


def coverage_problems(profile: Profile | None) -> tuple[Problem, ...]:
    """What the reader of advice should know: that another kernel matters more."""
    coverage = None if profile is None else time_coverage(profile)
    if coverage is None or not coverage.wrong_kernel:
        return ()
    return (Problem(ProblemCode.UNCOVERED_TIME, _sentence(coverage)),)


def coverage_sentence(profile: Profile) -> str | None:
    """What is said after a run, good news too; None where a problem of the profile says it already."""
    coverage = time_coverage(profile)
    if coverage is not None:
        return _sentence(coverage)
    is_reported = any(problem.code is ProblemCode.UNKNOWN_TIME_COVERAGE for problem in profile.problems)
    if is_reported or not any(entry.total_samples for entry in profile.kernels):
        return None
    return "it is not known which share of the GPU time the samples cover: not every kernel has a time"


def unknown_coverage(kernel: str | None, launch_skip: int, launch_count: int | None) -> tuple[Problem, ...]:
    """The problem of a run in which only launches that were asked for are seen at all."""
    options = [
        option
        for option, is_set in (
            (f"--kernel {clean(shlex.quote(kernel or ''))}", kernel is not None),
            (f"--launch-skip {launch_skip}", launch_skip > 0),
            (f"--launch-count {launch_count}", launch_count is not None),
        )
        if is_set
    ]
    if not options:
        return ()
    text = (
        f"only launches that {' '.join(options)} picked were seen: which share of the application's GPU time "
        f"they are is not known; gpadvisor profile --collector cupti {' '.join(options)} -- APP tells"
    )
    return (Problem(ProblemCode.UNKNOWN_TIME_COVERAGE, text),)


def _sentence(coverage: TimeCoverage) -> str:
    text = "executed counts" if coverage.counted else "samples"
    sentence = f"these {text} cover {percent(coverage.share)} of the GPU time that was seen"
    if coverage.missed is None:
        return sentence
    if coverage.wrong_kernel:
        names = [_shown(name) for name in coverage.covered[:_NAMES]]
        more = len(coverage.covered) - len(names)
        sentence += f" ({', '.join(names)}{f' and {more} more' if more else ''})"
    return (
        f"{sentence}; {_shown(coverage.missed)} takes {percent(coverage.missed_share)} and has none: "
        f"gpadvisor profile --kernel {_pattern(coverage.missed)} -- APP profiles it"
    )


def _names(kernels: tuple[KernelProfile, ...]) -> dict[KernelKey, str]:
    return {kernel_key(entry): entry.launch.demangled or entry.launch.kernel for entry in kernels}


def _shown(demangled: str) -> str:
    return clean(short_name(core_name(demangled), _NAME_WIDTH))


def _pattern(demangled: str) -> str:
    """A value of ``--kernel`` that matches the kernel: Nsight Compute looks at names without namespaces."""
    name = base_name(demangled)
    return name if _PLAIN.fullmatch(name) else clean(shlex.quote(re.escape(name)))
