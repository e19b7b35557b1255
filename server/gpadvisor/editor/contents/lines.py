# SPDX-License-Identifier: Apache-2.0
"""Samples by source line: own and caused ones, stalls, and what most of each stall is blamed on.

Of a kernel that was counted and not sampled: executed instructions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from gpadvisor.advice.scopes import executed_by_place
from gpadvisor.editor.contents.places import Places
from gpadvisor.editor.contents.words import cause_words
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.blame import CLASSES, NO_INDEX, Blame, DependencyClass, Role
from gpadvisor.model.finding import LineData, Place, Related, StallShare
from gpadvisor.model.instruction import Instruction
from gpadvisor.model.program import Function, Program


@dataclass(frozen=True, slots=True, kw_only=True)
class CausedLine:
    """One row of a blame with its instructions; ``cause`` is the sampled one where it is its own."""

    function: Function | None
    use: int | None
    cause: int | None
    reason: int
    role: Role
    kind: DependencyClass
    distance: int | None
    samples: int
    latency: int

    def instruction(self, index: int) -> Instruction:
        """An instruction of its function."""
        if self.function is None:
            raise ValueError("samples outside the program have no instruction")
        return self.function.instructions[index]


def blame_rows(program: Program, blame: Blame) -> list[CausedLine]:
    """Every row, in its order."""
    return list(_rows(program, blame))


def _rows(program: Program, blame: Blame) -> Iterator[CausedLine]:
    table = blame.rows
    columns = (
        table.function, table.use_index, table.def_index, table.reason, table.role,
        table.dependency_class, table.distance, table.samples, table.latency,
    )  # fmt: skip
    roles = {role.value: role for role in Role}
    for function, use, definition, reason, role, kind, distance, samples, latency in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        owner = program.functions[function] if function < len(program.functions) else None
        is_placed = owner is not None and use != NO_INDEX
        blamed = owner is not None and definition != NO_INDEX
        yield CausedLine(
            function=owner,
            use=use if is_placed else None,
            cause=definition if blamed else use if is_placed else None,
            reason=reason,
            role=roles[role],
            kind=CLASSES[kind],
            distance=None if distance == NO_INDEX else distance,
            samples=samples,
            latency=latency,
        )


@dataclass(slots=True)
class _Stall:
    samples: int = 0
    latency: int = 0
    causes: Counter[int] = field(default_factory=Counter)  # samples by row position
    rows: dict[tuple[int, int], int] = field(default_factory=dict)  # a row by the cause it names


@dataclass(slots=True)
class _Line:
    samples: int = 0
    latency: int = 0
    caused: int = 0
    stalls: dict[int, _Stall] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLines:
    """A kernel's samples by line."""

    lines: dict[Place, LineData]
    stalls: tuple[StallShare, ...]  # of the kernel as a whole
    unplaced: int  # samples on no line


def kernel_lines(context: KernelContext, rows: list[CausedLine], places: Places) -> KernelLines:
    """Add the rows of a blame up by line; without samples the executed instructions, where counted."""
    kernel, program, blame = context.kernel, context.program, context.blame
    if blame is None:
        return KernelLines(lines=_executed_lines(context, places), stalls=(), unplaced=0)
    counts = _instructions(program, places)
    lines: dict[Place, _Line] = {}
    of_kernel = _Line()
    unplaced = 0
    for position, row in enumerate(rows):
        own_place = None if row.function is None or row.use is None else places.of(row.function, row.use)
        for line in (of_kernel,) if own_place is None else (of_kernel, lines.setdefault(own_place, _Line())):
            _add(line, row, position)
        unplaced += row.samples if own_place is None else 0
        if row.function is not None and row.cause is not None and row.role is not Role.UNATTRIBUTED:
            cause = places.of(row.function, row.cause)
            if cause is not None:
                lines.setdefault(cause, _Line()).caused += row.samples
    total = blame.total_samples
    return KernelLines(
        lines={
            place: LineData(
                line=place.line,
                kernel=kernel,
                samples=line.samples,
                latency=line.latency,
                share=line.samples / total if total else 0.0,
                caused=line.caused,
                instructions=counts.get(place, 0),
                stalls=_stalls(line, blame, rows, places),
            )
            for place, line in lines.items()
        },
        stalls=_stalls(of_kernel, blame, rows, places),
        unplaced=unplaced,
    )


def _executed_lines(context: KernelContext, places: Places) -> dict[Place, LineData]:
    """Each line's share of the instructions that were executed."""
    program = context.program
    executed: Counter[Place] = Counter()
    by_place = executed_by_place(program, context.profile)
    for (function, index), warps in by_place.items():
        place = places.of(program.functions[function], index)
        if place is not None:
            executed[place] += warps
    total, counts = sum(by_place.values()), _instructions(program, places)
    return {
        place: LineData(
            line=place.line,
            kernel=context.kernel,
            samples=0,
            latency=0,
            share=warps / total,
            caused=0,
            instructions=counts[place],
            stalls=(),
        )
        for place, warps in executed.items()
    }


def _instructions(program: Program, places: Places) -> Counter[Place]:
    return Counter(
        place
        for function in program.functions
        for index in range(len(function.instructions))
        if (place := places.of(function, index)) is not None
    )


def _add(line: _Line, row: CausedLine, position: int) -> None:
    line.samples += row.samples
    line.latency += row.latency
    stall = line.stalls.setdefault(row.reason, _Stall())
    stall.samples += row.samples
    stall.latency += row.latency
    if row.role is Role.BLAMED and row.function is not None and row.cause is not None:
        first = stall.rows.setdefault((row.function.id, row.cause), position)
        stall.causes[first] += row.samples


def _stalls(line: _Line, blame: Blame, rows: list[CausedLine], places: Places) -> tuple[StallShare, ...]:
    shares = [
        StallShare(
            reason=blame.reasons[reason].name,
            plain=blame.reasons[reason].plain,
            samples=stall.samples,
            latency=stall.latency,
            cause=_cause(stall, rows, places),
        )
        for reason, stall in line.stalls.items()
        if stall.samples
    ]
    return tuple(sorted(shares, key=lambda share: (-share.samples, share.reason)))


def _cause(stall: _Stall, rows: list[CausedLine], places: Places) -> Related | None:
    """The instruction that most of a stall's samples are blamed on, where it has a line."""
    for position, _ in sorted(stall.causes.items(), key=lambda pair: (-pair[1], pair[0]))[:1]:
        row = rows[position]
        if row.function is None or row.cause is None or row.use is None:
            return None
        place = places.of(row.function, row.cause)
        if place is not None:
            words = cause_words(row.instruction(row.cause), row.instruction(row.use), row.kind, row.distance)
            return Related(place=place, message=words)
    return None
