# SPDX-License-Identifier: Apache-2.0
"""Samples by place: kernel, functions, loops, inlined functions and lines (GPA section III).

A place has the samples taken in it and the samples that its instructions caused, which may be taken
elsewhere; its executed count is that of its most executed instruction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.measured import executed_warps
from gpadvisor.evidence.queries import causes, function_scope, kernel_scope, loop_scope
from gpadvisor.model.advice import Scope, ScopeKind, ScopeSummary
from gpadvisor.model.blame import NO_INDEX, Blame, Role
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function, FunctionKind, LineEntry, Program
from gpadvisor.model.stalls import StallClass

Counts = NDArray[np.int64]
_ORDER: Final = {kind: position for position, kind in enumerate(ScopeKind)}
_FUNCTION_SHIFT: Final = 32
_NO_WAIT: Final = frozenset({StallClass.ISSUED, StallClass.NOT_RECORDED})
_INDEX_MASK: Final = 0xFFFFFFFF


@dataclass(slots=True)
class _Sums:
    """Sums by place or by scope, in columns of equal length."""

    samples: Counts
    latency: Counts
    caused: Counts
    executed: Counts
    reasons: Counts  # by row and stall reason


@dataclass(slots=True)
class _Scopes:
    """Scopes found so far, each with a number; the memos keep one lookup per line and block."""

    program: Program
    numbers: dict[Scope, int] = field(default_factory=dict)
    lines: dict[SourceLocation, int] = field(default_factory=dict)
    by_entry: dict[tuple[int, int], list[int]] = field(default_factory=dict)  # by id(): equal ones are shared
    by_block: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def around(self, function: Function, index: int) -> list[int]:
        """Numbers of the scopes around an instruction, but for the kernel."""
        line = function.lines[index] if index < len(function.lines) else None
        block = function.block_of[index]
        outer = self.by_block.get((function.id, block))
        if outer is None:
            outer = self.by_block[function.id, block] = self._of_block(function, index)
        if line is None:
            return outer
        inner = self.by_entry.get((function.id, id(line)))
        if inner is None:
            inner = self.by_entry[function.id, id(line)] = self._of_line(function, line)
        return inner + outer

    def _number(self, scope: Scope) -> int:
        return self.numbers.setdefault(scope, len(self.numbers))

    def _of_block(self, function: Function, index: int) -> list[int]:
        result = [self._number(loop_scope(function, loop)) for loop in function.enclosing_loops(index)]
        if function.kind is not FunctionKind.KERNEL:
            result.append(self._number(function_scope(self.program, function)))
        return result

    def _of_line(self, function: Function, line: LineEntry) -> list[int]:
        location = line.location
        number = self.lines.get(location)
        if number is None:  # one line may be compiled into several functions; it stays one line
            scope = Scope(
                kind=ScopeKind.LINE, name=function.demangled, location=location, function=function.id
            )
            number = self.lines[location] = self._number(scope)
        frames = dict.fromkeys(frame for frame in line.inline if frame.function is not None)
        return [
            number,
            *(
                self._number(
                    Scope(
                        kind=ScopeKind.INLINED,
                        name=frame.function or "",
                        location=frame.call_site,
                        function=function.id,
                    )
                )
                for frame in frames
            ),
        ]


def scope_summaries(context: KernelContext) -> tuple[ScopeSummary, ...]:
    """Every place with samples, or with executed counts where there is no sample; outer kinds first."""
    executed = executed_by_place(context.program, context.profile)
    places, sums = _by_place(context.blame, len(context.program.functions), executed)
    scopes = _Scopes(context.program)
    flat_place: list[int] = []
    flat_scope: list[int] = []
    for position, key in enumerate(places.tolist()):
        function = context.program.functions[key >> _FUNCTION_SHIFT]
        around = scopes.around(function, key & _INDEX_MASK)
        flat_scope += around
        flat_place += [position] * len(around)
    by_scope = _by_scope(
        sums, np.array(flat_place, dtype=np.intp), np.array(flat_scope, dtype=np.intp), len(scopes.numbers)
    )
    rows = [
        _summary(context.blame, scope, by_scope, number, counted=bool(executed))
        for scope, number in scopes.numbers.items()
    ]
    kernel = _kernel(context, sums, counted=bool(executed))
    return tuple(sorted([*rows, *kernel], key=_rank))


def executed_by_place(program: Program, profile: KernelProfile | None) -> Mapping[tuple[int, int], int]:
    """Warp-level executions by function and instruction index; empty where the profile has no counts."""
    result: dict[tuple[int, int], int] = {}
    for function in program.functions:
        warps = executed_warps(profile, function)
        if warps is not None:
            indices = np.flatnonzero(warps)
            for index, count in zip(indices.tolist(), warps[indices].tolist(), strict=True):
                result[function.id, index] = int(count)
    return result


def _rank(row: ScopeSummary) -> tuple[int, int, int, int, str, str, int, int]:
    scope = row.scope
    where = scope.location or SourceLocation("", 0)
    return (
        _ORDER[scope.kind], -row.samples, -row.caused, -(row.executed_warps or 0),
        scope.name, where.file, where.line, -1 if scope.loop is None else scope.loop,
    )  # fmt: skip


def _by_place(
    blame: Blame | None, functions: int, executed: Mapping[tuple[int, int], int]
) -> tuple[Counts, _Sums]:
    """Sums by instruction, for those with samples of their own or caused, else for executed ones."""
    if blame is None:
        keys = np.array(
            [function << _FUNCTION_SHIFT | index for function, index in sorted(executed)], dtype=np.int64
        )
        nothing = np.zeros(len(keys), dtype=np.int64)
        counts = np.array([executed[place] for place in sorted(executed)], dtype=np.int64)
        return keys, _Sums(nothing, nothing, nothing, counts, np.zeros((len(keys), 0), dtype=np.int64))
    rows = blame.rows
    function = rows.function.astype(np.int64) << _FUNCTION_SHIFT
    inside = rows.function < functions
    cause = causes(blame)
    matched = inside & (rows.use_index != NO_INDEX)
    caused = inside & (cause != NO_INDEX) & (rows.role != Role.UNATTRIBUTED.value)
    use_keys, cause_keys = (function + rows.use_index)[matched], (function + cause)[caused]
    places = np.unique(np.concatenate([use_keys, cause_keys]))
    at_use, at_cause = np.searchsorted(places, use_keys), np.searchsorted(places, cause_keys)
    sums = _zeros(len(places), len(blame.reasons))
    np.add.at(sums.samples, at_use, rows.samples[matched])
    np.add.at(sums.latency, at_use, rows.latency[matched])
    np.add.at(sums.reasons, (at_use, rows.reason[matched]), rows.samples[matched])
    np.add.at(sums.caused, at_cause, rows.samples[caused])
    sums.executed[:] = [
        executed.get((key >> _FUNCTION_SHIFT, key & _INDEX_MASK), 0) for key in places.tolist()
    ]
    return places, sums


def _zeros(length: int, reasons: int) -> _Sums:
    samples, latency, caused, executed = (np.zeros(length, dtype=np.int64) for _ in range(4))
    return _Sums(samples, latency, caused, executed, np.zeros((length, reasons), dtype=np.int64))


def _by_scope(sums: _Sums, place: NDArray[np.intp], scope: NDArray[np.intp], scopes: int) -> _Sums:
    result = _zeros(scopes, sums.reasons.shape[1])
    np.add.at(result.samples, scope, sums.samples[place])
    np.add.at(result.latency, scope, sums.latency[place])
    np.add.at(result.caused, scope, sums.caused[place])
    np.add.at(result.reasons, scope, sums.reasons[place])
    np.maximum.at(result.executed, scope, sums.executed[place])
    return result


def _kernel(context: KernelContext, sums: _Sums, *, counted: bool) -> list[ScopeSummary]:
    """The kernel as a whole: samples outside of every function are its own all the same."""
    blame = context.blame
    total = _zeros(1, 0 if blame is None else len(blame.reasons))
    total.executed[0] = sums.executed.max(initial=0)
    if blame is not None:
        rows = blame.rows
        total.samples[0], total.latency[0] = blame.total_samples, blame.latency_samples
        total.caused[0] = rows.samples[rows.role != Role.UNATTRIBUTED.value].sum()
        np.add.at(total.reasons[0], rows.reason, rows.samples)
    if not total.samples[0] and not total.executed[0]:
        return []
    return [_summary(blame, kernel_scope(context.program, context.kernel), total, 0, counted=counted)]


def _summary(blame: Blame | None, scope: Scope, sums: _Sums, number: int, *, counted: bool) -> ScopeSummary:
    return ScopeSummary(
        scope=scope,
        samples=int(sums.samples[number]),
        latency=int(sums.latency[number]),
        caused=int(sums.caused[number]),
        executed_warps=int(sums.executed[number]) if counted else None,
        dominant_reason=None if blame is None else _dominant(blame, sums.reasons[number]),
    )


def _dominant(blame: Blame, by_reason: Counts) -> str | None:
    """The reason to wait with the most samples; the first of equals."""
    best, name = 0, None
    for count, reason in zip(by_reason.tolist(), blame.reasons, strict=True):
        if count > best and reason.stall_class not in _NO_WAIT:
            best, name = count, reason.name
    return name
