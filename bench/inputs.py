# SPDX-License-Identifier: Apache-2.0
"""The inputs of the benchmark, made once and kept under ``build/bench``: cubins, and reports with samples."""

from __future__ import annotations

import hashlib
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kernels import ROOT, compile_text, disassemble
from tests.ncu_writer import LaunchSpec, sections_of, write_report

from bench.sources import Size, cuda_source

FOLDER: Final = ROOT / "build" / "bench"
ARCH: Final = "sm_80"
SEED: Final = 2021

_REASONS: Final = {
    "LDG": "long_scoreboard",
    "LDS": "short_scoreboard",
    "MUFU": "short_scoreboard",
    "BAR": "barrier",
    "STG": "lg_throttle",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One cubin and a report of it."""

    size: Size
    cubin: Path
    report: Path
    instructions: int
    sampled_pcs: int
    compile_seconds: float | None  # None where it was there already


def make_input(size: Size) -> Input:
    """Generate, compile and sample; quick when the files of the same generator are there."""
    text = cuda_source(size)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    FOLDER.mkdir(parents=True, exist_ok=True)
    cubin = FOLDER / f"{size.name}-{digest}.cubin"
    started = time.perf_counter()
    fresh = not cubin.exists()
    if fresh:
        cubin.write_bytes(compile_text(text, f"{size.name}.cu", ARCH))
    seconds = time.perf_counter() - started if fresh else None
    data = cubin.read_bytes()
    launches = _launches(data, random.Random(SEED))
    report = cubin.with_suffix(".ncu-rep")
    report.write_bytes(write_report(launches))
    return Input(
        size=size,
        cubin=cubin,
        report=report,
        instructions=sum(bytes_ for _, bytes_ in sections_of(data).values()) // 16,
        sampled_pcs=sum(len({(name, pc) for name, pc, _ in launch.samples}) for launch in launches),
        compile_seconds=seconds,
    )


def _launches(cubin: bytes, choice: random.Random) -> list[LaunchSpec]:
    """One launch per kernel, with samples on about two thirds of its instructions."""
    listing = disassemble(cubin)
    launches = []
    for number, (section, (_, size)) in enumerate(sections_of(cubin).items()):
        lines = listing.get(section, [])
        samples: dict[tuple[str, int, str], tuple[int, int]] = {}
        counts = {}
        for index in range(min(size // 16, len(lines))):
            counts[section, 16 * index] = (1000, 32000)
            if choice.random() < 0.33:
                continue
            samples[section, 16 * index, "selected"] = (choice.randrange(1, 9), 0)
            before = lines[index - 1][0].partition(".")[0] if index else ""
            total = choice.randrange(1, 200)
            samples[section, 16 * index, _REASONS.get(before, "wait")] = (total, total * 2 // 3)
            if choice.random() < 0.2:
                samples[section, 16 * index, "long_scoreboard"] = (3 * total, 2 * total)
        launches.append(
            LaunchSpec(
                kernel=section, cubin=cubin, samples=samples, counts=counts, duration_ns=1e6 + 1e3 * number
            )
        )
    return launches
