# SPDX-License-Identifier: Apache-2.0
"""``python -m bench``: times as ratios to one ``nvdisasm -json`` of the same input, and peak memory."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from tests.kernels import nvdisasm_path

from bench.inputs import FOLDER, Input, make_input
from bench.measure import (
    Command,
    Run,
    interleaved,
    median_cpu_ratio,
    median_ratio,
    median_seconds,
    peak_mib,
    run,
)
from bench.sources import Size

SIZES = (
    Size(instructions=1_000, kernels=1),
    Size(instructions=5_000, kernels=1),
    Size(instructions=20_000, kernels=1),
    Size(instructions=20_000, kernels=10),
    Size(instructions=20_000, kernels=100),
    Size(instructions=100_000, kernels=5),
)
AIMS = {"structure": 1.5, "advice": 2.5}
VIEWS_AIM = 0.1
"""Of the advice's processor time, for roofline, potential and tree together."""
_HEADS = (
    *("kernels", "instructions", "sampled PCs", "nvdisasm -json"),
    *("structure", "whole advice", "structure, CPU", "advice, CPU", "warm", "bare Python"),
    *("peak of nvdisasm", "of structure", "of advice"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One input with all its runs."""

    input: Input
    runs: dict[str, list[Run]]
    stages: dict[str, dict[str, float]]
    views: list[dict[str, float]]  # seconds of processor time of advice and views, each round in one process

    @property
    def views_share(self) -> float:
        """Of the advice's processor time, what all views cost; the median of the rounds."""
        return statistics.median((sum(one.values()) - one["advice"]) / one["advice"] for one in self.views)


def commands(entry: Input, tool: str) -> list[Command]:
    """What is compared: the bare tool first."""
    python = sys.executable
    cache = str(FOLDER / "cache")
    advise = (python, "-m", "gpadvisor", "advise", str(entry.report))
    return [
        Command(name="nvdisasm", arguments=(tool, "-json", str(entry.cubin))),
        Command(name="structure", arguments=(python, "-m", "bench.structure", str(entry.cubin))),
        Command(name="advice", arguments=advise, environment={"GPADVISOR_CACHE": ""}),
        Command(name="warm", arguments=advise, environment={"GPADVISOR_CACHE": cache}),
        Command(name="python", arguments=(python, "-c", "pass")),
    ]


def measure(size: Size, rounds: int, tool: str) -> Case:
    """All runs of one size."""
    # A process's peak starts at that of the one that begins it, so this one stays small.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        entry = pool.submit(make_input, size).result()
    said = f"compiled in {entry.compile_seconds:.1f} s" if entry.compile_seconds else "compiled before"
    print(f"{size.name}: {entry.instructions} instructions, {said}", file=sys.stderr, flush=True)
    wanted = commands(entry, tool)
    shutil.rmtree(FOLDER / "cache", ignore_errors=True)
    for command in wanted:
        run(command)  # warms the disk cache, and ours for the warm run
    stages = {
        "structure": _last_line("bench.stages", "structure", entry.cubin),
        "advise": _last_line("bench.stages", "advise", entry.report),
    }
    views = [_last_line("bench.views", entry.report) for _ in range(rounds)]
    return Case(input=entry, runs=interleaved(wanted, rounds), stages=stages, views=views)


def _last_line(module: str, *arguments: str | os.PathLike[str]) -> dict[str, float]:
    """What a module of ours prints at its end, without a cache."""
    done = subprocess.run(
        [sys.executable, "-m", module, *(os.fspath(one) for one in arguments)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "GPADVISOR_CACHE": ""},
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(cases: list[Case]) -> str:
    """Ratios and memory, Markdown."""
    rows = [
        f"| {' | '.join(_HEADS)} |",
        "|" + "---:|" * len(_HEADS),
    ]
    for case in cases:
        base = case.runs["nvdisasm"]
        cells = [
            str(case.input.size.kernels),
            f"{case.input.instructions:,}",
            f"{case.input.sampled_pcs:,}",
            f"{median_seconds(base):.2f} s",
            *(f"{median_ratio(case.runs[name], base):.2f}x" for name in ("structure", "advice")),
            *(f"{median_cpu_ratio(case.runs[name], base):.2f}x" for name in ("structure", "advice")),
            *(f"{median_seconds(case.runs[name]):.2f} s" for name in ("warm", "python")),
            *(f"{peak_mib(case.runs[name]):.0f} MiB" for name in ("nvdisasm", "structure", "advice")),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def stage_table(cases: list[Case], what: str) -> str:
    """Where the time goes, in milliseconds, Markdown."""
    names = list(dict.fromkeys(name for case in cases for name in case.stages[what]))
    heads = [
        f"{case.input.size.kernels} x {case.input.instructions // case.input.size.kernels:,}"
        for case in cases
    ]
    rows = [f"| {what}: ms | {' | '.join(heads)} |", "|---|" + "---:|" * len(cases)]
    for name in names:
        cells = [f"{1000 * case.stages[what].get(name, 0.0):.0f}" for case in cases]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def view_table(cases: list[Case]) -> str:
    """What the views cost beside the advice, Markdown."""
    names = list(dict.fromkeys(name for case in cases for name in case.views[0]))
    rows = [
        f"| kernels | instructions | {', ms | '.join(names)}, ms | views |",
        "|" + "---:|" * (len(names) + 3),
    ]
    for case in cases:
        medians = (statistics.median(one[name] for one in case.views) for name in names)
        cells = [f"{1000 * seconds:.0f}" for seconds in medians]
        rows.append(
            f"| {case.input.size.kernels} | {case.input.instructions:,} | {' | '.join(cells)} "
            f"| {100 * case.views_share:.1f} % |"
        )
    return "\n".join(rows)


def missed_aims(cases: list[Case]) -> list[str]:
    """Where a ratio is above its aim, from 20,000 instructions up."""
    return [
        f"{case.input.size.name}: {name} {ratio:.2f}x, aim {aim}x"
        for case in cases
        if case.input.size.instructions >= 20_000
        for name, aim in AIMS.items()
        if (ratio := median_ratio(case.runs[name], case.runs["nvdisasm"])) > aim
    ] + [
        f"{case.input.size.name}: views {case.views_share:.2f} of the advice, aim {VIEWS_AIM}"
        for case in cases
        if case.views_share > VIEWS_AIM
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each command (default 5)")
    parser.add_argument("--largest", type=int, default=100_000, help="leave out larger inputs")
    options = parser.parse_args()
    tool = nvdisasm_path()
    if tool is None:
        raise SystemExit("nvdisasm is missing: pip install nvidia-cuda-nvdisasm")
    sizes = [size for size in SIZES if size.instructions <= options.largest]
    cases, failed = [], []
    for size in sizes:
        try:
            cases.append(measure(size, options.rounds, str(tool)))
        except (RuntimeError, subprocess.CalledProcessError) as error:
            failed.append(f"{size.name}: {error}")
    where = f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    print(f"{where}, medians of {options.rounds} rounds\n")
    print(table(cases))
    for what in ("structure", "advise"):
        print(f"\n{stage_table(cases, what)}")
    print(f"\n{view_table(cases)}")
    missed = missed_aims(cases)
    print("\n" + ("\n".join(["aims missed:", *missed]) if missed else "all aims met"))
    if failed:
        raise SystemExit("\n".join(["not measured:", *failed]))


if __name__ == "__main__":
    main()
