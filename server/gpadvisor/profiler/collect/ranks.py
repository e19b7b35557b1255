# SPDX-License-Identifier: Apache-2.0
"""Which process of a parallel job this is, by what its launcher (srun, mpirun) sets in the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.errors import UsageError

# MPI before Slurm: under mpirun in a Slurm allocation the variables of the batch script are inherited by all.
_LAUNCHERS: Final = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PALS_RANKID", "PALS_SIZE"),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # of a step: a batch script is none
    ("PMIX_RANK", ""),
)
_NODES: Final = ("SLURMD_NODENAME",)
_NUMBER: Final = re.compile(r"\d{1,9}", re.ASCII)
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRank:
    """One process of a job of several."""

    rank: int
    variable: str  # that says so
    node: str | None  # as the launcher calls it; None where it does not


def job_rank(environment: Mapping[str, str]) -> JobRank | None:
    """The rank of this process; None where it is the only one, or no launcher tells."""
    for name, size in _LAUNCHERS:
        rank, among = environment.get(name, ""), environment.get(size, "2" if not size else "")
        if not _NUMBER.fullmatch(rank) or not _NUMBER.fullmatch(among):
            continue
        if int(among) < 2:  # one process is no parallel job
            return None
        node = next((environment[variable] for variable in _NODES if environment.get(variable)), None)
        return JobRank(rank=int(rank), variable=name, node=node)
    return None


def with_rank(path: Path, rank: int) -> Path:
    """The name of one rank's snapshot: ``app.gpadvisor`` is ``app.rank17.gpadvisor``."""
    return path.with_name(f"{path.stem}.rank{rank}{path.suffix}")


def chosen(text: str, rank: int) -> bool:
    """Whether a list such as ``0,17,30-33`` or ``all`` has a rank.

    Raises:
        UsageError: it is no such list.
    """
    result = False
    for part in text.split(","):
        if part.strip() == "all":
            result = True
            continue
        ends = _RANGE.fullmatch(part.strip())
        if ends is None:
            raise UsageError(f"--ranks {text!r}: {part!r} is neither a rank, nor a range as 4-7, nor all")
        result |= int(ends[1]) <= rank <= int(ends[2] or ends[1])
    return result
