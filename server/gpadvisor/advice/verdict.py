# SPDX-License-Identifier: Apache-2.0
"""One sentence per kernel: what limits it, and whether anything helps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpadvisor.estimators.caps import ISSUE
from gpadvisor.model.advice import (
    Rejection,
    SampleSummary,
    StallSummary,
    Suggestion,
    Utilisation,
)
from gpadvisor.model.profile import Evidence

LIMIT_PERCENT: Final = 80.0
"""From here on a unit counts as the limit (Nsight Compute's line for high throughput)."""
_ISSUE_BOUND: Final = 0.6
_WORKING: Final = frozenset({"selected", "not_selected"})


def verdict(
    evidence: Evidence,
    *,
    samples: SampleSummary,
    stalls: Sequence[StallSummary],
    utilisations: Sequence[Utilisation],
    suggestions: Sequence[Suggestion],
    rejected: Sequence[Rejection],
    hidden: int,
    suppressed: int = 0,
    has_code: bool = True,
) -> str:
    """The sentence; the suggestions are those that no comment in the source sets aside."""
    if not has_code:
        return "No machine code of this kernel could be read, so nothing is said about it"
    if evidence in {Evidence.STATIC, Evidence.COUNTED} or not samples.total:
        return _without_samples(evidence, suggestions, suppressed)
    limit = limiting(utilisations)
    what = _limit_words(limit) if limit is not None else _stall_words(samples, stalls)
    best = next((one for one in suggestions if one.speedup is not None), None)
    if best is not None and best.speedup is not None:
        gain = best.speedup
        return (
            f"{what}; {best.code} {best.name} is expected to give {gain.expected:.2f}x "
            f"({gain.low:.2f} to {gain.high:.2f})"
        )
    return f"{what}; {_nothing_helps(limit, rejected, hidden, suppressed)}"


def limiting(utilisations: Sequence[Utilisation]) -> Utilisation | None:
    """The busiest unit, if it is at its limit."""
    busiest = max(utilisations, key=lambda entry: entry.percent, default=None)
    return busiest if busiest is not None and busiest.percent >= LIMIT_PERCENT else None


def unit_words(unit: Utilisation) -> str:
    """A unit as a reader knows it: the parts of L1 are L1."""
    if unit.name == ISSUE:
        return "the issue rate of the schedulers"
    if unit.name.startswith("L1 "):
        return f"L1 throughput ({unit.name.removeprefix('L1 ')})"
    return f"{unit.name} throughput"


def _limit_words(unit: Utilisation) -> str:
    return f"Limited by {unit_words(unit)} at {unit.percent:.0f} % of its peak"


def _stall_words(samples: SampleSummary, stalls: Sequence[StallSummary]) -> str:
    waiting = [row for row in stalls if row.reason not in _WORKING]
    if not waiting:
        return "Warps issue or are ready in every sample"
    first = waiting[0]
    busy = samples.active / samples.total
    head = "Limited by latency" if busy < _ISSUE_BOUND else "No unit is at its limit"
    return (
        f"{head}: schedulers issue in {100 * busy:.0f} % of all samples, and the commonest wait is "
        f"{first.reason} with {100 * first.samples / samples.total:.0f} % ({first.plain})"
    )


def _nothing_helps(
    limit: Utilisation | None, rejected: Sequence[Rejection], hidden: int, suppressed: int
) -> str:
    counts = [f"{len(rejected)} rejected"]
    if hidden:
        counts.append(f"{hidden} below the thresholds")
    if suppressed:
        counts.append(f"{suppressed} suppressed in the source")
    said = f"no optimizer helps ({', '.join(counts)})"
    if suppressed:
        said = f"no other optimizer helps ({', '.join(counts)})"
    if limit is not None:
        return f"{said}: only less work for that unit would make the kernel faster"
    return f"{said}, each for the reason listed" if not hidden and not suppressed else said


def _without_samples(evidence: Evidence, suggestions: Sequence[Suggestion], suppressed: int) -> str:
    counted = evidence is Evidence.COUNTED
    basis = "machine code and executed counts show" if counted else "the machine code shows"
    start = f"Without samples nothing is said about time; {basis}"
    if suggestions:
        return f"{start} the patterns of {', '.join(one.code for one in suggestions)}"
    if suppressed:
        return f"{start} no pattern beside the {suppressed} suppressed in the source"
    return f"{start} none of the known patterns"
