# SPDX-License-Identifier: Apache-2.0
"""The text report, in the spirit of GPA's (Fig. 8): kernels by GPU time, each with ranked advice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from gpadvisor import __version__
from gpadvisor.model.advice import Advice, KernelAdvice, LaunchSummary, SourceMatch
from gpadvisor.model.estimate import Estimate
from gpadvisor.model.figures import expected, percent
from gpadvisor.model.problem import Problem
from gpadvisor.report.folding import folded, folded_problems, folded_words
from gpadvisor.report.names import short_name
from gpadvisor.report.page import Page, make_page, with_todays_lines
from gpadvisor.report.run_findings import finding_lines
from gpadvisor.report.screen import screen_lines
from gpadvisor.report.tables import Column, Overflow, format_table
from gpadvisor.report.text_kernel import kernel_lines
from gpadvisor.report.words import cleaned, duration, plural, wrap
from gpadvisor.source.matching import EXACT_PATH


def render_text(
    advice: Advice,
    *,
    width: int = 80,
    color: bool = False,
    top: int | None = None,
    sources: Mapping[str, str] | None = None,
    details: bool = False,
    everything: bool = False,
) -> str:
    """The advice as text: one screen, or with ``details`` all of it.

    Args:
        advice: What to report.
        width: Columns of the page; fewer than 60 are treated as 60, more than 132 as 132.
        color: Whether to use ANSI colours. Without, the text has no control character but line feeds.
        top: Suggestions shown for each kernel; None shows all.
        sources: Texts of source files by the path that the advice names, quoted where hotspots are.
        details: Every number of every kernel.
        everything: Without details: all suggestions, however many lines they take.
    """
    advice = with_todays_lines(cleaned(advice))
    page = make_page(advice, width=width, color=color, top=top, sources=sources)
    if not details:
        return _joined(screen_lines(page, advice, everything=everything))
    lines = [*_title(page, advice), *_overview(page, advice), *_launches(page, advice)]
    aside = folded(advice.kernels)
    spared = {id(kernel) for kernel in aside}
    for number, kernel in enumerate(advice.kernels, start=1):
        if id(kernel) not in spared:
            lines += ["", *kernel_lines(page, kernel, number, len(advice.kernels))]
    if aside:
        lines += ["", *wrap(folded_words(aside), page.width)]
    if advice.run_findings:
        lines += ["", *finding_lines(advice.run_findings, page.width)]
    problems = (*advice.problems, *folded_problems(aside))
    lines += [*_sources(page, advice.sources), *_problems(page, problems)]
    return _joined(lines)


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _title(page: Page, advice: Advice) -> list[str]:
    collector = " ".join(filter(None, (advice.collector, advice.collector_version)))
    parts = [
        f"{advice.path}",
        f"collected by {collector}" if collector else "",
        plural(len(advice.kernels), "kernel"),
        plural(len(advice.launches), "launch") if advice.launches else "",
    ]
    text = ", ".join(part for part in parts if part)
    head = f"GPAdvisor {__version__}"
    lines = wrap(text, page.width, " " * 4, head + "  ")
    lines[0] = page.style.heading(lines[0][: len(head)]) + lines[0][len(head) :]
    return lines if advice.kernels else [*lines, "", "No kernel was analysed."]


def best(kernel: KernelAdvice) -> str:
    """The suggestion that promises most, in two words, as the overview has it."""
    live = [suggestion for suggestion in kernel.suggestions if suggestion.suppressed is None]
    if estimated := _estimated(kernel):
        estimate, code = max(estimated, key=lambda pair: pair[0].expected)
        return f"{expected(estimate)} {code}"
    return plural(len(live), "finding") + ", no estimate" if live else "none"


def _estimated(kernel: KernelAdvice) -> list[tuple[Estimate, str]]:
    """What is expected of each suggestion that no comment sets aside, with its code."""
    live = (suggestion for suggestion in kernel.suggestions if suggestion.suppressed is None)
    return [(entry.speedup, entry.code) for entry in live if entry.speedup is not None]


def _overview(page: Page, advice: Advice) -> list[str]:
    if len(advice.kernels) < 2:
        return []
    launches: dict[str, int] = defaultdict(int)
    for summary in advice.launches:
        launches[summary.launch.kernel] += 1
    columns = [
        Column(title="#", right=True),
        Column(title="kernel", min_width=24 if page.width >= 72 else 14, max_width=60, fit=short_name),
        Column(title="launches", right=True, drop=2),
        Column(title="time", right=True),
        Column(title="share", right=True),
        Column(title="evidence", drop=1),
        Column(title="best suggestion"),
    ]
    rows = [
        (
            str(number),
            kernel.name,
            str(launches[kernel.mangled] or "-"),
            "-" if kernel.duration_ns is None else duration(kernel.duration_ns),
            percent(kernel.time_share),
            kernel.evidence.value,
            best(kernel),
        )
        for number, kernel in enumerate(advice.kernels, start=1)
    ]

    def style(row: int, column: int, text: str) -> str:
        if row < 0:
            return page.style.quiet(text)
        has_gain = column == len(columns) - 1 and bool(_estimated(advice.kernels[row]))
        return page.style.gain(text) if has_gain else text

    return ["", *format_table(columns, rows, width=page.width, indent=1, style=style)]


def _launches(page: Page, advice: Advice) -> list[str]:
    """Every launch; those of one kernel with one configuration share a row."""
    if len(advice.launches) < 2:
        return []
    groups: dict[tuple[object, ...], list[LaunchSummary]] = defaultdict(list)
    for summary in advice.launches:
        launch = summary.launch
        groups[launch.demangled, launch.grid, launch.block, launch.failed].append(summary)
    columns = [
        Column(title="launch", min_width=6, overflow=Overflow.WRAP),
        Column(title="kernel", min_width=12, max_width=60, fit=short_name),
        Column(title="grid", right=True),
        Column(title="block", right=True),
        Column(title="time", right=True, drop=1),
        Column(title="analysed"),
    ]
    rows = [_launch_row(group) for group in groups.values()]
    table = format_table(
        columns, rows, width=page.width, indent=1, style=lambda r, _c, t: page.style.quiet(t) if r < 0 else t
    )
    return [*page.heading(f"Launches ({len(advice.launches)})"), *table]


def _launch_row(group: Sequence[LaunchSummary]) -> tuple[str, ...]:
    first = group[0].launch
    times = [summary.launch.duration_ns for summary in group if summary.launch.duration_ns is not None]
    analysed = [summary.launch.index for summary in group if summary.analysed]
    return (
        ranges([summary.launch.index for summary in group]),
        first.demangled,
        extent(first.grid),
        extent(first.block),
        "failed" if first.failed else _times(times),
        ranges(analysed) if analysed else "no",
    )


def _times(times: Sequence[float]) -> str:
    if not times:
        return "-"
    low, high = duration(min(times)), duration(max(times))
    return high if low == high else f"{low} to {high}"


def extent(size: tuple[int, int, int]) -> str:
    """A grid or block: ``4096`` or ``64x64x1``."""
    return str(size[0]) if size[1:] == (1, 1) else "x".join(str(number) for number in size)


def ranges(numbers: Sequence[int]) -> str:
    """Numbers with runs folded: ``0-3, 7``."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def _sources(page: Page, matches: Sequence[SourceMatch]) -> list[str]:
    # Where the path of the report is the path here there is nothing to tell.
    matches = [match for match in matches if match.how != EXACT_PATH]
    if not matches:
        return []
    lines = page.heading("Source files")
    for match in matches:
        is_elsewhere = match.local_path not in (None, match.report_path)
        text = f"{match.report_path} -> {match.local_path}" if is_elsewhere else match.report_path
        lines += wrap(f"{text} ({match.how})", page.width, "    ", "  ")
    return lines


def _problems(page: Page, problems: Sequence[Problem]) -> list[str]:
    if not problems:
        return []
    lines = page.heading("Not understood, and data quality")
    for problem in problems:
        text = wrap(f"{problem.code.value}: {problem.message}", page.width, "    ", "  ")
        lines += [page.style.caution(line) for line in text]
    return lines
