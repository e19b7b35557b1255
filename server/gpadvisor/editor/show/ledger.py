# SPDX-License-Identifier: Apache-2.0
"""Predicted beside achieved: what an old analysis promised, and what the new profile shows."""

from __future__ import annotations

from collections.abc import Sequence

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
        again = {one.code for one in new.suggestions}
        entries += [
            LedgerEntry(
                kernel=new.kernel,
                kernel_name=new.name,
                code=one.code,
                predicted=one.speedup,
                achieved=achieved,
                still_found=one.code in again,
                comparable=reason,
            )
            for one in old.suggestions
            if one.speedup is not None
        ]
    return tuple(entries)


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
    left, right = list(before), list(after)
    pairs = []
    for old in before:
        new = next((one for one in right if one.kernel == old.kernel), None)
        if new is not None:
            pairs.append((old, new))
            left.remove(old)
            right.remove(new)
    for old in list(left):
        olds = [one for one in left if one.base_name == old.base_name]
        news = [one for one in right if one.base_name == old.base_name]
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
