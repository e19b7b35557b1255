# SPDX-License-Identifier: Apache-2.0
"""Databases of HPCToolkit through the commands: imported, advised on, shown as contexts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from tests.hpctoolkit_writer import INSTRUCTION, LEXICAL, LINE, Node, write_database
from tests.kernels import compile_kernel
from tests.public_databases import needs_mirrors, of_vendor, public

from gpadvisor.cli import main
from gpadvisor.cubin import read_cubin
from gpadvisor.cubin.elf import ElfImage

PERIOD = 1024.0
CUBIN = compile_kernel("thermal_stencil")
GPUBIN = f"{hashlib.md5(CUBIN, usedforsecurity=False).hexdigest()}.gpubin"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Every instruction of a kernel waits for an earlier one, in main() of app.cu, line 3."""
    (tmp_path / "gpubins").mkdir()
    (tmp_path / "gpubins" / GPUBIN).write_bytes(CUBIN)
    section = read_cubin(CUBIN).sections[0]
    start = next(h.offset for h in ElfImage(CUBIN).sections if h.name == f".text.{section.name}")
    instructions = [
        Node(
            10 + index,
            point=(GPUBIN, start + 16 * index),
            relation=LEXICAL,
            lexical=INSTRUCTION,
            values={(1, "GINS"): 8 * PERIOD, (1, "GINS:STL_IDEP"): 5 * PERIOD},
        )
        for index in range(section.instruction_count)
    ]
    launched = {(1, "GKER (sec)"): 0.25, (1, "GKER:COUNT"): 1.0, (1, "GSAMP:PER (cyc)"): PERIOD}
    kernel = Node(5, function=("stencil", GPUBIN, start), children=instructions, values=launched)
    launch = Node(4, function=("<gpu kernel>", "", 0), children=[kernel])
    line = Node(3, line=("app.cu", 3), relation=LEXICAL, lexical=LINE, children=[launch])
    return write_database(
        tmp_path / "app-database",
        [Node(1, children=[Node(2, function=("main", "/bin/app", 0), children=[line])])],
    )


def test_import_refines_reasons_and_keeps_samples(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "run.gpadvisor"
    assert main(["import", str(database), "--gpubins", str(tmp_path), "-o", str(target)]) == 0
    count = read_cubin(CUBIN).sections[0].instruction_count
    assert f"{8 * count:,} samples" in capsys.readouterr().out
    assert main(["advise", str(target), "--format", "json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    stalls = {row["reason"]: row["samples"] for row in kernel["stalls"]}
    assert sum(stalls.values()) == 8 * count
    assert stalls["not_recorded"] == 3 * count
    assert stalls["wait"] + stalls.get("execution_dependency", 0) == 5 * count
    assert stalls["wait"] > 0
    assert kernel["limited_by"] != "not_recorded"


def test_a_database_and_its_binaries_belong_together(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(database), "-o", str(tmp_path / "x.gpadvisor")]) == 2
    assert "--gpubins" in capsys.readouterr().err
    assert main(["advise", str(database)]) == 3
    assert "gpadvisor import app-database --gpubins" in capsys.readouterr().err
    assert main(["import", str(tmp_path / "gpubins" / GPUBIN), "--gpubins", str(tmp_path)]) == 2
    assert "is for databases of HPCToolkit" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.gpadvisor"))


def test_contexts_are_shown_as_they_were_measured(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tree", str(database), "--format", "folded"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "all;main thread;main;app.cu:3;gpu kernel;stencil 250000000"
    ]
    assert main(["tree", str(database), "--metric", "GINS", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    total = 8 * PERIOD * read_cubin(CUBIN).sections[0].instruction_count
    assert [(row["kind"], row["inclusive"]) for row in rows] == [
        (kind, [total]) for kind in ("run", "function", "function", "line", "function", "kernel")
    ]
    assert main(["tree", str(database), "--metric", "nothing"]) == 2
    assert "there is no column nothing" in capsys.readouterr().err


def test_a_damaged_database_is_one_sentence(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (database / "cct.db").write_bytes((database / "cct.db").read_bytes()[:-1])
    assert main(["tree", str(database)]) == 3
    assert "cct.db is cut short" in capsys.readouterr().err


@needs_mirrors
def test_the_a100_example_ends_as_advice_with_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, measured = of_vendor("nvidia")
    target = tmp_path / "leo.gpadvisor"
    assert main(["import", str(folder), "--gpubins", str(measured), "-o", str(target)]) == 0
    capsys.readouterr()
    assert main(["advise", str(target), "--format", "json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    suggestions = kernel["suggestions"]
    assert suggestions
    assert "compute.h" in json.dumps(suggestions[0])
    assert '"line": 67' in json.dumps(suggestions[0])


@needs_mirrors
@pytest.mark.parametrize("vendor", ["amd", "intel"])
def test_databases_of_other_vendors_show_times_by_context(
    vendor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = of_vendor(vendor)
    assert main(["tree", str(folder), "--metric", "GKER_ns", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    kernels = [row for row in rows if row["kind"] == "kernel"]
    assert kernels
    assert sum(row["inclusive"][0] for row in kernels) == pytest.approx(rows[0]["inclusive"][0])


@needs_mirrors
def test_every_public_database_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for meta in sorted(public().rglob("meta.db")):
        assert main(["tree", str(meta.parent), "--top", "5"]) == 0, meta
        assert "without blame" in capsys.readouterr().out
