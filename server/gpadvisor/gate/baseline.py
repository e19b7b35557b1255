# SPDX-License-Identifier: Apache-2.0
"""The baseline: advice that is known, a file of lines that are sorted and can be merged.

No line number, path of a machine or sample stands in it: what moves or is measured again stays the same.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any, Final

from gpadvisor.errors import GpadvisorError

MAX_BYTES: Final = 64 << 20
_FORMAT: Final = {"gpadvisor-baseline": 1}
_MAX_TEXT: Final = 4_096


class BaselineError(GpadvisorError):
    """A file that should be a baseline is none, or is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One suggestion for one kernel."""

    kernel: str  # without template arguments and parameters
    rule: str
    fingerprint: str
    device: str  # architecture
    file: str = ""  # its name without folders; empty where the place has no line
    low: float | None = None  # speedups; None for static findings
    expected: float | None = None
    high: float | None = None
    since: str = ""  # version of gpadvisor that saw it first
    note: str = ""  # a person's words, kept by updates


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A kernel that was looked at, whether or not anything was found."""

    kernel: str
    device: str  # architecture
    compiler: str = ""  # version of ptxas; empty where the code does not tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was found, and where it was looked for."""

    examined: tuple[Examined, ...] = ()
    known: tuple[Known, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A state beside the baseline."""

    new: tuple[Known, ...]
    known: tuple[Known, ...]
    fixed: tuple[Known, ...]  # of the baseline: not found any more, though its kernel was looked at
    elsewhere: tuple[str, ...]  # kernels of the baseline that were not looked at
    not_comparable: tuple[str, ...]  # sentences: another device or compiler, or nothing in common


def joined(states: Iterable[Findings]) -> Findings:
    """The states of several inputs as one."""
    parts = list(states)
    return Findings(
        examined=tuple(sorted({kernel for state in parts for kernel in state.examined}, key=_examined_order)),
        known=tuple(sorted((finding for state in parts for finding in state.known), key=_known_order)),
    )


def dump(state: Findings) -> str:
    """The file: a first line that says what it is, then one JSON object on each line, sorted."""
    rows: list[Mapping[str, Any]] = [_FORMAT]
    rows += [_row(kernel) for kernel in sorted(set(state.examined), key=_examined_order)]
    rows += [_row(finding) for finding in sorted(set(state.known), key=_known_order)]
    return "".join(json.dumps(row, ensure_ascii=True, allow_nan=False) + "\n" for row in rows)


def parse(data: bytes, name: str) -> Findings:
    """The state that a file holds; a line that stands twice, as merges leave it, counts once.

    Raises:
        BaselineError: it is no baseline, of a newer format, or damaged; the text names the line.
    """
    rows = _rows(data, name)
    if not rows or "gpadvisor-baseline" not in rows[0]:
        raise BaselineError(f"{name} is no baseline of gpadvisor; --update-baseline writes one")
    if rows[0] != _FORMAT:
        raise BaselineError(f"{name} is a baseline of a newer gpadvisor; update gpadvisor, or write it again")
    examined: dict[Examined, None] = {}
    values: dict[Known, None] = {}
    for number, row in enumerate(rows[1:], start=2):
        if row == _FORMAT:
            continue
        try:
            if "rule" in row:
                values[_value(Known, row)] = None
            else:
                examined[_value(Examined, row)] = None
        except ValueError as error:
            raise BaselineError(f"{name} is damaged in line {number} ({error}); write it again") from error
    return Findings(examined=tuple(examined), known=tuple(values))


def difference(baseline: Findings, findings: Findings) -> Difference:
    """What is new, known and fixed; a kernel of another device or compiler is not compared.

    Equal fingerprints are the same suggestion, else the only one of a rule, kernel and file on both sides.
    """
    comparable, reasons = _comparable(baseline, findings)
    current = [finding for finding in findings.known if (finding.kernel, finding.device) in comparable]
    before = [finding for finding in baseline.known if (finding.kernel, finding.device) in comparable]
    pairs = _pairs(before, current)
    kernels = {kernel.kernel for kernel in findings.examined}
    return Difference(
        new=tuple(finding for finding in current if finding not in pairs),
        known=tuple(finding for finding in current if finding in pairs),
        fixed=tuple(finding for finding in before if finding not in set(pairs.values())),
        elsewhere=tuple(sorted({kernel.kernel for kernel in baseline.examined} - kernels)),
        not_comparable=tuple(reasons),
    )


def updated(baseline: Findings, findings: Findings, version: str) -> Findings:
    """The baseline with what was looked at replaced; the first version and a person's note are kept."""
    visited = {(kernel.kernel, kernel.device) for kernel in findings.examined}
    before = [finding for finding in baseline.known if (finding.kernel, finding.device) in visited]
    pairs = _pairs(before, findings.known)
    current = []
    for finding in findings.known:
        old = pairs.get(finding)
        current.append(
            replace(finding, since=old.since, note=old.note)
            if old is not None
            else replace(finding, since=version)
        )
    return Findings(
        examined=(
            *findings.examined,
            *(kernel for kernel in baseline.examined if (kernel.kernel, kernel.device) not in visited),
        ),
        known=(
            *current,
            *(finding for finding in baseline.known if (finding.kernel, finding.device) not in visited),
        ),
    )


def _comparable(baseline: Findings, findings: Findings) -> tuple[set[tuple[str, str]], list[str]]:
    """Kernels that both states saw alike, or that the baseline has never seen; and why others are not."""
    by_kernel: dict[str, list[Examined]] = {}
    for kernel in baseline.examined:
        by_kernel.setdefault(kernel.kernel, []).append(kernel)
    if (
        baseline.examined
        and findings.examined
        and not any(kernel.kernel in by_kernel for kernel in findings.examined)
    ):
        return set(), ["no kernel of the baseline is in the input: it is another project's, or out of date"]
    comparable: set[tuple[str, str]] = set()
    reasons: dict[str, None] = {}
    devices = {kernel.device for kernel in baseline.examined}
    for kernel in findings.examined:
        same = [old for old in by_kernel.get(kernel.kernel, ()) if old.device == kernel.device]
        if not same and (kernel.kernel in by_kernel or (devices and kernel.device not in devices)):
            of = ", ".join(sorted({old.device for old in by_kernel.get(kernel.kernel, baseline.examined)}))
            reasons[f"{kernel.kernel} ran on {kernel.device}, the baseline is of {of}"] = None
        elif same and not any(_same_compiler(old, kernel) for old in same):
            of = ", ".join(sorted({old.compiler for old in same}))
            reasons[f"{kernel.kernel} is compiled by CUDA {kernel.compiler}, the baseline's by {of}"] = None
        else:
            comparable.add((kernel.kernel, kernel.device))
    return comparable, list(reasons)


def _same_compiler(examined: Examined, earlier: Examined) -> bool:
    return not examined.compiler or not earlier.compiler or examined.compiler == earlier.compiler


def _pairs(before: Sequence[Known], current: Sequence[Known]) -> dict[Known, Known]:
    """Entries of now, each with its entry before."""
    by_print = {(finding.fingerprint, finding.device): finding for finding in before}
    pairs = {
        finding: by_print[key]
        for finding in current
        if (key := (finding.fingerprint, finding.device)) in by_print
    }
    paired = set(pairs.values())
    unpaired = [finding for finding in before if finding not in paired]
    unpaired_now = [finding for finding in current if finding not in pairs]
    old_places, new_places = Counter(map(_place, unpaired)), Counter(map(_place, unpaired_now))
    alone = {_place(finding): finding for finding in unpaired if old_places[_place(finding)] == 1}
    pairs |= {
        finding: alone[place]
        for finding in unpaired_now
        if new_places[place := _place(finding)] == 1 and place in alone
    }
    return pairs


def _place(finding: Known) -> tuple[str, ...]:
    return finding.rule, finding.kernel, finding.file, finding.device


def _known_order(finding: Known) -> tuple[str, ...]:
    return finding.kernel, finding.rule, finding.file, finding.device, finding.fingerprint


def _examined_order(examined: Examined) -> tuple[str, ...]:
    return examined.kernel, examined.device, examined.compiler


def _row(value: Known | Examined) -> Mapping[str, Any]:
    return {name: value for name, value in asdict(value).items() if value not in {None, ""}}


def _rows(data: bytes, name: str) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BaselineError(
                f"{name} is no baseline, or damaged, in line {number}; restore it or write it again"
            ) from error
        if not isinstance(row, dict):
            raise BaselineError(f"{name} is no baseline of gpadvisor; --update-baseline writes one")
        rows.append(row)
    return rows


def _value(kind: type[Any], row: Mapping[str, Any]) -> Any:
    """A value of a row; what a later version added is left out."""
    values: dict[str, Any] = {}
    for field in fields(kind):
        if field.name not in row:
            if field.default is MISSING:
                raise ValueError(f"{field.name} is missing")
            continue
        value = row[field.name]
        if field.name in {"low", "expected", "high"}:
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise ValueError(f"{field.name} is no number")
            values[field.name] = float(value)
        elif isinstance(value, str) and len(value) <= _MAX_TEXT:
            values[field.name] = value
        else:
            raise ValueError(f"{field.name} is no text of at most {_MAX_TEXT} characters")
    return kind(**values)
