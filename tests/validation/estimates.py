# SPDX-License-Identifier: Apache-2.0
"""Estimate quality: what the advice for a kernel promises beside what the simulator makes of the cure.

Run as ``python -m tests.validation.estimates [--arch sm_80 ...]``. For each pair of ``fixtures/kernels`` the
range of the planted optimizer comes, by its equation, from the modelled profile of *before* (of the first
seed alone, as a user has it); the speedup is the duration of *before* over that of *after*, the geometric
mean over the seeds. Hits go by address, as they do in ``advise --model``.
Finished pairs are kept under ``build/validation``, so that a run which was stopped goes on where it was.
Where archives of the capture kit lie in ``fixtures/captures``, what a GPU made of the cure stands beside it.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from tests.kernels import KERNELS, Kernel, compile_kernel
from tests.simulations import program_of, run_fixture
from tests.validation.captures import Measured, measured_speedups
from tests.validation.finished import finished

from gpadvisor import machine
from gpadvisor.advice.kernel import advise_kernel
from gpadvisor.advice.standing import NO_THRESHOLDS
from gpadvisor.analyzer.occupancy import kernel_occupancy
from gpadvisor.blamer import blame
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import KernelAdvice
from gpadvisor.model.profile import Evidence
from gpadvisor.rules import OPTIMIZERS
from gpadvisor.simulator import Simulation

SEEDS: Final = 3
LOW_EXPECTED: Final = 1.05
"""A trap is one that comes out if nothing is advised, or no more than this is expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One kernel before and after: what was promised, and what came of it."""

    name: str
    arch: str
    code: str
    trap: bool
    achieved: float  # geometric mean over the seeds
    least: float  # over the seeds
    most: float
    advised: bool  # False: the optimizer does not apply, which promises 1.0x
    low: float
    expected: float
    high: float
    paper: float
    reason: str  # of the estimate or of the rejection
    measured: float | None = None  # on a GPU of this architecture

    @property
    def inside(self) -> bool:
        """Whether the predicted range holds what was achieved."""
        return self.low <= self.achieved <= self.high

    @property
    def comes_out(self) -> bool:
        """Of a trap: whether nothing, or little, is promised."""
        return not self.advised or self.expected <= LOW_EXPECTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """Published figures of the same kind, measured on real GPUs."""

    title: str
    achieved: float
    estimated: float
    error: float
    high: int
    rows: int


TABLE_III: Final = Anchor(
    title="GPA, Table III (V100, the benchmark's own rows; the paper states a mean error of 4.1 %)",
    achieved=1.22,
    estimated=1.26,
    error=0.066,
    high=18,
    rows=26,
)


def advice_of(kernel: Kernel, arch: str, simulation: Simulation) -> KernelAdvice:
    """Everything the engine says about the modelled profile of *before*."""
    program, table = program_of(compile_kernel(kernel.name, "before", arch)), machine.load(arch)
    profile = simulation.profile
    context = KernelContext(
        kernel=kernel.entry,
        program=program,
        machine=table,
        occupancy=kernel_occupancy(table, program.facts[kernel.entry], profile),
        evidence=Evidence.MODELLED,
        profile=profile,
        blame=blame(program, profile, table),
    )
    return advise_kernel(context, OPTIMIZERS, top=None, limits=NO_THRESHOLDS)


def pair_of(name: str, arch: str, seeds: int = SEEDS) -> Pair:
    """Simulate both versions and put the promise beside the result."""
    kernel = KERNELS[name]
    speedups, first = [], None
    for seed in range(1, seeds + 1):
        before, after = (run_fixture(name, which, arch, seed=seed) for which in ("before", "after"))
        if before.duration_seconds is None or after.duration_seconds is None:
            raise RuntimeError(f"{name} for {arch} does not end within the simulator's limits")
        speedups.append(before.duration_seconds / after.duration_seconds)
        first = first or before
    assert first is not None
    advice = advice_of(kernel, arch, first)
    row = {
        "name": name,
        "arch": arch,
        "code": kernel.plants,
        "trap": kernel.trap,
        "achieved": statistics.geometric_mean(speedups),
        "least": min(speedups),
        "most": max(speedups),
    }
    found = next((one for one in advice.suggestions if one.code == kernel.plants), None)
    if found is None or found.speedup is None:
        told = [one.reason for one in advice.rejected if one.code == kernel.plants]
        told += [f"a note: {one.advice}" for one in advice.notes if one.code == kernel.plants]
        reason = next(iter(told), "")
        return Pair(**row, advised=False, low=1.0, expected=1.0, high=1.0, paper=1.0, reason=reason)
    estimate = found.speedup
    return Pair(
        **row,
        advised=True,
        low=estimate.low,
        expected=estimate.expected,
        high=estimate.high,
        paper=estimate.paper if estimate.paper is not None else 1.0,
        reason=estimate.reason,
    )


def pairs(
    names: Sequence[str],
    archs: Sequence[str],
    measured: Mapping[tuple[str, str], Measured] = MappingProxyType({}),
) -> list[Pair]:
    """All pairs, with a line of progress for each."""
    wanted = [(name, arch) for name in names for arch in archs if arch in KERNELS[name].architectures]
    found = []
    for at, (name, arch) in enumerate(wanted, 1):
        sys.stderr.write(f"estimates: {at} of {len(wanted)}, {name} for {arch}\n")
        make: Callable[[], dict[str, Any]] = partial(_row, name, arch)
        row = Pair(**finished("estimate", (name, arch, SEEDS), name, make))
        on_gpu = measured.get((name, arch))
        found.append(row if on_gpu is None else replace(row, measured=on_gpu.speedup))
    return found


def _row(name: str, arch: str) -> dict[str, Any]:
    return asdict(pair_of(name, arch))


# ---- figures ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The quality of estimates over some pairs."""

    pairs: int
    without_advice: int
    achieved: float  # geometric mean
    estimated: float  # of the expected values
    error: float  # mean of |expected - achieved| / achieved
    bias: float  # mean of (expected - achieved) / achieved
    high: int  # estimates above what was achieved
    inside: float  # share of pairs whose range holds it
    width: float  # median of high / low
    log_error: float  # mean of |ln(expected / achieved)|
    log_error_paper: float
    log_error_one: float


def figures(rows: Sequence[Pair]) -> Figures:
    """Sum up; pairs without advice promise 1.0x."""

    def log_error(estimates: Iterable[float]) -> float:
        return statistics.fmean(
            abs(math.log(one / row.achieved)) for one, row in zip(estimates, rows, strict=True)
        )

    errors = [row.expected / row.achieved - 1 for row in rows]
    return Figures(
        pairs=len(rows),
        without_advice=sum(not row.advised for row in rows),
        achieved=statistics.geometric_mean(row.achieved for row in rows),
        estimated=statistics.geometric_mean(row.expected for row in rows),
        error=statistics.fmean(abs(one) for one in errors),
        bias=statistics.fmean(errors),
        high=sum(one > 0 for one in errors),
        inside=sum(row.inside for row in rows) / len(rows),
        width=statistics.median(row.high / row.low for row in rows),
        log_error=log_error(row.expected for row in rows),
        log_error_paper=log_error(row.paper for row in rows),
        log_error_one=log_error(1.0 for _ in rows),
    )


def _table(rows: Sequence[Pair]) -> list[str]:
    heads = (
        f"{'low':>6} {'expect':>6} {'high':>6} {'paper':>6} {'simulated':>9} {'of seeds':>11} {'error':>7}"
    )
    on_gpu = any(row.measured is not None for row in rows)
    lines = [f"{'kernel':18} {'for':6} {'rule':7} {heads}{'   measured' if on_gpu else ''}"]
    for row in sorted(rows, key=lambda row: (row.code, row.name, row.arch)):
        promised = (
            f"{row.low:6.2f} {row.expected:6.2f} {row.high:6.2f} {row.paper:6.2f}"
            if row.advised
            else f"{'no advice':>27}"
        )
        lines.append(
            f"{row.name:18} {row.arch:6} {row.code:7} {promised} {row.achieved:8.2f}x "
            f"{row.least:5.2f}-{row.most:<5.2f} {row.expected / row.achieved - 1:+7.1%}"
            f"{_on_gpu(row) if on_gpu else ''}{'' if row.inside else '  outside'}"
        )
    return lines


def _on_gpu(row: Pair) -> str:
    return f"{'':>11}" if row.measured is None else f" {row.measured:9.2f}x"


def _measured(rows: Sequence[Pair]) -> list[str]:
    """The same figures against a GPU, over the pairs that were timed on one."""
    timed = [replace(row, achieved=row.measured) for row in rows if row.measured is not None]
    if not timed:
        return []
    one = figures(timed)
    near = statistics.fmean(
        abs(math.log(row.achieved / row.measured)) for row in rows if row.measured is not None
    )
    return [
        "",
        "Against what was measured on a GPU:",
        f"{'pairs':44} {one.pairs:8}",
        f"{'geometric mean measured':44} {one.achieved:7.2f}x",
        f"{'geometric mean estimated':44} {one.estimated:7.2f}x",
        f"{'mean error per row':44} {one.error:8.1%}",
        f"{'inside the range':44} {one.inside:8.1%}",
        f"{'mean log error of expected':44} {one.log_error:8.3f}",
        f"{'mean log error of the simulator':44} {near:8.3f}",
    ]


def report(title: str, rows: Sequence[Pair]) -> str:
    """The table, the figures over all that are no traps, the traps, and why pairs lie outside."""
    own = [row for row in rows if not row.trap]
    traps = [row for row in rows if row.trap]
    lines = [f"## {title}", ""]
    if own:
        lines += [*_table(own), "", *_sums(figures(own)), *_measured(own)]
        lines += ["", "Outside their range:"]
        lines += [
            f"  {row.name} {row.arch}: {row.achieved:.2f}x; {row.reason}" for row in own if not row.inside
        ]
    if traps:
        lines += ["", f"Traps (no advice, or at most {LOW_EXPECTED}x expected):"]
        lines += [_trap(row) for row in traps]
    return "\n".join([*lines, ""])


def _trap(row: Pair) -> str:
    said = f"{row.low:.2f}-{row.high:.2f}x (expected {row.expected:.2f}x)" if row.advised else "no advice"
    outcome = "comes out" if row.comes_out else "IS MISSED"
    return (
        f"  {row.name} {row.arch} {row.code}: {outcome}, {said}, simulated {row.achieved:.2f}x; {row.reason}"
    )


def _sums(one: Figures) -> list[str]:
    anchor = TABLE_III
    return [
        f"{'':44} {'ours':>8} {'GPA':>8}",
        f"{'pairs':44} {one.pairs:8} {anchor.rows:8}",
        f"{'without advice (counted as 1.0x)':44} {one.without_advice:8}",
        f"{'geometric mean achieved':44} {one.achieved:7.2f}x {anchor.achieved:7.2f}x",
        f"{'geometric mean estimated':44} {one.estimated:7.2f}x {anchor.estimated:7.2f}x",
        f"{'mean error per row':44} {one.error:8.1%} {anchor.error:8.1%}",
        f"{'signed bias':44} {one.bias:+8.1%}",
        f"{'estimates high':44} {f'{one.high} of {one.pairs}':>8} {f'{anchor.high} of {anchor.rows}':>8}",
        f"{'inside the range (aim at least 80 %)':44} {one.inside:8.1%}",
        f"{'median of high / low (aim at most 1.5)':44} {one.width:8.2f}",
        f"{'mean log error of expected':44} {one.log_error:8.3f}",
        f"""{"  of the paper's formula":44} {one.log_error_paper:8.3f}""",
        f"{'  of always 1.0x':44} {one.log_error_one:8.3f}",
    ]


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    measured = measured_speedups()
    usual = dict.fromkeys(["sm_80", "sm_90", *(arch for _, arch in measured)])
    parser.add_argument("--arch", nargs="+", default=list(usual))
    parser.add_argument("--kernel", nargs="+", default=list(KERNELS))
    options = parser.parse_args()
    rows = pairs(options.kernel, options.arch, measured)
    sys.stdout.write(report(", ".join(options.arch), rows))
    sys.stdout.write(f"\nGPA: {TABLE_III.title}\n")


if __name__ == "__main__":
    main()
