# SPDX-License-Identifier: Apache-2.0
"""One sentence per kernel: what limits it, and whether anything helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpadvisor.analyzer.occupancy import BLOCKS, GRID, WARPS
from gpadvisor.estimators import constants
from gpadvisor.estimators.utilisation import DRAM, ISSUE, L1_PARTS, L2
from gpadvisor.evidence.queries import counted
from gpadvisor.model.advice import (
    Category,
    Occupancy,
    Rejection,
    SampleSummary,
    StallSummary,
    Suggestion,
    Utilisation,
)
from gpadvisor.model.figures import gain, part_of_run, percent, percentage
from gpadvisor.model.machine import WARP
from gpadvisor.model.profile import LITTLE_OF_RUN, Evidence, KernelProfile
from gpadvisor.model.stalls import NO_WAIT

LIMIT_PERCENT: Final = 80.0
"""From here on a unit counts as the limit (Nsight Compute's line for high throughput)."""
_ISSUE_BOUND: Final = 0.6
_LANES: Final = "smsp__thread_inst_executed_per_inst_executed.ratio"
_ENOUGH: Final = 100
"""From fewer samples the share of a stall is known to no better than a tenth of all."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What limits a kernel, behind "limited by"."""

    name: str  # "L1 throughput", "latency"; empty where neither samples nor counters tell
    more: str  # what goes on behind the name: " at 99 % of its peak"

    @property
    def words(self) -> str:
        """All of it."""
        return self.name + self.more


UNKNOWN: Final = Limit("", "")


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
        limited_by: The words of what ``limit_of`` gave; empty without samples and counters.
        full: Whether a unit is at its limit.
        suggestions: Those that no comment in the source sets aside.
        rejected: Rules that found nothing.
        hidden: Findings below the thresholds.
        suppressed: Suggestions that a comment sets aside.
        has_code: Whether the machine code could be read.
    """
    text = f"Limited by {limited_by}"
    if not has_code:
        missing = without_code(suggestions)
        return f"{text}; {missing}" if limited_by else missing.capitalize()
    if not limited_by:
        return f"Without samples nothing is said about time; {_shown(suggestions, suppressed)}"
    best = next((suggestion for suggestion in suggestions if suggestion.speedup is not None), None)
    if best is not None and best.speedup is not None:
        return f"{text}; {gain(best.speedup)} is expected of {best.code} {best.name}"
    if evidence is Evidence.COUNTED:
        return f"{text}, as counted; without samples no line is blamed; {_shown(suggestions, suppressed)}"
    if suggestions:
        return f"{text}; no gain is estimated; {_shown(suggestions, suppressed)}"
    return f"{text}; {_nothing_helps(rejected, hidden, suppressed, full=full)}"


def without_code(suggestions: Sequence[Suggestion]) -> str:
    """What is said of a kernel whose machine code could not be read."""
    sentence = "nothing is said about it" if not suggestions else "its launch alone is looked at"
    return f"no machine code of this kernel could be read, so {sentence}"


def limit_of(
    evidence: Evidence,
    samples: SampleSummary,
    stalls: Sequence[StallSummary],
    utilisations: Sequence[Utilisation],
    occupancy: Occupancy | None = None,
    behind: str = "",
) -> Limit:
    """What limits a kernel.

    Args:
        evidence: What the kernel's numbers rest on.
        samples: Where its samples went.
        stalls: Its samples by reason.
        utilisations: The loads of the units.
        occupancy: Of an SM's warps, those that are resident as counted, and what keeps others from it.
        behind: What was found to be behind the commonest stall, where its name tells a symptom alone.
    """
    unit = limiting(utilisations)
    if unit is not None and evidence is not Evidence.STATIC:
        return Limit(unit_words(unit), f" at {percentage(unit.percent)} of its peak")
    by_counters = _by_counters(utilisations, occupancy)
    few = 0 < samples.total < _ENOUGH and by_counters is not UNKNOWN
    if evidence is Evidence.COUNTED or few:
        return by_counters
    if evidence is Evidence.STATIC or not samples.total:
        return UNKNOWN
    waiting = [row for row in stalls if row.reason not in NO_WAIT]
    if not waiting:
        return Limit("the work itself", ": warps issue or are ready in every sample")
    latency = samples.active / samples.total < _ISSUE_BOUND
    first, *further = (f"{row.plain} ({percent(row.samples / samples.total, 0)}" for row in waiting[:2])
    busiest = max(utilisations, key=lambda entry: entry.percent, default=None)
    busy = busiest is not None and busiest.percent >= constants.BUSY_PERCENT
    if latency and not busy:
        behind = behind or _few_warps(occupancy, constants.FEW_WARPS)
    first = f"{behind}; {first}" if behind else first
    if busiest is not None and busy:
        unit_at = f"{unit_words(busiest)} at {percentage(busiest.percent)} of its peak"
        limit = Limit("several things", f": {unit_at}, {first} of the samples)")
    elif latency or not further:
        limit = Limit("latency", f": {first} of the samples)")
    else:
        limit = Limit("several things", f": {first} of the samples), {further[0]})")
    if samples.first_share is not None and samples.first_share <= LITTLE_OF_RUN:
        return replace(limit, more=f"{limit.more}, in {part_of_run(samples.first_share)} of the run")
    return limit


def _by_counters(utilisations: Sequence[Utilisation], occupancy: Occupancy | None) -> Limit:
    """What the loads of the units leave as the limit; which stalls it is they do not tell."""
    busiest = max(utilisations, key=lambda entry: entry.percent, default=None)
    if busiest is None:
        return UNKNOWN
    load = f"{percentage(busiest.percent)} of its peak ({unit_words(busiest)})"
    busy = busiest.percent >= constants.BUSY_PERCENT
    few = _few_warps(occupancy, constants.MAJORITY if busy else constants.BUSY_PERCENT / 100)
    warps = f", and {few}" if few and (not busy or busiest.name in {DRAM, L2}) else ""
    if busy:
        return Limit("several things", f": the busiest unit is at {load}{warps}")
    if not any(entry.name in {DRAM, L2} for entry in utilisations):
        more = f": no unit is above {load}, but memory is not among them"
        return Limit("what the report did not count", more)
    return Limit("latency", f": no unit is above {load}{warps}")


def _few_warps(occupancy: Occupancy | None, few: float) -> str:
    """How few of its warps an SM holds, and what keeps others out; empty from ``few`` of them on."""
    held = None if occupancy is None else occupancy.achieved
    if occupancy is None or held is None or held >= few:
        return ""
    if occupancy.limiter == GRID and occupancy.blocks_per_sm == 1:
        return ""  # ``beside_the_launch`` has the words for one block or none
    keeps = occupancy.limiter or ""
    if 2 * held < (occupancy.theoretical or 0):
        keeps = ""  # what could be there is not: blocks end early, or some SMs have none
    elif GRID in keeps:
        keeps = "the grid is small"
    elif keeps in {BLOCKS, WARPS}:
        keeps = "the size of its blocks"
    return f"an SM holds {percent(held, 0)} of the warps it could" + (f" ({keeps})" if keeps else "")


def beside_the_launch(
    limit: Limit, evidence: Evidence, profile: KernelProfile | None, *, full: Utilisation | None = None
) -> Limit:
    """What limits a kernel, with what its launch leaves idle: SMs without a block, lanes of each warp.

    Counters are means over all SMs, so they tell little of those that work where most do not.

    Args:
        limit: What ``limit_of`` gave.
        evidence: What the kernel's numbers rest on.
        profile: With the launch.
        full: The unit that is at its limit, if any: it comes before SMs without work, but one that each SM
            has for itself not before a grid that leaves most of them without.
    """
    if profile is None or limit is UNKNOWN or not profile.states_launch:
        return limit
    sms, blocks, lanes = profile.device.sms or 0, profile.launch.blocks, active_lanes(profile)
    idle = sms - blocks if 0 < blocks < sms else 0
    without = f"{idle} of {sms} SMs without work"
    shared = full is not None and full.name in {DRAM, L2}
    if 2 * idle >= sms > 0 and not shared:
        and_unused = (
            ""
            if evidence is Evidence.COUNTED and full is None
            else f"; where there is work, by {limit.words}"
        )
        limit = Limit(f"a grid of {counted(blocks, 'block')}", f", which leaves {without}{and_unused}")
    elif idle and full is not None:
        where = "" if shared else " where there is work"
        limit = replace(limit, more=f"{limit.more}{where}, with {without}")
    elif idle:
        warps = counted(-(-profile.launch.threads_per_block // WARP), "warp")
        only = f"one block of {warps} is all that an SM has, with {without}"
        limit = replace(limit, more=f"{limit.more}; {only}")
    if lanes is not None and lanes <= WARP / 2:
        unused = f"{WARP - round(lanes)} of the {WARP} lanes of each warp idle"
        limit = replace(limit, more=f"{limit.more}, with {unused}")
    return limit


def active_lanes(profile: KernelProfile) -> float | None:
    """Threads of a warp that take part in an instruction, as counted, else as launched; None: all."""
    lanes = profile.metric(_LANES)
    threads = profile.launch.threads_per_block
    return lanes or (float(threads) if 0 < threads < WARP else None)


def limiting(utilisations: Sequence[Utilisation]) -> Utilisation | None:
    """The busiest unit, if it is at its limit."""
    busiest = max(utilisations, key=lambda entry: entry.percent, default=None)
    return busiest if busiest is not None and busiest.percent >= LIMIT_PERCENT else None


def unit_words(unit: Utilisation) -> str:
    """A unit as a reader knows it: the parts of L1 are L1."""
    if unit.name == ISSUE:
        return "the issue rate of the schedulers"
    if unit.name in L1_PARTS:
        return f"L1 throughput ({L1_PARTS[unit.name]})"
    return f"{unit.name} throughput"


def _nothing_helps(rejected: Sequence[Rejection], hidden: int, suppressed: int, *, full: bool) -> str:
    counts = [f"{len(rejected)} rejected"]
    if hidden:
        counts.append(f"{hidden} below the thresholds")
    if suppressed:
        counts.append(f"{suppressed} suppressed in the source")
    sentence = f"no {'other ' if suppressed else ''}rule helps ({', '.join(counts)})"
    return f"{sentence}: only less work for that unit would make the kernel faster" if full else sentence


def _shown(suggestions: Sequence[Suggestion], suppressed: int) -> str:
    """What the machine code and the launch show where no sample says what it costs."""
    if suggestions:
        launch = any(suggestion.category is Category.PARALLEL for suggestion in suggestions)
        shows = "machine code and launch show" if launch else "the machine code shows"
        return f"{shows} the patterns of {', '.join(suggestion.code for suggestion in suggestions)}"
    if suppressed:
        return f"the machine code shows no pattern beside the {suppressed} suppressed in the source"
    return "the machine code shows none of the known patterns"
