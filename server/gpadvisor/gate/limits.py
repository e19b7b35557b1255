# SPDX-License-Identifier: Apache-2.0
"""Gates on two runs: what may grow by how much, and what cannot be decided, which fails too.

Times are noisy and need several launches; counters of the code and of its execution are the same each time.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

TIME: Final = "time"
COUNTERS: Final = ("insts", "registers", "spills", "shared", "findings")
"""Executed instructions of warps; registers of a thread; instructions that spill; bytes of static and dynamic
shared memory of a block; findings, those from the code alone among them."""

MIN_LAUNCHES: Final = 3
SHORTEST_NS: Final = 10_000.0
"""Launches of less are as long as their start, whose time is noise."""
_NORMAL: Final = 1.4826
"""Median absolute deviation to standard deviation, of normal noise."""
_OF_MEDIAN: Final = math.sqrt(math.pi / 2)
"""How much farther medians of normal noise lie apart than means."""
_SIGMAS: Final = 3.0
_LIMIT: Final = re.compile(r"(?:(?P<name>[a-z]+)=)?(?P<value>\d{1,6}(?:\.\d{1,6})?)(?P<percent>%)?")


class GateOutcome(Enum):
    """What a gate says."""

    PASS = "pass"  # noqa: S105 no password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLimit:
    """``5%``, ``insts=1%``, ``spills=0``, ``kernel=REGEX:3%``."""

    text: str
    quantity: str  # TIME or one of COUNTERS
    share: float | None  # that it may grow by, of what it was
    amount: float | None  # ... or in its own unit
    kernel: re.Pattern[str] | None = None  # of the kernels it is for, in place of limits without one

    def allowed(self, before: float) -> float:
        """How large it may be."""
        return before * (1 + self.share) if self.share is not None else before + (self.amount or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedKernel:
    """One kernel of one run."""

    kernel: str
    durations_ns: tuple[float, ...]  # of each launch that took any time
    modelled: bool  # whether the times are a simulator's
    device: str
    launch: str  # shape of the launch, in words; empty for code alone
    counters: Mapping[str, float | None]  # None where it is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCheck:
    """One limit for one kernel."""

    kernel: str
    limit: str
    quantity: str
    outcome: GateOutcome
    before: float | None  # nanoseconds for times; medians
    after: float | None
    band: float | None  # of the ratio of times: three standard deviations of noise
    reason: str


def parse_limit(text: str) -> GateLimit:
    """A limit of the command line.

    Raises:
        ValueError: it is none; the text says what would be.
    """
    pattern = None
    limit_text = text
    if text.startswith("kernel="):
        expression, _, limit_text = text.removeprefix("kernel=").rpartition(":")
        try:
            pattern = re.compile(expression)
        except re.error as error:
            raise ValueError(f"'{expression}' is not a regular expression: {error}") from error
        if not expression:
            raise ValueError(f"'{text}' is not kernel=REGEX:LIMIT, such as kernel=gemm:3%")
    match = _LIMIT.fullmatch(limit_text)
    name = None if match is None else match["name"] or TIME
    if match is None or name not in {TIME, *COUNTERS}:
        names = ", ".join(COUNTERS)
        raise ValueError(f"'{text}' is not a limit such as 5%, spills=0 or kernel=gemm:3% ({names})")
    value = float(match["value"])
    if match["percent"]:
        return GateLimit(text=text, quantity=name, share=value / 100, amount=None, kernel=pattern)
    if name == TIME:
        raise ValueError(f"'{text}' needs a percent sign: times may grow by a share, such as 5%")
    return GateLimit(text=text, quantity=name, share=None, amount=value, kernel=pattern)


def checks(
    pairs: Sequence[tuple[GatedKernel, GatedKernel]], limits: Sequence[GateLimit]
) -> tuple[GateCheck, ...]:
    """Every limit for every pair of kernels that it is for; a limit that is for none is inconclusive."""
    gate_checks: list[GateCheck] = []
    for limit in limits:
        of_limit = [pair for pair in pairs if _is_for(limit, pair[0], limits)]
        gate_checks += [_check(before, after, limit) for before, after in of_limit]
        if not of_limit and not any(_is_named(limit, pair[0], limits) for pair in pairs):
            gate_checks.append(
                GateCheck(
                    kernel="",
                    limit=limit.text,
                    quantity=limit.quantity,
                    outcome=GateOutcome.INCONCLUSIVE,
                    before=None,
                    after=None,
                    band=None,
                    reason="no kernel of both runs is meant by it",
                )
            )
    return tuple(gate_checks)


def verdict(gate_checks: Iterable[GateCheck]) -> GateOutcome:
    """The worst of all."""
    outcomes = {check.outcome for check in gate_checks}
    return next(
        (
            gate_outcome
            for gate_outcome in (GateOutcome.FAIL, GateOutcome.INCONCLUSIVE)
            if gate_outcome in outcomes
        ),
        GateOutcome.PASS,
    )


def _is_for(limit: GateLimit, side: GatedKernel, limits: Sequence[GateLimit]) -> bool:
    """Limits for named kernels stand in place of those for all."""
    if limit.kernel is not None:
        return limit.kernel.search(side.kernel) is not None
    return not _is_named(limit, side, limits)


def _is_named(limit: GateLimit, side: GatedKernel, limits: Sequence[GateLimit]) -> bool:
    return limit.kernel is None and any(
        gate_limit.quantity == limit.quantity
        and gate_limit.kernel is not None
        and gate_limit.kernel.search(side.kernel)
        for gate_limit in limits
    )


def _check(before: GatedKernel, after: GatedKernel, limit: GateLimit) -> GateCheck:
    if limit.quantity == TIME:
        return _check_time(before, after, limit)
    old, new = before.counters.get(limit.quantity), after.counters.get(limit.quantity)
    if old is None or new is None:
        outcome, reason = GateOutcome.INCONCLUSIVE, f"{limit.quantity} of one run is not known"
    elif before.launch != after.launch and limit.quantity == "insts":
        outcome, reason = GateOutcome.INCONCLUSIVE, _other_launch(before, after)
    elif new <= limit.allowed(old):
        outcome, reason = GateOutcome.PASS, ""
    else:
        outcome, reason = GateOutcome.FAIL, f"{limit.allowed(old):,.6g} is allowed"
    return _made(before, limit, outcome, old, new, reason=reason)


def _check_time(before: GatedKernel, after: GatedKernel, limit: GateLimit) -> GateCheck:
    old, new = (_median(side.durations_ns) for side in (before, after))
    if reason := _why_undecided(before, after, old, new):
        return _made(before, limit, GateOutcome.INCONCLUSIVE, old, new, reason=reason)
    assert old is not None  # noqa: S101 for the type: said above
    assert new is not None  # noqa: S101 for the type: said above
    band = math.hypot(_noise(before.durations_ns, old), _noise(after.durations_ns, new)) * new / old
    ratio, allowed = new / old, limit.allowed(old) / old
    if ratio - band > allowed:
        outcome, reason = GateOutcome.FAIL, "slower by more than is allowed, noise taken off"
    elif ratio + band <= allowed or ratio <= 1:
        outcome, reason = GateOutcome.PASS, ""
    else:
        outcome, reason = (
            GateOutcome.INCONCLUSIVE,
            "the noise is as large as what is allowed: more launches tell",
        )
    return _made(before, limit, outcome, old, new, band=band, reason=reason)


def _why_undecided(before: GatedKernel, after: GatedKernel, old: float | None, new: float | None) -> str:
    """Why two times cannot be compared; empty where they can."""
    if old is None or new is None:
        return "no time in one of the runs: give two profiles"
    if before.device != after.device:
        return f"on two GPUs: {before.device}, then {after.device}"
    if before.modelled or after.modelled:
        return "a modelled time shows likely stalls and no times"
    if before.launch != after.launch:
        return _other_launch(before, after)
    if min(old, new) < SHORTEST_NS:
        return f"shorter than {SHORTEST_NS / 1000:.0f} us: as long as a launch takes to start"
    old_count, new_count = len(before.durations_ns), len(after.durations_ns)
    if min(old_count, new_count) < MIN_LAUNCHES:
        few = f"too few launches ({old_count} and {new_count})"
        return f"{few}: {MIN_LAUNCHES} of each run tell change from noise"
    return ""


def _other_launch(before: GatedKernel, after: GatedKernel) -> str:
    return f"another launch: {before.launch or 'none'}, then {after.launch or 'none'}"


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _noise(values: Sequence[float], median: float) -> float:
    """Three standard deviations of the median, as a share of it, by the median absolute deviation."""
    deviation = statistics.median(abs(value - median) for value in values)
    return _SIGMAS * _OF_MEDIAN * _NORMAL * deviation / median / math.sqrt(len(values))


def _made(
    side: GatedKernel,
    limit: GateLimit,
    outcome: GateOutcome,
    before: float | None,
    after: float | None,
    *,
    reason: str,
    band: float | None = None,
) -> GateCheck:
    return GateCheck(
        kernel=side.kernel,
        limit=limit.text,
        quantity=limit.quantity,
        outcome=outcome,
        before=before,
        after=after,
        band=band,
        reason=reason,
    )
