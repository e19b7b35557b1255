# SPDX-License-Identifier: Apache-2.0
"""The command line as its users call it: every command, every format, every exit code."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from tests.kernels import FOLDER, compile_kernel
from tests.ncu_writer import LaunchSpec, write_report
from tests.sampled import sampled_launch, twice
from tests.schemas import published_schema

from gpadvisor.cli import COMMANDS, main

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm]


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPADVISOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GPADVISOR_DEBUG", raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture(scope="module")
def launch() -> LaunchSpec:
    return sampled_launch("thermal_stencil")


@pytest.fixture
def report(tmp_path: Path, launch: LaunchSpec) -> Path:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report([launch]))
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0
    for name in COMMANDS:
        assert re.search(rf"^  (\w+, )*{name}[ ,]", out, re.MULTILINE)
        code, page, _ = run(capsys, name, "--help")
        assert code == 0
        assert "usage:" in page


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["advise"], ["advise", "x", "--format", "pdf"], ["advise", "x", "--kernel", "("], []],
)
def test_wrong_usage_is_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert run(capsys, *arguments)[0] == 2


def test_json_validates_and_nothing_is_lost(
    capsys: pytest.CaptureFixture[str], report: Path, launch: LaunchSpec
) -> None:
    code, out, err = run(capsys, "advise", report, "--format", "json")
    assert (code, err) == (0, "")
    advice = json.loads(out)
    jsonschema.Draft202012Validator(published_schema("report", "advice")).validate(advice)
    (kernel,) = advice["kernels"]
    total = sum(samples for samples, _ in launch.samples.values())
    latency = sum(samples for _, samples in launch.samples.values())
    summary = kernel["samples"]
    assert summary["total"] == total
    assert summary["latency"] == latency
    assert summary["blamed"] + summary["self"] + summary["unattributed"] == total
    for stall in kernel["stalls"]:
        assert stall["blamed"] + stall["self"] + stall["unattributed"] == stall["samples"]
    assert kernel["evidence"] == "measured"
    assert kernel["suggestions"]


@pytest.mark.parametrize("shown", ["text", "markdown", "sarif", "json"])
def test_warm_is_what_cold_was(capsys: pytest.CaptureFixture[str], report: Path, shown: str) -> None:
    cold = run(capsys, "advise", report, "--format", shown)
    warm = run(capsys, "advise", report, "--format", shown)
    off = run(capsys, "advise", report, "--format", shown, "--no-cache")
    assert cold == warm == off
    assert cold[0] == 0


def test_a_source_that_changes_makes_a_new_answer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, report: Path
) -> None:
    first = run(capsys, "advise", report, "--format", "json")[1]
    local = tmp_path / "work" / "fixtures" / "kernels" / "thermal_stencil" / "before.cu"
    local.parent.mkdir(parents=True)
    local.write_text((FOLDER / "thermal_stencil" / "before.cu").read_text())
    second = run(capsys, "advise", report, "--format", "json")[1]
    assert first != second
    assert any(match["method"] == "content hash" for match in json.loads(second)["sources"])


def test_suppression_is_honoured_by_every_format(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, report: Path
) -> None:
    advice = json.loads(run(capsys, "advise", report, "--format", "json")[1])
    suggestion = next(
        entry for entry in advice["kernels"][0]["suggestions"] if entry["hotspots"] and entry["scope"]["line"]
    )
    code = suggestion["code"]
    assert run(capsys, "advise", report, "--fail-on", code)[0] == 1
    lines = (FOLDER / "thermal_stencil" / "before.cu").read_text().splitlines()
    lines[suggestion["scope"]["line"] - 1] += f"  // gpadvisor: ignore[{code}] measured, no gain"
    lines.append("// gpadvisor: ignore[GPA301] nobody needs this")
    lines.append("static const int nothing_here = 0;")
    local = tmp_path / "work" / "thermal_stencil" / "before.cu"
    local.parent.mkdir()
    local.write_text("\n".join(lines) + "\n")
    code_, out, _ = run(capsys, "advise", report, "--fail-on", code, "--details")
    assert code_ == 0
    assert "measured, no gain" in out
    assert "measured, no gain" in run(capsys, "advise", report, "--format", "markdown")[1]
    sarif = json.loads(run(capsys, "advise", report, "--format", "sarif")[1])
    results = [entry for entry in sarif["runs"][0]["results"] if entry["ruleId"] == code]
    assert results
    assert all(entry["suppressions"][0]["justification"] == "measured, no gain" for entry in results)
    value = json.loads(run(capsys, "advise", report, "--format", "json")[1])
    found = [entry for entry in value["kernels"][0]["suggestions"] if entry["code"] == code]
    assert all(entry["suppressed"] for entry in found)


def test_fail_on_speedup(capsys: pytest.CaptureFixture[str], report: Path) -> None:
    assert run(capsys, "advise", report, "--fail-on", "1.0001")[0] == 1
    code, _, err = run(capsys, "advise", report, "--fail-on", "1000x")
    assert (code, err) == (0, "")


def test_a_gate_on_code_that_nobody_could_read_is_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPADVISOR_NVDISASM", str(tmp_path / "absent"))
    code, out, err = run(capsys, "advise", report, "--fail-on", "GPA101", "--no-cache", "--details")
    assert code == 4
    assert "cannot be read" in out
    assert "--fail-on cannot be decided" in err
    assert run(capsys, "advise", report, "--no-cache")[0] == 0


def test_without_a_command_it_names_the_next_step(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys)
    assert code == 2
    assert out.splitlines()[2].startswith("Next: gpadvisor profile -- ./app")
    assert max(map(len, out.splitlines())) <= 80
    (tmp_path / "old one.ncu-rep").write_bytes(b"")
    os.utime(tmp_path / "old one.ncu-rep", (1, 1))
    assert run(capsys)[1].splitlines()[2] == "Next: gpadvisor advise 'old one.ncu-rep'"
    (tmp_path / "new.gpadvisor").write_bytes(b"")
    last = run(capsys)[1].splitlines()
    assert last[2] == "Next: gpadvisor advise new.gpadvisor (the newest of 2 profiles here)"
    assert len(last) < 10


def test_why_shows_the_estimate_that_the_screen_numbers(
    capsys: pytest.CaptureFixture[str], report: Path
) -> None:
    code, screen, _ = run(capsys, "advise", report)
    assert code == 0
    assert len(screen.splitlines()) <= 40
    code, text, _ = run(capsys, "why", report, "1")
    assert code == 0
    rule = re.search(r"\((GPA\d{3})\)", screen)
    assert rule is not None
    assert rule[1] in text.splitlines()[0]
    assert "How the numbers came about" in text
    assert run(capsys, "advise", report, "--why", "1")[1] == text
    code, _, err = run(capsys, "why", report, "77")
    assert code == 2
    assert "has no suggestion 77" in err


def test_a_gate_that_could_never_close_is_refused(capsys: pytest.CaptureFixture[str], report: Path) -> None:
    code, out, err = run(capsys, "advise", report, "--fail-on", "GPA999")
    assert (code, out) == (2, "")
    assert "no rule is called 'GPA999'; " in err
    assert "'gpadvisor rules' lists them all" in err


def test_snapshot_says_the_same_without_any_disassembler(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, report: Path
) -> None:
    snapshot = tmp_path / "run.gpadvisor"
    code, out, _ = run(capsys, "import", report, "-o", snapshot)
    assert code == 0
    assert "1 launch," in out
    direct = json.loads(run(capsys, "advise", report, "--format", "json", "--no-cache")[1])
    without_tools = {key: value for key, value in os.environ.items() if key != "PATH"} | {
        "GPADVISOR_NVDISASM": "/nonexistent/nvdisasm",
        "GPADVISOR_CUOBJDUMP": "/nonexistent/cuobjdump",
        "PATH": "/nonexistent",
    }
    command = [sys.executable, "-m", "gpadvisor", "advise", str(snapshot), "--format", "json", "--no-cache"]
    done = subprocess.run(command, env=without_tools, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kernels"] == direct["kernels"]


def test_export_writes_every_member(capsys: pytest.CaptureFixture[str], tmp_path: Path, report: Path) -> None:
    snapshot, folder = tmp_path / "run.gpadvisor", tmp_path / "out"
    assert run(capsys, "import", report, "-o", snapshot)[0] == 0
    code, out, _ = run(capsys, "export", snapshot, folder)
    assert code == 0
    for line in out.splitlines():
        assert Path(line).is_file()
    names = {path.name for path in folder.rglob("*") if path.is_file()}
    assert {"manifest.json", "samples.parquet", "launches.parquet"} <= names


def test_a_report_given_to_export_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, report: Path
) -> None:
    code, _, err = run(capsys, "export", report, tmp_path / "out")
    assert code == 3
    assert "is a report, not a snapshot; 'gpadvisor import" in err
    assert not (tmp_path / "out").exists()


def test_redacted_snapshot_names_nobody(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, report: Path
) -> None:
    snapshot = tmp_path / "run.gpadvisor"
    assert run(capsys, "import", report, "-o", snapshot, "--redact")[0] == 0
    out = run(capsys, "advise", snapshot, "--format", "json")[1]
    assert "/src/fixtures" not in out
    assert "testhost" not in out


def test_blame_adds_up_in_every_format(
    capsys: pytest.CaptureFixture[str], report: Path, launch: LaunchSpec
) -> None:
    total = sum(samples for samples, _ in launch.samples.values())
    code, out, _ = run(capsys, "blame", report, "--format", "json")
    assert code == 0
    rows = json.loads(out)["kernels"][0]["rows"]
    assert sum(row["samples"] for row in rows) == total
    assert {"blamed", "self"} <= {row["role"] for row in rows}
    table = list(csv.DictReader(io.StringIO(run(capsys, "blame", report, "--format", "csv")[1])))
    assert sum(int(row["samples"]) for row in table) == total
    code, text, _ = run(capsys, "blame", report, "--rules", "gpa2021")
    assert code == 0
    assert f"{total:,} samples" in text


def test_a_roofline_in_every_format(capsys: pytest.CaptureFixture[str], tmp_path: Path, report: Path) -> None:
    code, out, _ = run(capsys, "roofline", report, "--format", "json")
    assert code == 0
    document = json.loads(out)
    jsonschema.Draft202012Validator(published_schema("views.roofline", "roofline")).validate(document)
    outermost = [one for one in document["kernels"][0]["regions"] if one["depth"] <= 1]
    executed = sum(one["instructions"] for one in outermost)
    assert executed == pytest.approx(document["kernels"][0]["instructions"]["value"])
    table = list(csv.DictReader(io.StringIO(run(capsys, "roofline", report, "--format", "csv")[1])))
    assert sum(row["row"] == "loop" for row in table) == len(document["kernels"][0]["regions"])
    picture = tmp_path / "a.svg"
    assert run(capsys, "roofline", report, "--format", "svg", "-o", picture)[0] == 0
    assert picture.read_text(encoding="utf-8").endswith("</svg>\n")
    code, text, _ = run(capsys, "roofline", report, "--region", "line")
    assert code == 0
    assert "GIPS" in text


@pytest.mark.parametrize("view", ["roofline", "potential"])
def test_a_view_takes_a_run(view: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source = tmp_path / "a.cu"
    source.write_text("__global__ void k() {}", encoding="utf-8")
    code, _, err = run(capsys, view, source)
    assert code == 3, "an input that cannot be used"
    assert "a.cu has no run; give a report or a snapshot" in err


def test_compare_shows_predicted_beside_achieved(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, report: Path, launch: LaunchSpec
) -> None:
    slower = tmp_path / "slower.ncu-rep"
    slower.write_bytes(write_report([twice(launch, 2e6)]))
    code, out, _ = run(capsys, "compare", report, slower)
    assert code == 0
    assert "0.50x (slower, measured)" in out
    assert "1.00x (as fast, measured)" in run(capsys, "compare", report, report)[1]
    value = json.loads(run(capsys, "compare", slower, report, "--format", "json")[1])
    assert value["kernels"][0]["achieved"] == pytest.approx(2.0)
    assert value["kernels"][0]["predictions"]
    assert value["kernels"][0]["lines"]


def test_launches_are_listed_chosen_and_merged(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, launch: LaunchSpec
) -> None:
    path = tmp_path / "three.ncu-rep"
    path.write_bytes(write_report([launch, twice(launch, 3e6), launch]))
    value = json.loads(run(capsys, "advise", path, "--format", "json")[1])
    (kernel,) = value["kernels"]
    assert kernel["launch"]["index"] == 1
    assert len(value["launches"]) == 3
    picked = json.loads(run(capsys, "advise", path, "--launch", "2", "--format", "json")[1])
    assert picked["kernels"][0]["launch"]["index"] == 2
    merged = json.loads(run(capsys, "advise", path, "--merge", "--format", "json")[1])
    assert merged["kernels"][0]["samples"]["total"] == 3 * kernel["samples"]["total"]
    code, _, err = run(capsys, "advise", path, "--launch", "9")
    assert code == 3
    assert "launches are 0 to 2" in err
    code, _, err = run(capsys, "advise", path, "--kernel", "absent")
    assert code == 3
    assert "thermal_stencil" in err


def test_a_cubin_and_a_source_get_static_findings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(compile_kernel("thermal_stencil", "before", "sm_80"))
    code, out, _ = run(capsys, "advise", cubin)
    assert code == 0
    assert "GPA102" in out
    source = tmp_path / "kernel.cu"
    source.write_text((FOLDER / "thermal_stencil" / "before.cu").read_text())
    code, out, _ = run(capsys, "advise", source, "--format", "json", "--arch", "sm_86")
    assert code == 0
    (kernel,) = json.loads(out)["kernels"]
    assert kernel["evidence"] == "static"
    assert all(entry["speedup"] is None for entry in kernel["suggestions"])
    assert kernel["device"]["arch"] == "sm_86"


LAUNCH = ("--grid", "8,8", "--block", "32,8", "--arch", "sm_80")


def test_a_modelled_profile_says_so_and_is_repeatable(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source = FOLDER / "thermal_stencil" / "before.cu"
    first, second = tmp_path / "a.gpadvisor", tmp_path / "b.gpadvisor"
    code, out, _ = run(capsys, "simulate", source, *LAUNCH, "--loop", "14=64", "-o", first)
    assert code == 0
    assert "assumptions" in out
    assert run(capsys, "simulate", source, *LAUNCH, "--loop", "14=64", "-o", second)[0] == 0
    assert first.read_bytes() == second.read_bytes()
    (kernel,) = json.loads(run(capsys, "advise", first, "--format", "json")[1])["kernels"]
    assert kernel["evidence"] == "modelled"
    assert kernel["samples"]["total"] > 0
    summary = kernel["samples"]
    assert summary["blamed"] + summary["self"] + summary["unattributed"] == summary["total"]
    direct = run(capsys, "advise", source, "--model", *LAUNCH, "--loop", "14=64", "--format", "json")
    assert direct[0] == 0
    (modelled,) = json.loads(direct[1])["kernels"]
    assert modelled["stalls"] == kernel["stalls"]
    assert "modelled" in run(capsys, "advise", source, "--model", *LAUNCH)[1]


def test_a_launch_may_stand_in_the_settings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source = FOLDER / "thermal_stencil" / "before.cu"
    code, _, err = run(capsys, "advise", source, "--model")
    assert (code, "--grid and --block" in err) == (2, True)
    (tmp_path / "work" / "gpadvisor.toml").write_text(
        "[launches.thermal_stencil]\ngrid = [8, 8]\nblock = [32, 8]\nloops = { 14 = 64 }\n"
    )
    code, out, _ = run(capsys, "advise", source, "--model", "--format", "json", "--arch", "sm_80")
    assert code == 0
    assert json.loads(out)["kernels"][0]["launch"]["grid"] == [8, 8, 1]
    code, _, err = run(capsys, "advise", source, "--model", "--block", "1024,8", "--arch", "sm_80")
    assert code == 2
    assert "Traceback" not in err


def test_explain_and_rules(capsys: pytest.CaptureFixture[str]) -> None:
    code, listed, _ = run(capsys, "rules")
    assert code == 0
    for line in listed.splitlines():
        code, page, _ = run(capsys, "explain", line[:6])
        assert code == 0
        assert page.startswith(f"# {line[:6]} ")
    assert run(capsys, "explain", "strength-reduction")[0] == 0
    code, _, err = run(capsys, "explain", "GPA999")
    assert code == 2
    assert "gpadvisor rules" in err


BAD = {
    "empty.ncu-rep": b"",
    "text.ncu-rep": b"this is no report\n" * 20,
    "short.ncu-rep": b"NVR\0\x08\0\0\0",
    "page.cubin": b"\x7fELF" + bytes(100),
    "page.gpadvisor": b"PK\x03\x04" + bytes(100),
    "bomb.ncu-repz": b"\x28\xb5\x2f\xfd" + bytes(100),
    "broken.cu": b"__global__ void k( { this is not CUDA",
    "template.cu": b"template <class T> __global__ void k(T *out) { *out = 1; }",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(BAD[name])
    code, out, err = run(capsys, "advise", path)
    assert code == 3
    assert out == ""
    assert err.startswith("gpadvisor: error: ")
    assert "Traceback" not in err
    assert "internal error" not in err
    if not name.endswith(".cu"):  # a compiler says a line for each of its errors
        assert len(err.strip().splitlines()) == 1


def test_missing_file_and_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = run(capsys, "advise", tmp_path / "absent.ncu-rep")
    assert (code, "absent.ncu-rep does not exist" in err) == (3, True)
    code, _, err = run(capsys, "advise", tmp_path)
    assert (code, "is a folder" in err) == (2, True)


def test_truncated_report_leaves_no_output(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, report: Path
) -> None:
    damaged = tmp_path / "cut.ncu-rep"
    damaged.write_bytes(report.read_bytes()[:-200])
    target = tmp_path / "advice.json"
    code, _, err = run(capsys, "advise", damaged, "--format", "json", "-o", target)
    assert code == 3
    assert "cut.ncu-rep" in err
    assert not target.exists()
    assert not (tmp_path / "cut.gpadvisor").exists()


def test_output_file_and_unwritable_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, report: Path
) -> None:
    target = tmp_path / "advice.json"
    assert run(capsys, "advise", report, "--format", "json", "-o", target)[0] == 0
    json.loads(target.read_text())
    code, _, err = run(capsys, "advise", report, "-o", tmp_path / "absent" / "advice.txt")
    assert code == 3
    assert "absent" in err


def test_a_report_without_samples_says_how_to_get_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, launch: LaunchSpec
) -> None:
    from dataclasses import replace

    path = tmp_path / "counted.ncu-rep"
    path.write_bytes(write_report([replace(launch, samples={}, reasons=())]))
    value = json.loads(run(capsys, "advise", path, "--format", "json")[1])
    assert value["kernels"][0]["evidence"] == "counted"
    path.write_bytes(write_report([replace(launch, samples={}, reasons=(), counts={})]))
    code, out, _ = run(capsys, "advise", path, "--details")
    assert code == 0
    assert "ncu --set full" in " ".join(out.split())


def test_no_tool_is_4(tmp_path: Path) -> None:
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(compile_kernel("thermal_stencil", "before", "sm_80"))
    script = "import sys, gpadvisor.toolchain.discovery as d; d.candidates = lambda *a, **k: (); "
    script += "d.find_tools = lambda *a, **k: (); import gpadvisor.toolchain.disassembly as s; "
    script += (
        "s.find_tools = lambda *a, **k: (); from gpadvisor.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "advise", str(cubin), "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    assert "nvdisasm" in done.stderr
