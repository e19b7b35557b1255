# SPDX-License-Identifier: Apache-2.0
"""Samples by place: kernel, functions, loops, inlined functions and lines (GPA section III).

A place has the samples taken in it and the samples that its instructions caused, which may be taken
elsewhere; its executed count is that of its most executed instruction.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from gpadvisor.blamer.measured import executed_warps
from gpadvisor.blamer.queries import function_scope, kernel_scope, loop_scope
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import Scope, ScopeKind, ScopeSummary
from gpadvisor.model.blame import NO_INDEX, Blame, Role
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function, FunctionKind, Program
from gpadvisor.model.stalls import StallClass

Place = tuple[int, int]
"""Function and instruction index."""
_ORDER: Final = tuple(ScopeKind)


@dataclass(slots=True)
class _Sums:
    samples: int = 0
    latency: int = 0
    caused: int = 0
    executed: int = 0
    reasons: Counter[int] = field(default_factory=Counter)

    def add(self, other: _Sums) -> None:
        self.samples += other.samples
        self.latency += other.latency
        self.caused += other.caused
        self.executed = max(self.executed, other.executed)
        self.reasons.update(other.reasons)


def scope_summaries(context: KernelContext) -> tuple[ScopeSummary, ...]:
    """Every place with samples, or with executed counts where there is no sample; outer kinds first."""
    by_place = _by_instruction(context)
    executed = executed_by_place(context.program, context.profile)
    for place, warps in executed.items():
        if context.blame is None or place in by_place:
            by_place[place].executed = warps
    scopes: dict[Scope, _Sums] = defaultdict(_Sums)
    lines: dict[SourceLocation, Scope] = {}
    whole = _Sums()
    for (function, index), sums in sorted(by_place.items(), key=lambda item: item[0]):
        whole.add(sums)
        for scope in _scopes_around(context.program, context.program.functions[function], index):
            if scope.kind is ScopeKind.LINE and scope.location is not None:
                # One line may be compiled into several functions; it stays one line.
                scopes[lines.setdefault(scope.location, scope)].add(sums)
            else:
                scopes[scope].add(sums)
    _add_outside(context.blame, whole)
    if whole.samples or whole.executed:
        scopes[kernel_scope(context.program, context.kernel)] = whole
    rows = [_summary(context.blame, scope, sums, counted=bool(executed)) for scope, sums in scopes.items()]
    return tuple(sorted(rows, key=_rank))


def _rank(row: ScopeSummary) -> tuple[int, int, int, int, str, str, int]:
    scope = row.scope
    where = scope.location or SourceLocation("", 0)
    return (
        _ORDER.index(scope.kind), -row.samples, -row.caused, -(row.executed_warps or 0),
        scope.name, where.file, where.line,
    )  # fmt: skip


def executed_by_place(program: Program, profile: KernelProfile | None) -> Mapping[Place, int]:
    """Warp-level executions by instruction; empty where the profile has no counts."""
    found: dict[Place, int] = {}
    for function in program.functions:
        warps = executed_warps(profile, function)
        if warps is not None:
            for index in np.flatnonzero(warps).tolist():
                found[function.id, index] = int(warps[index])
    return found


def _by_instruction(context: KernelContext) -> defaultdict[Place, _Sums]:
    sums: defaultdict[Place, _Sums] = defaultdict(_Sums)
    blame = context.blame
    if blame is None:
        return sums
    rows = blame.rows
    inside = np.flatnonzero(rows.function < len(context.program.functions))
    columns = (
        rows.function,
        rows.use_index,
        rows.def_index,
        rows.role,
        rows.reason,
        rows.samples,
        rows.latency,
    )
    for function, use, definition, role, reason, samples, latency in zip(
        *(column[inside].tolist() for column in columns), strict=True
    ):
        if use != NO_INDEX:
            taken = sums[function, use]
            taken.samples += samples
            taken.latency += latency
            taken.reasons[reason] += samples
        cause = definition if role == Role.BLAMED.value else use if role == Role.SELF.value else NO_INDEX
        if cause != NO_INDEX:
            sums[function, cause].caused += samples
    return sums


def _add_outside(blame: Blame | None, whole: _Sums) -> None:
    """Samples outside of every function are the kernel's all the same."""
    if blame is None:
        return
    whole.samples, whole.latency = blame.total_samples, blame.latency_samples
    rows = blame.rows
    caused = rows.role != Role.UNATTRIBUTED.value
    whole.caused = int(rows.samples[caused].sum())
    for index in range(len(blame.reasons)):
        whole.reasons[index] = int(rows.samples[rows.reason == index].sum())


def _scopes_around(program: Program, function: Function, index: int) -> Iterator[Scope]:
    """Line, inlined functions, loops and function around an instruction."""
    line = function.lines[index] if index < len(function.lines) else None
    if line is not None:
        yield Scope(
            kind=ScopeKind.LINE, name=function.demangled, location=line.location, function=function.id
        )
        for frame in dict.fromkeys(line.inline):
            if frame.function is not None:
                yield Scope(
                    kind=ScopeKind.INLINED,
                    name=frame.function,
                    location=frame.call_site,
                    function=function.id,
                )
    for loop in function.enclosing_loops(index):
        yield loop_scope(function, loop)
    if function.kind is not FunctionKind.KERNEL:
        yield function_scope(program, function)


def _summary(blame: Blame | None, scope: Scope, sums: _Sums, *, counted: bool) -> ScopeSummary:
    dominant: str | None = None
    if blame is not None:
        stalled = [
            (count, -index)
            for index, count in sums.reasons.items()
            if count and blame.reasons[index].stall_class is not StallClass.ISSUED
        ]
        dominant = blame.reasons[-max(stalled)[1]].name if stalled else None
    return ScopeSummary(
        scope=scope,
        samples=sums.samples,
        latency=sums.latency,
        caused=sums.caused,
        executed_warps=sums.executed if counted else None,
        dominant_reason=dominant,
    )
