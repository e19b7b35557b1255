# SPDX-License-Identifier: Apache-2.0
"""The machine code of a kernel with samples and blame per instruction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gpadvisor.editor.contents.lines import CausedLine, blame_rows
from gpadvisor.editor.contents.places import Places
from gpadvisor.editor.show.words import clean
from gpadvisor.evidence.queries import kernel_function
from gpadvisor.model.blame import Role
from gpadvisor.model.finding import SassInstruction, SassView
from gpadvisor.model.program import Function, Program
from gpadvisor.pipeline.analyse import AnalysedKernel

MAX_ROWS: Final = 150_000
"""More instructions than a person scrolls through; samples of the rest are left out and counted."""


@dataclass(slots=True)
class _Sums:
    samples: int = 0
    latency: int = 0
    caused: int = 0
    reasons: Counter[int] = field(default_factory=Counter)
    causes: Counter[int] = field(default_factory=Counter)  # index in the same function


def sass_view(kernel: AnalysedKernel, name: str, places: Places) -> SassView:
    """The rows of the kernel and of the functions it calls, the kernel's own first."""
    context = kernel.context
    program, blame = context.program, context.blame
    rows = [] if blame is None else blame_rows(program, blame)
    sums = _sums(rows)
    names = () if blame is None else tuple(reason.name for reason in blame.reasons)
    total = 0 if blame is None else blame.total_samples
    functions: list[tuple[str, int]] = []
    instructions: list[SassInstruction] = []
    for function in reading_order(program, context.kernel):
        if len(instructions) >= MAX_ROWS:
            break
        functions.append((clean(function.demangled), len(instructions)))
        instructions += _rows(function, sums, names, total, len(instructions), places)
    code = sum(len(function.instructions) for function in program.functions)
    return SassView(
        kernel=context.kernel,
        name=name,
        arch=program.arch,
        evidence=context.evidence,
        samples=total,
        functions=tuple(functions),
        rows=tuple(instructions),
        truncated=code - len(instructions),
    )


def reading_order(program: Program, kernel: str) -> Sequence[Function]:
    """The functions of a program, the kernel's own first."""
    entry = kernel_function(program, kernel)
    return sorted(program.functions, key=lambda function: (function is not entry, function.id))


def _sums(rows: Sequence[CausedLine]) -> Mapping[tuple[int, int], _Sums]:
    result: dict[tuple[int, int], _Sums] = {}
    for row in rows:
        if row.function is None or row.use is None:
            continue
        sums = result.setdefault((row.function.id, row.use), _Sums())
        sums.samples += row.samples
        sums.latency += row.latency
        sums.reasons[row.reason] += row.samples
        if row.role is Role.BLAMED and row.cause is not None:
            sums.causes[row.cause] += row.samples
            result.setdefault((row.function.id, row.cause), _Sums()).caused += row.samples
    return result


def _rows(
    function: Function,
    sums: Mapping[tuple[int, int], _Sums],
    reasons: Sequence[str],
    total: int,
    first: int,
    places: Places,
) -> list[SassInstruction]:
    nothing = _Sums()
    result = []
    for index, instruction in enumerate(function.instructions[: MAX_ROWS - first]):
        counts = sums.get((function.id, index), nothing)
        cause = max(counts.causes, key=lambda position: (counts.causes[position], -position), default=None)
        reason = max(counts.reasons, key=lambda number: (counts.reasons[number], -number), default=None)
        control = instruction.control
        result.append(
            SassInstruction(
                pc=instruction.pc,
                text=clean(instruction.text),
                stall_cycles=control.stall_cycles,
                yields=not control.yield_flag,
                write_barrier=control.write_barrier,
                read_barrier=control.read_barrier,
                waits=control.waits,
                samples=counts.samples,
                latency=counts.latency,
                caused=counts.caused,
                share=counts.samples / total if total else None,
                reason=None if reason is None else reasons[reason],
                waits_for=None if cause is None or first + cause >= MAX_ROWS else first + cause,
                place=places.of(function, index),
                inline=places.call_sites(function, index),
            )
        )
    return result
