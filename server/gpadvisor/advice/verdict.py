# SPDX-License-Identifier: Apache-2.0
"""One sentence per kernel: what limits it, and whether anything helps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpadvisor.blamer.queries import counted
from gpadvisor.estimators.caps import ISSUE
from gpadvisor.model.advice import (
    Category,
    Rejection,
    SampleSummary,
    StallSummary,
    Suggestion,
    Utilisation,
)
from gpadvisor.model.figures import gain
from gpadvisor.model.profile import Evidence, KernelProfile

LIMIT_PERCENT: Final = 80.0
"""From here on a unit counts as the limit (Nsight Compute's line for high throughput)."""
_ISSUE_BOUND: Final = 0.6
_WORKING: Final = frozenset({"selected", "not_selected"})


def verdict(
    evidence: Evidence,
    limited_by: str,
    *,
    full: bool,
    suggestions: Sequence[Suggestion],
    rejected: Sequence[Rejection],
    hidden: int,
    suppressed: int = 0,
    has_code: bool = True,
) -> str:
    """The sentence.

    Args:
        evidence: What the kernel's numbers rest on.
        limited_by: What ``limiting_words`` gave; empty without samples.
        full: Whether a unit is at its limit.
        suggestions: Those that no comment in the source sets aside.
        rejected: Rules that found nothing.
        hidden: Findings below the thresholds.
        suppressed: Suggestions that a comment sets aside.
        has_code: Whether the machine code could be read.
    """
    if not has_code:
        said = "nothing is said about it" if not suggestions else "its launch alone is looked at"
        return f"No machine code of this kernel could be read, so {said}"
    if not limited_by:
        return _without_samples(evidence, suggestions, suppressed)
    what = f"Limited by {limited_by}"
    best = next((one for one in suggestions if one.speedup is not None), None)
    if best is not None and best.speedup is not None:
        return f"{what}; {gain(best.speedup)} is expected of {best.code} {best.name}"
    return f"{what}; {_nothing_helps(rejected, hidden, suppressed, full=full)}"


def limiting_words(
    evidence: Evidence,
    samples: SampleSummary,
    stalls: Sequence[StallSummary],
    utilisations: Sequence[Utilisation],
) -> str:
    """What limits a kernel, behind "limited by"; empty without samples."""
    if evidence in {Evidence.STATIC, Evidence.COUNTED} or not samples.total:
        return ""
    unit = limiting(utilisations)
    if unit is not None:
        return f"{unit_words(unit)} at {unit.percent:.0f} % of its peak"
    waiting = [row for row in stalls if row.reason not in _WORKING]
    if not waiting:
        return "the work itself: warps issue or are ready in every sample"
    latency = samples.active / samples.total < _ISSUE_BOUND
    first, *others = (f"{row.plain} ({100 * row.samples / samples.total:.0f} %" for row in waiting[:2])
    if latency or not others:
        return f"latency: {first} of the samples)"
    return f"several things: {first} of the samples), {others[0]})"


def beside_idle_sms(words: str, profile: KernelProfile | None) -> str:
    """What limits a kernel, with the SMs that its grid leaves without work before it."""
    sms = None if profile is None else profile.device.sms
    if profile is None or not words or not sms or not 0 < profile.launch.blocks < sms:
        return words
    grid = f"a grid of {counted(profile.launch.blocks, 'block')}"
    idle = f"{sms - profile.launch.blocks} of {sms} SMs without work"
    return f"{grid}, which leaves {idle}, and on the others by {words}"


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


def _nothing_helps(rejected: Sequence[Rejection], hidden: int, suppressed: int, *, full: bool) -> str:
    counts = [f"{len(rejected)} rejected"]
    if hidden:
        counts.append(f"{hidden} below the thresholds")
    if suppressed:
        counts.append(f"{suppressed} suppressed in the source")
    said = f"no {'other ' if suppressed else ''}rule helps ({', '.join(counts)})"
    return f"{said}: only less work for that unit would make the kernel faster" if full else said


def _without_samples(evidence: Evidence, suggestions: Sequence[Suggestion], suppressed: int) -> str:
    basis = ["machine code"]
    basis += ["executed counts"] if evidence is Evidence.COUNTED else []
    basis += ["launch"] if any(one.category is Category.PARALLEL for one in suggestions) else []
    shows = "the machine code shows" if len(basis) == 1 else f"{' and '.join(basis)} show"
    start = f"Without samples nothing is said about time; {shows}"
    if suggestions:
        return f"{start} the patterns of {', '.join(one.code for one in suggestions)}"
    if suppressed:
        return f"{start} no pattern beside the {suppressed} suppressed in the source"
    return f"{start} none of the known patterns"
