# SPDX-License-Identifier: Apache-2.0
"""Suggestions that share samples, and what doing all of them gives.

Differs from GPA: its estimates never combine, so that a reader cannot know that two of them count one stall.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.advice.evaluate import EstimatedMatch
from gpadvisor.estimators.caps import cap_speedup
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.matched import matched_rows
from gpadvisor.estimators.ranges import Range, cut_by, speedup
from gpadvisor.estimators.utilisation import active_loads
from gpadvisor.model.advice import Category, Estimate, Group
from gpadvisor.model.blame import Blame

MIN_SHARED: Final = 0.01
"""Suggestions that share less of all samples than this stand for themselves."""


def groups(context: KernelContext, findings: Sequence[EstimatedMatch]) -> tuple[Group, ...]:
    """Groups of findings that are connected by shared samples, heaviest first."""
    blame = context.blame
    if blame is None or not blame.total_samples:
        return ()
    members = [
        (finding, matched_rows(finding.match))
        for finding in sorted(findings, key=lambda suggestion: suggestion.code)
        if finding.estimate is not None and len(matched_rows(finding.match))
    ]
    groups = [_group(context, blame, part) for part in _connected(blame, members) if len(part) > 1]
    return tuple(sorted(groups, key=lambda group: (-group.samples, group.suggestions)))


MatchRows = tuple[EstimatedMatch, NDArray[np.intp]]


def _connected(blame: Blame, members: Sequence[MatchRows]) -> list[list[MatchRows]]:
    parts: list[list[MatchRows]] = []
    for member in members:
        touches = [any(_share(blame, member, peer) for peer in part) for part in parts]
        joined = [peer for part, touch in zip(parts, touches, strict=True) if touch for peer in part]
        parts = [part for part, touch in zip(parts, touches, strict=True) if not touch]
        parts.append([*joined, member])
    return parts


def _share(blame: Blame, first: MatchRows, second: MatchRows) -> bool:
    common = np.intersect1d(first[1], second[1], assume_unique=True)
    return int(blame.rows.samples[common].sum()) >= MIN_SHARED * blame.total_samples


def _group(context: KernelContext, blame: Blame, part: Sequence[MatchRows]) -> Group:
    rows, times = np.unique(np.concatenate([member[1] for member in part]), return_counts=True)
    samples = int(blame.rows.samples[rows].sum())
    shared = int(blame.rows.samples[rows[times > 1]].sum())
    return Group(
        suggestions=tuple(sorted(member[0].code for member in part)),
        samples=samples,
        shared_samples=shared,
        speedup=_joint(context, blame, part, rows),
    )


def _joint(
    context: KernelContext, blame: Blame, part: Sequence[MatchRows], rows: NDArray[np.intp]
) -> Estimate:
    """Each sample is removed once, by the suggestion that removes the most of it."""
    total = blame.total_samples

    def joint(end: Callable[[Estimate], float]) -> float:
        return speedup(total, _removed(blame, part, rows, end))

    result = Range(
        low=joint(lambda estimate: estimate.low),
        expected=joint(lambda estimate: estimate.expected),
        high=joint(lambda estimate: estimate.high),
        reasons=["each matched sample counted once, by the suggestion that removes the most of it"],
    )
    reduced_loads = [reduced for member, _ in part for reduced in member.match.reduced_loads]
    measured = active_loads(context)
    sentence = cut_by(
        result,
        cap_speedup(measured, reduced_loads, best=False),
        cap_speedup(measured, reduced_loads, best=True),
    )
    _not_below_members(result, part)
    if sentence is not None:
        result.reasons.append(sentence)
    removed = round(_removed(blame, part, rows, lambda estimate: estimate.expected))
    text = f"T / (T - R) = {total} / ({total} - {removed}) with R samples removed together"
    return result.ordered(None, text)


def _not_below_members(result: Range, part: Sequence[MatchRows]) -> None:
    """A group gives no less than its best member, whose own measured bound may lie above the samples."""
    for member, _ in part:
        estimate = member.estimate
        if estimate is not None:
            result.low = max(result.low, estimate.low)
            result.expected = max(result.expected, estimate.expected)
            result.high = max(result.high, estimate.high)


def _removed(
    blame: Blame, part: Sequence[MatchRows], rows: NDArray[np.intp], end: Callable[[Estimate], float]
) -> float:
    total = blame.total_samples
    removed = np.full(len(rows), -np.inf)
    hidden = np.zeros(len(rows), dtype=bool)
    for member, own_rows in part:
        estimate = member.estimate
        if estimate is None:
            continue
        hides = member.optimizer.category is Category.LATENCY_HIDING
        basis = (blame.rows.latency if hides else blame.rows.samples)[own_rows].astype(np.float64)
        if not basis.sum():
            continue
        gone = basis * (total * (1 - 1 / end(estimate)) / basis.sum())
        indices = np.searchsorted(rows, own_rows)
        better = gone > removed[indices]
        hidden[indices[better]] = hides
        removed[indices] = np.maximum(removed[indices], gone)
    removed[~np.isfinite(removed)] = 0.0
    active = total - blame.latency_samples
    filled = min(float(removed[hidden].sum()), float(active))  # Theorem V.1 holds for all hiding together
    return filled + float(removed[~hidden].sum())
