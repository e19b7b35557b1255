# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.ranks``: what sums over many ranks cost, on made snapshots of one program."""

from __future__ import annotations

import argparse
import dataclasses
import os
import random
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

import numpy as np
from tests.ncu_writer import LaunchSpec, write_report
from tests.tiny_cubin import tiny_cubin

from bench.inputs import FOLDER
from gpadvisor.model.profile import Profile
from gpadvisor.store import load_bytes, write_snapshot

_KERNELS: Final = ("first", "second")
_LAUNCHES: Final = 10  # of each
_INSTRUCTIONS: Final = 860
_REASONS: Final = ("long_scoreboard", "wait", "selected", "short_scoreboard", "math_pipe_throttle")
_SAMPLED: Final = 3  # reasons of an instruction
_BY_INSTRUCTION: Final = ("memory_l1_tag_requests_global", "memory_l2_theoretical_sectors_global")
_MORE: Final = ("memory_l1_wavefronts_shared", "memory_shared_ideal")
_METRICS: Final = 640  # of a launch
_DISTINCT: Final = 100  # the others are these under other ranks


def _template() -> Profile:
    """150,000 rows: of samples 51,600, of counts and metrics by instruction 86,000, of metrics 12,800."""
    choice = random.Random(7)
    cubin = tiny_cubin({name: [] for name in _KERNELS}, instructions=_INSTRUCTIONS)
    launches = []
    for kernel in _KERNELS:
        places = [(kernel, 16 * at) for at in range(_INSTRUCTIONS)]
        launch = LaunchSpec(
            kernel=kernel,
            cubin=cubin,
            samples={
                (*place, reason): (choice.randrange(1, 50), 1)
                for place in places
                for reason in choice.sample(_REASONS, _SAMPLED)
            },
            counts=dict.fromkeys(places, (1000, 32000)),
            pc_metrics={
                name: {place: choice.randrange(1, 1000) for place in places}
                for name in (*_BY_INSTRUCTION, *_MORE)
            },
            metrics={f"unit__counter_{at}.sum": choice.randrange(1, 10**9) for at in range(_METRICS)},
        )
        launches += [launch] * _LAUNCHES
    return load_bytes(write_report(launches))


def _make(profile: Profile, rank: int, path: Path) -> None:
    """One rank's snapshot: numbers of its own at the places of all."""
    draw = np.random.default_rng(rank)
    kernels = []
    for kernel in profile.kernels:
        samples, counts = kernel.samples, kernel.counts
        assert counts is not None
        total = draw.poisson(60, len(samples.total)) + 1
        warps = draw.integers(900, 1100, len(counts.warps))
        kernels.append(
            dataclasses.replace(
                kernel,
                launch=dataclasses.replace(kernel.launch, duration_ns=float(draw.normal(1e6, 1e4))),
                samples=dataclasses.replace(
                    samples,
                    total=total.astype(samples.total.dtype),
                    latency=draw.binomial(total, 0.6).astype(samples.latency.dtype),
                ),
                counts=dataclasses.replace(
                    counts,
                    warps=warps.astype(counts.warps.dtype),
                    threads=(32 * warps).astype(counts.threads.dtype),
                ),
                pc_metrics={
                    name: dataclasses.replace(
                        metric, value=np.rint(metric.value * draw.uniform(0.5, 1.5, len(metric.value)))
                    )
                    for name, metric in kernel.pc_metrics.items()
                },
                metrics={
                    name: int(value * draw.uniform(0.9, 1.1)) if type(value) is int else value
                    for name, value in kernel.metrics.items()
                },
            )
        )
    write_snapshot(dataclasses.replace(profile, kernels=tuple(kernels), host=f"node{rank // 8}"), path)


def make(folder: Path, count: int) -> list[Path]:
    """As many snapshots, made where they are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"app.rank{rank}.gpadvisor" for rank in range(count)]
    profile = _template()
    with ProcessPoolExecutor() as pool:
        own = [(rank, path) for rank, path in enumerate(paths[:_DISTINCT]) if not path.exists()]
        list(pool.map(_make, [profile] * len(own), *zip(*own, strict=True)) if own else ())
    for rank, path in enumerate(paths[_DISTINCT:]):
        if not path.exists():
            shutil.copyfile(paths[rank % _DISTINCT], path)
    return paths


def measured(paths: list[Path], *words: str) -> str:
    """Processor seconds and memory of one sum."""
    target = FOLDER / "sum.gpadvisor"
    before = os.times()
    started = time.perf_counter()
    listing = FOLDER / "peak"
    command = [sys.executable, "-m", "gpadvisor", "aggregate", *map(str, paths), *words, "-o", str(target)]
    watched = f"import resource, subprocess, sys; subprocess.run({command!r}, check=True, stdout=2); "
    watched += (
        f"open({str(listing)!r}, 'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))"
    )
    subprocess.run([sys.executable, "-c", watched], check=True, stderr=subprocess.DEVNULL)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    peak = int(listing.read_text()) / 1024
    wall = time.perf_counter() - started
    return f"{cpu:6.2f} s of processor ({wall:.1f} s), {peak:5.0f} MiB, {target.stat().st_size:,} bytes"


def main() -> None:
    """Print a row for each number of profiles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profiles", type=int, nargs="*", default=[10, 50, 200, 1000])
    numbers = parser.parse_args().profiles
    paths = make(FOLDER / "ranks", max(numbers))
    print(f"snapshots of {paths[0].stat().st_size:,} bytes")
    for number in numbers:
        for words in ((), ("--partial",)):
            print(f"{number:6,} {' '.join(words):9} {measured(paths[:number], *words)}", flush=True)


if __name__ == "__main__":
    main()
