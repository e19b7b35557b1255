# SPDX-License-Identifier: Apache-2.0
"""Kernels of Numba and Triton as reports have them: assembled from the PTX that their compilers made."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path

import pytest
from tests.kernels import COMPILED_AS, ROOT
from tests.ncu_writer import LaunchSpec
from tests.sampled import sampled

from gpadvisor.cubin import demangle, read_cubin
from gpadvisor.toolchain.discovery import find_tools

PYTHON_KERNELS = ROOT / "fixtures" / "python"


@functools.cache
def python_cubin(ptx: Path) -> bytes:
    """What the driver or Triton make of the PTX."""
    nvcc = find_tools("nvcc")[0].path
    with tempfile.TemporaryDirectory(prefix="gpadvisor-test-") as folder:
        target = Path(folder) / "out.cubin"
        command = [nvcc, "-cubin", "-lineinfo", "-arch=sm_80", "-o", target, ptx]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "Unsupported .version" in done.stderr:
            pytest.skip("this nvcc is older than the PTX")
        assert done.returncode == 0, done.stderr
        return target.read_bytes()


def python_launch(name: str, *, source: bool = True, scale: int = 1) -> LaunchSpec:
    """A sampled launch of a kernel in ``fixtures/python``; ``source``: whether it carries the text."""
    cubin = python_cubin(PYTHON_KERNELS / f"{name}.ptx")
    (kernel,) = read_cubin(cubin).facts
    path = f"{COMPILED_AS}/fixtures/python/{name}.py"
    text = (PYTHON_KERNELS / f"{name}.py").read_text(encoding="utf-8")
    sources = {path: text} if source else {}
    return sampled(cubin, kernel, seed="python", scale=scale, demangled=demangle(kernel), sources=sources)
