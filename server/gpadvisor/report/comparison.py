# SPDX-License-Identifier: Apache-2.0
"""Two runs side by side, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from gpadvisor.advice.compare import Comparison, KernelComparison, LineChange, StallChange
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.profile import Evidence
from gpadvisor.report.markdown import code, prose
from gpadvisor.report.names import short_name
from gpadvisor.report.tables import Column, Overflow, format_table
from gpadvisor.report.words import cleaned


def render_comparison_text(comparison: Comparison, *, rows: int | None, width: int) -> str:
    """The comparison for a terminal; ``rows`` source lines per kernel, None for all."""
    comparison = cleaned(comparison)
    parts = [_kernel(kernel, rows, width) for kernel in comparison.kernels]
    parts += [f"Only in the first run: {short_name(name, width - 24)}\n" for name in comparison.only_before]
    parts += [f"Only in the second run: {short_name(name, width - 24)}\n" for name in comparison.only_after]
    return "\n".join(parts)


def render_comparison_markdown(comparison: Comparison) -> str:
    """A table of kernels, and one of what was predicted beside what was achieved."""
    comparison = cleaned(comparison)
    lines = ["| kernel | before | after | speedup | not the same |", "|---|--:|--:|--:|---|"]
    lines += [
        f"| {code(short_name(kernel.after, 60), cell=True)} | {_duration(kernel.duration_before_ns)} "
        f"| {_duration(kernel.duration_after_ns)} "
        f"| {'' if kernel.achieved is None else f'{kernel.achieved:.2f}x'} |"
        f" {prose('; '.join(kernel.differences))} |"
        for kernel in comparison.kernels
    ]
    rows = [
        f"| {entry.code} {prose(entry.name)} | {code(short_name(kernel.before, 60), cell=True)} "
        f"| {entry.predicted.expected:.2f}x ({entry.predicted.low:.2f}-{entry.predicted.high:.2f}) "
        f"| {entry.verdict} |"
        for kernel in comparison.kernels
        for entry in kernel.predictions
    ]
    if rows:
        lines += ["", "| predicted | kernel | speedup | achieved is |", "|---|---|--:|---|", *rows]
    lines += [""] if comparison.only_before or comparison.only_after else []
    lines += [f"- only before: {code(short_name(name, 80))}" for name in comparison.only_before]
    lines += [f"- only after: {code(short_name(name, 80))}" for name in comparison.only_after]
    return "\n".join(lines) + "\n"


def render_comparison_json(comparison: Comparison, **more: Any) -> str:
    """The comparison as JSON, and what else is to stand in it."""
    return json.dumps(comparison_json(comparison) | more, indent=1, allow_nan=False) + "\n"


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Its values: times in nanoseconds, speedups as factors, null for what was not measured."""
    value = asdict(comparison)
    for document, kernel in zip(value["kernels"], comparison.kernels, strict=True):
        document["achieved"] = kernel.achieved
        document["evidence_before"] = kernel.evidence_before.value
        document["evidence_after"] = kernel.evidence_after.value
        for entry, prediction in zip(document["predictions"], kernel.predictions, strict=True):
            entry["verdict"] = prediction.verdict
        for entry, line in zip(document["lines"], kernel.lines, strict=True):
            entry["change_ns"] = line.change_ns
        for entry, stall in zip(document["stalls"], kernel.stalls, strict=True):
            entry["change_ns"] = stall.change_ns
    return {"schema": 1, **value}


def _kernel(kernel: KernelComparison, rows: int | None, width: int) -> str:
    lines = [short_name(kernel.before, width)]
    if kernel.after != kernel.before:
        lines.append(f"  -> {short_name(kernel.after, width - 5)}")
    lines.append(_times(kernel))
    if kernel.device_before != kernel.device_after:
        devices = f"{kernel.device_before}, then {kernel.device_after}"
        lines.append(f"On two GPUs ({devices}): what changed is not the code alone.")
    if kernel.same_code:
        lines.append(
            "The machine code is the same" + ("" if kernel.differences else ", and so is the launch") + "."
        )
    lines += [f"Not the same: {text}." for text in kernel.differences]
    lines += ["", "Predicted for the first run, achieved by the second:", *_predictions(kernel, width)]
    if kernel.stalls:
        lines += ["", "Time by stall reason:", *_stalls(kernel.stalls[: rows and max(1, rows // 2)], width)]
    lines += ["", *_lines(kernel, rows, width)]
    return "\n".join(lines) + "\n"


def _times(kernel: KernelComparison) -> str:
    samples = f"{kernel.samples_before:,} -> {kernel.samples_after:,} samples"
    if kernel.achieved is None:
        return f"no duration in one of the runs; {samples}"
    factor = f"{kernel.achieved:.2f}"
    word = "as fast" if float(factor) == 1 else "slower" if kernel.achieved < 1 else "faster"
    return (
        f"{_duration(kernel.duration_before_ns)} -> {_duration(kernel.duration_after_ns)}: "
        f"{factor}x ({word}, {_clock(kernel)}); {samples}"
    )


def _clock(kernel: KernelComparison) -> str:
    """Whose times they are."""
    before, after = (
        evidence is Evidence.MODELLED for evidence in (kernel.evidence_before, kernel.evidence_after)
    )
    if before != after:
        return "a modelled time beside a measured one, which says little"
    return "both modelled" if before else "measured"


def _predictions(kernel: KernelComparison, width: int) -> list[str]:
    if not kernel.predictions:
        return ["  nothing was predicted"]
    columns = (
        Column(title="rule"),
        Column(title="name", min_width=12, drop=1),
        Column(title="low", right=True),
        Column(title="expected", right=True),
        Column(title="high", right=True),
        Column(title="paper", right=True),
        Column(title="achieved", right=True),
        Column(title="is"),
        Column(title="its stalls", drop=2),
    )
    cells = [
        (
            entry.code,
            entry.name,
            f"{entry.predicted.low:.2f}x",
            f"{entry.predicted.expected:.2f}x",
            f"{entry.predicted.high:.2f}x",
            "" if entry.predicted.paper is None else f"{entry.predicted.paper:.2f}x",
            "" if entry.achieved is None or not entry.changed else f"{entry.achieved:.2f}x",
            entry.verdict,
            _from_to(entry.time_before_ns, entry.time_after_ns),
        )
        for entry in kernel.predictions
    ]
    return format_table(columns, cells, width=width, indent=2)


def _lines(kernel: KernelComparison, rows: int | None, width: int) -> list[str]:
    if not kernel.samples_before and not kernel.samples_after:
        return ["No samples in either run, so no lines to compare: give two profiles."]
    if not kernel.lines:
        return ["No source lines to compare: compile with -lineinfo to get them."]
    if kernel.line_mapping is None:
        return _lines_apart(kernel, rows, width)
    columns = (
        *_CHANGE,
        Column(title="line", min_width=20, overflow=Overflow.CUT_START),
    )
    changes = kernel.lines[:rows]
    table = format_table(columns, [_line_cells(line) for line in changes], width=width, indent=2)
    hidden = len(kernel.lines) - len(changes)
    more = [f"  ... and {hidden:,} more lines; --top 0 shows all"] if hidden else []
    return [f"Time by source line, put together {kernel.line_mapping}:", *table, *more]


def _lines_apart(kernel: KernelComparison, rows: int | None, width: int) -> list[str]:
    """The hottest lines of each of two functions, whose lines are not each other's."""
    columns = (
        Column(title="time", right=True),
        Column(title="samples", right=True),
        Column(title="line", min_width=20, overflow=Overflow.CUT_START),
    )
    sides = (
        ("first", [(line.before, line.time_before_ns, line.samples_before) for line in kernel.lines]),
        ("second", [(line.after, line.time_after_ns, line.samples_after) for line in kernel.lines]),
    )
    result: list[str] = []
    for name, rows_of_side in sides:
        hottest = sorted((row for row in rows_of_side if row[0] is not None), key=lambda row: -row[2])
        cells = [
            (_duration(time), f"{samples:,}", f"{where.file}:{where.line}")
            for where, time, samples in hottest[: rows and max(1, rows // 2)]
            if where is not None
        ]
        if cells:
            result += [
                f"Time by source line in the {name} run:",
                *format_table(columns, cells, width=width, indent=2),
            ]
    return result


def _stalls(stalls: Sequence[StallChange], width: int) -> list[str]:
    cells = [(*_change_cells(stall), stall.reason) for stall in stalls]
    return format_table((*_CHANGE, Column(title="stall reason")), cells, width=width, indent=2)


_CHANGE: Final = (
    Column(title="before", right=True),
    Column(title="after", right=True),
    Column(title="change", right=True),
    Column(title="samples", right=True, drop=1),
)


def _change_cells(compared: LineChange | StallChange) -> tuple[str, str, str, str]:
    change = compared.change_ns
    sign = "+" if change and change > 0 else "-" if change else ""
    return (
        _duration(compared.time_before_ns),
        _duration(compared.time_after_ns),
        "" if change is None else f"{sign}{_duration(abs(change))}",
        f"{compared.samples_before:,} -> {compared.samples_after:,}",
    )


def _line_cells(line: LineChange) -> tuple[str, ...]:
    before, after, *change_and_time = _change_cells(line)
    place = _where(line.before, line.after) + (" (edited)" if line.edited else "")
    return (before if line.before else "", after if line.after else "", *change_and_time, place)


def _from_to(before: float | None, after: float | None) -> str:
    return "" if before is None or after is None else f"{_duration(before)} -> {_duration(after)}"


def _where(before: SourceLocation | None, after: SourceLocation | None) -> str:
    if before is None:
        return "" if after is None else f"{after.file}:{after.line} (new or edited)"
    if after is None:
        return f"{before.file}:{before.line} (gone or edited)"
    moved = "" if before.line == after.line else f" (was {before.line})"
    return f"{after.file}:{after.line}{moved}"


def _duration(nanoseconds: float | None) -> str:
    if nanoseconds is None:
        return ""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"
