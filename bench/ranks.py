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
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from tests.ncu_writer import LaunchSpec, write_report
from tests.tiny_cubin import tiny_cubin

from bench.inputs import FOLDER
from gpadvisor.model.profile import PcCounts, PcSamples, Profile
from gpadvisor.store.load import load_bytes
from gpadvisor.store.snapshot import write_snapshot

_REASONS: Final = ("long_scoreboard", "wait", "selected", "short_scoreboard", "math_pipe_throttle")
_BY_INSTRUCTION: Final = (
    "memory_l1_tag_requests_global",
    "memory_l2_theoretical_sectors_global",
    "memory_l1_wavefronts_shared",
    "memory_shared_ideal",
)
DISTINCT: Final = 100  # the others are these under other ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the made profiles have."""

    kernels: int
    launches: int  # of each kernel
    instructions: int  # of each kernel
    sampled: int  # reasons of an instruction
    there: float  # share of the places that a rank has, drawn by each
    spread: float  # of the samples at them: deviation of the logarithm of their mean
    counted: bool  # whether there are counts and metrics of instructions
    metrics: int  # of a launch


SHAPES: Final[Mapping[str, Shape]] = {
    # 150,000 rows: of samples 51,600, of counts and metrics of instructions 86,000, of metrics 12,800.
    "reports": Shape(
        kernels=2,
        launches=10,
        instructions=860,
        sampled=3,
        there=1.0,
        spread=0.0,
        counted=True,
        metrics=640,
    ),
    # 65,100 rows of samples at 67,200 places, which differ from rank to rank, and next to nothing else.
    "samples": Shape(
        kernels=8,
        launches=1,
        instructions=1680,
        sampled=5,
        there=0.969,
        spread=1.2,
        counted=False,
        metrics=1,
    ),
}


def smaller(shape: Shape, instructions: int) -> Shape:
    """The same with fewer instructions, and one metric of a launch."""
    return dataclasses.replace(shape, instructions=instructions, metrics=1)


def _template(shape: Shape) -> Profile:
    choice = random.Random(7)
    names = [f"kernel_{at}" for at in range(shape.kernels)]
    cubin = tiny_cubin({name: [] for name in names}, instructions=shape.instructions)
    launches = []
    for kernel in names:
        places = [(kernel, 16 * at) for at in range(shape.instructions)]
        launch = LaunchSpec(
            kernel=kernel,
            cubin=cubin,
            samples={
                (*place, reason): (choice.randrange(1, 50), 1)
                for place in places
                for reason in choice.sample(_REASONS, shape.sampled)
            },
            counts=dict.fromkeys(places, (1000, 32000)) if shape.counted else {},
            pc_metrics={
                name: {place: choice.randrange(1, 1000) for place in places}
                for name in (_BY_INSTRUCTION if shape.counted else ())
            },
            metrics={f"unit__counter_{at}.sum": choice.randrange(1, 10**9) for at in range(shape.metrics)},
        )
        launches += [launch] * shape.launches
    return load_bytes(write_report(launches))


def _make(profile: Profile, shape: Shape, rank: int, path: Path) -> None:
    """One rank's snapshot: numbers of its own at the places of all, or at most of them."""
    draw = np.random.default_rng(rank)
    kernels = []
    for kernel in profile.kernels:
        had = draw.random(len(kernel.samples.total)) < shape.there
        samples = PcSamples(
            **{
                field.name: getattr(kernel.samples, field.name)[had]
                for field in dataclasses.fields(PcSamples)
            }
        )
        total = draw.poisson(60 * draw.lognormal(0, shape.spread, len(samples.total))) + 1
        kernels.append(
            dataclasses.replace(
                kernel,
                launch=dataclasses.replace(kernel.launch, duration_ns=float(draw.normal(1e6, 1e4))),
                samples=dataclasses.replace(
                    samples,
                    total=total.astype(samples.total.dtype),
                    latency=draw.binomial(total, 0.6).astype(samples.latency.dtype),
                ),
                counts=kernel.counts and _drawn(kernel.counts, draw),
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


def _drawn(counts: PcCounts, draw: np.random.Generator) -> PcCounts:
    warps = draw.integers(900, 1100, len(counts.warps))
    return dataclasses.replace(
        counts,
        warps=warps.astype(counts.warps.dtype),
        threads=(32 * warps).astype(counts.threads.dtype),
    )


def make(folder: Path, count: int, shape: Shape) -> list[Path]:
    """As many snapshots, made where they are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"app.rank{rank}.gpadvisor" for rank in range(count)]
    profile = _template(shape)
    with ProcessPoolExecutor() as pool:
        own = [(rank, path) for rank, path in enumerate(paths[:DISTINCT]) if not path.exists()]
        if own:
            alike = [profile] * len(own), [shape] * len(own)
            list(pool.map(_make, *alike, *zip(*own, strict=True)))
    for rank, path in enumerate(paths[DISTINCT:]):
        if not path.exists():
            shutil.copyfile(paths[rank % DISTINCT], path)
    return paths


def measured(paths: list[Path], *words: str) -> str:
    """Processor seconds and memory of one sum."""
    target = FOLDER / "sum.gpadvisor"
    before = os.times()
    started = time.perf_counter()
    listing, watcher = FOLDER / "peak", FOLDER / "watcher.py"
    command = [sys.executable, "-m", "gpadvisor", "aggregate", *map(str, paths), *words, "-o", str(target)]
    # A file, since one argument does not hold the names of thousands.
    watcher.write_text(
        f"import resource, subprocess\nsubprocess.run({command!r}, check=True, stdout=2)\n"
        f"open({str(listing)!r}, 'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))\n"
    )
    subprocess.run([sys.executable, str(watcher)], check=True, stderr=subprocess.DEVNULL)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    peak = int(listing.read_text()) / 1024
    wall = time.perf_counter() - started
    return f"{cpu:6.2f} s of processor ({wall:.1f} s), {peak:5.0f} MiB, {target.stat().st_size:,} bytes"


def main() -> None:
    """Print a row for each number of profiles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profiles", type=int, nargs="*", default=[10, 50, 200, 1000])
    parser.add_argument("--shape", choices=SHAPES, default="reports", help="what the profiles have")
    arguments = parser.parse_args()
    numbers = arguments.profiles
    paths = make(FOLDER / f"ranks-{arguments.shape}", max(numbers), SHAPES[arguments.shape])
    print(f"snapshots of {paths[0].stat().st_size:,} bytes")
    for number in numbers:
        for words in ((), ("--partial",)):
            print(f"{number:6,} {' '.join(words):9} {measured(paths[:number], *words)}", flush=True)


if __name__ == "__main__":
    main()
