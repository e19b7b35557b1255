# SPDX-License-Identifier: Apache-2.0
"""Predicted beside achieved: what an old analysis promised, and what the new profile shows."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from gpadvisor import __version__
from gpadvisor.gate.ledger import PredictionOutcome
from gpadvisor.model.estimate import Evidence
from gpadvisor.model.figures import factor, gain
from gpadvisor.model.finding import EditorAnalysis, KernelView, LedgerEntry


def ledger(before: EditorAnalysis, after: EditorAnalysis) -> tuple[LedgerEntry, ...]:
    """One entry for each estimated suggestion of the old analysis whose kernel is in the new one."""
    entries: list[LedgerEntry] = []
    for old, new in _pairs(before.kernels, after.kernels):
        reason = _not_comparable(before, after, old, new)
        achieved = None
        if reason is None and old.duration_ns and new.duration_ns:
            achieved = old.duration_ns / new.duration_ns
        again = {suggestion.code for suggestion in new.suggestions}
        entries += [
            LedgerEntry(
                kernel=new.kernel,
                kernel_name=new.name,
                code=view.code,
                predicted=view.speedup,
                achieved=achieved,
                still_found=view.code in again,
                comparable=reason,
            )
            for view in old.suggestions
            if view.speedup is not None
        ]
    return tuple(entries)


def outcomes(
    before: EditorAnalysis, after: EditorAnalysis, applied: Collection[tuple[str, str]]
) -> tuple[PredictionOutcome, ...]:
    """What came of fixes that were applied (mangled kernel, code): lines of a ledger."""
    result: list[PredictionOutcome] = []
    for old, new in _pairs(before.kernels, after.kernels):
        views = [suggestion for suggestion in old.suggestions if (old.kernel, suggestion.code) in applied]
        if _not_comparable(before, after, old, new) or not old.duration_ns or not new.duration_ns:
            continue
        result += [
            PredictionOutcome(
                rule=view.code,
                low=round(view.speedup.low, 4),
                expected=round(view.speedup.expected, 4),
                high=round(view.speedup.high, 4),
                paper=None if view.speedup.paper is None else round(view.speedup.paper, 4),
                achieved=round(old.duration_ns / new.duration_ns, 4),
                device=old.device,
                arch=old.arch or "",
                version=__version__,
                evidence=old.evidence.value,
                known_by="fix",
                beside=len(views) - 1,
                kernel=old.base_name,
                before=before.sha256,
                after=after.sha256,
            )
            for view in views
            if view.speedup is not None and math.isfinite(view.speedup.high + (view.speedup.paper or 0.0))
        ]
    return tuple(result)


def verdict(entry: LedgerEntry) -> str:
    """Where the achieved speedup lies."""
    if entry.achieved is None:
        return "not measured"
    if entry.achieved < entry.predicted.low:
        return "below the range"
    return "above the range" if entry.achieved > entry.predicted.high else "inside the range"


def followed(entry: LedgerEntry) -> bool:
    """Whether the finding went away between two profiles with times to compare."""
    return entry.achieved is not None and not entry.still_found


def entry_words(entry: LedgerEntry) -> str:
    """One sentence: predicted, achieved, and whether the finding is still there."""
    start = f"{entry.code} promised {gain(entry.predicted)} for {entry.kernel_name}"
    if entry.comparable is not None:
        return f"{start}; not compared: {entry.comparable}"
    if entry.achieved is None:
        return f"{start}; the profiles have no times to compare"
    if entry.still_found:
        return f"{start} and is still found; the kernel is at {factor(entry.achieved)} of its old speed"
    return f"{start}; the kernel is at {factor(entry.achieved)} of its old speed: {verdict(entry)}"


def summary(entries: Sequence[LedgerEntry], code: str | None = None) -> str | None:
    """``6 of 7 predictions inside the range``, of one rule or of all; None without any.

    Only rules whose finding went away count: the others were not followed.
    """
    counted = [entry for entry in entries if followed(entry) and code in (None, entry.code)]
    if not counted:
        return None
    inside = sum(1 for entry in counted if verdict(entry) == "inside the range")
    whose = "" if code is None else f"{code} "
    return f"{inside} of {len(counted)} {whose}prediction{'s' if len(counted) > 1 else ''} inside the range"


def _pairs(before: Sequence[KernelView], after: Sequence[KernelView]) -> list[tuple[KernelView, KernelView]]:
    """By mangled name, then by base name where that is the only one left on both sides."""
    views, right = list(before), list(after)
    pairs = []
    for old in before:
        new = next((view for view in right if view.kernel == old.kernel), None)
        if new is not None:
            pairs.append((old, new))
            views.remove(old)
            right.remove(new)
    for old in list(views):
        olds = [kernel_view for kernel_view in views if kernel_view.base_name == old.base_name]
        news = [kernel for kernel in right if kernel.base_name == old.base_name]
        if len(olds) == len(news) == 1:
            pairs.append((old, news[0]))
    return pairs


def _not_comparable(
    before: EditorAnalysis, after: EditorAnalysis, old: KernelView, new: KernelView
) -> str | None:
    if before.sha256 == after.sha256:
        return "it is the same profile"
    if old.evidence is not Evidence.MEASURED or new.evidence is not Evidence.MEASURED:
        return "only times of measured runs are compared"
    if old.device != new.device:
        return f"the devices differ ({old.device}, then {new.device})"
    return None
