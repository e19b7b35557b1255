# SPDX-License-Identifier: Apache-2.0
"""Where one kernel's samples went, in the text report: by stall reason and by source line."""

from __future__ import annotations

import re
from typing import Final

from gpadvisor.model.advice import KernelAdvice, ScopeKind, StallSummary
from gpadvisor.model.figures import percent
from gpadvisor.report.page import Page
from gpadvisor.report.tables import Column, Overflow, format_table
from gpadvisor.report.words import count, share_of, wrap

SHOWN_STALL_SHARE: Final = 0.01
"""Stall reasons below one sample in a hundred share a line, as suggestions below it are not shown."""
_BAR: Final = 8
_HOT_LINES: Final = 5
_SGR: Final = re.compile(r"\x1b\[\d+m")
_NUMBERS: Final = 76
"""Columns that the numbers of a stall take; its plain words stand beside them where the page has room."""


def stall_lines(page: Page, kernel: KernelAdvice) -> list[str]:
    """Every stall reason with its share, and the proof that no sample is missing."""
    summary = kernel.samples
    if not summary.total:
        return []
    active = f"{count(summary.active)} active, {count(summary.latency)} latency"
    lines = page.heading(f"Where {count(summary.total)} samples went ({active})")
    summaries = [s for s in kernel.stalls if s.samples >= SHOWN_STALL_SHARE * summary.total]
    small = [s for s in kernel.stalls if s.samples < SHOWN_STALL_SHARE * summary.total]
    wide = page.width >= _NUMBERS + max((len(stall.plain) for stall in summaries), default=0)
    columns = [
        Column(title="share", right=True),
        Column(title="", drop=2),
        Column(title="stall reason", min_width=12),
        Column(title="samples", right=True),
        Column(title="latency", right=True, drop=1),
        Column(title="blamed", right=True),
        Column(title="self", right=True),
        Column(title="unattr.", right=True),
    ]
    if wide:
        columns.append(Column(title="", min_width=20))
    rows = [_stall_row(stall, summary.total, plain=wide) for stall in summaries]

    def style(row: int, column: int, text: str) -> str:
        if row < 0 or column == 8:
            return page.style.quiet(text)
        return page.style.caution(text) if column == 7 and text.strip() not in ("-", "0 %") else text

    table = format_table(columns, rows, width=page.width, indent=1, gap=1, style=style)
    lines.append(table[0])
    margin = " " * (_SGR.sub("", table[0]).index(columns[2].title) + 1)
    for row, stall in zip(table[1:], summaries, strict=True):
        lines.append(row)
        if not wide:
            lines += [page.style.quiet(line) for line in wrap(stall.plain, page.width, margin)]
    if small:
        names = ", ".join(f"{stall.reason} {count(stall.samples)}" for stall in small)
        lines += [page.style.quiet(line) for line in wrap(f"Below 1 %: {names}", page.width, "   ", " ")]
    return lines + _balance(page, kernel)


def _stall_row(stall: StallSummary, total: int, *, plain: bool) -> tuple[str, ...]:
    share = stall.samples / total
    row = (
        percent(share),
        ("#" * max(1, round(share * _BAR))).ljust(_BAR),
        stall.reason,
        count(stall.samples),
        count(stall.latency),
        _part(stall.blamed, stall.samples),
        _part(stall.self, stall.samples),
        _part(stall.unattributed, stall.samples),
    )
    return (*row, stall.plain) if plain else row


def _part(samples: int, total: int) -> str:
    """A part that exists is never printed as 0 %, nor one that is not all as 100 %."""
    if not samples:
        return "-"
    share = samples / total
    if share < 0.01:
        return "<1 %"
    return ">99 %" if 0.99 < share < 1 else percent(share, 0)


def _balance(page: Page, kernel: KernelAdvice) -> list[str]:
    summary = kernel.samples
    lost = percent(share_of(summary.unattributed, summary.total))
    text = (
        f"{count(summary.blamed)} blamed on another instruction + {count(summary.self)} on the sampled one"
        f" + {count(summary.unattributed)} unattributed ({lost}) = {count(summary.total)}."
    )
    if summary.external:
        text += f" {count(summary.external)} lie in code outside the cubin (external)."
    if summary.after_exit:
        text += f" {count(summary.after_exit)} lie behind an EXIT (after_exit)."
    lines = wrap(text, page.width, " ")
    if summary.truncated:
        more = summary.expected is not None and summary.expected > summary.total
        expected = f" of about {count(round(summary.expected or 0))}" if more else ""
        warning = (
            f"The sample buffer was full: {count(summary.total)}{expected} samples cover only the first part."
        )
        lines += [page.style.alarm(line) for line in wrap(warning, page.width, " ")]
    return lines


def hot_lines(page: Page, kernel: KernelAdvice) -> list[str]:
    """The lines with most samples, and those that most stalls are blamed on."""
    total = kernel.samples.total
    hot_candidates = [
        (scope, scope.scope.location)
        for scope in kernel.scopes
        if scope.scope.kind is ScopeKind.LINE and scope.scope.location is not None
    ]
    hot = sorted(hot_candidates, key=lambda row: -max(row[0].samples, row[0].caused))[:_HOT_LINES]
    if not hot or not total:
        return []
    columns = [
        Column(title="sampled", right=True),
        Column(title="caused", right=True),
        Column(title="line", min_width=14, overflow=Overflow.CUT_START),
        Column(title="mostly", min_width=8, drop=1),
        Column(title="source", min_width=10, drop=2),
    ]
    rows = [
        (
            percent(scope.samples / total),
            percent(scope.caused / total),
            page.place(location, 40),
            scope.dominant_reason or "",
            page.quote(location) or "",
        )
        for scope, location in hot
    ]

    def style(row: int, column: int, text: str) -> str:
        if row < 0:
            return page.style.quiet(text)
        return page.style.code(text) if column == 2 else text

    title = page.heading("Hot lines (samples taken there, and stalls caused from there)")
    return [*title, *format_table(columns, rows, width=page.width, indent=1, style=style)]
