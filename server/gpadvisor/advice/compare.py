# SPDX-License-Identifier: Apache-2.0
"""Two runs side by side: what was predicted beside what was achieved, by kernel, by stall and by line.

Regressions are kept as they are: an achieved speedup below 1 is shown like any other. A prediction is set
against the achieved speedup where its cause was changed: where most of its stalls are gone, or, for the shape
of the launch, where that is another one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpadvisor.model.advice import Category, Estimate, KernelAdvice, ScopeKind, Suggestion
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.profile import Evidence, Launch
from gpadvisor.source.line_map import match_in_order, split_lines

_NUMBER: Final = re.compile(r"\d+")
_UNNAMED: Final = "(anonymous namespace)"
_MOST_GONE: Final = 0.5
"""A cause was changed where less than this of the time that its stalls took is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One suggestion for the first run beside what the second run achieved."""

    code: str
    name: str
    predicted: Estimate
    achieved: float | None  # time before / time after, of the whole kernel
    time_before_ns: float | None  # share of the samples that the rule matches times the kernel's duration
    time_after_ns: float | None  # the same in the second run, 0 where the rule does not match it
    changed: bool  # whether its cause was

    @property
    def verdict(self) -> str:
        """Where the achieved speedup lies: below, inside or above the predicted range."""
        if not self.changed:
            return "not changed"
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
    edited: bool  # whether its text is another one: lines that stand in for each other between equal ones
    samples_before: int
    samples_after: int
    time_before_ns: float | None  # share of the kernel's samples times its duration
    time_after_ns: float | None

    @property
    def change_ns(self) -> float | None:
        """Time gained (negative) or lost (positive)."""
        return _difference(self.time_before_ns, self.time_after_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class StallChange:
    """One stall reason in both runs."""

    reason: str
    samples_before: int
    samples_after: int
    time_before_ns: float | None  # share of the kernel's samples times its duration
    time_after_ns: float | None

    @property
    def change_ns(self) -> float | None:
        """Time gained (negative) or lost (positive)."""
        return _difference(self.time_before_ns, self.time_after_ns)


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
    differences: tuple[str, ...]  # what of the launch is not the same, in words
    same_code: bool | None  # None where the machine code of one is not known
    predictions: tuple[Prediction, ...]
    stalls: tuple[StallChange, ...]  # largest change first
    lines: tuple[LineChange, ...]  # largest change first
    line_mapping: str | None  # how lines of the two runs were put together; None where they cannot be

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
        for advice in list(left):
            same = [entry for entry in right if key(advice) == key(entry)]
            several = len(same) > 1 or sum(key(advice) == key(entry) for entry in left) > 1
            if same and not (several and key is _without_numbers):
                pairs.append((advice, same[0]))
                left.remove(advice)
                right.remove(same[0])
    if len(left) == len(right) == 1:
        pairs.append((left.pop(), right.pop()))
    return pairs, left, right


def compare_kernels(
    before: KernelAdvice,
    after: KernelAdvice,
    texts_before: Mapping[str, str],
    texts_after: Mapping[str, str],
    *,
    same_code: bool | None = None,
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
        differences=tuple(_differences(before, after)),
        same_code=same_code,
        predictions=tuple(
            _prediction(entry, entry.speedup, achieved, before, after, same_code=same_code)
            for entry in before.suggestions
            if entry.speedup is not None
        ),
        stalls=_compare_stalls(before, after),
        lines=tuple(sorted(lines, key=lambda line: -abs(line.change_ns or 0.0))),
        line_mapping=mapping,
    )


def compare(
    before: Sequence[KernelAdvice],
    after: Sequence[KernelAdvice],
    texts_before: Mapping[str, str],
    texts_after: Mapping[str, str],
    same_code: Callable[[KernelAdvice, KernelAdvice], bool | None] = lambda _before, _after: None,
) -> Comparison:
    """All kernels of two runs; ``same_code`` tells whether two kernels have the same machine code."""
    pairs, left, right = pair_kernels(before, after)
    return Comparison(
        kernels=tuple(
            compare_kernels(advice, second, texts_before, texts_after, same_code=same_code(advice, second))
            for advice, second in pairs
        ),
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


def _prediction(
    entry: Suggestion,
    estimate: Estimate,
    achieved: float | None,
    before: KernelAdvice,
    after: KernelAdvice,
    *,
    same_code: bool | None,
) -> Prediction:
    time_before = _time(before, entry.matched_samples)
    matched = sum(row.matched_samples for row in (*after.suggestions, *after.notes) if row.code == entry.code)
    time_after = _time(after, matched)
    if entry.category is Category.PARALLEL:
        changed = (
            before.launch is None or after.launch is None or _shape(before.launch) != _shape(after.launch)
        )
    elif same_code:
        changed = False
    else:
        changed = time_before is None or time_after is None or time_after < _MOST_GONE * time_before
    return Prediction(
        code=entry.code,
        name=entry.name,
        predicted=estimate,
        achieved=achieved,
        time_before_ns=time_before,
        time_after_ns=time_after,
        changed=changed,
    )


def _shape(launch: Launch) -> tuple[object, ...]:
    return launch.grid, launch.block, launch.cluster


def _differences(before: KernelAdvice, after: KernelAdvice) -> Iterator[str]:
    """What of the launch changed: its shape, its number of threads, what it takes of an SM."""
    first, second = before.launch, after.launch
    if first is not None and second is not None:
        for name, old, new in (("grid", first.grid, second.grid), ("block", first.block, second.block)):
            if old != new:
                yield f"{name} {_dimensions(old)} -> {_dimensions(new)}"
        threads = (first.blocks * first.threads_per_block, second.blocks * second.threads_per_block)
        if threads[0] != threads[1]:
            sizes = f"{threads[0]:,} -> {threads[1]:,} threads in all"
            yield f"{sizes}: another size of the problem, or other work for each thread"
    if before.registers_per_thread != after.registers_per_thread:
        counts = (side.registers_per_thread or "unknown" for side in (before, after))
        yield f"registers per thread {' -> '.join(map(str, counts))}"
    if before.shared_bytes != after.shared_bytes:
        yield f"shared memory per block {before.shared_bytes or 0:,} -> {after.shared_bytes or 0:,} bytes"


def _dimensions(size: tuple[int, int, int]) -> str:
    return "x".join(str(part) for part in size)


def _compare_stalls(before: KernelAdvice, after: KernelAdvice) -> tuple[StallChange, ...]:
    old, new = ({row.reason: row.samples for row in side.stalls} for side in (before, after))
    changes = [
        StallChange(
            reason=reason,
            samples_before=old.get(reason, 0),
            samples_after=new.get(reason, 0),
            time_before_ns=_time(before, old.get(reason, 0)),
            time_after_ns=_time(after, new.get(reason, 0)),
        )
        for reason in dict.fromkeys([*old, *new])
    ]
    return tuple(sorted(changes, key=lambda change: -abs(change.change_ns or 0.0)))


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _compare_lines(
    before: KernelAdvice, after: KernelAdvice, texts_before: Mapping[str, str], texts_after: Mapping[str, str]
) -> tuple[list[LineChange], str | None]:
    old, new = _line_samples(before), _line_samples(after)
    moved: dict[SourceLocation, SourceLocation] = {}
    edited: frozenset[SourceLocation] = frozenset()
    mapping: str | None = None
    if _base(before) == _base(after):
        moved, edited, mapping = _moved(old, new, texts_before, texts_after)
    sides: list[tuple[SourceLocation | None, SourceLocation | None]] = [
        (location, moved.get(location)) for location in old
    ]
    sides += [(None, location) for location in new if location not in moved.values()]
    changes = []
    for origin, today in sides:
        samples_before, samples_after = old.get(origin, 0) if origin else 0, new.get(today, 0) if today else 0
        changes.append(
            LineChange(
                before=origin,
                after=today,
                edited=origin in edited,
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
) -> tuple[dict[SourceLocation, SourceLocation], frozenset[SourceLocation], str]:
    moved: dict[SourceLocation, SourceLocation] = {}
    edited: set[SourceLocation] = set()
    new_files = {location.file for location in new}
    by_text = True
    for file in {location.file for location in old}:
        target = file if file in new_files else _same_name(file, new_files)
        if target is None:
            continue
        lines = [location.line for location in old if location.file == file]
        if file in texts_before and target in texts_after:
            mapped = map_lines(texts_before[file], texts_after[target])
            stand_ins = _stand_ins(mapped, lines)
            edited |= {SourceLocation(file, line) for line in stand_ins}
            mapped |= stand_ins
        else:
            by_text = False
            mapped = {line: line for line in lines}
        for line in lines:
            if line in mapped:
                moved[SourceLocation(file, line)] = SourceLocation(target, mapped[line])
    how = "by a diff of the two sources" if by_text else "by line number, since the sources are not at hand"
    return moved, frozenset(edited), how


def _stand_ins(mapped: Mapping[int, int], lines: Iterable[int]) -> dict[int, int]:
    """For lines that are not as they were: the new ones, where as many stand between the same two lines."""
    old_anchors = sorted(mapped)
    result: dict[int, int] = {}
    for line in lines:
        index = bisect_left(old_anchors, line)
        if line in mapped or index in {0, len(old_anchors)}:
            continue
        first, end = old_anchors[index - 1], old_anchors[index]
        if mapped[end] - mapped[first] == end - first:
            result[line] = mapped[first] + line - first
    return result


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
