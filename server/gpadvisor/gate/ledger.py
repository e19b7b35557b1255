# SPDX-License-Identifier: Apache-2.0
"""The ledger: what suggestions promised beside what their change gave, a file of lines that only grows."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, Final

from gpadvisor.errors import GpadvisorError

MAX_BYTES: Final = 64 << 20
_FORMAT: Final = {"gpadvisor-ledger": 1}
_MAX_TEXT: Final = 4_096
_NUMBERS: Final = frozenset({"low", "expected", "high", "paper", "achieved"})
_PRIVATE: Final = frozenset({"fingerprint", "kernel", "before", "after"})
"""What an anonymous line does not have."""


class LedgerError(GpadvisorError):
    """A file that should be a ledger is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionOutcome:
    """One suggestion, and the speedup of its kernel after the change that it asked for."""

    rule: str
    low: float  # speedups
    expected: float
    high: float
    achieved: float  # time before / time after
    paper: float | None = None  # what the paper's equation says; None where it says nothing
    device: str
    arch: str
    version: str  # of gpadvisor
    compiler: str = ""  # release of CUDA, where the code tells
    evidence: str  # of the suggestion: measured, counted
    known_by: str
    """How the change is known to be the advised one: "lines" it touched, the "launch", "said", a "fix"."""
    beside: int = 0  # other suggestions for the kernel that the same change touched
    fingerprint: str = ""
    kernel: str = ""
    before: str = ""  # SHA-256 of the two runs
    after: str = ""

    @property
    def inside(self) -> bool:
        """Whether the outcome lies in the range."""
        return self.low <= self.achieved <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What a file holds."""

    outcomes: tuple[PredictionOutcome, ...] = ()
    damaged: int = 0  # lines that are no outcome, such as one that was cut


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRecord:
    """How well one rule's ranges held."""

    rule: str
    pairs: int
    inside: int
    below: int  # outcomes below the range
    above: int
    bias: float  # median of achieved / expected: below 1, it promises too much


def parse(data: bytes, name: str) -> Ledger:
    """The outcomes that a file holds; damaged lines are counted, as a cut one must not lose the others.

    Raises:
        LedgerError: it is no ledger, or one of a newer format.
    """
    lines = [line for line in data.split(b"\n") if line.strip()]
    rows = [_row(line) for line in lines]
    if not rows:
        return Ledger()
    if rows[0] is None or "gpadvisor-ledger" not in rows[0]:
        raise LedgerError(f"{name} is no ledger of gpadvisor; give another file, --ledger makes it")
    if rows[0] != _FORMAT:
        raise LedgerError(f"{name} is a ledger of a newer gpadvisor; update gpadvisor")
    outcomes: dict[PredictionOutcome, None] = {}
    damaged = 0
    for row in rows[1:]:
        outcome = None if row is None else _outcome(row)
        if outcome is not None:
            outcomes[outcome] = None
        elif row != _FORMAT:
            damaged += 1
    return Ledger(outcomes=tuple(outcomes), damaged=damaged)


def appended(data: bytes, name: str, outcomes: Sequence[PredictionOutcome]) -> bytes:
    """What to append to a file for outcomes that it does not have: whole lines, behind one that was cut, too.

    Raises:
        LedgerError: the file is no ledger.
    """
    keys = {_key(outcome) for outcome in parse(data, name).outcomes}
    new = [outcome for outcome in outcomes if _key(outcome) not in keys]
    if not new:
        return b""
    rows: list[Mapping[str, Any]] = [] if data.strip() else [_FORMAT]
    rows += [_values(outcome) for outcome in new]
    text = "".join(json.dumps(row, ensure_ascii=True, allow_nan=False) + "\n" for row in rows)
    return (b"\n" if data and not data.endswith(b"\n") else b"") + text.encode()


def records(outcomes: Iterable[PredictionOutcome]) -> tuple[RuleRecord, ...]:
    """By rule, of the outcomes of one suggestion alone: of several together nobody knows which gave what."""
    by_rule: dict[str, list[PredictionOutcome]] = {}
    for outcome in outcomes:
        if not outcome.beside:
            by_rule.setdefault(outcome.rule, []).append(outcome)
    return tuple(
        RuleRecord(
            rule=rule,
            pairs=len(outcomes_of_rule),
            inside=sum(outcome.inside for outcome in outcomes_of_rule),
            below=sum(outcome.achieved < outcome.low for outcome in outcomes_of_rule),
            above=sum(outcome.achieved > outcome.high for outcome in outcomes_of_rule),
            bias=statistics.median(outcome.achieved / outcome.expected for outcome in outcomes_of_rule),
        )
        for rule, outcomes_of_rule in sorted(by_rule.items())
    )


def export(outcomes: Iterable[PredictionOutcome]) -> str:
    """The same as lines that name no kernel and no file, in an order that tells nothing."""
    rows = (
        {name: value for name, value in _values(outcome).items() if name not in _PRIVATE}
        for outcome in outcomes
    )
    return "".join(sorted(json.dumps(row, sort_keys=True, allow_nan=False) + "\n" for row in rows))


def _key(outcome: PredictionOutcome) -> tuple[str, ...]:
    return outcome.rule, outcome.kernel, outcome.fingerprint, outcome.before, outcome.after


def _values(outcome: PredictionOutcome) -> dict[str, Any]:
    return {name: value for name, value in asdict(outcome).items() if value not in {None, ""}}


def _row(line: bytes) -> Mapping[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _outcome(row: Mapping[str, Any]) -> PredictionOutcome | None:
    values: dict[str, Any] = {}
    for field in fields(PredictionOutcome):
        if field.name not in row:
            if field.default is MISSING:
                return None
            continue
        value = row[field.name]
        if field.name in _NUMBERS:
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                return None
            values[field.name] = float(value)
        elif field.name == "beside":
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                return None
            values[field.name] = value
        elif isinstance(value, str) and len(value) <= _MAX_TEXT:
            values[field.name] = value
        else:
            return None
    return PredictionOutcome(**values) if values["expected"] > 0 else None
