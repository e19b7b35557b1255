# SPDX-License-Identifier: Apache-2.0
"""Driving Nsight Compute: command lines for every release, its log, and what becomes of a refusal."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import stand_in_ncu as stand_in
from tests.clocks import leap
from tests.stand_in_ncu import stand_in_ncu
from tests.tools import program

from gpadvisor.errors import ToolFailedError, ToolNotFoundError, UsageError
from gpadvisor.profiler.ncu.abilities import examine_ncu, find_ncu
from gpadvisor.profiler.ncu.collect import CounterPermissionError, NcuHeartbeat, collect_by_ncu
from gpadvisor.profiler.ncu.command_line import command_line, expectation
from gpadvisor.profiler.ncu.messages import Log, refusal
from gpadvisor.profiler.ncu.options import NcuOptions
from gpadvisor.sandbox.application import Ending, run_application

_EVERYTHING = NcuOptions(
    kernel="stencil|gather", launch_skip=3, launch_count=2, interval=4, source_folders=(Path("src"),)
)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "ready.ncu-rep"
    path.write_bytes(b"a report")
    return path


@pytest.mark.parametrize("release", stand_in.RELEASES)
@pytest.mark.parametrize(
    "options",
    [NcuOptions(), _EVERYTHING, NcuOptions(samples_only=True), NcuOptions(counts_only=True)],
    ids=["default", "everything", "samples", "counts"],
)
def test_every_release_knows_every_option_it_is_given(
    tmp_path: Path, release: str, options: NcuOptions
) -> None:
    ncu = examine_ncu(stand_in_ncu(tmp_path / "ncu", release=release))
    line = command_line(ncu, options, report=tmp_path / "r", log=tmp_path / "l", application=["./app", "-x"])
    given_options = [part[2:] for part in line[1:-2] if part.startswith("--")]
    assert set(given_options) <= set(stand_in.RELEASES[release])
    assert line[-2:] == ("./app", "-x")
    if options is _EVERYTHING:
        named = " ".join(line)
        assert "stencil|gather" in named
        assert "--launch-skip 3 --launch-count 2" in named
        assert "sampling-interval 4" in named


def test_newer_releases_take_expressions_with_a_prefix(tmp_path: Path) -> None:
    new = examine_ncu(stand_in_ncu(tmp_path / "new", release="2022.2.0.0"))
    old = examine_ncu(stand_in_ncu(tmp_path / "old", release="2020.3.1.0"))
    places = {"report": tmp_path / "r", "log": tmp_path / "l", "application": ["./app"]}
    assert "regex:stencil" in command_line(new, NcuOptions(kernel="stencil"), **places)  # type: ignore[arg-type] # keyword values
    assert "stencil" in command_line(old, NcuOptions(kernel="stencil"), **places)  # type: ignore[arg-type] # keyword values
    for ncu in (new, old):
        line = command_line(ncu, NcuOptions(), **places)  # type: ignore[arg-type] # keyword values
        assert ("MemoryWorkloadAnalysis_Tables" in line) is (ncu is new)  # what the roofline asks for


def test_a_configuration_file_of_the_project_has_no_say(tmp_path: Path) -> None:
    ncu = examine_ncu(stand_in_ncu(tmp_path / "ncu"))
    line = command_line(ncu, NcuOptions(), report=tmp_path / "r", log=tmp_path / "l", application=["./app"])
    assert line[line.index("--config-file") + 1] == "off"


def test_one_pass_where_only_samples_are_wanted(tmp_path: Path) -> None:
    ncu = examine_ncu(stand_in_ncu(tmp_path / "ncu"))
    line = command_line(
        ncu, NcuOptions(samples_only=True), report=tmp_path / "r", log=tmp_path / "l", application=["./app"]
    )
    assert "SourceCounters" not in line
    assert "group:smsp__pcsamp_warp_stall_reasons" in " ".join(line)
    assert "one pass" in expectation(NcuOptions(samples_only=True))


def test_a_program_that_is_no_ncu_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolFailedError, match="does not answer as Nsight Compute"):
        examine_ncu(program(tmp_path / "ncu", "print('hello')"))
    with pytest.raises(ToolNotFoundError, match="no working ncu"):
        find_ncu(tmp_path / "missing")


def test_a_release_before_the_oldest_is_refused(tmp_path: Path) -> None:
    old = program(tmp_path / "ncu", "print('Version 2019.5.0 (build 1)')")
    with pytest.raises(ToolFailedError, match=r"2020\.1 and newer"):
        examine_ncu(old)


def test_a_collection(tmp_path: Path, report: Path) -> None:
    beats: list[NcuHeartbeat] = []
    seen = tmp_path / "seen"
    application = program(tmp_path / "app", f"while not os.path.exists({str(seen)!r}):\n    time.sleep(0.01)")

    def beat(now: NcuHeartbeat) -> None:
        beats.append(now)
        if now.kernel is not None:
            seen.touch()

    ncu = examine_ncu(stand_in_ncu(tmp_path / "ncu", report=report))
    found = collect_by_ncu([str(application)], tmp_path, NcuOptions(), ncu=ncu, progress=beat)
    assert found.report.read_bytes() == b"a report"
    assert (found.launches, found.passes) == (2, 9)
    assert found.ending is Ending.EXITED
    assert beats
    assert beats[-1].kernel == "stencil"


@pytest.mark.parametrize("release", stand_in.RELEASES)
@pytest.mark.parametrize("suffix", ["", ".ncu-repz"])
def test_the_report_is_found_whatever_its_suffix(
    tmp_path: Path, report: Path, release: str, suffix: str
) -> None:
    application = [str(program(tmp_path / "app", ""))]
    (folder := tmp_path / "out").mkdir()
    ncu = examine_ncu(stand_in_ncu(tmp_path / "ncu", release=release, report=report, suffix=suffix))
    found = collect_by_ncu(application, folder, NcuOptions(), ncu=ncu)
    assert found.report.read_bytes() == b"a report"
    assert found.report.name == "report.ncu-rep" + suffix


def test_a_refusal_of_the_counters_is_told_from_every_other_one(tmp_path: Path) -> None:
    application = [str(program(tmp_path / "app", ""))]
    ncu = examine_ncu(stand_in_ncu(tmp_path / "ncu", refuses_counters=stand_in.PERMISSION))
    with pytest.raises(CounterPermissionError, match="gpadvisor doctor"):
        collect_by_ncu(application, tmp_path, NcuOptions(), ncu=ncu)
    busy = examine_ncu(stand_in_ncu(tmp_path / "busy", errors=(stand_in.BUSY,), launches=0))
    with pytest.raises(ToolFailedError, match="dcgmi profile --pause") as caught:
        collect_by_ncu(application, tmp_path, NcuOptions(), ncu=busy)
    assert not isinstance(caught.value, CounterPermissionError)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (stand_in.PERMISSION, "permission"),
        ("The user does not have permission to profile on the target device.", "permission"),
        (stand_in.BUSY, "busy"),
        (stand_in.CLOCKS, "clocks"),
        ("Profiling is not supported on this device", "unsupported"),
        ("Cuda driver is not compatible with Nsight Compute", "driver"),
    ],
)
def test_known_refusals(text: str, name: str) -> None:
    log = Log()
    log.take([f"==ERROR== {text}", "==WARNING== No kernels were profiled."])
    known = refusal(log)
    assert known is not None
    assert known.name == name


def test_an_unknown_error_is_quoted(tmp_path: Path) -> None:
    ncu = examine_ncu(stand_in_ncu(tmp_path / "ncu", errors=("Something new happened.",)))
    with pytest.raises(ToolFailedError, match="Something new happened"):
        collect_by_ncu([str(program(tmp_path / "app", ""))], tmp_path, NcuOptions(), ncu=ncu)


def test_an_application_that_crashes_leaves_its_report(tmp_path: Path, report: Path) -> None:
    crash = program(tmp_path / "app", "os.kill(os.getpid(), signal.SIGSEGV)")
    ncu = examine_ncu(stand_in_ncu(tmp_path / "ncu", report=report))
    found = collect_by_ncu([str(crash)], tmp_path, NcuOptions(), ncu=ncu)
    assert "the application ended with status 11" in found.notes


def test_a_cancelled_run_keeps_its_report_and_leaves_no_process(tmp_path: Path, report: Path) -> None:
    pid_file = tmp_path / "pid"
    application = program(
        tmp_path / "app",
        "signal.signal(signal.SIGINT, lambda *_: sys.exit(0))\n"
        f"open({str(pid_file)!r} + '.new', 'w').write(str(os.getpid()))\n"
        f"os.rename({str(pid_file)!r} + '.new', {str(pid_file)!r})\ntime.sleep(600)",
    )
    ncu = examine_ncu(stand_in_ncu(tmp_path / "ncu", report=report))
    found = collect_by_ncu(
        [str(application)], tmp_path, NcuOptions(), ncu=ncu, cancelled=lambda: pid_file.exists()
    )
    assert found.ending is Ending.CANCELLED
    assert any("until then" in note for note in found.notes)
    assert not Path(f"/proc/{pid_file.read_text()}").exists()


def test_a_time_limit_stops_an_application_that_ignores_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = tmp_path / "ready"
    application = program(
        tmp_path / "app",
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"open({str(ready)!r}, 'w')\ntime.sleep(600)",
    )
    leap(monkeypatch, ready.exists)
    ended = run_application([str(application)], timeout_seconds=1000, grace_seconds=0.3)
    assert ended.ending is Ending.TIMED_OUT
    assert ended.status == -9


def test_options_are_checked() -> None:
    with pytest.raises(UsageError, match="outside 0 to 31"):
        NcuOptions(interval=32)
    with pytest.raises(UsageError, match="at least one"):
        NcuOptions(launch_count=0)
    with pytest.raises(UsageError, match="exclude each other"):
        NcuOptions(samples_only=True, counts_only=True)


def test_the_command_line_that_ran_is_recorded_as_it_was(tmp_path: Path, report: Path) -> None:
    record = tmp_path / "record"
    ncu = examine_ncu(stand_in_ncu(tmp_path / "ncu", report=report, record=record))
    application = [str(program(tmp_path / "app", "")), "a b", "--flag", "$HOME;`x`"]
    found = collect_by_ncu(application, tmp_path, NcuOptions(), ncu=ncu)
    assert ast.literal_eval(record.read_text()) == list(found.command[1:])
    assert found.command[-3:] == ("a b", "--flag", "$HOME;`x`")


@given(st.lists(st.text(max_size=80), max_size=20))
def test_any_log_is_read(lines: list[str]) -> None:
    log = Log()
    log.take(lines)
    refusal(log)
