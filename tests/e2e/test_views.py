# SPDX-License-Identifier: Apache-2.0
"""Views of profiles in which something is missing or odd: figures, or one sentence that says what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from tests.kernels import compile_text
from tests.ncu_writer import DeviceSpec, LaunchSpec, write_report
from tests.sampled import sampled

from gpadvisor.cli import main

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.usefixtures("reads_here")]

LOOP = """\
extern "C" __global__ void run(float *a) {
  float x = threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < 99; ++i) x = x * 1.5f + i;
  if (x == 7) a[0] = x;
}
"""
NO_MEMORY = """\
extern "C" __global__ void run(int n) {
  float x = threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < n; ++i) x = x * 1.5f + i;
  if (x == 7) __trap();
}
"""
RECURSION = """\
__device__ __noinline__ int f(int *a, int n) { return n < 1 ? a[0] : f(a, a[n]) + f(a, n - 3); }
extern "C" __global__ void run(int *a) { a[1] = f(a, a[2]); }
"""
SECTION = "collect it with ncu --section "
VIEWS = ("roofline", "potential", "tree")
CASES = (
    *("whole", "no samples", "no counts", "neither", "counts of zero", "no time", "unknown time"),
    *("one block", "one wave", "no hit rates", "no code", "debug build", "no memory", "recursion"),
)


def of(text: str, *options: str) -> LaunchSpec:
    return sampled(compile_text(text, "/src/run.cu", "sm_80", *options), "run", seed="views")


@cache
def cases() -> Mapping[str, tuple[LaunchSpec, Mapping[str, str]]]:
    """Launches, and what the views that cannot show them say."""
    loop = of(LOOP)
    no_counts = {
        "roofline": f"counts no executed instructions of run; {SECTION}SourceCounters",
        "potential": f"no executed counts by instruction of run; {SECTION}SourceCounters",
    }
    return {
        "whole": (loop, {}),
        "no samples": (
            replace(loop, samples={}),
            {"potential": f"no active cycles of run; {SECTION}SpeedOfLight"},
        ),
        "no counts": (replace(loop, counts={}), no_counts),
        "neither": (
            replace(loop, samples={}, counts={}),
            {
                **no_counts,
                "tree": "neither samples nor executed counts: profile with --section SourceCounters",
            },
        ),
        "counts of zero": (
            replace(loop, counts=dict.fromkeys(loop.counts, (0, 0))),
            {"roofline": "executed", "potential": "executed"},
        ),
        "no time": (replace(loop, duration_ns=0.0), {"roofline": "says that run took no time"}),
        "unknown time": (
            replace(loop, duration_ns=float("nan")),
            {"roofline": f"no duration of run; {SECTION}SpeedOfLight", "potential": "collect --section"},
        ),
        "one block": (replace(loop, grid=(1, 1, 1), block=(1, 1, 1)), {}),
        "one wave": (replace(loop, grid=(DeviceSpec().sms, 1, 1), block=(1024, 1, 1)), {}),
        "no hit rates": (
            replace(loop, metrics={f"{unit}_sector_hit_rate.pct": None for unit in ("l1tex__t", "lts__t")}),
            {},
        ),
        "no code": (
            LaunchSpec(kernel="run", cubin=None, external={(1 << 40, "wait"): (90, 70)}),
            {"roofline": SECTION, "potential": SECTION, "tree": "its machine code could not be had"},
        ),
        "debug build": (of(LOOP, "--device-debug"), {}),
        "no memory": (of(NO_MEMORY), {}),
        "recursion": (of(RECURSION), {}),
    }


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where a case is disassembled once for all views of it."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("case", CASES)
def test_a_view_of_what_is_odd(
    view: str,
    case: str,
    cache: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GPADVISOR_CACHE", cache)
    assert tuple(cases()) == CASES
    launch, refusals = cases()[case]
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(write_report([launch]))
    refused = refusals.get(view)
    for form in ("text", "json"):
        code = main([view, str(path), "--format", form])
        out, err = capsys.readouterr()
        if refused is None:
            assert (code, err) == (0, "")
            assert "nan" not in out.lower().split()
            if form == "json":
                json.loads(out, parse_constant=lambda one: pytest.fail(f"{one} is no JSON"))
        else:
            assert (code, out) == (3, "")
            assert refused in err
            assert err.count("\n") == 1
