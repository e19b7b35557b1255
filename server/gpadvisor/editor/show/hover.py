# SPDX-License-Identifier: Apache-2.0
"""The hover of a line in at most 25 lines: the gain, where the samples went, what to change, the rest.

Editors show it below the diagnostic, which has the cause: nothing is said twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpadvisor.editor.place.placing import PlacedFile, PlacedFinding, PlacedLine, lines_today, place_now
from gpadvisor.editor.show.choice import chosen_kernels
from gpadvisor.editor.show.diagnostics import rank
from gpadvisor.editor.show.ledger import entry_words, followed, summary
from gpadvisor.editor.show.options import Options, Stale
from gpadvisor.editor.show.words import EVIDENCE_WORDS, code, count, escape, file_name, reason_words, shorten
from gpadvisor.model.estimate import Evidence
from gpadvisor.model.figures import gain, short_percent, won
from gpadvisor.model.finding import (
    BaselineKind,
    EditorAnalysis,
    Finding,
    Freshness,
    KernelView,
    LedgerEntry,
    Place,
    StallShare,
)
from gpadvisor.model.sentence import Sentence, joined

MAX_LINES: Final = 25
_FINDINGS: Final = 3
_STALLS: Final = 5
_REJECTED: Final = 3
_ADVICE: Final = 400
_REASON: Final = 260
_PAST: Final = 2
_ALL: Final = 0.9995
"""A share of the time that is printed as 100 %: then the kernel is the run."""


def hover(
    analysis: EditorAnalysis,
    file: PlacedFile,
    line: int,
    files: Mapping[str, PlacedFile],
    options: Options,
    history: Sequence[LedgerEntry] = (),
) -> str | None:
    """Markdown for a line of today's text; None where there is nothing to say.

    Args:
        analysis: What is shown.
        file: The file in today's text.
        line: From 1.
        files: All placed files by path, for places.
        options: What the user wants to see.
        history: What earlier predictions came to.
    """
    if not options.hover:
        return None
    kernels = {kernel.kernel: kernel for kernel in analysis.kernels}
    chosen = chosen_kernels(analysis, options)
    on_line = [placed for placed in (*file.findings, *file.deleted_findings) if placed.line == line]
    data = [
        placed_line
        for placed_line in file.lines
        if placed_line.line == line
        and placed_line.data.kernel in chosen
        and (placed_line.data.samples or placed_line.data.caused)
    ]
    if options.stale is Stale.HIDE:
        on_line = [placed for placed in on_line if placed.freshness is not Freshness.EDITED]
        data = [placed for placed in data if placed.freshness is not Freshness.EDITED]
    if not on_line and not data:
        return None
    on_line.sort(key=lambda placed: rank(placed.finding))
    context = _Now(file=file, files=files, kernels=kernels, shown=chosen, options=options)
    leader = _leader(on_line, data, kernels)
    return _fitted(
        head=[_head(on_line[0], context)] if on_line else [],
        table=_table(data, kernels, context),
        change=_change(on_line[0], context) if on_line else [],
        reasons=_reasons(on_line[0], history, context) if on_line else _came(leader, history),
        further=[_other(placed, context) for placed in on_line[1:_FINDINGS]],
        closing=_closing(on_line, data, leader, analysis, context),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Now:
    """Where things stand today, and what is wanted."""

    file: PlacedFile
    files: Mapping[str, PlacedFile]
    kernels: Mapping[str, KernelView]
    shown: frozenset[str]  # mangled names of the chosen kernels
    options: Options

    def place(self, then: Place) -> Place:
        return place_now(then, {**self.files, self.file.path: self.file})

    def text(self, sentence: Sentence, letters: int) -> str:
        placed_files = {**self.files, self.file.path: self.file}
        return escape(shorten(sentence.at(lines_today(placed_files)), letters))


def _leader(
    findings: Sequence[PlacedFinding], data: Sequence[PlacedLine], kernels: Mapping[str, KernelView]
) -> KernelView | None:
    if findings:
        return kernels.get(findings[0].finding.kernel)
    return kernels.get(max(data, key=lambda line: line.data.samples).data.kernel)


def _head(placed: PlacedFinding, context: _Now) -> str:
    """Gain, cure, of what, and why as a link: ``**4.5x (3.8-4.9): Fast Math** for `k` ([why](...))``."""
    finding = placed.finding
    page = context.options.page(finding.code, finding.slug)
    why = finding.code if page is None else f"[why]({page})"
    gained, of = _gain(finding, context)
    return f"**{gained}: {escape(finding.name)}** {of} ({why})"


def _other(placed: PlacedFinding, context: _Now) -> str:
    """Another finding on the line, in one line."""
    finding = placed.finding
    if finding.suppressed is not None:
        text = escape(shorten(f"suppressed: {finding.suppressed}", _ADVICE // 2))
    elif finding.cure:
        text = context.text(finding.cure, 2 * len(finding.cure))  # never cut
    else:
        text = context.text(finding.advice, _ADVICE // 2)
    return f"{_head(placed, context)}. {text}"


def _change(placed: PlacedFinding, context: _Now) -> list[str]:
    """What to change in full, and what of it is here."""
    finding = placed.finding
    if finding.suppressed is not None:
        return [f"Suppressed in the source: {escape(shorten(finding.suppressed, _REASON))}"]
    return [
        f"Change: {context.text(finding.advice, _ADVICE)}",
        f"Here: {escape(shorten(finding.message, _ADVICE))}",
    ]


def _reasons(placed: PlacedFinding, history: Sequence[LedgerEntry], context: _Now) -> list[str]:
    """Why the range is what it is, and what earlier predictions came to."""
    finding = placed.finding
    if finding.suppressed is not None:
        return []
    lines = []
    if finding.speedup is not None:
        lines.append(f"Range: {context.text(finding.speedup.reason, _REASON)}")
    sentence = summary(history, finding.code)
    came = [
        escape(entry_words(entry))
        for entry in history
        if entry.kernel == finding.kernel
        and (sentence is None if entry.code == finding.code else followed(entry))
    ]
    past = [*([] if sentence is None else [sentence]), *came[:_PAST]]
    if past:
        lines.append(f"History: {'. '.join(past)}.")
    return lines


def _came(kernel: KernelView | None, history: Sequence[LedgerEntry]) -> list[str]:
    """What predictions that were followed came to, where nothing is left to say of a line."""
    came = [
        escape(entry_words(entry))
        for entry in history
        if kernel is not None and entry.kernel == kernel.kernel and followed(entry)
    ]
    return [f"History: {'. '.join(came[:_PAST])}."] if came else []


def _gain(finding: Finding, context: _Now) -> tuple[str, str]:
    """The estimate for the kernel that is shown, where it has a part in this, else for the leading one."""
    if finding.run and finding.speedup is not None:
        return gain(finding.speedup), f"of the whole run {code(finding.run)}"
    parts = sorted(finding.parts, key=lambda finding_part: finding_part.kernel not in context.shown)[:1]
    part = parts[0] if parts else None
    if part is None or part.speedup is None:
        return won(
            None, finding.evidence
        ), f"for {code(finding.kernel_name if part is None else part.kernel_name)}"
    text = f"for {code(part.kernel_name)}"
    kernel, estimate = context.kernels.get(part.kernel), part.program_speedup
    if kernel is not None and kernel.run and kernel.time_share is not None and estimate is not None:
        text += (
            f", {short_percent(kernel.time_share)} of GPU time, and a GPU works in"
            f" {short_percent(kernel.run_busy)} of {code(kernel.run)}: {gain(estimate)} of the whole run"
        )
    elif (
        kernel is not None
        and kernel.time_share is not None
        and estimate is not None
        and kernel.time_share < _ALL
    ):
        text += f", {short_percent(kernel.time_share)} of GPU time: {gain(estimate)} of the run"
    return gain(part.speedup), text


def _table(data: Sequence[PlacedLine], kernels: Mapping[str, KernelView], context: _Now) -> list[str]:
    """The stalls of the line, of the kernel with the most samples here."""
    if not data:
        return []
    top = max(data, key=lambda placed_line: placed_line.data.samples)
    kernel, line = kernels[top.data.kernel], top.data
    samples_words = f"the {count(kernel.samples)} samples of {code(kernel.name)}"
    sentence = f"{short_percent(line.share)} of {samples_words} are on this line"
    if line.caused and kernel.samples:
        sentence += f"; it causes {short_percent(line.caused / kernel.samples)}"
    if not line.stalls:
        return [f"{sentence}."]
    lines = [f"{sentence}.", "", "| stall | samples | waits for |", "|--|--:|--|"]
    for stall in line.stalls[:_STALLS]:
        share = stall.samples / kernel.samples if kernel.samples else 0.0
        number = f"{count(stall.samples)} ({short_percent(share)})"
        lines.append(f"| {_reason(stall, context)} | {number} | {_cause(stall, top, context)} |")
    return lines


def _reason(stall: StallShare, context: _Now) -> str:
    words, page = escape(reason_words(stall.reason)), context.options.stall_page(stall.reason)
    return words if page is None else f"[{words}]({page})"


def _cause(stall: StallShare, entry: PlacedLine, context: _Now) -> str:
    if stall.cause is None:
        return escape(stall.plain)
    then, place = stall.cause.place, context.place(stall.cause.place)
    if then.file != context.file.path:
        where = f"{file_name(place.file)}:{place.line}"
    else:
        where = "this line" if then.line == entry.data.line else f"line {place.line}"
    return f"{escape(where)}: {escape(shorten(stall.cause.message, 110))}"


def _closing(
    findings: Sequence[PlacedFinding],
    data: Sequence[PlacedLine],
    kernel: KernelView | None,
    analysis: EditorAnalysis,
    context: _Now,
) -> list[str]:
    if kernel is None:
        return _closing_of_run(findings)
    lines = [] if findings else [f"{context.text(kernel.verdict, _REASON)}."]
    if findings and kernel.together is not None and len(kernel.together_codes) > 1:
        codes = " + ".join(kernel.together_codes)
        lines.append(f"Together {gain(kernel.together)}: {codes} share samples")
    if findings and kernel.rejected:
        lines.append(f"Not suggested: {_rejections(kernel)}")
    if kernel.assumptions:
        lines.append(f"Assumed: {context.text(joined(kernel.assumptions), _REASON)}")
    freshnesses = {*(finding.freshness for finding in findings), *(line.freshness for line in data)}
    edited = Freshness.EDITED in freshnesses
    lines.append(f"Evidence: {_evidence(kernel, analysis, context.file, edited=edited)}.")
    return lines


def _closing_of_run(findings: Sequence[PlacedFinding]) -> list[str]:
    """What a finding on host code rests on."""
    if not findings or not findings[0].finding.run:
        return []
    edited = findings[0].freshness is Freshness.EDITED
    text = "**edited since the trace**" if edited else "unverified: a trace does not carry its source"
    return [f"Evidence: {EVIDENCE_WORDS[findings[0].finding.evidence]}, {text}."]


def _rejections(kernel: KernelView) -> str:
    listed = [f"{rule} ({escape(shorten(reason, 90))})" for rule, reason in kernel.rejected[:_REJECTED]]
    more = len(kernel.rejected) - len(listed)
    return "; ".join(listed) + (f"; and {more} more" if more else "") + "."


_BASELINE_WORDS: Final = {
    BaselineKind.EMBEDDED: "the profile carries its source",
    BaselineKind.COMPILED: "compiled from this file",
    BaselineKind.HASHED: "unverified: the profile does not carry its source",
    BaselineKind.UNKNOWN: "unverified: the source that was profiled is not known",
}


def _evidence(kernel: KernelView, analysis: EditorAnalysis, file: PlacedFile, *, edited: bool) -> str:
    parts = [EVIDENCE_WORDS[kernel.evidence]]
    if kernel.evidence is not Evidence.STATIC:
        parts.append(escape(kernel.evidence_reason))
    if kernel.device:
        parts.append(escape(kernel.device))
    if kernel.launch:
        parts.append(escape(kernel.launch))
    parts.append("**edited since the profile**" if edited else _BASELINE_WORDS[file.baseline_kind])
    if analysis.collected_at and not edited:
        parts.append(f"taken {escape(analysis.collected_at[:16].replace('T', ' '))}")
    return ", ".join(parts)


def _fitted(
    *,
    head: list[str],
    table: list[str],
    change: list[str],
    reasons: list[str],
    further: list[str],
    closing: list[str],
) -> str:
    """The blocks with an empty line between; of too much, other findings go first, then reasons."""
    while True:
        blocks = [head, table, _broken(change), _broken(reasons), _broken(further), _broken(closing)]
        blocks_present = [block for block in blocks if block]
        if sum(map(len, blocks_present)) + len(blocks_present) - 1 <= MAX_LINES:
            return "\n\n".join("\n".join(block) for block in blocks_present)
        for block in (further, reasons, table):
            if len(block) > (1 if block is table else 0):
                block.pop()
                break
        else:
            closing.pop(0)


def _broken(lines: Sequence[str]) -> list[str]:
    """Lines that stay lines in Markdown."""
    return [f"{line}  " for line in lines[:-1]] + list(lines[-1:])
