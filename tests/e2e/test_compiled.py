# SPDX-License-Identifier: Apache-2.0
"""Compiled modules give what their sources give, byte for byte; ``make test-compiled`` builds them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.inputs import make_input
from bench.sources import Size
from tests.kernels import KERNELS, ROOT

MODULES = os.environ.get("GPADVISOR_COMPILED_MODULES", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MODULES, reason="GPADVISOR_COMPILED_MODULES is not set (make test-compiled)"),
]


def _output(modules: Path, folder: Path, *arguments: str | os.PathLike[str]) -> bytes:
    command = [sys.executable, *(os.fspath(argument) for argument in arguments)]
    environment = {**os.environ, "PYTHONPATH": os.fspath(modules), "GPADVISOR_CACHE": ""}
    done = subprocess.run(command, capture_output=True, check=False, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def _is_the_same(path: Path, folder: Path) -> bool:
    advise = ("-m", "gpadvisor", "advise", path, "--format", "json", "--all")
    source, compiled = (_output(modules, folder, *advise) for modules in (ROOT / "server", Path(MODULES)))
    return source == compiled


@pytest.mark.parametrize("module", ["blamer.attribution", "evidence.addresses", "model.program", "sass"])
def test_the_modules_are_machine_code(module: str, tmp_path: Path) -> None:
    program = f"import gpadvisor.{module} as module; print(module.__file__)"
    assert _output(Path(MODULES), tmp_path, "-c", program).strip().endswith(b".so")
    assert _output(ROOT / "server", tmp_path, "-c", program).strip().endswith(b".py")


def test_the_version_says_so(tmp_path: Path) -> None:
    version = ("-m", "gpadvisor", "--version")
    assert _output(Path(MODULES), tmp_path, *version).endswith(b", compiled\n")
    assert b"compiled" not in _output(ROOT / "server", tmp_path, *version)


@pytest.mark.parametrize("kernel", ["thermal_stencil", "row_softmax", "spill_sgemm", "tile_product"])
def test_kernels_of_ours(kernel: str, tmp_path: Path) -> None:
    assert _is_the_same(KERNELS[kernel].source(), tmp_path)


@pytest.mark.parametrize("kernels", [1, 10])
def test_reports_that_are_made(kernels: int, tmp_path: Path) -> None:
    assert _is_the_same(make_input(Size(instructions=5_000, kernels=kernels)).report, tmp_path)


@pytest.mark.reports
@pytest.mark.timeout(3600)
def test_real_reports(tmp_path: Path) -> None:
    reports = sorted(Path(os.environ["GPADVISOR_REPORTS"]).glob("*.ncu-rep"))
    assert [path.name for path in reports if not _is_the_same(path, tmp_path)] == []
