# SPDX-License-Identifier: Apache-2.0
"""The simulator's caches beside a GPU's: hits in L1, sectors from and to DRAM, times and speedups.

``python -m tests.validation.caches [FOLDER]`` prints it for the kernels of ``fixtures/kernels``, of which the
folder (else ``fixtures/captures``) has Nsight Compute's counters and times. With ``--hit-rate 0.5`` hits are
taken for granted, as they are where addresses are not known.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kernels import Which
from tests.simulations import run_fixture
from tests.validation.captures import FOLDER, Captures
from tests.validation.what_ifs import within_range

from gpadvisor.model.machine import SECTOR_BYTES

_L1_HITS: Final = "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct"
_READ, _WRITTEN = "dram__sectors_read.sum", "dram__sectors_write.sum"
_CYCLES: Final = "sm__cycles_active.avg"
_VERSIONS: Final[tuple[Which, Which]] = ("before", "after")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One version of a kernel, on the GPU or in the simulator."""

    milliseconds: float | None
    cycles: float | None  # in which an SM holds a warp, on average
    l1_hits: float | None  # of loads, in percent
    read: float  # megabytes
    written: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Both of one version."""

    kernel: str
    version: Which
    measured: Run
    simulated: Run


def rows(captures: Captures, arch: str, hit_rate: float | None = None) -> Iterator[Row]:
    """Every version of every kernel that was measured."""
    told = {} if hit_rate is None else {"l1_hit_rate": hit_rate, "l2_hit_rate": hit_rate}
    for kernel in captures.kernels():
        for version in _VERSIONS:
            report, times = captures.report(kernel, version), captures.times(kernel, version)
            if report is None or not times:
                continue
            (launch,) = report.kernels
            found = run_fixture(kernel, version, arch, **told)
            seconds = found.duration_seconds
            yield Row(
                kernel=kernel,
                version=version,
                measured=Run(
                    milliseconds=statistics.median(times),
                    cycles=launch.metric(_CYCLES),
                    l1_hits=launch.metric(_L1_HITS),
                    read=(launch.metric(_READ) or 0.0) * SECTOR_BYTES / 1e6,
                    written=(launch.metric(_WRITTEN) or 0.0) * SECTOR_BYTES / 1e6,
                ),
                simulated=Run(
                    milliseconds=None if seconds is None else seconds * 1e3,
                    cycles=found.profile.metric(_CYCLES),
                    l1_hits=found.profile.metric("l1tex__t_sector_hit_rate.pct"),
                    read=(found.profile.metric(_READ) or 0.0) * SECTOR_BYTES / 1e6,
                    written=(found.profile.metric(_WRITTEN) or 0.0) * SECTOR_BYTES / 1e6,
                ),
            )


def _number(value: float | None, width: int, digits: int) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:{width}.{digits}f}"


def table(found: Sequence[Row]) -> list[str]:
    """One line for each version, measured beside simulated."""
    lines = [f"{'':26} {'ms':>17}  {'L1 hits, %':>13}  {'DRAM read, MB':>17}  {'written, MB':>17}"]
    for row in found:
        one, other = row.measured, row.simulated
        name = f"{row.kernel}, {row.version}"
        parts = (
            f"{name:26} {_number(one.milliseconds, 8, 3)} {_number(other.milliseconds, 8, 3)}",
            f"{_number(one.l1_hits, 6, 1)} {_number(other.l1_hits, 6, 1)}",
            f"{_number(one.read, 8, 1)} {_number(other.read, 8, 1)}",
            f"{_number(one.written, 8, 1)} {_number(other.written, 8, 1)}",
        )
        lines.append("  ".join(parts))
    return lines


def figures(found: Sequence[Row]) -> list[str]:
    """How far apart both are."""
    hits = [
        abs(row.simulated.l1_hits - row.measured.l1_hits)
        for row in found
        if row.simulated.l1_hits is not None and row.measured.l1_hits is not None
    ]
    reads = [
        abs(math.log(max(row.simulated.read, 1.0) / max(row.measured.read, 1.0))) for row in found
    ]  # what is less than a megabyte is nothing
    times = {
        (row.kernel, row.version): (row.measured.milliseconds, row.simulated.milliseconds) for row in found
    }
    near = [abs(math.log(two / one)) for one, two in times.values() if one and two]
    cycles = [
        abs(math.log(row.simulated.cycles / row.measured.cycles))
        for row in found
        if row.simulated.cycles and row.measured.cycles
    ]
    speedups, ratios = [], []
    for kernel in dict.fromkeys(row.kernel for row in found):
        before, after = times.get((kernel, "before")), times.get((kernel, "after"))
        if before and after and all((*before, *after)):
            measured, simulated = (float(before[k] or 0) / float(after[k] or 1) for k in (0, 1))
            speedups.append((abs(math.log(simulated / measured)), abs(math.log(measured))))
            ratios.append(measured / simulated)
    lines = [f"{'versions':45} {len(found)}"]
    if hits:
        lines.append(f"{'hits in L1 of loads, points apart':45} {_means(hits)}")
    lines.append(f"{'|ln(simulated / measured)| of DRAM reads':45} {_means(reads)}")
    lines.append(f"{'  of times':45} {_means(near)}")
    lines.append(f"{'  of cycles, without launching':45} {_means(cycles)}")
    if speedups:
        lines.append(f"{'  of speedups':45} {_means([one for one, _ in speedups])}")
        lines.append(f"{'  of always 1.0x':45} {_means([one for _, one in speedups])}")
        lines.append(within_range(ratios))
    return lines


def _means(values: Sequence[float]) -> str:
    return f"mean {statistics.fmean(values):.2f}, median {statistics.median(values):.2f} ({len(values)})"


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--hit-rate", type=float)
    given = parser.parse_args()
    places = [given.folder] if given.folder else sorted(entry for entry in FOLDER.glob("*") if entry.is_dir())
    for place in places:
        captures = Captures(place)
        if captures.gpu is None:
            sys.stdout.write(f"{place}: no measured times\n")
            continue
        found = list(rows(captures, captures.gpu.arch, given.hit_rate))
        sys.stdout.write("\n".join([captures.gpu.name, *table(found), "", *figures(found), ""]))


if __name__ == "__main__":
    main()
