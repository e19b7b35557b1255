# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor profile --timeline`` over the stand-in: one snapshot, whose advice is for the whole run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.injection import Stand, build_stand

from gpadvisor.store.timeline import read_timeline

_STEPS = 10


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Stand:
    return build_stand(tmp_path_factory.mktemp("stand"))


def gpadvisor(
    stand: Stand, folder: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpadvisor", *arguments],
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if name != "CUDA_INJECTION64_PATH"},
            **stand.environment,
            "FAKE_TRUTH": str(folder / "truth"),
            "GPADVISOR_CACHE": str(folder / "cache"),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def profile(
    stand: Stand, folder: Path, *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    application = (str(stand.host), "steps", str(stand.image), str(_STEPS))
    return gpadvisor(
        stand, folder, "profile", "--collector", "cupti", *options, "--", *application, **environment
    )


@pytest.mark.nvdisasm
def test_the_snapshot_has_a_timeline_that_every_command_uses_by_itself(stand: Stand, tmp_path: Path) -> None:
    done = profile(stand, tmp_path, "--timeline")
    assert done.returncode == 0, done.stderr
    assert "runs once more, without samples, for its timeline" in done.stderr
    assert "GPA501" in done.stdout, "the advice that is printed is for the run"
    snapshot = tmp_path / "profile.gpadvisor"
    assert len(read_timeline(snapshot).work.start_ns) == 3 * _STEPS + _STEPS + 2

    done = gpadvisor(stand, tmp_path, "advise", snapshot.name, "--format", "json")
    document = json.loads(done.stdout)
    assert {kernel["run"]["trace"] for kernel in document["kernels"]} == {"profile.gpadvisor"}
    (wait,) = [one for one in document["run_findings"] if one["code"] == "GPA501"]
    assert wait["place"]["function"] == "step"

    done = gpadvisor(stand, tmp_path, "idle", snapshot.name)
    assert "GPU 0" in done.stdout
    assert "cudaDeviceSynchronize" in done.stdout
    assert "cuLaunchKernel" in done.stdout

    done = gpadvisor(stand, tmp_path, "advise", snapshot.name, "--format", "html", "-o", "page.html")
    assert done.returncode == 0, done.stderr
    assert '"lanes":[' in (tmp_path / "page.html").read_text("utf-8").replace(" ", "")

    done = gpadvisor(stand, tmp_path, "import", snapshot.name, "-o", "again.gpadvisor")
    assert "the timeline in it is left out" in done.stdout + done.stderr


def test_without_the_option_nothing_runs_twice(stand: Stand, tmp_path: Path) -> None:
    done = profile(stand, tmp_path, "--no-advice")
    assert done.returncode == 0, done.stderr
    assert "once more" not in done.stderr
    done = gpadvisor(stand, tmp_path, "idle", "profile.gpadvisor")
    assert done.returncode == 3
    assert "profile.gpadvisor has no timeline; gpadvisor profile --timeline records one" in done.stderr


def test_each_rank_has_its_own(stand: Stand, tmp_path: Path) -> None:
    ranks = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}
    done = profile(stand, tmp_path, "--timeline", **ranks)
    assert done.returncode == 0, done.stderr
    assert len(read_timeline(tmp_path / "profile.rank1.gpadvisor").work.start_ns) == 4 * _STEPS + 2


def test_a_timeline_that_cannot_be_recorded_costs_no_samples(stand: Stand, tmp_path: Path) -> None:
    """The second run launches nothing, as a file of the first stands in its way."""
    once = f"[ -e {tmp_path}/ran ] || {{ touch {tmp_path}/ran; {stand.host} steps {stand.image} 3; }}"
    done = gpadvisor(
        stand,
        tmp_path,
        *("profile", "--collector", "cupti", "--timeline", "--no-advice", "--", "sh", "-c", once),
    )
    assert done.returncode == 0, done.stderr
    assert "no timeline was recorded: " in done.stderr
    done = gpadvisor(stand, tmp_path, "idle", "profile.gpadvisor")
    assert "has no timeline" in done.stderr


def test_what_is_lost_is_told(stand: Stand, tmp_path: Path) -> None:
    done = profile(stand, tmp_path, "--timeline", "--no-advice", FAKE_CUPTI="lost=2")
    assert "CUPTI dropped records of the timeline (2 or more)" in done.stderr
