# SPDX-License-Identifier: Apache-2.0
"""Kernels of Numba and Triton: advice names the Python file and its lines."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.ncu_writer import write_report
from tests.python_kernels import PYTHON_KERNELS as FOLDER
from tests.python_kernels import python_cubin
from tests.sampled import sampled

from gpadvisor.cubin import demangle, read_cubin
from gpadvisor.pipeline.formats import RenderOptions
from gpadvisor.pipeline.render import render_file
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm]
KERNELS = ("gather", "blend")


def _advice(cubin: bytes, folder: Path, root: Path, shape: str = "json") -> str:
    (kernel,) = read_cubin(cubin).facts
    report = folder / "run.ncu-rep"
    report.write_bytes(write_report([sampled(cubin, kernel, seed="python", demangled=demangle(kernel))]))
    shown = RenderOptions(format=shape, width=200, color=False, use_cache=False)
    return render_file(report, Request(settings=Settings(), root=root), shown, lambda _: None).text


def _line(name: str, text: str) -> int:
    lines = (FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def _places(value: object) -> set[tuple[str, int]]:
    """Every file and line in a document."""
    found: set[tuple[str, int]] = set()
    if isinstance(value, dict):
        if isinstance(value.get("file"), str) and isinstance(value.get("line"), int):
            found.add((value["file"], value["line"]))
        for part in value.values():
            found |= _places(part)
    elif isinstance(value, list):
        for part in value:
            found |= _places(part)
    return found


@pytest.mark.parametrize("name", KERNELS)
def test_advice_names_lines_of_python(name: str, tmp_path: Path) -> None:
    cubin = python_cubin(FOLDER / f"{name}.ptx")
    document: dict[str, Any] = json.loads(_advice(cubin, tmp_path, FOLDER))
    (kernel,) = document["kernels"]
    hot = _line(name, "total +=")
    shown = [one for one in kernel["suggestions"] if one["hotspots"]]
    assert shown
    for suggestion in shown:
        places = _places(suggestion)
        assert places
        assert {Path(file).name for file, _ in places} == {f"{name}.py"}, suggestion["code"]
    assert any(line == hot for one in shown for _, line in _places(one["hotspots"]))
    assert "GPA102" in {one["code"] for one in shown if hot in {line for _, line in _places(one["hotspots"])}}
    text = _advice(cubin, tmp_path, FOLDER, "text")
    assert f"{name}.py:{hot}" in text
    assert re.search(rf"^    place  \S*{name}\.py:{hot}  total \+=", text, re.MULTILINE)  # found by its path


def _compiled(which: str, folder: Path) -> bytes:
    ptx = folder / f"{which}.ptx"
    done = subprocess.run(
        [sys.executable, "-B", FOLDER / "to_ptx.py", which, ptx],
        env={**os.environ, "TRITON_CACHE_DIR": str(folder / "triton")},
        capture_output=True,
        text=True,
        check=False,
    )
    if "NvvmSupportError" in done.stderr or "libNVVM cannot be found" in done.stderr:
        pytest.skip("Numba needs libNVVM of a CUDA toolkit")
    assert done.returncode == 0, done.stderr
    return python_cubin(ptx)


@pytest.mark.slow
@pytest.mark.parametrize(("which", "name"), [("numba", "gather"), ("triton", "blend")])
def test_what_is_compiled_now_has_its_lines_too(which: str, name: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(which) is None:
        pytest.skip(f"needs {which}")
    text = _advice(_compiled(which, tmp_path), tmp_path, FOLDER, "text")
    assert f"{name}.py:{_line(name, 'total +=')}" in text
