# SPDX-License-Identifier: Apache-2.0
"""Two runs side by side: what was predicted beside what was achieved, by kernel and by line.

Regressions are kept as they are: an achieved speedup below 1 is shown like any other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpadvisor.model.advice import Estimate, KernelAdvice, ScopeKind
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.profile import Evidence
from gpadvisor.source.line_map import match_in_order, split_lines

_NUMBER: Final = re.compile(r"\d+")
_UNNAMED: Final = "(anonymous namespace)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One suggestion for the first run beside what the second run achieved."""

    code: str
    name: str
    predicted: Estimate
    achieved: float | None  # time before / time after, of the whole kernel

    @property
    def verdict(self) -> str:
        """Where the achieved speedup lies: below, inside or above the predicted range."""
        if self.achieved is None:
            return "not measured"
        if self.achieved < self.predicted.low:
            return "below"
        return "above" if self.achieved > self.predicted.high else "inside"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChange:
    """One source line in both runs; a side is None where the line does not exist there."""

    before: SourceLocation | None
    after: SourceLocation | None
    samples_before: int
    samples_after: int
    time_before_ns: float | None  # share of the kernel's samples times its duration
    time_after_ns: float | None

    @property
    def change_ns(self) -> float | None:
        """Time gained (negative) or lost (positive)."""
        if self.time_before_ns is None or self.time_after_ns is None:
            return None
        return self.time_after_ns - self.time_before_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelComparison:
    """One kernel in both runs."""

    before: str
    after: str
    duration_before_ns: float | None
    duration_after_ns: float | None
    evidence_before: Evidence
    evidence_after: Evidence
    device_before: str  # name or architecture of the GPU
    device_after: str
    samples_before: int
    samples_after: int
    predictions: tuple[Prediction, ...]
    lines: tuple[LineChange, ...]  # largest change first
    line_mapping: str  # how lines of the two runs were put together

    @property
    def achieved(self) -> float | None:
        """Speedup of the kernel; below 1 is a regression."""
        if not self.duration_before_ns or not self.duration_after_ns:
            return None
        return self.duration_before_ns / self.duration_after_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything about two runs."""

    kernels: tuple[KernelComparison, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]


def pair_kernels(
    before: Sequence[KernelAdvice], after: Sequence[KernelAdvice]
) -> tuple[list[tuple[KernelAdvice, KernelAdvice]], list[KernelAdvice], list[KernelAdvice]]:
    """Pairs by mangled name, then by name, then what is left alone on both sides; and each side's rest.

    Mangled names of an unnamed namespace change with their file, and those of a library may hold the number
    of its version or of the architecture.
    """
    left, right = list(before), list(after)
    pairs: list[tuple[KernelAdvice, KernelAdvice]] = []
    for key in (_mangled, _name, _without_numbers, _base):
        for one in list(left):
            same = [entry for entry in right if key(one) == key(entry)]
            several = len(same) > 1 or sum(key(one) == key(entry) for entry in left) > 1
            if same and not (several and key is _without_numbers):
                pairs.append((one, same[0]))
                left.remove(one)
                right.remove(same[0])
    if len(left) == len(right) == 1:
        pairs.append((left.pop(), right.pop()))
    return pairs, left, right


def compare_kernels(
    before: KernelAdvice,
    after: KernelAdvice,
    texts_before: Mapping[str, str],
    texts_after: Mapping[str, str],
) -> KernelComparison:
    """One kernel before and after a change; the texts are sources by the path that the line table names."""
    achieved = None
    if before.duration_ns and after.duration_ns:
        achieved = before.duration_ns / after.duration_ns
    lines, mapping = _compare_lines(before, after, texts_before, texts_after)
    return KernelComparison(
        before=before.name,
        after=after.name,
        duration_before_ns=before.duration_ns,
        duration_after_ns=after.duration_ns,
        evidence_before=before.evidence,
        evidence_after=after.evidence,
        device_before=before.device.name or before.device.arch,
        device_after=after.device.name or after.device.arch,
        samples_before=before.samples.total,
        samples_after=after.samples.total,
        predictions=tuple(
            Prediction(code=entry.code, name=entry.name, predicted=entry.speedup, achieved=achieved)
            for entry in before.suggestions
            if entry.speedup is not None
        ),
        lines=tuple(sorted(lines, key=lambda line: -abs(line.change_ns or 0.0))),
        line_mapping=mapping,
    )


def compare(
    before: Sequence[KernelAdvice],
    after: Sequence[KernelAdvice],
    texts_before: Mapping[str, str],
    texts_after: Mapping[str, str],
) -> Comparison:
    """All kernels of two runs."""
    pairs, left, right = pair_kernels(before, after)
    return Comparison(
        kernels=tuple(compare_kernels(one, other, texts_before, texts_after) for one, other in pairs),
        only_before=tuple(kernel.name for kernel in left),
        only_after=tuple(kernel.name for kernel in right),
    )


def map_lines(before: str, after: str) -> dict[int, int]:
    """Line numbers of ``before`` that stand unchanged in ``after``, in the same order (both from 1).

    Where the changed middle repeats itself so often that a diff would take too long, lines stay unmapped.
    """
    old_lines, new_lines = split_lines(before), split_lines(after)
    # What stands behind the last line end is no line.
    matched = match_in_order(old_lines[: len(old_lines) - (not old_lines[-1])], new_lines)
    return {old + 1: new + 1 for old, new in matched.items()}


def _mangled(kernel: KernelAdvice) -> str:
    return kernel.mangled


def _name(kernel: KernelAdvice) -> str:
    return kernel.name


def _without_numbers(kernel: KernelAdvice) -> str:
    return _NUMBER.sub("", kernel.mangled)


def _base(kernel: KernelAdvice) -> str:
    """The name without template arguments and parameters."""
    return kernel.name.replace(_UNNAMED, "{unnamed}").partition("(")[0].partition("<")[0]


def _compare_lines(
    before: KernelAdvice, after: KernelAdvice, texts_before: Mapping[str, str], texts_after: Mapping[str, str]
) -> tuple[list[LineChange], str]:
    old, new = _line_samples(before), _line_samples(after)
    moved, mapping = _moved(old, new, texts_before, texts_after)
    sides: list[tuple[SourceLocation | None, SourceLocation | None]] = [
        (location, moved.get(location)) for location in old
    ]
    sides += [(None, location) for location in new if location not in moved.values()]
    changes = []
    for one, other in sides:
        samples_before, samples_after = old.get(one, 0) if one else 0, new.get(other, 0) if other else 0
        changes.append(
            LineChange(
                before=one,
                after=other,
                samples_before=samples_before,
                samples_after=samples_after,
                time_before_ns=_time(before, samples_before),
                time_after_ns=_time(after, samples_after),
            )
        )
    return changes, mapping


def _moved(
    old: Collection[SourceLocation],
    new: Collection[SourceLocation],
    texts_before: Mapping[str, str],
    texts_after: Mapping[str, str],
) -> tuple[dict[SourceLocation, SourceLocation], str]:
    moved: dict[SourceLocation, SourceLocation] = {}
    new_files = {location.file for location in new}
    by_text = True
    for file in {location.file for location in old}:
        target = file if file in new_files else _same_name(file, new_files)
        if target is None:
            continue
        lines = [location.line for location in old if location.file == file]
        if file in texts_before and target in texts_after:
            mapped = map_lines(texts_before[file], texts_after[target])
        else:
            by_text = False
            mapped = {line: line for line in lines}
        for line in lines:
            if line in mapped:
                moved[SourceLocation(file, line)] = SourceLocation(target, mapped[line])
    how = "by a diff of the two sources" if by_text else "by line number, since the sources are not at hand"
    return moved, how


def _same_name(file: str, candidates: set[str]) -> str | None:
    name = file.rpartition("/")[2]
    same = [candidate for candidate in candidates if candidate.rpartition("/")[2] == name]
    return same[0] if len(same) == 1 else None


def _line_samples(kernel: KernelAdvice) -> dict[SourceLocation, int]:
    return {
        entry.scope.location: entry.samples
        for entry in kernel.scopes
        if entry.scope.kind is ScopeKind.LINE and entry.scope.location is not None
    }


def _time(kernel: KernelAdvice, samples: int) -> float | None:
    if kernel.duration_ns is None or not kernel.samples.total:
        return None
    return kernel.duration_ns * samples / kernel.samples.total
