# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own rule results beside ours: where both agree, where not, and what cannot be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import Optimizer
from gpadvisor.estimators.utilisation import ISSUE, MEMORY, MEMORY_RESOURCES
from gpadvisor.model.advice import (
    Occupancy,
    Rejection,
    RuleComparison,
    SampleSummary,
    StallSummary,
    Suggestion,
    Utilisation,
)
from gpadvisor.model.figures import percent, percentage
from gpadvisor.model.profile import RuleResult
from gpadvisor.model.stalls import NO_WAIT

AGREES: Final = "agrees"
DISAGREES: Final = "disagrees"
NOT_COMPARABLE: Final = "not comparable"

_SILENT_KINDS: Final = frozenset({"ok", "none"})
_HIGH_PERCENT: Final = 80.0
_ARITHMETIC: Final = frozenset({"ALU pipe", "FMA pipe", "FP16 pipe", "FP64 pipe", "tensor pipe", "XU pipe"})
_MEMORY: Final = frozenset({*MEMORY_RESOURCES, MEMORY, "LSU pipe"})
_LEADING_STALLS: Final = 2
_OCCUPANCY: Final = "Occupancy"  # the end of the names of several rules
_EVEN: Final = 0.9
"""Achieved occupancy of nine tenths of the theoretical one is what even work gives."""

# Words of a stall rule's message or title that tell which reason it is about; the first that fits decides.
_STALL_WORDS: Final[tuple[tuple[str, str], ...]] = (
    ("long_scoreboard", "long_scoreboard"),
    ("long scoreboard", "long_scoreboard"),
    ("l1tex (local, global", "long_scoreboard"),
    ("short_scoreboard", "short_scoreboard"),
    ("short scoreboard", "short_scoreboard"),
    ("lg_throttle", "lg_throttle"),
    ("local/global instruction queue", "lg_throttle"),
    ("lg throttle", "lg_throttle"),
    ("mio_throttle", "mio_throttle"),
    ("mio throttle", "mio_throttle"),
    ("tex_throttle", "tex_throttle"),
    ("tex throttle", "tex_throttle"),
    ("math_pipe_throttle", "math_pipe_throttle"),
    ("math pipe throttle", "math_pipe_throttle"),
    ("imc_miss", "imc_miss"),
    ("imc miss", "imc_miss"),
    ("no_instruction", "no_instructions"),
    ("no instruction", "no_instructions"),
    ("branch_resolving", "branch_resolving"),
    ("branch resolving", "branch_resolving"),
    ("not_selected", "not_selected"),
    ("not selected", "not_selected"),
    ("dispatch_stall", "dispatch_stall"),
    ("dispatch stall", "dispatch_stall"),
    ("sleeping", "sleeping"),
    ("membar", "membar"),
    ("barrier", "barrier"),
    ("drain", "drain"),
    ("misc", "misc"),
    ("wait", "wait"),
)

# Rule identifiers that carry their stall in the name, CPIStallLongScoreboard.
_STALL_PREFIX: Final = "CPIStall"


@dataclass(frozen=True, slots=True, kw_only=True)
class OurSide:
    """What a rule is compared with."""

    suggestions: Sequence[Suggestion]  # shown ones
    rejected: Sequence[Rejection]
    hidden: Mapping[str, str]  # codes below the thresholds, with what they match and expect
    stalls: Sequence[StallSummary]
    samples: SampleSummary
    occupancy: Occupancy
    utilisations: Sequence[Utilisation]
    twins: Mapping[
        str, Sequence[str]
    ]  # codes of our rules on the subject of one of theirs, by its identifier
    sectors: str | None = None  # what all global accesses take, against the fewest possible


def twins(rules: Iterable[Optimizer]) -> Mapping[str, tuple[str, ...]]:
    """Codes of our rules on the subject of one of NVIDIA's, by its identifier."""
    codes: dict[str, tuple[str, ...]] = {}
    for rule in rules:
        for name in rule.twins:
            codes[name] = (*codes.get(name, ()), rule.code)
    return codes


def compare_rules(rules: Sequence[RuleResult], ours: OurSide) -> tuple[RuleComparison, ...]:
    """One comparison per rule result that says something.

    Rules of 2020 and 2021 have one result for each instruction that they object to. Those become one: the
    first, which is the worst, and the number of the others.
    """
    alike: dict[tuple[object, ...], list[RuleResult]] = {}
    for rule in rules:
        if rule.message.strip():
            alike.setdefault(_template(rule), []).append(rule)
    return tuple(_among(_compare(group[0], ours), len(group)) for group in alike.values())


_NUMBERS: Final = re.compile(r"\S*\d\S*")


def _template(rule: RuleResult) -> tuple[object, ...]:
    """A result without its numbers; results without an address stand for themselves."""
    text = _NUMBERS.sub("#", rule.message) if " at PC " in rule.message else rule.message
    return rule.identifier, rule.kind, rule.title, rule.estimated_speedup, text


def _among(comparison: RuleComparison, count: int) -> RuleComparison:
    if count == 1:
        return comparison
    return replace(
        comparison, explanation=f"{comparison.explanation}; one of {count} such results, each for one place"
    )


def _compare(rule: RuleResult, ours: OurSide) -> RuleComparison:
    name = rule.identifier
    if name.startswith(_STALL_PREFIX):
        return _stall(rule, ours)
    if name == "IssueSlotUtilization":
        return _issue_slots(rule, ours)
    if name in {"SOLBottleneck", "Bottleneck"}:
        return _bottleneck(rule, ours)
    if name == "HighPipeUtilization":
        return _pipes(rule, ours)
    if name.endswith(_OCCUPANCY):
        return _occupancy(rule, ours)
    codes = ours.twins.get(name)
    if codes:
        return _same_subject(rule, ours, codes)
    return _result(rule, NOT_COMPARABLE, (), "none of our rules is about this")


def _result(rule: RuleResult, agreement: str, codes: Sequence[str], explanation: str) -> RuleComparison:
    return RuleComparison(rule=rule, agreement=agreement, ours=tuple(codes), explanation=explanation)


def _same_subject(rule: RuleResult, ours: OurSide, codes: Sequence[str]) -> RuleComparison:
    raised = rule.kind not in _SILENT_KINDS
    suggestions = [suggestion for suggestion in ours.suggestions if suggestion.code in codes]
    result = [suggestion.code for suggestion in suggestions]
    if raised and suggestions:
        return _result(rule, AGREES, result, "both find it" + _speedups(rule, suggestions))
    blind = {entry.code: entry.reason for entry in ours.rejected if not entry.looked}
    if blind.keys() >= set(codes):
        reasons = "; ".join(dict.fromkeys(blind[code] for code in codes))
        return _result(rule, NOT_COMPARABLE, (), f"ours could not look: {reasons}")
    if raised:
        facts = f"; {ours.sectors}" if ours.sectors is not None and _is_about_sectors(rule) else ""
        return _result(rule, DISAGREES, (), f"ours does not: {_why_not(ours, codes)}{facts}")
    if suggestions:
        gain = (
            f"; ours expects {_gain(suggestions)}"
            if any(suggestion.speedup for suggestion in suggestions)
            else ""
        )
        return _result(rule, DISAGREES, result, f"NVIDIA's rule has no objection{gain}")
    return _result(rule, AGREES, (), "neither has an objection")


def _is_about_sectors(rule: RuleResult) -> bool:
    """Whether a rule is about sectors of global memory."""
    return rule.identifier in {"UncoalescedGlobalAccess", "MemoryCacheAccessPattern"}


def _gain(suggestions: Sequence[Suggestion]) -> str:
    best = max(
        (suggestion.speedup.expected for suggestion in suggestions if suggestion.speedup is not None),
        default=1.0,
    )
    return f"{best:.2f}x"


def _speedups(rule: RuleResult, suggestions: Sequence[Suggestion]) -> str:
    if rule.estimated_speedup is None or not any(suggestion.speedup for suggestion in suggestions):
        return ""
    scope = " of the unit it looks at" if rule.speedup_scope == "local" else ""
    return f"; NVIDIA estimates {rule.estimated_speedup:.2f}x{scope}, ours expects {_gain(suggestions)}"


def _why_not(ours: OurSide, codes: Sequence[str]) -> str:
    reasons = [f"{entry.code}: {entry.reason}" for entry in ours.rejected if entry.code in codes]
    reasons += [
        f"{code} stays below the thresholds ({ours.hidden[code]})" for code in codes if code in ours.hidden
    ]
    return "; ".join(reasons) or "no rule of ours was asked"


def _stall_of(rule: RuleResult) -> str | None:
    """The reason a stall rule is about: from its identifier, else from the words of its title and message."""
    suffix = rule.identifier.removeprefix(_STALL_PREFIX)
    spaced = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in suffix).strip()
    for text in (spaced, (rule.title or "").lower(), rule.message.lower()):
        for words, reason in _STALL_WORDS:
            if words in text:
                return reason
    return None


def _stall(rule: RuleResult, ours: OurSide) -> RuleComparison:
    reason = _stall_of(rule) if rule.kind not in _SILENT_KINDS or rule.title else None
    if reason is None or not ours.samples.total:
        return _result(rule, NOT_COMPARABLE, (), "it names no stall reason that samples could confirm")
    # A warp that is not selected waits for nothing but its turn: it counts where a rule asks about it.
    waiting = [row for row in ours.stalls if row.reason not in NO_WAIT - {reason}]
    rank = next((index for index, row in enumerate(waiting, start=1) if row.reason == reason), None)
    if rank is None:
        return _result(rule, DISAGREES, (), f"no sample has the reason {reason}")
    share = waiting[rank - 1].samples / ours.samples.total
    cures = [
        suggestion
        for suggestion in ours.suggestions
        if any(spot.reason == reason for spot in suggestion.hotspots)
    ]
    codes = [cure.code for cure in cures if cure.speedup is not None]
    about = f"{reason} has {percent(share)} of our samples, number {rank} of the reasons to wait"
    if codes:
        about += f"; {', '.join(codes)} would lessen it"
    return _result(rule, AGREES if rank <= _LEADING_STALLS else DISAGREES, codes, about)


def _occupancy(rule: RuleResult, ours: OurSide) -> RuleComparison:
    """Both state facts: what an SM could hold, and what it held on average."""
    occupancy = ours.occupancy
    if occupancy.theoretical is None:
        return _result(rule, NOT_COMPARABLE, (), "block size or registers are not known here")
    limited = occupancy.limiter is not None
    uneven = occupancy.achieved is not None and occupancy.achieved < _EVEN * occupancy.theoretical
    text = f"ours: {percent(occupancy.theoretical, 0)} in theory"
    if occupancy.limiter is not None:
        text += f", limited by {occupancy.limiter}"
    if occupancy.achieved is not None:
        text += f", {percent(occupancy.achieved, 0)} achieved"
    about = ours.twins.get(_OCCUPANCY, ())
    codes = [suggestion.code for suggestion in ours.suggestions if suggestion.code in about]
    if limited and not codes:
        text += f"; {_why_not(ours, about)}"
    raised = rule.kind not in _SILENT_KINDS
    return _result(rule, AGREES if raised == (limited or uneven) else DISAGREES, codes, text)


def _issue_slots(rule: RuleResult, ours: OurSide) -> RuleComparison:
    issue = next((entry for entry in ours.utilisations if entry.name == ISSUE), None)
    if issue is not None:
        used, basis = issue.percent, issue.metric
    elif ours.samples.total:
        used, basis = 100 * ours.samples.active / ours.samples.total, "samples"
    else:
        return _result(rule, NOT_COMPARABLE, (), "neither samples nor issue counters")
    low = used < constants.BUSY_PERCENT
    raised = rule.kind not in _SILENT_KINDS
    text = f"schedulers issue in {percentage(used)} of cycles ({basis})"
    return _result(rule, AGREES if low == raised else DISAGREES, (), text)


def _bottleneck(rule: RuleResult, ours: OurSide) -> RuleComparison:
    """NVIDIA's top rule calls a kernel full, latency bound, or bound by one side."""
    if not ours.utilisations:
        return _result(rule, NOT_COMPARABLE, (), "the report has no throughput metric")
    busiest = ours.utilisations[0]
    text = f"the busiest unit is {busiest.name} with {percentage(busiest.percent)} ({busiest.metric})"
    sentence = f"{rule.title or ''} {rule.message}".lower()
    if "greater than 80" in sentence or "high throughput" in sentence:
        agrees = busiest.percent >= _HIGH_PERCENT
    elif "latency issue" in sentence or "low compute throughput" in sentence or "low utilization" in sentence:
        agrees = busiest.percent < constants.BUSY_PERCENT
    elif "compute is more heavily utilized" in sentence:
        agrees = busiest.name not in _MEMORY
    elif "memory is more heavily utilized" in sentence:
        agrees = busiest.name in _MEMORY
    elif "too small to fill" in sentence or "small grid" in sentence:
        return _same_subject(rule, ours, ours.twins.get("LaunchConfiguration", ()))
    else:
        return _result(rule, NOT_COMPARABLE, (), text)
    return _result(rule, AGREES if agrees else DISAGREES, (), text)


def _pipes(rule: RuleResult, ours: OurSide) -> RuleComparison:
    pipes = [entry for entry in ours.utilisations if entry.name in _ARITHMETIC]
    if not pipes:
        return _result(rule, NOT_COMPARABLE, (), "the report has no pipe metric that is known here")
    busiest = max(pipes, key=lambda entry: entry.percent)
    text = f"the busiest pipe is {busiest.name} with {percentage(busiest.percent)} ({busiest.metric})"
    sentence = f"{rule.title or ''} {rule.message}".lower()
    if "under-utilized" in sentence or "low utilization" in sentence:
        return _result(rule, AGREES if busiest.percent < constants.BUSY_PERCENT else DISAGREES, (), text)
    names_busiest = f"{busiest.name.removesuffix(' pipe').lower()} is the highest" in sentence
    return _result(rule, AGREES if names_busiest else NOT_COMPARABLE, (), text)
