# SPDX-License-Identifier: Apache-2.0
"""The share of GPU time that samples cover, and the kernel that matters more."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

import pytest
from tests import hand_made as made

from gpadvisor.model.problem import ProblemCode
from gpadvisor.model.profile import KernelProfile, Profile
from gpadvisor.pipeline.time_coverage import (
    coverage_problems,
    coverage_sentence,
    time_coverage,
    unknown_coverage,
)


def _launch(name: str, duration: float | None, *, samples: int = 0, counted: bool = False) -> KernelProfile:
    of = made.launch(duration_ns=duration, kernel=name, demangled=f"void {name}(float *)")
    rows = [(0, 0, 0, samples, samples)] if samples else []
    return made.profile(of=of, rows=rows, counted=made.counts([(0, 0, 3)]) if counted else None)


def _report(*kernels: KernelProfile) -> Profile:
    return Profile(
        sha256="0" * 64, collector="ncu", collector_version=None, command=None, host=None, created=None,
        kernels=kernels,
    )  # fmt: skip


def test_the_kernel_that_takes_the_time_is_offered() -> None:
    profile = _report(
        _launch("scatter", 2.0, samples=9),
        _launch("gather", 41.0),
        *(_launch(f"k{i}", 19.0) for i in range(3)),
    )
    (problem,) = coverage_problems(profile)
    assert problem.code is ProblemCode.UNCOVERED_TIME
    assert problem.message == (
        "these samples cover 2.0 % of the GPU time that was seen (scatter); gather takes 41.0 % and has "
        "none: gpadvisor profile --kernel gather -- APP profiles it"
    )
    assert coverage_sentence(profile) == problem.message


def test_good_coverage_is_said_after_a_run_and_is_no_problem() -> None:
    profile = _report(_launch("scatter", 1.0), _launch("gather", 9.0, samples=9), _launch("gather", 10.0))
    assert coverage_problems(profile) == ()
    said = coverage_sentence(profile) or ""
    assert said.startswith("these samples cover 95.0 % of the GPU time that was seen; scatter takes 5.0 %")
    whole = _report(_launch("gather", 9.0, samples=9))
    assert coverage_sentence(whole) == "these samples cover 100.0 % of the GPU time that was seen"


def test_counts_stand_in_where_there_are_no_samples() -> None:
    found = time_coverage(_report(_launch("a", 1.0, counted=True), _launch("b", 3.0)))
    assert found is not None
    assert (found.counted, found.share, found.missed, found.wrong_kernel) == (
        True,
        0.25,
        "void b(float *)",
        True,
    )


@pytest.mark.parametrize(
    "kernels",
    [
        (),
        (_launch("a", 1.0), _launch("b", 3.0)),  # nothing was measured: there is nothing to cover
        (_launch("a", None, samples=5), _launch("b", 3.0)),  # what was measured has no time
    ],
)
def test_no_figure_where_none_is_known(kernels: tuple[KernelProfile, ...]) -> None:
    profile = _report(*kernels)
    assert time_coverage(profile) is None
    assert coverage_problems(profile) == ()


def test_samples_without_times_are_said() -> None:
    assert "not known" in (coverage_sentence(_report(_launch("a", None, samples=5))) or "")
    assert coverage_sentence(_report(_launch("a", 1.0))) is None


def test_a_run_that_picked_launches_says_so_once() -> None:
    (problem,) = unknown_coverage("gath.*", 3, None)
    assert problem.code is ProblemCode.UNKNOWN_TIME_COVERAGE
    assert "--kernel 'gath.*' --launch-skip 3 picked" in problem.message
    assert (
        "gpadvisor profile --collector cupti --kernel 'gath.*' --launch-skip 3 -- APP tells"
        in problem.message
    )
    profile = replace(_report(_launch("a", 1.0, samples=5), _launch("b", 3.0)), problems=(problem,))
    assert coverage_problems(profile) == ()
    assert coverage_sentence(profile) is None
    assert unknown_coverage(None, 0, None) == ()


def test_the_command_survives_a_shell_and_matches_the_kernel() -> None:
    hostile = "k$(reboot)`x`"
    profile = _report(_launch("a", 1.0, samples=5), _launch(hostile, 9.0))
    (problem,) = coverage_problems(profile)
    pattern = shlex.split(problem.message.partition("--kernel ")[2])[0]
    assert re.search(pattern, f"void {hostile}(float *)")
