# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.injection``: what the injection library adds to a launch, beside a system call.

The driver is the tests' stand-in, whose launch does nothing but call back, so that all that is seen is ours.
Each process times launches at a depth of 20 calls and ``getppid`` in turns; ratios are of the two in one
process.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from tests.injection import Stand, build_stand

ROUNDS = 7
LAUNCHES = 20_000
WAYS = {
    "no library": None,
    "launches only": {"GPADVISOR_COLLECT_STACKS": "0"},
    "with call stacks": {"GPADVISOR_COLLECT_STACKS": "1"},
}


def measured(stand: Stand, way: str, threads: int, folder: Path) -> float:
    """Launch time over the time of a system call, the median over threads."""
    wanted = WAYS[way]
    environment = dict(stand.environment)
    if wanted is not None:
        output = folder / "out"
        output.mkdir()
        # No samples and no activity records: they do not come on the launching thread.
        quiet = {"FAKE_CUPTI": "enable=35", "GPADVISOR_COLLECT_TIMES": "0"}
        environment = stand.variables(output, folder / "truth", **quiet, **wanted)
    done = subprocess.run(
        [str(stand.host), f"measure{threads}", str(stand.image), str(LAUNCHES // 1000)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
    return statistics.median(launch / call for launch, call in rows)


def main() -> None:
    """Print a table in Markdown."""
    with tempfile.TemporaryDirectory() as place:
        stand = build_stand(Path(place), flags=("-O2",))
        processors = len(os.sched_getaffinity(0))
        print(f"A launch in units of getppid; {processors} processors, {ROUNDS} runs, medians.\n")
        print("| threads | " + " | ".join(WAYS) + " |")
        print("|---|" + "---|" * len(WAYS))
        for threads in (1, 2, 4):
            found: dict[str, list[float]] = {way: [] for way in WAYS}
            for turn in range(ROUNDS):
                for way in WAYS:  # in turns, so that all meet the same disturbances
                    folder = Path(place) / f"{threads}-{turn}-{list(WAYS).index(way)}"
                    folder.mkdir()
                    found[way].append(measured(stand, way, threads, folder))
            cells = [f"{statistics.median(values):.1f}" for values in found.values()]
            print(f"| {threads} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
