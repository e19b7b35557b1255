# SPDX-License-Identifier: Apache-2.0
"""Predictions and what came of them: two runs of a kernel, before and after the change that was advised."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.kernels import COMPILED_AS, KERNELS, compile_text
from tests.ncu_writer import LaunchSpec, write_report
from tests.sampled import sampled, sampled_launch

from gpadvisor.cli import main

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.usefixtures("reads_here")]
LEDGER = Path(".gpadvisor-ledger.jsonl")


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPADVISOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def run_of(which: str, duration_ns: float, name: str) -> Path:
    """A report of the kernel whose source has one name in both runs."""
    launch = sampled_launch("thermal_stencil", which)
    path = Path(name)
    path.write_bytes(write_report([timed(launch, duration_ns)]))
    return path


def timed(launch: LaunchSpec, duration_ns: float) -> LaunchSpec:
    return replace(launch, duration_ns=duration_ns)


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in LEDGER.read_text().splitlines()[1:]]


def test_a_prediction_and_its_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = run_of("before", 1_300_000, "a.ncu-rep"), run_of("after", 1_000_000, "b.ncu-rep")
    words = ["compare", str(before), str(after)]
    assert main(words) == 0
    assert not LEDGER.exists()  # nobody asked for it
    assert main([*words, "--ledger"]) == 0
    assert "nothing to write" in capsys.readouterr().err  # the two sources have two names
    assert not LEDGER.exists()
    assert main([*words, "--ledger", "--applied", "GPA102"]) == 0
    (one,) = rows()
    assert (one["rule"], one["known_by"], one["achieved"], one["beside"]) == ("GPA102", "said", 1.3, 0)
    assert one["low"] <= one["expected"] <= one["high"]
    assert one["device"]
    assert str(Path.cwd()) not in LEDGER.read_text()
    assert main([*words, "--ledger", "--applied", one["fingerprint"][:12]]) == 0
    assert "already" in capsys.readouterr().err
    assert rows() == [one]
    assert main(["ledger"]) == 0
    out = capsys.readouterr().out
    assert "GPA102     1" in out
    assert "of 1 outcomes lie in the range" in out
    assert main(["ledger", "--export"]) == 0
    shared = capsys.readouterr().out
    assert one["kernel"] not in shared
    assert one["fingerprint"] not in shared
    assert json.loads(shared)["achieved"] == 1.3
    assert main(["ledger", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["rules"][0]["pairs"] == 1


def test_lines_that_the_change_touched(capsys: pytest.CaptureFixture[str]) -> None:
    kernel, name = KERNELS["thermal_stencil"], f"{COMPILED_AS}/stencil.cu"
    old, new = (
        sampled(
            compile_text(text := kernel.source(which).read_text(), name),
            kernel.entry,
            seed="one",
            demangled=f"{kernel.entry}(float *)",
            grid=kernel.launch.grid,
            block=kernel.launch.block,
            sources={name: text},
        )
        for which in ("before", "after")
    )
    Path("a.ncu-rep").write_bytes(write_report([timed(old, 1_300_000)]))
    Path("b.ncu-rep").write_bytes(write_report([timed(new, 1_000_000)]))
    Path("c.ncu-rep").write_bytes(write_report([timed(old, 1_290_000)]))
    assert main(["compare", "a.ncu-rep", "c.ncu-rep", "--ledger"]) == 0
    assert not LEDGER.exists()  # nothing was changed
    capsys.readouterr()
    assert main(["compare", "a.ncu-rep", "b.ncu-rep", "--ledger", "--format", "json"]) == 0
    (one,) = rows()
    assert (one["rule"], one["known_by"]) == ("GPA102", "lines")
    json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "a", "b", "--applied", "GPA102"],
        ["compare", "a", "b", "--ledger", "--format", "html"],
        ["ledger"],
    ],
)
def test_what_cannot_be_asked(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_another_file_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = run_of("before", 1_300_000, "a.ncu-rep"), run_of("after", 1_000_000, "b.ncu-rep")
    Path("notes.md").write_text("mine\n")
    words = ["compare", str(before), str(after), "--ledger", "notes.md", "--applied", "GPA102"]
    assert main(words) == 3
    assert Path("notes.md").read_text() == "mine\n"
    assert "notes.md is no ledger" in capsys.readouterr().err
