# SPDX-License-Identifier: Apache-2.0
"""The hover of a line in at most 25 lines: verdict, where its samples went, why, what else was considered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gpadvisor.ide.choice import chosen_kernels
from gpadvisor.ide.ledger import entry_words, summary
from gpadvisor.ide.mentions import mentions_now
from gpadvisor.ide.options import Options, Stale
from gpadvisor.ide.placing import PlacedFile, PlacedFinding, PlacedLine, place_now
from gpadvisor.ide.values import (
    BaselineKind,
    EditorAnalysis,
    Freshness,
    KernelView,
    LedgerEntry,
    StallShare,
)
from gpadvisor.ide.words import (
    EVIDENCE_WORDS,
    code,
    count,
    escape,
    file_name,
    percent,
    reason_words,
    shorten,
    span,
)
from gpadvisor.model.profile import Evidence

MAX_LINES: Final = 25
_FINDINGS: Final = 3
_STALLS: Final = 5
_REJECTED: Final = 3
_ADVICE: Final = 400
_REASON: Final = 260


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
    shown = chosen_kernels(analysis, options)
    found = [one for one in (*file.findings, *file.deleted_findings) if one.line == line]
    data = [
        one
        for one in file.lines
        if one.line == line and one.data.kernel in shown and (one.data.samples or one.data.caused)
    ]
    if options.stale is Stale.HIDE:
        found = [one for one in found if one.freshness is not Freshness.EDITED]
        data = [one for one in data if one.freshness is not Freshness.EDITED]
    if not found and not data:
        return None
    found.sort(key=_rank)
    leader = _leader(found, data, kernels)
    blocks = [
        *(
            _finding(one, kernels, options, history, brief=index > 0)
            for index, one in enumerate(found[:_FINDINGS])
        ),
        _table(file, data, kernels, files),
        _closing(found, data, leader, analysis, file),
    ]
    return mentions_now(_fitted(blocks), file, files)


def _rank(placed: PlacedFinding) -> tuple[bool, float, int, str]:
    finding = placed.finding
    gain = 0.0 if finding.speedup is None else finding.speedup.expected
    return finding.suppressed is not None, -gain, -finding.samples, finding.code


def _leader(
    found: Sequence[PlacedFinding], data: Sequence[PlacedLine], kernels: Mapping[str, KernelView]
) -> KernelView | None:
    if found:
        return kernels.get(found[0].finding.kernel)
    return kernels.get(max(data, key=lambda one: one.data.samples).data.kernel)


def _finding(
    placed: PlacedFinding,
    kernels: Mapping[str, KernelView],
    options: Options,
    history: Sequence[LedgerEntry],
    *,
    brief: bool,
) -> list[str]:
    finding = placed.finding
    kernel = kernels.get(finding.kernel)
    page = options.page(finding.code, finding.slug)
    title = f"**{finding.code} {escape(finding.name)}**"
    head = f"[{title}]({page})" if page is not None else title
    lines = [f"{head}: {_gain(placed, kernel)}"]
    if finding.suppressed is not None:
        return [*lines, f"Suppressed in the source: {escape(shorten(finding.suppressed, _REASON))}"]
    if brief:
        return [*lines, escape(shorten(finding.advice, _ADVICE // 2))]
    lines += ["", f"Why: {escape(shorten(finding.message, _ADVICE))}"]
    lines += ["", f"Change: {escape(shorten(finding.advice, _ADVICE))}"]
    if finding.speedup is not None:
        lines += ["", f"Range: {escape(shorten(finding.speedup.reason, _REASON))}"]
    came = [entry for entry in history if entry.code == finding.code and entry.kernel == finding.kernel]
    said = summary(history, finding.code)
    if said is not None:
        lines += ["", f"History: {said}."]
    elif came:
        lines += ["", f"History: {escape(entry_words(came[0]))}."]
    return lines


def _gain(placed: PlacedFinding, kernel: KernelView | None) -> str:
    finding = placed.finding
    name = code(finding.kernel_name)
    if finding.speedup is None:
        no = (
            "a note"
            if finding.evidence is Evidence.MEASURED
            else f"{EVIDENCE_WORDS[finding.evidence]} finding"
        )
        return f"{no} for {name}, without an estimate"
    text = f"{span(finding.speedup)} for {name}"
    part = finding.parts[0] if finding.parts else None
    whole = None if part is None else part.program_speedup
    if kernel is not None and kernel.time_share is not None and whole is not None:
        text += f" ({percent(kernel.time_share)} of GPU time: {span(whole)} of the whole)"
    return text


def _table(
    file: PlacedFile,
    data: Sequence[PlacedLine],
    kernels: Mapping[str, KernelView],
    files: Mapping[str, PlacedFile],
) -> list[str]:
    """The stalls of the line, of the kernel with the most samples here."""
    if not data:
        return []
    top = max(data, key=lambda one: one.data.samples)
    kernel, line = kernels[top.data.kernel], top.data
    whole = f"the {count(kernel.samples)} samples of {code(kernel.name)}"
    said = f"{percent(line.share)} of {whole} are on this line"
    if line.caused and kernel.samples:
        said += f"; it causes {percent(line.caused / kernel.samples)}"
    lines = [said, ""]
    if not line.stalls:
        return lines[:1]
    lines += ["| stall | samples | waits for |", "|--|--:|--|"]
    for stall in line.stalls[:_STALLS]:
        share = stall.samples / kernel.samples if kernel.samples else 0.0
        lines.append(
            f"| {escape(reason_words(stall.reason))} | {count(stall.samples)} ({percent(share)}) "
            f"| {_cause(stall, top, file, files)} |"
        )
    return lines


def _cause(stall: StallShare, entry: PlacedLine, file: PlacedFile, files: Mapping[str, PlacedFile]) -> str:
    if stall.cause is None:
        return escape(stall.plain)
    then = stall.cause.place
    now = place_now(then, {**files, file.path: file})
    if then.file != file.path:
        where = f"{file_name(now.file)}:{now.line}"
    else:
        where = "this line" if then.line == entry.data.line else f"line {now.line}"
    return f"{escape(where)}: {escape(shorten(stall.cause.message, 110))}"


def _closing(
    found: Sequence[PlacedFinding],
    data: Sequence[PlacedLine],
    kernel: KernelView | None,
    analysis: EditorAnalysis,
    file: PlacedFile,
) -> list[str]:
    if kernel is None:
        return []
    lines = [] if found else [f"{escape(shorten(kernel.verdict, _REASON))}."]
    if found and kernel.rejected:
        lines += ["", f"Not suggested: {_rejections(kernel)}"]
    if kernel.assumptions:
        lines += ["", f"Assumed: {escape(shorten('; '.join(kernel.assumptions), _REASON))}"]
    known = {*(one.freshness for one in found), *(one.freshness for one in data)}
    edited = Freshness.EDITED in known
    lines += ["", f"Evidence: {_evidence(kernel, analysis, file, edited=edited)}."]
    return lines


def _rejections(kernel: KernelView) -> str:
    shown = [f"{rule} ({escape(shorten(reason, 90))})" for rule, reason in kernel.rejected[:_REJECTED]]
    more = len(kernel.rejected) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "") + "."


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


def _fitted(blocks: Sequence[Sequence[str]]) -> str:
    """The blocks with an empty line between, the last one kept whole where something must go."""
    blocks = [list(block) for block in blocks if block]
    last = _trimmed(blocks[-1])
    room = MAX_LINES - len(last) - 1
    lines: list[str] = []
    for block in blocks[:-1]:
        lines += ["", *block] if lines else block
    return "\n".join([*_trimmed(lines[:room]), "", *last] if lines else last[:MAX_LINES])


def _trimmed(lines: Sequence[str]) -> list[str]:
    found = list(lines)
    while found and not found[0]:
        found.pop(0)
    while found and not found[-1]:
        found.pop()
    return found
