# SPDX-License-Identifier: Apache-2.0
"""Launch facts against ``cuobjdump -res-usage``."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.kernels import KERNELS, compile_kernel, compile_text, wheel_file

from gpadvisor.cubin import read_cubin

pytestmark = [pytest.mark.toolkit]

_ROW = re.compile(r"Function (\S+):\s+REG:(\d+) STACK:(\d+|UNKNOWN) SHARED:(\d+)")
_RESERVED = 1024  # counted by cuobjdump from sm_90 on, where a kernel uses shared memory at all

RECURSIVE = """
__device__ __noinline__ int f(int n, int *a) {
    int x[20];
    for (int i = 0; i < 20; i++) x[i] = a[i + n];
    return n <= 1 ? x[a[0] % 20] : f(n - 1, a) * x[a[n] % 20];
}
extern "C" __global__ void recursive(int *a, int n) {
    __shared__ double d[7];
    d[a[3]] = f(n, a);
    __syncthreads();
    a[n] = d[a[1]];
}
"""


def usage(data: bytes, folder: Path) -> dict[str, tuple[int, int | None, int]]:
    """Registers, stack and shared bytes by kernel."""
    tool = wheel_file("bin", "cuobjdump")
    if tool is None:
        pytest.skip("the nvidia-cuda-cuobjdump wheel is not installed")
    path = folder / "usage.cubin"
    path.write_bytes(data)
    text = subprocess.run(
        [tool, "-res-usage", path], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    return {
        name: (int(registers), None if stack == "UNKNOWN" else int(stack), int(shared))
        for name, registers, stack, shared in _ROW.findall(text)
    }


def check(data: bytes, folder: Path) -> None:
    cubin = read_cubin(data)
    expected = usage(data, folder)
    assert set(expected) == set(cubin.facts)
    newer = int(re.sub(r"\D", "", cubin.arch)) >= 90
    for name, facts in cubin.facts.items():
        registers, stack, shared = expected[name]
        assert facts.registers_per_thread == registers
        assert facts.stack_bytes == stack
        assert facts.static_shared_bytes == (shared - _RESERVED if newer and shared else shared)


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
@pytest.mark.parametrize("name", ["block_reduce", "spill_sgemm", "grid_path"])
def test_our_kernels(name: str, arch: str, tmp_path: Path) -> None:
    if arch not in KERNELS[name].architectures:
        pytest.skip(f"{name} is not for {arch}")
    check(compile_kernel(name, "before", arch), tmp_path)


BOUNDED = """
extern "C" __global__ void alone(int *a) { a[threadIdx.x] = 1; }
extern "C" __global__ void __launch_bounds__(1024) wide(int *a) { a[threadIdx.x] = 1; }
extern "C" __global__ void __launch_bounds__(1024, 2) twice(int *a) { a[threadIdx.x] = 1; }
extern "C" __global__ void __maxnreg__(96) few(int *a) { a[threadIdx.x] = 1; }
"""


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_what_the_compiler_was_held_to(arch: str) -> None:
    """65,536 registers for 1024 threads, or twice as many, which an SM of sm_75 does not have."""
    facts = read_cubin(compile_text(BOUNDED, "bounded.cu", arch)).facts
    limits = {name: one.register_limit for name, one in facts.items()}
    twice = 32 if arch == "sm_90" else 64
    assert limits == {"alone": 255, "wide": 64, "twice": twice, "few": 96}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_recursion(arch: str, tmp_path: Path) -> None:
    check(compile_text(RECURSIVE, "recursive.cu", arch), tmp_path)
