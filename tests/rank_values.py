# SPDX-License-Identifier: Apache-2.0
"""Profiles of ranks, small and with numbers of their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.ncu_writer import LaunchSpec, write_report
from tests.tiny_cubin import tiny_cubin

from gpadvisor.model.profile import Profile
from gpadvisor.store.load import load_bytes
from gpadvisor.store.snapshot import write_snapshot

CUBIN = tiny_cubin({"k": [], "other": []})
SPEC = LaunchSpec(
    kernel="k",
    cubin=CUBIN,
    samples={("k", 16, "wait"): (5, 4), ("other", 0, "wait"): (1, 1)},
    counts={("k", 0): (3, 96)},
    pc_metrics={"memory_type": {("k", 0): 1.0}, "memory_l2_sectors": {("k", 16): 4.0}},
    metrics={"text": "words", "bytes.sum": 7, "rate.pct": 40.0},
    sources={"/home/someone/a.cu": "text\n"},
)


@cache
def _report(specs: int) -> Profile:
    return load_bytes(
        write_report([dataclasses.replace(SPEC, kernel=("k", "other")[at % 2]) for at in range(specs)])
    )


def rank_profile(
    samples: Mapping[int, tuple[int, int]],
    times_ns: tuple[float, ...] = (1000.0, 500.0),
    host: str | None = None,
) -> Profile:
    """A profile of kernels "k" and "other" in turn.

    Args:
        samples: by address in "k" how many, and how many of them are latency samples.
        times_ns: of the launches.
        host: where it ran.
    """
    profile = _report(len(times_ns))
    kernels = []
    for kernel, time in zip(profile.kernels, times_ns, strict=True):
        where = kernel.sections.index("k")
        rows = sorted(samples.items())
        columns = dataclasses.replace(
            kernel.samples,
            section=_column([where for _ in rows], kernel.samples.section),
            pc=_column([16 * at for at, _ in rows], kernel.samples.pc),
            reason=_column([0 for _ in rows], kernel.samples.reason),
            total=_column([total for _, (total, _) in rows], kernel.samples.total),
            latency=_column([latency for _, (_, latency) in rows], kernel.samples.latency),
        )
        launch = dataclasses.replace(kernel.launch, duration_ns=time)
        kernels.append(dataclasses.replace(kernel, samples=columns, launch=launch))
    return dataclasses.replace(profile, kernels=tuple(kernels), host=host)


def _column(values: list[int], like):  # type: ignore[no-untyped-def] # of any integer type
    import numpy as np

    return np.array(values, like.dtype)


def write_rank(folder: Path, rank: int, profile: Profile) -> Path:
    """A snapshot that is named by its rank."""
    path = folder / f"app.rank{rank}.gpadvisor"
    write_snapshot(profile, path)
    return path
