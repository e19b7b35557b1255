# SPDX-License-Identifier: Apache-2.0
"""Eq. 1: how the stalls of one instruction are shared out among its dependency sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

_SCALE: Final = 1 << 40


def ratios(distances: Sequence[float], issues: Sequence[float]) -> list[float]:
    """The share of each source (GPA Eq. 1): inversely to its distance, in proportion to its issues.

    Sources that never issued share nothing, unless none did; then the distances alone decide.

    Differs from GPA: its code divides by a memory efficiency as well, which the paper does not.

    Args:
        distances: instructions on the path from each source, at least 1.
        issues: executed counts or issued samples of each source.
    """
    if not distances:
        return []
    if not any(issues):
        issues = [1.0] * len(distances)
    weights = [issue / max(distance, 1) for distance, issue in zip(distances, issues, strict=True)]
    total = sum(weights)  # R_path and R_issue are normalised together: their own sums cancel in Eq. 1
    return [weight / total for weight in weights]


def apportion(samples: int, shares: Sequence[float]) -> list[int]:
    """Whole samples by the largest remainder; they add up to ``samples`` exactly.

    Equal remainders go to the earlier source.
    """
    weights = [round(share * _SCALE) for share in shares]
    total = sum(weights)
    if not total:
        weights, total = [1] * len(weights), len(weights)
    parts = [samples * weight // total for weight in weights]
    remainder = samples - sum(parts)
    by_remainder = sorted(
        range(len(parts)), key=lambda position: (-(samples * weights[position] % total), position)
    )
    for index in by_remainder[:remainder]:
        parts[index] += 1
    return parts


def apportion_stalls(samples: int, latency: int, shares: Sequence[float]) -> list[tuple[int, int]]:
    """Samples and latency samples of each source, by the same shares.

    Latency samples and the others are shared out apart, so that no source gets more latency samples than
    samples and both add up.
    """
    parts = apportion(latency, shares)
    issuing = apportion(samples - latency, shares)
    return [(part + issuing_part, part) for part, issuing_part in zip(parts, issuing, strict=True)]


def apportion_carrying(
    samples: int, latency: int, shares: Mapping[int, float], owed: dict[int, float]
) -> list[tuple[int, int]]:
    """The same for one of many waits with common sources: what rounding takes from a source, it gets later.

    With few samples at each of many places, the largest remainder would always go to the heaviest source.

    Args:
        samples: of this wait.
        latency: of these, the latency samples.
        shares: by source.
        owed: by source, the samples that it got too few so far; updated.
    """
    exact = [share * samples + owed.get(source, 0.0) for source, share in shares.items()]
    positive = [max(value, 0.0) for value in exact]
    total = sum(positive) or 1.0
    parts = apportion(samples, [value / total for value in positive])
    owed.update(zip(shares, (value - part for value, part in zip(exact, parts, strict=True)), strict=True))
    return list(zip(parts, apportion(latency, [part / max(samples, 1) for part in parts]), strict=True))
