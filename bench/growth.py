# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.growth``: how the cost of advice grows with the code, kernels, launches and reports."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from tests.kernels import compile_text
from tests.ncu_writer import write_report
from tests.sampled import sampled, sampled_launch

from bench.inputs import ARCH, FOLDER, make_input
from bench.measure import Command, Run, run
from bench.sources import Size

INSTRUCTIONS: Final = {1_000: 1, 5_000: 1, 20_000: 1, 100_000: 5, 400_000: 20}
"""By how many there are about, in kernels of 20,000 at most."""
KERNELS: Final = (1, 10, 100, 500, 2_000)
EACH: Final = 200
"""Instructions of a kernel, about, where kernels are counted."""
LAUNCHES: Final = (1, 10, 100, 1_000, 5_000)
REPORTS: Final = (1, 3, 10, 30, 100)
_SMALL: Final = "thermal_stencil"
_TINY: Final = """\
extern "C" __global__ void tiny(float* x, int n) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n) x[at] = 2.0f * x[at];
}
"""


class Point(NamedTuple):
    """What advice on an input of a size took."""

    size: int
    cost: Run


def _instructions(wanted: int) -> tuple[int, list[Path]]:
    entry = make_input(Size(instructions=wanted, kernels=INSTRUCTIONS[wanted]))
    return entry.instructions, [entry.report]


def _kernels(count: int) -> tuple[int, list[Path]]:
    return count, [make_input(Size(instructions=EACH * count, kernels=count)).report]


def _launches(count: int) -> tuple[int, list[Path]]:
    launch = sampled(compile_text(_TINY, "tiny.cu", ARCH), "tiny", seed="growth")
    report = FOLDER / f"launches-{count}.ncu-rep"
    report.write_bytes(write_report([replace(launch, duration_ns=1e6 + at) for at in range(count)]))
    return count, [report]


def _reports(count: int) -> tuple[int, list[Path]]:
    launch = sampled_launch(_SMALL)
    folder = FOLDER / f"reports-{count}"
    folder.mkdir(exist_ok=True)
    reports = [folder / f"{at:03}.ncu-rep" for at in range(count)]
    for at, report in enumerate(reports):
        report.write_bytes(write_report([replace(launch, duration_ns=1e6 + at)]))
    return count, reports


Made = Callable[[int], tuple[int, list[Path]]]
"""Inputs of a size, with how large they came out."""
WAYS: Final[dict[str, tuple[tuple[int, ...], Made]]] = {
    "instructions": (tuple(INSTRUCTIONS), _instructions),
    "kernels": (KERNELS, _kernels),
    "launches": (LAUNCHES, _launches),
    "reports": (REPORTS, _reports),
}


def slope(points: Sequence[Point]) -> float | None:
    """The power of what is more that the cost grows with between the two largest, beyond the smallest.

    What every run costs, such as imports, would hide growth at small sizes.
    """
    if len(points) < 3:
        return None
    start, *more = points[0], *points[-2:]
    sizes = [one.size - start.size for one in more]
    costs = [one.cost.cpu_seconds - start.cost.cpu_seconds for one in more]
    return math.log(costs[1] / costs[0]) / math.log(sizes[1] / sizes[0]) if min(costs) > 0 else None


def table(what: str, points: Sequence[Point]) -> str:
    """Markdown."""
    rows = [f"| {what} | processor time | each more | wall | peak |", "|---:|" + "---:|" * 4]
    for before, (size, cost) in zip([None, *points], points, strict=False):
        more = "" if before is None else _each(before, Point(size, cost))
        seconds = f"{cost.cpu_seconds:.1f} s | {more} | {cost.seconds:.1f} s"
        rows.append(f"| {size:,} | {seconds} | {cost.peak_mib:.0f} MiB |")
    power = slope(points)
    return "\n".join([*rows, "", f"slope of {what}: {'not known' if power is None else f'{power:.2f}'}"])


def _each(before: Point, after: Point) -> str:
    seconds = (after.cost.cpu_seconds - before.cost.cpu_seconds) / (after.size - before.size)
    return f"{1e3 * seconds:.3g} ms"


def measure(what: str, largest: float) -> list[Point]:
    """Advice as JSON, without a cache, of inputs of each size."""
    sizes, made = WAYS[what]
    points = []
    FOLDER.mkdir(parents=True, exist_ok=True)
    for wanted in (size for size in sizes if size <= largest):
        size, inputs = made(wanted)
        words = ("-m", "gpadvisor", "advise", *map(os.fspath, inputs), "--format", "json")
        command = Command(name=what, arguments=(sys.executable, *words), environment={"GPADVISOR_CACHE": ""})
        points.append(Point(size, run(command)))
        print(f"{what}: {points[-1]}", file=sys.stderr, flush=True)
    return points


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.growth", description=__doc__)
    parser.add_argument("ways", nargs="*", choices=[[], *WAYS], help="what grows (default: each)")
    parser.add_argument("--largest", type=float, default=math.inf, help="leave out larger sizes")
    options = parser.parse_args()
    for what in options.ways or WAYS:
        print(table(what, measure(what, options.largest)), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
