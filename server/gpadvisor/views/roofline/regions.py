# SPDX-License-Identifier: Apache-2.0
"""Loops and lines of a kernel: counts of instructions are exact, the time comes from the share of samples."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.estimators.interval import wilson
from gpadvisor.estimators.utilisation import ISSUE, L1_DATA, PIPES
from gpadvisor.model.ids import LoopId, SourceLocation
from gpadvisor.model.profile import EXTERNAL, KernelProfile
from gpadvisor.model.program import Function
from gpadvisor.views.columns import Columns, Floats
from gpadvisor.views.roofline.ceilings import LEVEL_UNIT_NAMES
from gpadvisor.views.roofline.model import (
    LANES,
    Ceiling,
    CeilingKind,
    Figure,
    Height,
    Level,
    Point,
    RegionKind,
    RegionPoint,
)

RowIndices = NDArray[np.intp]
_WIDEST: Final = 2.0
"""Of an interval's ends, one over the other: above that the samples (some 30) do not carry a height."""
_TOO_HIGH: Final = 1.05
"""Of a peak: shares of samples and counters are each off by some hundredths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """What regions take from their kernel."""

    seconds: float
    samples: int  # of the whole launch, those outside of its code too
    instructions: float  # the same
    issue_peak: Figure | None
    points: tuple[Point, ...]
    ceilings: tuple[Ceiling, ...]
    truncated: bool


def regions(
    profile: KernelProfile, rows: Columns, kind: RegionKind, of_kernel: Whole
) -> tuple[RegionPoint, ...]:
    """The regions of a kind, those with most samples first, nested loops behind the one around them."""
    pipe_rows = _pipes(rows)
    points: list[RegionPoint] = []
    if kind is RegionKind.LINE:
        points = [
            _region(rows, indices, of_kernel, pipe_rows, kind=kind, function=function, location=location)
            for (function, location), indices in _by_line(rows).items()
        ]
        points.sort(
            key=lambda point: (-point.samples, -point.instructions, point.function, _line(point.location))
        )
    elif kind is RegionKind.LOOP:
        for function, start in zip(rows.program.functions, rows.starts, strict=True):
            points += _loops_of(rows, function, start, of_kernel, pipe_rows)
    with_counts = [
        region_point for region_point in points if region_point.instructions or region_point.samples
    ]
    if kind is RegionKind.KERNEL:
        return ()
    return (*with_counts, *_elsewhere(profile, rows, kind, of_kernel))


def _line(location: SourceLocation | None) -> tuple[str, int]:
    return ("", 0) if location is None else (location.file, location.line)


def _by_line(rows: Columns) -> Mapping[tuple[str, SourceLocation | None], RowIndices]:
    """A line of a header belongs to each function that it stands in."""
    places: dict[tuple[str, SourceLocation | None], list[int]] = defaultdict(list)
    for row, function, index, _ in rows.rows():
        entry = function.lines[index]
        places[function.demangled, None if entry is None else entry.location].append(row)
    return {place: np.array(indices, dtype=np.intp) for place, indices in places.items()}


def _loops_of(
    rows: Columns, function: Function, start: int, of_kernel: Whole, pipe_rows: Mapping[str, RowIndices]
) -> list[RegionPoint]:
    """Loops in order of samples, each with those inside of it behind it; then what is in no loop."""
    inside: dict[int, list[int]] = defaultdict(list)
    for index in range(len(function.instructions)):
        enclosing = function.enclosing_loops(index)
        for loop in enclosing:
            inside[loop].append(start + index)
        if not enclosing:
            inside[-1].append(start + index)

    def loop_point(loop: int) -> RegionPoint:
        code_loop = None if loop < 0 else function.loops[loop]
        return _region(
            rows,
            np.array(inside[loop], dtype=np.intp),
            of_kernel,
            pipe_rows,
            kind=RegionKind.LOOP,
            function=function.demangled,
            location=None if code_loop is None else code_loop.location,
            loop=None if code_loop is None else loop,
            depth=0 if code_loop is None else code_loop.depth,
        )

    by_parent: dict[LoopId | None, list[RegionPoint]] = defaultdict(list)
    for inner in function.loops:
        if inside[inner.id]:
            by_parent[inner.parent].append(loop_point(inner.id))

    def ordered(parent: LoopId | None) -> Iterable[RegionPoint]:
        for point in sorted(
            by_parent[parent], key=lambda region_point: (-region_point.samples, -region_point.instructions)
        ):
            yield point
            yield from ordered(None if point.loop is None else LoopId(point.loop))

    return [*ordered(None), *([loop_point(-1)] if inside[-1] else [])]


def _region(
    rows: Columns,
    indices: RowIndices,
    of_kernel: Whole,
    pipe_rows: Mapping[str, RowIndices],
    *,
    kind: RegionKind,
    function: str,
    location: SourceLocation | None,
    loop: int | None = None,
    depth: int = 0,
) -> RegionPoint:
    executed, samples = float(rows.warps[indices].sum()), int(rows.samples[indices].sum())
    height, hidden = _height(executed, samples, of_kernel)
    parts = {
        Level.L1_TAGS: _sum(rows.tags, indices),
        Level.L1_SECTORS: _sum(_plus(rows.sectors, rows.local), indices),
        Level.SHARED: _sum(rows.wavefronts, indices),
    }
    ceilings: list[Ceiling] = []
    if height is not None:
        seconds = of_kernel.seconds * samples / of_kernel.samples
        ceilings = [
            *_memory(parts, seconds, height.expected, of_kernel.points),
            *_pipe_ceilings(
                rows, indices, samples / of_kernel.samples, height.expected, pipe_rows, of_kernel.ceilings
            ),
        ]
        if of_kernel.issue_peak is not None:
            use = height.expected / of_kernel.issue_peak.value
            ceilings.append(_modelled(ISSUE, CeilingKind.ISSUE, use, height.expected, frozenset({ISSUE})))
        ceilings.sort(key=lambda ceiling: -ceiling.use)
        if ceilings and ceilings[0].use > _TOO_HIGH:
            # Warps that wait elsewhere leave it the units: what its own samples stand for is not its time.
            hidden = "its samples are fewer than its work takes, as its warps wait in other code"
            height, ceilings = None, []
    return RegionPoint(
        kind=kind,
        function=function,
        location=location,
        pc=_first_pc(rows, int(indices[0])),
        loop=loop,
        depth=depth,
        samples=samples,
        share=samples / of_kernel.samples if of_kernel.samples else None,
        instructions=executed,
        sectors=parts[Level.L1_SECTORS],
        tags=parts[Level.L1_TAGS],
        wavefronts=parts[Level.SHARED],
        active_lanes=_mean(rows.threads, indices, executed),
        predicated_lanes=_mean(rows.true, indices, executed),
        height=height,
        hidden=hidden,
        ceilings=tuple(ceilings),
        load=_load(rows, indices, of_kernel, pipe_rows),
    )


def _height(executed: float, samples: int, of_kernel: Whole) -> tuple[Height | None, str]:
    """Instructions over the time that the share of samples stands for."""
    if not of_kernel.samples:
        return None, "no samples"
    if of_kernel.truncated:
        return None, "samples cover only the first part of the run"
    if not executed:
        return None, "nothing executed"
    share = wilson(samples, of_kernel.samples)
    if not samples or share.high > _WIDEST * share.low:
        return None, "too few samples"
    low, expected, high = (
        executed / (of_kernel.seconds * part) for part in (share.high, samples / of_kernel.samples, share.low)
    )
    return Height(low=low, expected=expected, high=high), ""


def _load(
    rows: Columns, indices: RowIndices, of_kernel: Whole, pipe_rows: Mapping[str, RowIndices]
) -> float | None:
    """Of what fills the kernel's nearest ceiling the part that is from here."""
    nearest = of_kernel.ceilings[0] if of_kernel.ceilings else None
    if nearest is None:
        return None
    if nearest.kind is CeilingKind.ISSUE:
        return float(rows.warps[indices].sum()) / of_kernel.instructions if of_kernel.instructions else None
    if nearest.name in pipe_rows:
        of_pipe = pipe_rows[nearest.name]
        total = float(rows.warps[of_pipe].sum())
        return float(rows.warps[np.intersect1d(of_pipe, indices)].sum()) / total if total else None
    column = {
        Level.L1_TAGS.value: rows.tags,
        Level.L1_SECTORS.value: _plus(rows.sectors, rows.local),
        Level.SHARED.value: rows.wavefronts,
        L1_DATA: _plus(rows.tags, rows.wavefronts),
    }.get(nearest.name)
    total = 0.0 if column is None else float(column.sum())
    return None if column is None or not total else float(column[indices].sum()) / total


def _plus(first: Floats | None, second: Floats | None) -> Floats | None:
    return first if second is None else second if first is None else first + second


def _memory(
    parts: Mapping[Level, float | None], seconds: float, height: float, points: Sequence[Point]
) -> Iterable[Ceiling]:
    peaks = {point.level: point.peak for point in points}
    for level, moved in parts.items():
        peak = peaks.get(level)
        if moved and peak is not None:
            use = moved / seconds / peak.value
            yield _modelled(level.value, CeilingKind.MEMORY, use, height, LEVEL_UNIT_NAMES[level])


def _pipes(rows: Columns) -> Mapping[str, RowIndices]:
    """The rows of each pipe's instructions, by the name of its ceiling."""
    by_pipe: dict[str, list[int]] = defaultdict(list)
    for row, _, _, instruction in rows.rows():
        name = PIPES.get(instruction.info.pipe)
        if name is not None:
            by_pipe[name].append(row)
    return {name: np.array(indices, dtype=np.intp) for name, indices in by_pipe.items()}


def _pipe_ceilings(
    rows: Columns,
    indices: RowIndices,
    share: float,
    height: float,
    pipe_rows: Mapping[str, RowIndices],
    ceilings: Sequence[Ceiling],
) -> Iterable[Ceiling]:
    """The kernel's use of a pipe by where its instructions are, each taken to keep the pipe as long."""
    for ceiling in ceilings:
        of_pipe = pipe_rows.get(ceiling.name)
        if ceiling.kind is not CeilingKind.PIPE or of_pipe is None:
            continue
        total = float(rows.warps[of_pipe].sum())
        in_region = float(rows.warps[np.intersect1d(of_pipe, indices)].sum())
        if in_region:
            use = ceiling.use * in_region / total / share
            yield _modelled(ceiling.name, CeilingKind.PIPE, use, height, ceiling.relieved_by)


def _modelled(
    name: str, kind: CeilingKind, use: float, height: float, relieved_by: frozenset[str]
) -> Ceiling:
    source = "counts of its instructions over its share of the samples"
    return Ceiling(name=name, kind=kind, use=use, height=height / use, source=source, relieved_by=relieved_by)


def _elsewhere(
    profile: KernelProfile, rows: Columns, kind: RegionKind, of_kernel: Whole
) -> tuple[RegionPoint, ...]:
    """What was counted and sampled outside of the analysed code: the driver's printf and the like."""
    executed = of_kernel.instructions - float(rows.warps.sum())
    samples = of_kernel.samples - int(rows.samples.sum())
    if executed <= 0 and samples <= 0:
        return ()
    external = bool((profile.samples.section == EXTERNAL).any())
    height, hidden = _height(max(0.0, executed), samples, of_kernel)
    return (
        RegionPoint(
            kind=kind,
            function="code outside of the cubin" if external else "code that was not analysed",
            location=None,
            pc=None,
            loop=None,
            depth=0,
            samples=samples,
            share=samples / of_kernel.samples if of_kernel.samples else None,
            instructions=max(0.0, executed),
            sectors=None,
            tags=None,
            wavefronts=None,
            active_lanes=None,
            predicated_lanes=None,
            height=height,
            hidden=hidden,
            ceilings=(),
            load=None,
        ),
    )


def _first_pc(rows: Columns, row: int) -> int:
    function = bisect_right(rows.starts, row) - 1
    return rows.program.functions[function].instructions[row - rows.starts[function]].pc


def _sum(column: Floats | None, indices: RowIndices) -> float | None:
    return None if column is None else float(column[indices].sum())


def _mean(column: Floats | None, indices: RowIndices, executed: float) -> float | None:
    return None if column is None or not executed else float(column[indices].sum()) / executed / LANES
