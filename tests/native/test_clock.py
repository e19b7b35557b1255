# SPDX-License-Identifier: Apache-2.0
"""A wall clock that is set while an application is measured: nothing waits for it, nothing ends early."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from tests.injection import Stand

from gpadvisor.store.load import load_profile


@pytest.fixture(scope="module")
def set_clock(stand: Stand, tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("clock") / "set_clock.so"
    source = Path(__file__).parent / "set_clock.c"
    command = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o", library, source]
    subprocess.run(command, check=True)
    return library


@pytest.mark.parametrize(
    ("mode", "status", "wish"),
    [("plain", 0, "slow=300"), ("plain", 0, "slow=10000"), ("interrupted", -signal.SIGINT, "slow=10000")],
)
def test_waits_do_not_follow_the_wall_clock(
    stand: Stand, tmp_path: Path, set_clock: Path, mode: str, status: int, wish: str
) -> None:
    """Also where the end has to wait for a read."""
    done, truth = stand.run(tmp_path / "out", mode, 20, LD_PRELOAD=str(set_clock), FAKE_CUPTI=wish)
    assert done.returncode == status
    profile = load_profile(tmp_path / "out")
    assert profile.problems == ()
    assert sum(kernel.total_samples for kernel in profile.kernels) == truth.samples_made
