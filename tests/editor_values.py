# SPDX-License-Identifier: Apache-2.0
"""Analyses made by hand, for tests of what an editor shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpadvisor.editor.place.placing import PlacedFile, place
from gpadvisor.model.advice import Estimate
from gpadvisor.model.finding import (
    BaselineKind,
    EditorAnalysis,
    FileAnalysis,
    Finding,
    FindingPart,
    KernelView,
    LaunchView,
    LineData,
    Place,
    Related,
    StallShare,
    SuggestionView,
)
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.profile import Evidence
from gpadvisor.model.sentence import Sentence, line_mark

FILE = "/build/gather.cu"
HEADER = "/build/lib.cuh"
ONE, FOUR = "_Z6gatherILi1EEvPKf", "_Z6gatherILi4EEvPKf"
SOURCE = """\
#include "lib.cuh"
template <int N>
__global__ void gather(const float* in, const int* idx, float* out, int n) {
  float acc = 0;
  for (int k = 0; k < n; k += N) {
    int j = idx[k];
    acc += scaled(in[j]);
  }
  out[0] = acc * 0.5 + 1.0f;
}
"""


def estimate(low: float = 1.12, expected: float = 1.15, high: float = 1.19) -> Estimate:
    """A range."""
    return Estimate(
        low=low,
        expected=expected,
        high=high,
        paper=1.3,
        equation="GPA Eq. 4: T / (T - M)",
        reasons=("held back",),
    )


def finding(line: int = 7, **changes: Any) -> Finding:
    """Code reordering on one line of ``gather<1>``."""
    speedup = changes.pop("speedup", estimate())
    whole = changes.pop("whole", None if speedup is None else estimate(1.05, 1.06, 1.07))
    part = FindingPart(
        kernel=ONE,
        kernel_name="gather<1>",
        samples=580,
        importance=0.58,
        speedup=speedup,
        program_speedup=whole,
    )
    value = Finding(
        id=f"id-{line}",
        code="GPA202",
        slug="code-reordering",
        name="Code Reordering",
        title="value used too soon",
        message="58 % of the samples of gather<1> wait for LDG.E on this line.",
        advice=Sentence(f"Move the load at {line_mark(SourceLocation(FILE, 6))} up."),
        leads=True,
        line=line,
        token=None,
        kernel=ONE,
        kernel_name="gather<1>",
        evidence=Evidence.MEASURED,
        samples=580,
        importance=0.58,
        matched=0.58,
        speedup=speedup,
        parts=(part,),
        related=(
            Related(place=Place(file=FILE, line=6), message="LDG.E loads it here"),
            Related(place=Place(file=HEADER, line=3), message="FFMA waits here for LDG.E"),
        ),
        scope=Place(file=FILE, line=5),
    )
    return replace(value, **changes)


def stall(reason: str, samples: int, *, line: int | None = None, file: str = FILE) -> StallShare:
    """A stall, blamed on a line or on nothing else."""
    cause = (
        None if line is None else Related(place=Place(file=file, line=line), message="LDG.E loads it here")
    )
    return StallShare(
        reason=reason, plain=f"plain {reason}", samples=samples, latency=samples // 2, cause=cause
    )


def line_data(line: int, samples: int, *stalls: StallShare, **changes: Any) -> LineData:
    """Samples of ``gather<1>``, of which there are 1000."""
    value = LineData(
        line=line,
        kernel=ONE,
        samples=samples,
        latency=samples // 2,
        share=samples / 1000,
        caused=0,
        instructions=2,
        stalls=stalls or (stall("wait", samples),),
    )
    return replace(value, **changes)


def kernel(**changes: Any) -> KernelView:
    """``gather<1>``."""
    value = KernelView(
        kernel=ONE,
        name="gather<1>",
        base_name="gather",
        place=Place(file=FILE, line=3),
        evidence=Evidence.MEASURED,
        evidence_reason="1,000 PC samples",
        device="A100",
        launch="launch 1 of 1: 64 x 256 threads",
        launch_index=0,
        duration_ns=1000.0,
        time_share=0.34,
        samples=1000,
        latency=600,
        unplaced=20,
        suggestions=(
            SuggestionView(
                code="GPA202", slug="code-reordering", name="Code Reordering", title="value used too soon",
                advice="Move it.", importance=0.58, speedup=estimate(), suppressed=None,
            ),
        ),
        best="id-7",
        best_code="GPA202",
        best_speedup=estimate(),
        together=None,
        together_codes=(),
        verdict=Sentence("Limited by latency"),
        stalls=(stall("long_scoreboard", 580, line=6),),
        hidden=0,
        rejected=(("GPA101", "no local memory"), ("GPA104", "no library math")),
        assumptions=(),
        problems=(),
    )  # fmt: skip
    return replace(value, **changes)


def file_analysis(**changes: Any) -> FileAnalysis:
    """gather.cu, with its text in the profile."""
    value = FileAnalysis(
        path=FILE,
        local="/home/gather.cu",
        baseline=SOURCE,
        baseline_kind=BaselineKind.EMBEDDED,
        findings=(finding(),),
        lines=(
            line_data(5, 8),
            line_data(6, 22, caused=580),
            line_data(7, 600, stall("long_scoreboard", 580, line=6), stall("selected", 20), caused=20),
            line_data(9, 350, stall("short_scoreboard", 350, line=3, file=HEADER), caused=100),
        ),
    )
    return replace(value, **changes)


def analysis(*kernels: KernelView, files: tuple[FileAnalysis, ...] = (), **changes: Any) -> EditorAnalysis:
    """One profile."""
    value = EditorAnalysis(
        origin="/data/run.ncu-rep",
        sha256="ab" * 32,
        collector="ncu",
        collected_at="2026-11-21T05:02:00+00:00",
        kernels=kernels or (kernel(),),
        launches=(
            LaunchView(
                index=0, kernel=ONE, name="gather<1>", label="64 x 256 threads, 1 us", duration_ns=1000.0,
                analysed=True,
            ),
        ),
        files=files or (file_analysis(),),
        problems=(),
    )  # fmt: skip
    return replace(value, **changes)


def placed(value: EditorAnalysis, text: str = SOURCE) -> PlacedFile:
    """The first file of an analysis in today's text."""
    return place(value.files[0], text)
