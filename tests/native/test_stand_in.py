# SPDX-License-Identifier: Apache-2.0
"""The stand-in is as strict as the headers: a collector that does what they forbid fails its tests."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from tests.injection import NATIVE, Stand, found_cupti

INVALID_OPERATION, MULTIPLE_SUBSCRIBERS = 7, 39


@pytest.fixture(scope="module")
def forbidden(stand: Stand, tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("forbidden") / "forbidden"
    includes = [part for place in found_cupti().includes for part in ("-isystem", str(place))]
    fake = str(stand.folder / "libcuda.so.1")
    command = [
        "gcc",
        "-std=c11",
        "-Wall",
        "-Werror",
        *includes,
        str(NATIVE / "forbidden.c"),
        "-o",
        str(program),
    ]
    subprocess.run([*command, fake], check=True)
    return program


def _ended(program: Path, stand: Stand, name: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), name], env={**stand.environment, **more}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "name",
    [
        "size",
        "a gone context",
        "read without enabling",
        "disable without enabling",
        "enable in a launch",
        "a second context of a GPU",
        "read into CUPTI's buffer",
        "data without a size",
        "flush in a resource callback",
        "flush in a buffer callback",
    ],
)
def test_what_is_forbidden_ends_the_process(forbidden: Path, stand: Stand, name: str) -> None:
    assert _ended(forbidden, stand, name).returncode == -signal.SIGABRT


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("second subscriber", MULTIPLE_SUBSCRIBERS),
        ("flush before buffers", INVALID_OPERATION),
        ("a period of 16 cycles", INVALID_OPERATION),
        ("a reason of another GPU", INVALID_OPERATION),
        ("nothing", 0),
    ],
)
def test_what_is_refused_says_so(forbidden: Path, stand: Stand, name: str, result: int) -> None:
    assert _ended(forbidden, stand, name).returncode == result


CUDA_12_8, CUDA_12_9, CUDA_13_0, CUDA_13_0_1 = 26, 27, 130000, 130001


@pytest.mark.parametrize(
    ("name", "older", "first"),
    [
        ("samples beside concurrent kernels", CUDA_12_8, CUDA_12_9),
        ("disable concurrent kernels", CUDA_13_0, CUDA_13_0_1),
    ],
)
def test_what_the_release_notes_say_of_a_release_holds_in_it(
    forbidden: Path, stand: Stand, name: str, older: int, first: int
) -> None:
    assert _ended(forbidden, stand, name, FAKE_CUPTI=f"version={older}").returncode == -signal.SIGABRT
    assert _ended(forbidden, stand, name, FAKE_CUPTI=f"version={first}").returncode == 0
