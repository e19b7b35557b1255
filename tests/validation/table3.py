# SPDX-License-Identifier: Apache-2.0
"""GPA's Table III on the simulator: Rodinia's kernels before and after the published changes.

Run as ``python -m tests.validation.table3 [FOLDER]``, where the folder (else ``GPADVISOR_RODINIA``) is a
checkout of Rodinia with its ``cuda`` folder. Each kernel is compiled, simulated and advised as a user would
do it (``advise --model``); the published change is applied to its text and simulated with the same launch.
Finished rows are kept under ``build/validation``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from tests.kernels import ROOT
from tests.validation.table3_rows import ROWS, Row
from tests.validation.what_ifs import within_range

from gpadvisor.advice.standing import MIN_SPEEDUP
from gpadvisor.cli import options
from gpadvisor.errors import GpadvisorError
from gpadvisor.model.advice import Category, KernelAdvice
from gpadvisor.model.program import Program
from gpadvisor.pipeline.advise import AdvisedKernel, advise_file
from gpadvisor.pipeline.cache import Cache, file_digest, installation_digest
from gpadvisor.pipeline.code import open_code
from gpadvisor.pipeline.launches import StatedLaunch
from gpadvisor.pipeline.machines import machine_model
from gpadvisor.pipeline.modelled import configuration, model_kernel
from gpadvisor.pipeline.programs import kernel_program
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.same_work import same_work
from gpadvisor.pipeline.settings import Settings
from gpadvisor.pipeline.what_if import launch_as
from gpadvisor.simulator import Simulation, SimulationConfig

ARCH: Final = "sm_80"
"""What CUDA 13 makes code for; the table was measured on sm_70, which NVRTC 12 makes code for."""
SMS: Final = 80
"""Of the V100 that the table was measured on: which grids leave SMs idle depends on it."""
FIRST: Final = 2
"""The cure should be among so many first suggestions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the advice promised for a row, and what the simulator makes of the change."""

    simulated: float | None  # duration before over duration after; None where something failed
    rank: int | None  # of the rule among the suggestions with an estimate; None where it is not shown
    note: bool = False  # told in the details alone, with its range
    low: float = 1.0
    expected: float = 1.0
    high: float = 1.0
    equation: float | None = None  # the paper's value
    samples: int = 0
    same_work: bool = True
    """Whether both runs store as much: else guessed branches, not the change, make part of the ratio."""
    as_published: bool = True
    """Whether no other launch is told than the published one, of which the number would be."""
    told: float | None = None
    """Of another change that is told than the published one: what that gives when it is simulated."""
    failure: str = ""

    @property
    def inside(self) -> bool:
        """Whether the range holds what was simulated."""
        return self.simulated is not None and self.low <= self.simulated <= self.high

    @property
    def rightly_silent(self) -> bool:
        """Whether the advice shows nothing, and the change gains less than what is shown."""
        return self.rank is None and self.simulated is not None and self.simulated < MIN_SPEEDUP

    @property
    def error(self) -> float:
        """How far the expected value is off, relative to what was simulated."""
        return 0.0 if self.simulated is None else self.expected / self.simulated - 1

    @property
    def error_of_told(self) -> float:
        """The same, relative to the change that is told, where that is another one."""
        return self.error if self.told is None else self.expected / self.told - 1


def _read(folder: Path, name: str) -> str:
    return (folder / "cuda" / name).read_text(encoding="utf-8", errors="replace")


def text_of(row: Row, folder: Path) -> str:
    """One unit with the kernel as it is, in which the rest of the application is declared."""
    text = _read(folder, row.file)
    begin = re.search(row.begin, text) if row.begin else None
    start = 0 if begin is None else begin.start()
    end = re.compile(row.end).search(text, start + 1) if row.end else None
    own = text[start : len(text) if end is None else end.start()]
    parts = [_read(folder, name) for name in row.includes]
    # Declarations of the application stand behind the types that they use, and in front of the kernel.
    return replaced("\n".join([*parts, row.prelude, own]), row.port)


def replaced(text: str, changes: Sequence[tuple[str, str]]) -> str:
    """The text with every match of each expression replaced; one that matches nothing is an error."""
    for pattern, new in changes:
        text, count = re.subn(pattern, new, text)
        if not count:
            raise ValueError(f"nothing matches {pattern}")
    return text


def launch_of(row: Row, text: str, *, after: bool) -> StatedLaunch:
    """The row's launch, with its loops by line of this text."""
    lines = text.splitlines()
    loops = {
        number: passes
        for word, passes in row.loops.items()
        for number, line in enumerate(lines, 1)
        if word in line
    }
    return StatedLaunch(
        grid=(row.grid_after or row.grid) if after else row.grid,
        block=(row.block_after or row.block) if after else row.block,
        dynamic_shared_bytes=row.shared or None,
        loops=loops,
        arguments=options.kernel_arguments(row.arguments) if row.arguments else (),
        sms=SMS,
    )


def request_of(row: Row, text: str, folder: Path, place: Path, *, arch: str, after: bool = False) -> Request:
    """What a user would ask for."""
    flags = (f"-I{(folder / 'cuda' / row.file).parent}",)
    extra = (row.flag,) if after and row.flag else ()
    return Request(
        settings=Settings(arch=arch, flags=flags, extra_flags=extra, top=100),
        kernel=re.compile(rf"\b{row.kernel}\b"),
        stated=launch_of(row, text, after=after),
        model=True,
        show_all=True,
        root=place,
    )


def simulated(path: Path, request: Request) -> tuple[Program, Simulation]:
    """The code of the row's kernel, and its launch."""
    code = open_code(path, request, lambda _: None, Cache(None))
    ((kernel, section),) = code.kernels.items()
    table = machine_model(code.source.cubin.arch, request)
    config = configuration(kernel, request)
    assert config is not None
    program = kernel_program(code.source, {section})
    return program, model_kernel(program, kernel, table, config, None)


def outcome_of(row: Row, folder: Path, arch: str = ARCH) -> Outcome:
    """Advise the kernel as it is, and simulate what the change makes of it."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        try:
            before = text_of(row, folder)
            after = replaced(before, row.change)
            path, changed = place / "before.cu", place / "after.cu"
            path.write_text(before, encoding="utf-8")
            changed.write_text(after, encoding="utf-8")
            request = request_of(row, before, folder, place, arch=arch)
            advised = advise_file(path, request, lambda _: None, Cache(None))
            code, one = simulated(path, request)
            code_after, two = simulated(changed, request_of(row, after, folder, place, arch=arch, after=True))
            (kernel,) = advised.kernels
            told = _simulated_told(row, kernel, before, folder, place)
        except (GpadvisorError, OSError, ValueError) as error:
            return Outcome(simulated=None, rank=None, failure=" ".join(str(error).split())[:300])
    if one.duration_seconds is None or two.duration_seconds is None:
        return Outcome(simulated=None, rank=None, failure="it does not end within the simulator's limits")
    same = same_work((code, one.profile), (code_after, two.profile))
    outcome = _outcome(row, kernel.advice, one.duration_seconds / two.duration_seconds)
    return replace(
        outcome,
        same_work=same,
        as_published=_other_launch(row, kernel) is None,
        told=one.duration_seconds / told if told else None,
    )


def _other_launch(row: Row, kernel: AdvisedKernel) -> SimulationConfig | None:
    """The launch that is told, where it is not the one of the paper; None where none is told."""
    match, config = kernel.matches.get(row.code), kernel.analysed.modelled
    if match is None or match.parallel is None or config is None:
        return None
    told = launch_as(config, match.parallel)
    published = (row.grid_after or row.grid, row.block_after or row.block)
    return None if told is None or (told.grid, told.block) == published else told


def _simulated_told(row: Row, kernel: AdvisedKernel, before: str, folder: Path, place: Path) -> float | None:
    """Seconds with another change that is told: a launch, or what the row has written by hand."""
    launch, context = _other_launch(row, kernel), kernel.analysed.context
    if launch is not None:
        return model_kernel(context.program, context.kernel, context.machine, launch, None).duration_seconds
    if not row.told:
        return None
    text, path = replaced(before, row.told), place / "told.cu"
    path.write_text(text, encoding="utf-8")
    request = request_of(row, text, folder, place, arch=context.program.arch)
    return simulated(path, request)[1].duration_seconds


def _outcome(row: Row, kernel: KernelAdvice, speedup: float) -> Outcome:
    offered = [
        one for one in kernel.suggestions if one.category is not Category.NOTE and one.speedup is not None
    ]
    samples = kernel.samples.total
    for rank, one in enumerate([*offered, *kernel.notes], 1):
        estimate, note = one.speedup, rank > len(offered)
        if one.code == row.code and estimate is not None:
            return Outcome(
                simulated=speedup,
                rank=rank if estimate.expected >= MIN_SPEEDUP and not note else None,
                note=note,
                low=estimate.low,
                expected=estimate.expected,
                high=estimate.high,
                equation=estimate.paper,
                samples=samples,
            )
    return Outcome(simulated=speedup, rank=None, samples=samples)


def table(rows: Sequence[tuple[Row, Outcome]]) -> list[str]:
    """One line for each row, in the order of the paper."""
    lines = [
        (
            f"{'row':15} {'rule':7} {'rank':>4} {'low':>6} {'expect':>6} {'high':>6} {'Eq.':>6} "
            f"{'simulated':>9} {'error':>7}  {'paper: est.':>11} {'achieved':>8}"
        )
    ]
    for row, one in rows:
        published = f"{row.estimated:10.2f}x {row.achieved:7.2f}x"
        if one.simulated is None:
            lines.append(f"{row.name:15} {row.code:7} not run: {one.failure}")
            continue
        if one.rank is None and one.equation is None:
            promised = f"   - {'not found':>27}"
        else:
            rank = "note" if one.note else "less" if one.rank is None else f"{one.rank:4}"
            equation = "     -" if one.equation is None else f"{one.equation:6.2f}"
            promised = f"{rank} {one.low:6.2f} {one.expected:6.2f} {one.high:6.2f} {equation}"
        outside = "" if one.inside else "  silent" if one.rightly_silent else "  outside"
        outside += "" if one.same_work else "  other work"
        if one.told is not None or not one.as_published:
            outside += f"  another {'change' if one.as_published else 'launch'} is told"
            outside += "" if one.told is None else f": {one.told:.2f}x simulated"
        reached = f"{one.simulated:8.2f}x {one.error:+7.1%}"
        lines.append(f"{row.name:15} {row.code:7} {promised} {reached}  {published}{outside}")
    return lines


def figures(rows: Sequence[tuple[Row, Outcome]]) -> list[str]:
    """What the table comes to, beside the paper's own; what is not offered counts as 1.0x."""
    ran = [(row, one) for row, one in rows if one.simulated is not None]
    alike = [(row, one) for row, one in ran if one.same_work]
    told = [(row, one) for row, one in ran if one.as_published]
    found = [f"rows run                                   {len(ran)} of {len(rows)}"]
    for title, own in (
        ("all rows", ran),
        ("rows in which no other launch is told than the published one", told),
        ("rows whose runs do the same work", alike),
    ):
        found += ["", f"{title} ({len(own)})", *_figures(own)] if own else []
    ratios = [row.achieved / one.simulated for row, one in ran if one.simulated is not None]
    return [*found, *_model_error(alike), *([within_range(ratios)] if ratios else [])]


def _model_error(rows: Sequence[tuple[Row, Outcome]]) -> list[str]:
    """How far from a simulated change the measured one was: what the range of a what-if rests on."""
    lines = ["", "achieved in the paper over the simulated change, of the same work"]
    for title, launches in (("changes of the code", False), ("another launch", True)):
        found = [
            row.achieved / one.simulated
            for row, one in rows
            if one.simulated is not None and (row.grid_after is not None) == launches
        ]
        if found:
            ends = f"{min(found):.2f} to {max(found):.2f}, median {statistics.median(found):.2f}"
            lines.append(f"{title:42} {ends} ({len(found)})")
    return lines if len(lines) > 2 else []


def _figures(ran: Sequence[tuple[Row, Outcome]]) -> list[str]:
    count = len(ran)

    def first(rows: Sequence[tuple[Row, Outcome]]) -> str:
        found = sum(one.rank is not None and one.rank <= FIRST for _, one in rows)
        return f"{found} of {len(rows)}" + (f" ({found / len(rows):.0%})" if rows else "")

    worth = [(row, one) for row, one in ran if (one.simulated or 1.0) >= MIN_SPEEDUP]
    inside = sum(one.inside for _, one in ran)
    right = sum(one.inside or one.rightly_silent for _, one in ran)
    achieved = [one.simulated for _, one in ran if one.simulated is not None]
    expected = [one.expected for _, one in ran]
    paper = statistics.fmean(abs(row.estimated / row.achieved - 1) for row, _ in ran)
    own = statistics.fmean(abs(one.error) for _, one in ran)
    told = statistics.fmean(abs(one.error_of_told) for _, one in ran)
    model = statistics.fmean(abs((one.simulated or 1.0) / row.achieved - 1) for row, one in ran)
    published = statistics.fmean(abs(one.expected / row.achieved - 1) for row, one in ran)
    return [
        f"shown                                      {sum(one.rank is not None for _, one in ran)}",
        f"first or second (aim 85 %)                 {first(ran)}",
        f"  of those that gain {MIN_SPEEDUP}x when simulated  {first(worth)}",
        f"inside the range (aim 85 %)                {inside} ({inside / count:.0%})",
        f"  or silent, and it gains less than {MIN_SPEEDUP}x  {right} ({right / count:.0%})",
        f"mean error against the simulated change    {own:.1%} (aim 6.6 %)",
        f"  against what is told, where that differs {told:.1%}",
        f"mean error of GPA on the same rows         {paper:.1%}",
        f"mean error against the paper's achieved    {published:.1%}",
        f"simulated change against the achieved      {model:.1%}",
        f"geometric means: expected                  {statistics.geometric_mean(expected):.2f}x",
        f"                 simulated                 {statistics.geometric_mean(achieved):.2f}x",
        (
            f"                 achieved in the paper     "
            f"{statistics.geometric_mean(row.achieved for row, _ in ran):.2f}x"
        ),
    ]


def outcomes(rows: Sequence[Row], folder: Path, arch: str) -> list[tuple[Row, Outcome]]:
    """All rows; those that were run with this very code and these sources are taken from the disk."""
    store = Cache(ROOT / "build" / "validation")
    found = []
    for at, row in enumerate(rows, 1):
        sys.stderr.write(f"table 3: {at} of {len(rows)}, {row.name}\n")
        sources = [file_digest(folder / "cuda" / name) for name in (row.file, *row.includes)]
        own = [file_digest(Path(__file__)), installation_digest(), *sources]
        key = store.key("table3", {"row": repr(row), "arch": arch, "code": own})
        stored = store.get(key)
        outcome = outcome_of(row, folder, arch) if stored is None else Outcome(**json.loads(stored))
        if stored is None:
            store.put(key, json.dumps(asdict(outcome)).encode())
        found.append((row, outcome))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=os.environ.get("GPADVISOR_RODINIA"))
    parser.add_argument("--row", nargs="+", default=[row.name for row in ROWS])
    parser.add_argument("--arch", default=ARCH)
    given = parser.parse_args()
    if given.folder is None:
        sys.stdout.write("Table III: skipped, GPADVISOR_RODINIA names no checkout of Rodinia\n")
        return
    rows = outcomes([row for row in ROWS if row.name in given.row], Path(given.folder), given.arch)
    sys.stdout.write("\n".join([*table(rows), "", *figures(rows), ""]))


if __name__ == "__main__":
    main()
