# SPDX-License-Identifier: Apache-2.0
"""What host code leaves idle: told where it is, worth what a run without it gains, and silent elsewhere."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.advice_values import advice, kernel
from tests.host_traces import Host, write_host_trace, write_waiting_database
from tests.schemas import published_schema
from tests.unit.advice.test_idleness import TRACES

from gpadvisor.advice.run_findings import run_findings
from gpadvisor.cli import main
from gpadvisor.model.timeline import RunFinding
from gpadvisor.pipeline.timeline import idle_of, in_timeline
from gpadvisor.report.jsonformat import render_json
from gpadvisor.report.markdown import render_markdown
from gpadvisor.report.sarif import SarifOptions, render_sarif
from gpadvisor.report.text import render_text
from gpadvisor.rules import RUN_RULES
from gpadvisor.store.timeline import read_timeline

KINDS = ("sqlite", "json")


def found(path: Path, code: str) -> list[RunFinding]:
    return [one for one in run_findings(read_timeline(path)) if one.code == code]


def steps(
    host: Host, *, wait: bool, work: int, kernel_ns: int, launch: int = 5_000, repeat: int = 20
) -> Host:
    for _ in range(repeat):
        host.call("cudaLaunchKernel", launch, "step", 12, kernel=kernel_ns)
        if wait:
            host.wait("cudaDeviceSynchronize", "step", 13)
        host.run(work)
    return host


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("work", "kernel_ns"), [(8_000, 40_000), (30_000, 60_000), (45_000, 50_000)])
def test_a_wait_is_worth_what_the_run_gains_without_it(
    tmp_path: Path, kind: str, work: int, kernel_ns: int
) -> None:
    slow = steps(Host(), wait=True, work=work, kernel_ns=kernel_ns)
    fast = steps(Host(), wait=False, work=work, kernel_ns=kernel_ns)
    (one,) = found(write_host_trace(tmp_path / f"run.{kind}", slow), "GPA501")
    assert one.calls == 20
    assert one.speedup.expected == pytest.approx(slow.span / fast.span, rel=0.02)
    assert 1.0 <= one.speedup.low <= one.speedup.expected <= one.speedup.high
    assert one.place is not None
    assert one.place.function == "step"
    assert "20 calls of cudaDeviceSynchronize" in one.title


@pytest.mark.parametrize("kind", KINDS)
def test_a_wait_for_what_was_copied_to_the_host_is_needed(tmp_path: Path, kind: str) -> None:
    host = Host()
    for _ in range(20):
        host.call("cudaLaunchKernel", 5_000, "step", 12, kernel=40_000)
        host.call("cudaMemcpyAsync", 5_000, "step", 13, copy=(2_000, "DtoH", False))
        host.wait("cudaStreamSynchronize", "step", 14)
        host.run(20_000)
    assert not found(write_host_trace(tmp_path / f"run.{kind}", host), "GPA501")


def test_one_copy_through_a_place_keeps_all_its_waits(tmp_path: Path) -> None:
    host = steps(Host(), wait=True, work=20_000, kernel_ns=40_000)
    host.call("cudaMemcpyAsync", 5_000, "step", 15, copy=(2_000, "DtoH", False))
    host.wait("cudaDeviceSynchronize", "step", 13)
    assert not found(write_host_trace(tmp_path / "run.sqlite", host), "GPA501")


def test_a_wait_that_times_is_needed(tmp_path: Path) -> None:
    host = Host()
    for _ in range(20):
        host.call("cudaLaunchKernel", 5_000, "step", 12, kernel=40_000)
        host.wait("cudaEventSynchronize", "step", 13)
        host.call("cudaEventElapsedTime", 1_000, "step", 14)
        host.run(20_000)
    assert not found(write_host_trace(tmp_path / "run.sqlite", host), "GPA501")


def test_what_gains_less_than_runs_differ_by_is_not_told(tmp_path: Path) -> None:
    host = steps(Host(), wait=True, work=500, kernel_ns=1_000_000, launch=1_000)
    assert not run_findings(read_timeline(write_host_trace(tmp_path / "run.sqlite", host)))


@pytest.mark.parametrize("kind", KINDS)
def test_copies_hide_behind_the_kernels_that_run_alone(tmp_path: Path, kind: str) -> None:
    """Ten times 30 us of copies beside 50 us of kernels: hidden are 300 us of 800 at most."""
    host = Host()
    for _ in range(10):
        host.call("cudaMemcpyAsync", 1, "load", 3, copy=(30_000, "HtoD", True))
        host.call("cudaLaunchKernel", 1, "load", 4, kernel=50_000)
        host.wait("cudaDeviceSynchronize", "load", 5, returns=0)
    (one,) = found(write_host_trace(tmp_path / f"run.{kind}", host), "GPA502")
    assert (one.calls, one.speedup.low) == (10, 1.0)
    assert one.speedup.expected == pytest.approx(800 / 650, rel=0.001)
    assert one.speedup.high == pytest.approx(800 / 500, rel=0.001)
    assert "10 copies to the GPU take 0.300 ms" in one.title
    assert "(of cudaMemcpyAsync, of pageable memory)" in one.title


def test_beside_copies_stands_how_long_the_kernels_work_that_could_hide_them(tmp_path: Path) -> None:
    host = Host()
    for _ in range(10):
        host.call("cudaMemcpyAsync", 1, "load", 3, copy=(30_000, "HtoD", True))
        host.call("cudaLaunchKernel", 1, "first", 4, kernel=50_000)
        host.call("cudaLaunchKernel", 1, "second", 8, kernel=20_000)
        host.wait("cudaDeviceSynchronize", "load", 5, returns=0)
    (copies,) = found(write_host_trace(tmp_path / "run.sqlite", host), "GPA502")
    assert [related.message for related in copies.related] == [
        "kernels launched here work 0.500 ms of the run",
        "kernels launched here work 0.200 ms of the run",
    ]


def test_a_wait_says_how_long_it_took_and_what_is_launched_behind_it(tmp_path: Path) -> None:
    """Each of 20 waits for 40 us of a kernel, and 2 us more; until the next kernel the GPU idles 27 us."""
    host = Host()
    for _ in range(20):
        host.call("cudaLaunchKernel", 5_000, "step", 12, kernel=40_000)
        host.wait("cudaDeviceSynchronize", "ends", 13)
        host.run(20_000)
    (wait,) = found(write_host_trace(tmp_path / "run.sqlite", host), "GPA501")
    assert "wait 0.840 ms though nothing was copied" in wait.title
    assert "the GPU idles 0.513 ms behind" in wait.title
    assert [related.message for related in wait.related] == [
        "what is launched here ends gaps of 0.513 ms behind"
    ]


def test_no_wait_is_worth_more_at_the_low_end_than_it_lasts(tmp_path: Path) -> None:
    """Long waits, with 3 us of calls in the gap behind each, and waits of 3 us with a 30 us launch there."""
    host = Host()
    for _ in range(20):
        host.call("cudaLaunchKernel", 30_000, "step", 12, kernel=100_000)
        host.wait("cudaDeviceSynchronize", "step", 13)
        host.run(20_000)
        host.call("cudaLaunchKernel", 1_000, "step", 12, kernel=1_000)
        host.wait("cudaDeviceSynchronize", "step", 13)
    (wait,) = found(write_host_trace(tmp_path / "run.sqlite", host), "GPA501")
    assert wait.speedup.low <= host.span / (host.span - 20 * (3_000 + 3_000))


def test_copies_beside_kernels_are_not_told(tmp_path: Path) -> None:
    host = Host()
    for _ in range(10):
        host.call("cudaLaunchKernel", 1, "load", 4, kernel=50_000)
        host.call("cudaMemcpyAsync", 1, "load", 3, copy=(30_000, "HtoD", False), stream=8)
        host.run(40_000)
    assert not found(write_host_trace(tmp_path / "run.sqlite", host), "GPA502")


@pytest.mark.parametrize("kind", KINDS)
def test_launches_smaller_than_what_launching_takes(tmp_path: Path, kind: str) -> None:
    """Each of 50 launches takes 6 us, 4 more until the next, and its kernel 2 us."""
    host = steps(Host(), wait=False, work=4_000, kernel_ns=2_000, launch=6_000, repeat=50)
    (one,) = found(write_host_trace(tmp_path / f"run.{kind}", host), "GPA503")
    assert one.calls == 50
    assert "50 launches of 2.0 us (median), of which 49 find the GPU without work, 8.0 us each" in one.title
    span = 49 * 10 + 2
    assert one.speedup.expected == pytest.approx(span / (span - 49 * 6), rel=0.01)
    assert one.speedup.low == pytest.approx(span / (span - 49 * 3), rel=0.01)
    assert one.speedup.high == pytest.approx(span / (span - 49 * 8), rel=0.01)
    assert not found(
        write_host_trace(tmp_path / f"wait.{kind}", steps(Host(), wait=True, work=4_000, kernel_ns=2_000)),
        "GPA503",
    )


def test_the_first_launch_loads_code_and_is_no_measure(tmp_path: Path) -> None:
    host = Host()
    host.call("cudaLaunchKernel", 9_000_000, "step", 12, kernel=1_000)
    steps(host, wait=False, work=100, kernel_ns=8_000, launch=5_000)
    assert not found(write_host_trace(tmp_path / "run.sqlite", host), "GPA503")


def test_time_of_another_stream_is_no_gap(tmp_path: Path) -> None:
    host = Host()
    host.call("cudaLaunchKernel", 1_000, "long", 2, kernel=5_000_000, stream=8)
    for _ in range(20):
        host.call("cudaLaunchKernel", 5_000, "step", 12, kernel=60_000)
        host.wait("cudaStreamSynchronize", "step", 13, stream=7)
        host.run(30_000)
    assert not found(write_host_trace(tmp_path / "run.sqlite", host), "GPA501")


def test_places_are_the_innermost_frames_of_the_application(tmp_path: Path) -> None:
    host = steps(Host(), wait=True, work=30_000, kernel_ns=60_000)
    (one,) = found(write_host_trace(tmp_path / "run.sqlite", host), "GPA501")
    assert one.place is not None
    assert (one.place.module, one.place.address, one.place.line) == ("/opt/app", 13, 0)
    (one,) = found(write_host_trace(tmp_path / "run.json", host), "GPA501")
    assert one.place is not None
    assert (one.place.file, one.place.line, one.place.is_definition) == ("app/step.py", 10, True)


def test_hpctoolkit_has_the_line_of_the_call(tmp_path: Path) -> None:
    path = write_waiting_database(tmp_path / "db")
    (one,) = found(path, "GPA501")
    assert one.place is not None
    assert (one.place.function, one.place.file, one.place.line) == ("solve", "/src/app.cu", 4)
    assert one.speedup.expected == pytest.approx(19_600 / (19_600 - 19 * 400), rel=0.001)


def test_the_command_tells_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_host_trace(tmp_path / "run.json", steps(Host(), wait=True, work=30_000, kernel_ns=60_000))
    assert main(["idle", str(path)]) == 0
    text = capsys.readouterr().out
    assert "GPA501 1." in text
    assert "step(), which begins at step.py:10" in text
    assert main(["idle", str(path), "--format", "json"]) == 0
    (one, *_) = json.loads(capsys.readouterr().out)["findings"]
    assert (one["code"], one["place"]["file"], one["place"]["line"]) == ("GPA501", "app/step.py", 10)
    assert one["speedup"]["low"] <= one["speedup"]["expected"] <= one["speedup"]["high"]


def test_without_call_paths_it_says_how_to_get_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_host_trace(tmp_path / "run.sqlite", steps(Host(), wait=True, work=30_000, kernel_ns=60_000))
    with closing(sqlite3.connect(path)) as database:
        database.execute("DROP TABLE CUDA_CALLCHAINS")
        database.commit()
    (one,) = [one for one in idle_of(path).findings if one.code == "GPA501"]
    assert one.place is None
    assert main(["idle", str(path)]) == 0
    assert "--cudabacktrace" in capsys.readouterr().out


def in_every_format(path: Path) -> tuple[Any, Sequence[RunFinding]]:
    one = kernel()
    (told,), findings = in_timeline([one], path)
    return replace(advice(), kernels=(told,), run_findings=findings), findings


def test_advice_has_them_in_every_format(tmp_path: Path) -> None:
    import jsonschema

    host = steps(Host(name=kernel().mangled), wait=True, work=30_000, kernel_ns=60_000)
    whole, findings = in_every_format(write_host_trace(tmp_path / "run.json", host))
    assert [one.code for one in findings] == ["GPA501"]
    document = json.loads(render_json(whole))
    jsonschema.validate(document, published_schema("report", "advice"))
    assert document["run_findings"][0]["code"] == "GPA501"
    for text in (render_text(whole), render_text(whole, details=True), render_markdown(whole)):
        assert "GPA501" in text
        assert "20 calls of cudaDeviceSynchronize" in re.sub(r"\s+", " ", text)
    (log,) = json.loads(render_sarif(whole, SarifOptions()))["runs"]
    (result,) = [one for one in log["results"] if one["ruleId"] == "GPA501"]
    assert log["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "GPA501"
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("app/step.py", 10)
    whole, _ = in_every_format(write_host_trace(tmp_path / "run.sqlite", host))
    (log,) = json.loads(render_sarif(whole, SarifOptions()))["runs"]
    notices = log["invocations"][0]["toolExecutionNotifications"]
    assert any("GPA501 has no place here" in one["message"]["text"] for one in notices)


@pytest.mark.parametrize("rule", RUN_RULES, ids=lambda rule: rule.code)
def test_each_rule_has_its_page(rule: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", rule.code]) == 0
    headings = re.findall(r"^## (.+)$", capsys.readouterr().out, re.MULTILINE)
    assert headings == [
        "What it finds",
        "Why the GPU idles",
        "What to try",
        "Example",
        "When this advice is wrong",
        "How the gain is estimated",
    ]
    assert main(["rules"]) == 0
    assert re.search(rf"{rule.code}  {rule.slug} +host code +{rule.name}", capsys.readouterr().out)


@pytest.mark.skipif(
    not (TRACES / "saxpy-mpi-cuda_nsys_perlmutter0.sqlite").is_file(),
    reason="GPADVISOR_TRACES has no saxpy-mpi-cuda_nsys_perlmutter0.sqlite (hpcgroup/pipit)",
)
def test_real_call_chains_lead_to_the_application() -> None:
    findings = idle_of(TRACES / "saxpy-mpi-cuda_nsys_perlmutter0.sqlite").findings
    functions = [one.place.function for one in findings if one.place is not None]
    assert functions == ["main", "main", "saxpy(double*, double*, double*, double, int)"]
    assert {one.code for one in findings} == {"GPA502"}


@pytest.mark.skipif(
    not (TRACES / "perlmutter-cloverleaf-cuda.sqlite").is_file(),
    reason="GPADVISOR_TRACES has no perlmutter-cloverleaf-cuda.sqlite (hpcgroup/pipit, pull request 138)",
)
def test_cloverleaf_waits_after_each_kernel() -> None:
    (one,) = idle_of(TRACES / "perlmutter-cloverleaf-cuda.sqlite").findings
    assert (one.code, one.calls, one.place) == ("GPA501", 1312, None)
    assert one.speedup.expected == pytest.approx(1.0587, abs=0.001)
