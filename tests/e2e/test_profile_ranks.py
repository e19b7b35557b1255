# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor profile`` as the processes of a parallel job, and their snapshots as one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ncu_writer import write_report
from tests.sampled import sampled_launch
from tests.stand_in_ncu import stand_in_ncu
from tests.tools import program

from gpadvisor.cli import main
from gpadvisor.errors import UsageError
from gpadvisor.model.problem import ProblemCode
from gpadvisor.profiler.collect.ranks import chosen, job_rank, with_rank
from gpadvisor.store.load import load_profile
from gpadvisor.store.ranks.members import member

STEP = {"SLURM_STEP_NUM_TASKS": "4", "SLURMD_NODENAME": "node7"}


@pytest.mark.parametrize(
    ("environment", "rank", "node"),
    [
        ({}, None, None),
        ({**STEP, "SLURM_PROCID": "3"}, 3, "node7"),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, None, None),  # a batch script
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}, None, None),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", **STEP, "SLURM_PROCID": "0"}, 2, "node7"),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}, None, None),
        ({"PMI_RANK": "5", "PMI_SIZE": "8"}, 5, None),
        ({"PMIX_RANK": "6"}, 6, None),
        ({**STEP, "SLURM_PROCID": "-1"}, None, None),
        ({**STEP, "SLURM_PROCID": "3; rm"}, None, None),
        ({**STEP, "SLURM_PROCID": "٣"}, None, None),
        ({"PMI_RANK": "9" * 30, "PMI_SIZE": "8"}, None, None),
    ],
)
def test_what_launchers_say(environment: dict[str, str], rank: int | None, node: str | None) -> None:
    found = job_rank(environment)
    assert (None if found is None else (found.rank, found.node)) == (None if rank is None else (rank, node))


def test_lists_of_ranks() -> None:
    assert [rank for rank in range(40) if chosen("0,17,30-32", rank)] == [0, 17, 30, 31, 32]
    assert chosen("0,all", 39)
    for text in ("", "x", "1-", "-1", "1;2", "1 2"):
        with pytest.raises(UsageError, match="neither a rank"):
            chosen(text, 0)
    assert with_rank(Path("a/app.gpadvisor"), 17) == Path("a/app.rank17.gpadvisor")


def test_a_profile_says_its_rank_before_its_name_does() -> None:
    assert member("app.rank3.gpadvisor", None, 17).rank == 17
    assert member("app.rank3.gpadvisor", None, -1).rank == 3
    assert member("app.gpadvisor", "n", 1 << 40).rank == -1


@pytest.mark.toolkit
@pytest.mark.nvdisasm
def test_each_rank_writes_its_own(tmp_path: Path) -> None:
    report = tmp_path / "measured.ncu-rep"
    report.write_bytes(write_report([sampled_launch("thermal_stencil", scale=10)]))
    ncu = stand_in_ncu(tmp_path / "ncu", report=report)
    application = str(program(tmp_path / "app", "import sys; print('the application speaks'); sys.exit(3)"))

    def run(rank: int | None, *more: str) -> subprocess.CompletedProcess[str]:
        own = {} if rank is None else {**STEP, "SLURM_PROCID": str(rank)}
        return subprocess.run(
            [
                *(sys.executable, "-m", "gpadvisor", "profile", "--collector", "ncu", "-o", "app.gpadvisor"),
                *(*more, "--", application),
            ],
            cwd=tmp_path,
            env={**os.environ, "GPADVISOR_NCU": str(ncu), **own},
            capture_output=True,
            text=True,
            check=False,
        )

    for rank in (0, 2):
        done = run(rank, "--ranks", "0,2")
        assert "the application speaks" in done.stdout
        assert "GPA1" not in done.stdout, "no advice for each of a thousand"
        assert f"app.rank{rank}.gpadvisor" in done.stderr
        assert load_profile(tmp_path / f"app.rank{rank}.gpadvisor").rank == rank
    done = run(1, "--ranks", "0,2")
    assert (done.returncode, done.stdout) == (3, "the application speaks\n")
    assert sorted(path.name for path in tmp_path.glob("*.gpadvisor")) == [
        "app.rank0.gpadvisor",
        "app.rank2.gpadvisor",
    ]
    assert "are not there" in run(None, "--ranks", "0").stderr
    assert "neither a rank" in run(0, "--ranks", "x").stderr
    # The profile knows its rank under any name.
    (tmp_path / "app.rank2.gpadvisor").rename(tmp_path / "b.gpadvisor")
    (tmp_path / "app.rank0.gpadvisor").rename(tmp_path / "a.rank9.gpadvisor")
    files = [str(tmp_path / name) for name in ("a.rank9.gpadvisor", "b.gpadvisor")]
    assert main(["aggregate", *files, "-o", str(tmp_path / "all")]) == 0
    said = {one.code: one.message for one in load_profile(tmp_path / "all").problems}
    assert "sum over 2 ranks (0 to 2): ranks by their profiles" in said[ProblemCode.SUM_OVER_RANKS]
