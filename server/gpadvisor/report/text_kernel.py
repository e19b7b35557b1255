# SPDX-License-Identifier: Apache-2.0
"""One kernel of the text report: facts, where the samples went, suggestions, and what was not suggested."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from gpadvisor.advice.standing import MIN_SAMPLES
from gpadvisor.analyzer.places import is_runtime
from gpadvisor.machine import every_gpu
from gpadvisor.model.advice import (
    KernelAdvice,
    Occupancy,
    Suggestion,
)
from gpadvisor.model.figures import percent, percentage
from gpadvisor.model.problem import ProblemCode
from gpadvisor.model.profile import Evidence
from gpadvisor.report.names import short_name
from gpadvisor.report.page import Page
from gpadvisor.report.text_rules import rule_lines
from gpadvisor.report.text_stalls import hot_lines, stall_lines
from gpadvisor.report.text_suggestion import group_lines, run_words, suggestion_lines
from gpadvisor.report.words import dimensions, duration, plural, shorten, size, wrap

_NAME_LINES: Final = 4


def kernel_lines(page: Page, kernel: KernelAdvice, number: int, kernels: int) -> list[str]:
    """Everything about one kernel."""
    parts = [
        _header(page, kernel, number, kernels),
        _facts(page, kernel),
        _suggestions(page, kernel),
        _notes(page, kernel),
        stall_lines(page, kernel),
        hot_lines(page, kernel),
        _rejected(page, kernel),
        rule_lines(page, kernel),
        _problems(page, kernel),
    ]
    return [line for part in parts for line in part]


def _header(page: Page, kernel: KernelAdvice, number: int, kernels: int) -> list[str]:
    lead = f"Kernel {number} of {kernels}: " if kernels > 1 else "Kernel: "
    name = short_name(kernel.name, page.width - len(lead))
    lines = [page.rule("="), page.style.heading(lead + name), page.rule("=")]
    if name != kernel.name:
        full = shorten(kernel.name, _NAME_LINES * (page.width - 12))
        lines += page.fact("Full name", full)
    return lines


def facts(kernel: KernelAdvice) -> list[tuple[str, str]]:
    """What is known about the kernel and its launch, label and words; words are empty where it is not."""
    device = kernel.device
    sms = f", {device.sms} SMs" if device.sms is not None else ""
    used = ", ".join(f"{use.name} {percentage(use.percent)}" for use in kernel.utilisations)
    before, after = kernel.coverage.before, kernel.coverage.after
    is_covered = before is not None and after is not None
    coverage = f"single dependency {percent(before, 0)} before pruning, {percent(after, 0)} after"
    return [
        ("Device", f"{device.name} ({device.arch}{sms})" if device.name else f"{device.arch}{sms}"),
        ("Launch", _launch(kernel)),
        ("Time", _time(kernel)),
        ("Evidence", f"{kernel.evidence.value}: {kernel.evidence_reason}"),
        ("Occupancy", _occupancy(kernel.occupancy, launched=kernel.launch is not None)),
        ("Utilisation", f"{used} of peak" if used else ""),
        ("Coverage", coverage if is_covered else ""),
    ]


def _facts(page: Page, kernel: KernelAdvice) -> list[str]:
    verdict = page.fact("Verdict", kernel.verdict, strong=True)
    return verdict + [line for label, text in facts(kernel) for line in page.fact(label, text)]


def _launch(kernel: KernelAdvice) -> str:
    parts = []
    if kernel.launch is not None:
        launch = kernel.launch
        parts += [f"#{launch.index}"] + ["not measured"] * launch.failed
        parts += [f"grid {dimensions(launch.grid)}", f"block {dimensions(launch.block)}"]
        if launch.cluster is not None and launch.cluster != (1, 1, 1):
            parts.append(f"clusters of {dimensions(launch.cluster)}")
    if kernel.registers_per_thread is not None:
        parts.append(f"{kernel.registers_per_thread} registers per thread")
    if kernel.shared_bytes is not None:
        shared = f"{size(kernel.shared_bytes)} shared memory per block"
        parts.append(shared if kernel.shared_bytes else "no shared memory")
    if kernel.merged_launches > 1:
        parts.append(f"{kernel.merged_launches} launches added up")
    return ", ".join(parts)


def _time(kernel: KernelAdvice) -> str:
    if kernel.duration_ns is None:
        return ""
    has_share = kernel.time_share is not None and math.isfinite(kernel.time_share)
    if kernel.in_run is not None:
        return f"{duration(kernel.duration_ns)}; in {kernel.in_run.trace} {run_words(kernel.in_run)}"
    share = f", {percent(kernel.time_share)} of the GPU time in this report" if has_share else ""
    return duration(kernel.duration_ns) + share


def _occupancy(occupancy: Occupancy, *, launched: bool) -> str:
    if occupancy.theoretical is None:
        return f"achieved {percent(occupancy.achieved, 0)}" if occupancy.achieved is not None else ""
    text = f"theoretical {percent(occupancy.theoretical, 0)}"
    if occupancy.achieved is not None:
        text += f", achieved {percent(occupancy.achieved, 0)}"
    if occupancy.limiter is not None:
        text += f", limited by {occupancy.limiter}"
    if not launched and occupancy.blocks_per_sm and occupancy.warps_per_sm:
        threads = 32 * occupancy.warps_per_sm // occupancy.blocks_per_sm
        text += f", with blocks of {threads} threads as its launch bounds have it"
    if occupancy.limits:
        allowed = ", ".join(f"{name} {blocks}" for name, blocks in occupancy.limits)
        text += f" (blocks per SM allowed by {allowed})"
    return text


def _suggestions(page: Page, kernel: KernelAdvice) -> list[str]:
    live = [suggestion for suggestion in kernel.suggestions if suggestion.suppressed is None]
    listed = live if page.top is None else live[: page.top]
    lines: list[str] = []
    if not live:
        lines += page.heading("No suggestion")
        lines += wrap(nothing(kernel), page.width, " ")
    elif kernel.evidence is Evidence.STATIC:
        lines += page.heading("Findings in the machine code")
        lines += wrap("Without samples no gain is estimated, and the order says nothing.", page.width, " ")
    elif kernel.evidence is Evidence.COUNTED:
        lines += page.heading("Suggestions")
        text = "Without samples estimates are by counters, where those tell; the others have no order."
        lines += wrap(text, page.width, " ")
    else:
        lines += page.heading("Suggestions")
    for number in range(1, len(listed) + 1):
        lines += ["", *suggestion_lines(page, kernel, listed, number)]
    for group in kernel.groups:
        lines += ["", *group_lines(page, kernel, group)]
    more = len(live) - len(listed)
    notes = [f"{plural(more, 'more suggestion')} not shown (--top)" if more else ""]
    notes.append(f"{kernel.hidden} below the thresholds (--all shows them)" if kernel.hidden else "")
    text = "; ".join(note for note in notes if note)
    if text:
        lines += ["", *(page.style.quiet(line) for line in wrap(text, page.width, " "))]
    return lines + _suppressed(page, kernel)


_NAMED: Final = 4


def unseen(kernel: KernelAdvice) -> str:
    """Which rules could not look at a kernel without samples; empty where it has some, or all could."""
    names = [entry.name.lower() for entry in kernel.rejected if not entry.looked and entry.name]
    if kernel.samples.total or not names:
        return ""
    more = len(names) - _NAMED
    text = ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"{plural(len(names), 'rule')} could not look ({text})"


def no_change(first: KernelAdvice, kernels: Sequence[KernelAdvice]) -> str:
    """Why no change is told: nobody looked, all is as short as a launch, or none is worth its while.

    Args:
        first: the kernel that takes most of the time.
        kernels: all of the report.
    """
    if any(problem.code is ProblemCode.DEBUG_BUILD for problem in first.problems):
        return "No change is known: rules look at what a release build leaves"
    if is_runtime(first.name):
        return "No change is known: it is a kernel of the compiler's runtime"
    launch_ns = every_gpu().launch_ns
    guessed = any(problem.code is ProblemCode.LOOP_NOT_KNOWN for one in kernels for problem in one.problems)
    if not guessed and all(
        kernel.duration_ns is not None and kernel.duration_ns < launch_ns for kernel in kernels
    ):
        which = "Every kernel" if len(kernels) > 1 else "It"
        more = "give each launch more work, do several steps in one kernel, or record them as a CUDA graph"
        return f"{which} is about as short as a launch: {more}"
    if blind := unseen(first):
        return f"No change is known: {blind}"
    if 0 < first.samples.total < MIN_SAMPLES:
        return f"No change is known: {plural(first.samples.total, 'sample')} say nothing"
    return "No change worth its while was found"


def nothing(kernel: KernelAdvice) -> str:
    """Why a kernel has no suggestion to show."""
    if kernel.suggestions:
        return "Comments in the source ignore every suggestion."
    if kernel.hidden:
        return "What matched promises less than the thresholds ask for."
    if not kernel.rejected:
        return "No rule looked at this kernel."
    blind = [entry.reason for entry in kernel.rejected if not entry.looked]
    looked = len(kernel.rejected) - len(blind)
    sentence = (
        f"Nothing was found: {plural(looked, 'rule')} looked at this kernel and rejected it" if looked else ""
    )
    if blind:
        why = f" ({blind[0]})" if len(set(blind)) == 1 else ""
        sentence += f"{', ' if sentence else ''}{plural(len(blind), 'rule')} could not look at it{why}"
    return f"{sentence}; the conditions that failed are below."


def _suppressed(page: Page, kernel: KernelAdvice) -> list[str]:
    lines: list[str] = []
    for suggestion in (*kernel.suggestions, *kernel.notes):
        if suggestion.suppressed is None:
            continue
        reason = suggestion.suppressed.reason or "no reason given"
        text = f"{suggestion.code} is ignored at {page.place(suggestion.suppressed.location)}: {reason}"
        lines += [page.style.quiet(line) for line in wrap(text, page.width, "   ", " ")]
    return ["", *lines] if lines else []


def note_words(note: Suggestion) -> str:
    """A note in a sentence or two."""
    matched = f" ({percent(note.importance)} of the samples)" if note.matched_samples else ""
    return f"{note.title}{matched}. {note.advice}"


def _notes(page: Page, kernel: KernelAdvice) -> list[str]:
    notes = [note for note in kernel.notes if note.suppressed is None]
    if not notes:
        return []
    lines = page.heading("Notes")
    for note in notes:
        lines += wrap(note_words(note), page.width, " " * 9, f" {note.code}  ")
    return lines


def _rejected(page: Page, kernel: KernelAdvice) -> list[str]:
    if not kernel.rejected:
        return []
    lines = page.heading("Considered and rejected")
    for rejection in kernel.rejected:
        lines += wrap(rejection.reason, page.width, " " * 9, f" {rejection.code}  ")
    return lines


def _problems(page: Page, kernel: KernelAdvice) -> list[str]:
    if not kernel.problems:
        return []
    lines = page.heading("Not understood, and data quality")
    for problem in kernel.problems:
        text = wrap(f"{problem.code.value}: {problem.message}", page.width, "   ", " ")
        lines += [page.style.caution(line) for line in text]
    return lines
