# SPDX-License-Identifier: Apache-2.0
"""Occupancy against NVIDIA's cuda_occupancy.h, compiled here into a host program without a GPU."""

from __future__ import annotations

import importlib.util
import itertools
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpadvisor import machine
from gpadvisor.analyzer.occupancy import occupancy

pytestmark = pytest.mark.toolkit

PROGRAM = r"""
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "cuda_occupancy.h"

/* One line in per configuration; one line out: status, blocks, and the limits by resource. */
int main(void) {
    int major, minor, threads_sm, shared_sm, shared_block, reserved, carveout;
    int threads, registers, fixed, dynamic, barriers;
    while (scanf("%d %d %d %d %d %d %d %d %d %d %d %d", &major, &minor, &threads_sm, &shared_sm,
                 &shared_block, &reserved, &carveout, &threads, &registers, &fixed, &dynamic,
                 &barriers) == 12) {
        struct cudaOccDeviceProp properties;
        struct cudaOccFuncAttributes attributes;
        struct cudaOccDeviceState state;
        struct cudaOccResult result;
        memset(&properties, 0, sizeof properties);
        memset(&attributes, 0, sizeof attributes);
        memset(&state, 0, sizeof state);
        memset(&result, 0, sizeof result);
        properties.computeMajor = major;
        properties.computeMinor = minor;
        properties.maxThreadsPerBlock = 1024;
        properties.maxThreadsPerMultiprocessor = threads_sm;
        properties.regsPerBlock = properties.regsPerMultiprocessor = 65536;
        properties.warpSize = 32;
        properties.sharedMemPerBlock = 48 * 1024;
        properties.sharedMemPerMultiprocessor = shared_sm;
        properties.sharedMemPerBlockOptin = shared_block;
        properties.reservedSharedMemPerBlock = reserved;
        properties.numSms = 100;
        attributes.maxThreadsPerBlock = 1024;
        attributes.numRegs = registers;
        attributes.sharedSizeBytes = fixed;
        attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        attributes.maxDynamicSharedSizeBytes = shared_block - fixed > 0 ? shared_block - fixed : 0;
        attributes.numBlockBarriers = barriers;
        state.carveoutConfig = carveout;
        int status = cudaOccMaxActiveBlocksPerMultiprocessor(
            &result, &properties, &attributes, &state, threads, dynamic);
        printf("%d %d %d %d %d %d\n", (int)status, result.activeBlocksPerMultiprocessor,
               result.blockLimitRegs, result.blockLimitSharedMem, result.blockLimitWarps,
               result.blockLimitBarriers);
    }
    return 0;
}
"""
UNKNOWN_DEVICE = 3
MAX_SHARED = 100  # percent of the SM's shared memory, the largest carveout


def _headers() -> Iterator[Path]:
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec is not None else ():
        yield from sorted(Path(root).glob("*/include/cuda_occupancy.h"), reverse=True)
    nvcc = shutil.which("nvcc")
    if nvcc is not None:
        yield Path(nvcc).resolve().parent.parent / "include" / "cuda_occupancy.h"
    yield Path("/usr/local/cuda/include/cuda_occupancy.h")


@pytest.fixture(scope="module")
def header_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host program, built against the newest header that is there."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    header = next((path for path in _headers() if path.is_file()), None)
    if compiler is None or header is None:
        pytest.skip("needs a C compiler and cuda_occupancy.h (of the toolkit or of nvidia-cuda-runtime)")
    folder = tmp_path_factory.mktemp("occupancy")
    # A copy by itself: the folder it comes from has headers that need the whole toolkit.
    (folder / "cuda_occupancy.h").write_bytes(header.read_bytes())
    (folder / "main.c").write_text(PROGRAM)
    built = subprocess.run(
        [compiler, "-O1", "-w", "-o", str(folder / "main"), str(folder / "main.c")],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return folder / "main"


THREADS = (1, 31, 32, 33, 64, 96, 128, 160, 192, 256, 288, 320, 384, 512, 544, 640, 768, 800, 896, 1000, 1024)
REGISTERS = (
    1,
    8,
    16,
    21,
    24,
    31,
    32,
    33,
    40,
    48,
    56,
    63,
    64,
    65,
    72,
    80,
    96,
    104,
    128,
    129,
    168,
    200,
    254,
    255,
)
SHARED = (0, 1, 100, 1024, 3000, 4096, 8192, 12345, 16384, 24576, 32768, 49152, 60000, 65536, 90000, 101376,
          163840, 166912, 232448)  # fmt: skip
BARRIERS = (0, 1, 2, 3, 5, 16)


def _compute_capability(arch: str) -> tuple[int, int]:
    major, minor = re.fullmatch(r"sm_(\d+)(\d)", arch).groups()  # type: ignore[union-attr]  # fails loudly
    return int(major), int(minor)


def _run(program: Path, rows: list[tuple[int, ...]]) -> list[list[int]]:
    text = "".join(" ".join(map(str, row)) + "\n" for row in rows)
    run = subprocess.run([str(program)], input=text, capture_output=True, text=True, timeout=120, check=True)
    return [[int(word) for word in line.split()] for line in run.stdout.splitlines()]


@pytest.mark.parametrize("arch", machine.architectures())
def test_blocks_and_limits_are_those_of_the_header(arch: str, header_program: Path) -> None:
    sm = machine.load(arch).sm
    limits = (
        *_compute_capability(arch), sm.max_threads.value, sm.shared_bytes.value,
        sm.shared_bytes_per_block.value, sm.reserved_shared_bytes_per_block.value, MAX_SHARED,
    )  # fmt: skip
    shared = [size for size in SHARED if size <= sm.shared_bytes_per_block.value]
    grid = [(t, r, s, 0) for t, r, s in itertools.product(THREADS, REGISTERS, shared)]
    grid += [(t, 16, 0, b) for t, b in itertools.product(THREADS, BARRIERS)]
    rows = [
        (*limits, threads, registers, size // 3, size - size // 3, b) for threads, registers, size, b in grid
    ]
    answers = _run(header_program, rows)
    assert len(answers) == len(grid)
    if answers[0][0] == UNKNOWN_DEVICE:
        pytest.skip(f"the header does not know {arch}")
    wrong = []
    for (threads, registers, size, barriers), answer in zip(grid, answers, strict=True):
        status, blocks, by_registers, by_shared, by_warps, by_barriers = answer
        assert status == 0
        ours = occupancy(
            sm, threads_per_block=threads, registers_per_thread=registers, shared_bytes=size,
            block_barriers=barriers,
        )  # fmt: skip
        found = dict(ours.limits)
        expected = {
            "registers": by_registers,
            "shared memory": by_shared,
            "warps": by_warps,
            "barriers": by_barriers,
        }
        known = {name: value for name, value in expected.items() if value < 1 << 30}
        if ours.blocks_per_sm != blocks or any(found.get(name) != value for name, value in known.items()):
            wrong.append((threads, registers, size, barriers, answer, ours))
    assert not wrong, f"{len(wrong)} of {len(grid)} differ, first: {wrong[0]}"


@pytest.mark.parametrize("arch", machine.architectures())
@pytest.mark.parametrize("percent", [0, 5, 10, 25, 50, 75, 90])
def test_partial_carveouts(arch: str, percent: int, header_program: Path) -> None:
    sm = machine.load(arch).sm
    limits = (
        *_compute_capability(arch), sm.max_threads.value, sm.shared_bytes.value,
        sm.shared_bytes_per_block.value, sm.reserved_shared_bytes_per_block.value, percent,
    )  # fmt: skip
    shared = [size for size in SHARED if size <= sm.shared_bytes_per_block.value]
    answers = _run(header_program, [(*limits, 128, 16, 0, size, 0) for size in shared])
    if answers[0][0] == UNKNOWN_DEVICE:
        pytest.skip(f"the header does not know {arch}")
    for size, answer in zip(shared, answers, strict=True):
        ours = occupancy(
            sm, threads_per_block=128, registers_per_thread=16, shared_bytes=size,
            carveout_bytes=percent * sm.shared_bytes.value // 100,
        )  # fmt: skip
        assert ours.blocks_per_sm == answer[1], (size, answer, ours)
