# SPDX-License-Identifier: Apache-2.0
"""A pull request's life: baseline, a change that a gate stops, the fix; and files that are damaged."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.kernels import FOLDER, compile_kernel
from tests.ncu_writer import write_report
from tests.sampled import sampled_launch, twice

from gpadvisor.cli import main

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.usefixtures("reads_here")]
BASELINE = ".gpadvisor-baseline.jsonl"
SHARED = sorted(Path(os.environ.get("GPADVISOR_REPORTS", "/nonexistent")).glob("*.ncu-rep"))[:3]
FIXTURES = sorted(folder.name for folder in FOLDER.iterdir() if folder.is_dir())[:4]


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPADVISOR_CACHE", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report([sampled_launch("thermal_stencil")]))
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_baseline_gate_and_fix(capsys: pytest.CaptureFixture[str], report: Path) -> None:
    advise = ("advise", report, "--baseline", BASELINE)
    assert run(capsys, *advise)[0] == 3  # not there yet
    code, told, err = run(capsys, *advise, "--update-baseline")
    assert code == 0
    assert "0 known, 0 fixed" in err
    whole = Path(BASELINE).read_text(encoding="utf-8")
    assert str(report.parent) not in whole
    # Nothing is new, and a warm answer says the same as a fresh one.
    for options in ((), ("--no-cache",)):
        code, out, err = run(capsys, *advise, "--fail-on", "new", *options)
        assert (code, out) == (0, told)
        assert "0 new" in err
    # Advice that the baseline lacks stops the change, where it is worth as much as the gate says.
    rows = [json.loads(line) for line in whole.splitlines()]
    (gone, *_) = [row for row in rows if "rule" in row]
    Path(BASELINE).write_text("".join(json.dumps(row) + "\n" for row in rows if row is not gone))
    code, _, err = run(capsys, *advise, "--fail-on", "new")
    assert code == 1
    assert f"new: {gone['rule']} in {gone['kernel']}" in err
    assert run(capsys, *advise, "--fail-on", "new:1000")[0] == 0
    # What is in the baseline alone was fixed, and an update forgets it.
    Path(BASELINE).write_text(whole + json.dumps({**gone, "rule": "GPA999", "fingerprint": "0"}) + "\n")
    code, _, err = run(capsys, *advise, "--fail-on", "new", "--update-baseline")
    assert code == 2
    code, _, err = run(capsys, *advise, "--update-baseline")
    assert (code, "1 fixed" in err, "fixed: GPA999" in err) == (0, True, True)
    assert Path(BASELINE).read_text(encoding="utf-8") == whole


def test_another_device_is_inconclusive_which_fails(capsys: pytest.CaptureFixture[str], report: Path) -> None:
    advise = ("advise", report, "--baseline", BASELINE)
    run(capsys, *advise, "--update-baseline")
    whole = Path(BASELINE).read_text(encoding="utf-8")
    rows = [json.loads(line) for line in whole.splitlines()]
    other = [{**row, "device": "sm_999"} if "device" in row else row for row in rows]
    Path(BASELINE).write_text("".join(json.dumps(row) + "\n" for row in other))
    code, _, err = run(capsys, *advise, "--fail-on", "new:1000")
    assert code == 1
    assert "not comparable" in err
    assert "0 new" in err


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe", b"{}", b'{"gpadvisor-baseline": 1}\n{"rule":'])
def test_a_damaged_baseline_is_an_error_and_stays(
    capsys: pytest.CaptureFixture[str], report: Path, damage: bytes
) -> None:
    Path(BASELINE).write_bytes(damage)
    code, _, err = run(capsys, "advise", report, "--baseline", BASELINE, "--update-baseline")
    assert (code, BASELINE in err, "Traceback" in err) == (3, True, False)
    assert Path(BASELINE).read_bytes() == damage


@pytest.mark.parametrize("options", [["--fail-on", "new"], ["--update-baseline"], ["--fail-on", "new:0"]])
def test_options_that_need_a_baseline(
    capsys: pytest.CaptureFixture[str], report: Path, options: list[str]
) -> None:
    assert run(capsys, "advise", report, *options)[0] == 2


def test_spills_stop_a_change_without_a_gpu(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for which in ("before", "after"):
        (tmp_path / f"{which}.cubin").write_bytes(compile_kernel("spill_sgemm", which))
    spilling, fixed = tmp_path / "before.cubin", tmp_path / "after.cubin"
    gates = ("--gate", "spills=0", "--gate", "findings=0")
    code, out, _ = run(capsys, "compare", spilling, fixed, *gates, "--format", "json")
    gate = json.loads(out)["gate"]
    assert (code, gate["verdict"]) == (0, "pass")
    assert gate["checks"][0]["before"] > gate["checks"][0]["after"] == 0
    code, out, err = run(capsys, "compare", fixed, spilling, *gates, "--format", "junit")
    assert (code, "the gate says fail" in err) == (1, True)
    assert ET.fromstring(out)[0].get("failures") == "2"
    # Nobody measured a time.
    code, out, _ = run(capsys, "compare", spilling, spilling, "--gate", "5%")
    assert (code, "Gate: inconclusive" in out) == (1, True)
    assert run(capsys, "compare", spilling, fixed, "--format", "junit")[0] == 2
    assert run(capsys, "compare", spilling, fixed, "--gate", "spills=lots")[0] == 2


def test_times_of_several_launches_decide(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    launch = sampled_launch("thermal_stencil")
    for name, durations in (("a", (1e6, 1.01e6, 0.99e6)), ("b", (1.3e6, 1.31e6, 1.29e6))):
        launches = [twice(launch, duration) for duration in durations]
        (tmp_path / f"{name}.ncu-rep").write_bytes(write_report(launches))
    fast, slow = tmp_path / "a.ncu-rep", tmp_path / "b.ncu-rep"
    gates = ("--gate", "5%", "--gate", "insts=0")
    assert run(capsys, "compare", fast, fast, *gates)[0] == 0
    assert run(capsys, "compare", slow, fast, *gates)[0] == 0
    code, out, _ = run(capsys, "compare", fast, slow, *gates, "--format", "markdown")
    assert code == 1
    assert "**gpadvisor: fail**" in out
    assert "+30.0 +-" in out


def nothing_is_new(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    """A baseline of an input meets the gate on what is new, and two runs that are one those on counters."""
    known = ("advise", path, "--baseline", BASELINE)
    assert run(capsys, *known, "--update-baseline")[0] == 0
    code, _, err = run(capsys, *known, "--fail-on", "new")
    assert code == 0, err
    assert "0 new" in err
    text = Path(BASELINE).read_text(encoding="utf-8")
    assert str(path.parent) not in text
    assert not {"line", "path", "samples"} & {key for row in text.splitlines() for key in json.loads(row)}
    # One launch says nothing of the noise of its time; all else is the same.
    limits = ("5%", "findings=0", "registers=0", "spills=0", "shared=0")
    gates = [word for limit in limits for word in ("--gate", limit)]
    code, out, err = run(capsys, "compare", path, path, *gates, "--format", "json")
    assert code == 1, err
    checks = json.loads(out)["gate"]["checks"]
    assert {check["limit"] for check in checks} == set(limits)
    for check in checks:
        assert check["outcome"] == ("inconclusive" if check["limit"] == "5%" else "pass"), check


@pytest.mark.reports
@pytest.mark.parametrize("path", SHARED, ids=lambda path: path.stem)
def test_real_reports(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    nothing_is_new(capsys, path)


@pytest.mark.parametrize("name", FIXTURES)
def test_fixtures(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    cubin = tmp_path / "before.cubin"
    cubin.write_bytes(compile_kernel(name, "before"))
    nothing_is_new(capsys, cubin)
