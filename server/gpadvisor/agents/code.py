# SPDX-License-Identifier: Apache-2.0
"""A line of a source: what its instructions wait for, what waits for them, and what they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Final

from gpadvisor.agents.advising import advised
from gpadvisor.agents.answers import NAME, TEXT, Answer, Json, number, short
from gpadvisor.agents.request import ToolCall
from gpadvisor.errors import ProfileMismatchError, UsageError
from gpadvisor.model.blame import NO_INDEX, Blame
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.program import Program
from gpadvisor.pipeline.advise import AdvisedFile, AdvisedKernel
from gpadvisor.report.blame_table import BlameRow, blame_rows

_AROUND: Final = 3
"""Lines of the source shown before and after the one asked for."""


def blame(call: ToolCall) -> Answer:
    """The rows of the dependency graph of a line, else the heaviest."""
    file = advised(call)
    line = _Line(call)
    blamed = [
        (kernel, kernel_blame) for kernel in file.kernels if (kernel_blame := kernel.analysed.context.blame)
    ]
    if not blamed:
        raise ProfileMismatchError(f"no kernel of {call.path().name} has samples to blame")
    items = [
        _blamed(kernel, row, kernel_blame.total_samples)
        for kernel, kernel_blame in blamed
        for row in blame_rows(kernel.analysed.context.program, kernel_blame)
        if row.role != "pruned" and (line.is_at(row.use_line) or line.is_at(row.def_line))
    ]
    items.sort(key=lambda item: -int(item["samples"]))
    return Answer(
        items=items,
        evidence=", ".join(dict.fromkeys(str(item["evidence"]) for item in items)),
        source="PC samples, apportioned by GPA's Eq. 1",
        verify=call.command("blame", str(call.path()), "--top", "0"),
        skipped=list(_without(file, line)),
    )


def _blamed(kernel: AdvisedKernel, row: BlameRow, total: int) -> Json:
    return {
        "kernel": short(kernel.advice.name, NAME),
        "role": row.role,
        "reason": short(row.reason, NAME),
        "samples": row.samples,
        "share": number(row.samples / total if total else None),
        "waiting": _instruction(row.use_pc, row.use),
        "waiting_at": short(row.use_line, NAME),
        "cause": _instruction(row.def_pc, row.definition),
        "cause_at": short(row.def_line, NAME),
        "distance": row.distance_instructions,
        "evidence": kernel.advice.evidence.value,
        "source": f"{row.samples} of {total} PC samples",
    }


def _instruction(pc: int | None, text: str | None) -> str:
    return "" if pc is None else short(f"{pc:#06x} {text}", NAME)


def source(call: ToolCall) -> Answer:
    """Source lines around a line, then its instructions."""
    advised_file, selection = advised(call), _Line(call)
    lines = [line for place, kernel in enumerate(advised_file.kernels) for line in _lines_of(kernel, place)]
    if call.given.get("line") is None and not selection.name:
        best = max(lines, key=lambda line: sum(line.samples.values()), default=None)
        selection.take(None if best is None else best.location)
    rows = [line for line in lines if selection.is_place(line.location)]
    texts = {line.location.file for line in rows if line.location is not None}
    items = [item for file in sorted(texts) for item in _text(advised_file, file, selection.line)]
    rows.sort(key=lambda line: line.order if selection.name else (-sum(line.samples.values()), *line.order))
    items += [_machine_code(line) for line in rows]
    return Answer(
        items=items,
        evidence=", ".join(dict.fromkeys(str(item["evidence"]) for item in items)) or "none",
        source="the line table, the machine code, PC samples",
        verify=call.command("advise", str(call.path()), "--details"),
        skipped=list(_without(advised_file, selection)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One instruction."""

    order: tuple[int, int, int]
    kernel: AdvisedKernel
    location: SourceLocation | None
    text: str
    samples: Counter[str] = field(default_factory=Counter)  # by stall reason
    total: int


def _lines_of(kernel: AdvisedKernel, order: int) -> Iterator[_Row]:
    program, kernel_blame = kernel.analysed.context.program, kernel.analysed.context.blame
    counts = _samples(kernel_blame)
    for function in program.functions:
        for index, instruction in enumerate(function.instructions):
            entry = function.lines[index]
            yield _Row(
                order=(order, int(function.id), index),
                kernel=kernel,
                location=None if entry is None else entry.location,
                text=f"{instruction.pc:#06x} {instruction.text}",
                samples=counts.get((int(function.id), index), Counter()),
                total=0 if kernel_blame is None else kernel_blame.total_samples,
            )


def _samples(kernel_blame: Blame | None) -> dict[tuple[int, int], Counter[str]]:
    counts: dict[tuple[int, int], Counter[str]] = {}
    if kernel_blame is None:
        return counts
    rows = kernel_blame.rows
    for index in range(len(rows)):
        if rows.use_index[index] != NO_INDEX:
            key = int(rows.function[index]), int(rows.use_index[index])
            reason = kernel_blame.reasons[int(rows.reason[index])].name
            counts.setdefault(key, Counter())[reason] += int(rows.samples[index])
    return counts


def _text(advised_file: AdvisedFile, file: str, line: int | None) -> Iterator[Json]:
    text = advised_file.texts.get(file)
    if text is None or line is None:
        return
    for index, words in enumerate(text.splitlines(), 1):
        if abs(index - line) <= _AROUND:
            yield {
                "kind": "source",
                "at": short(f"{PurePath(file).name}:{index}", NAME),
                "text": short(words.rstrip(), TEXT),
                "samples": None,
                "share": None,
                "reason": "",
                "evidence": "static",
                "source": "the source as profiled, else as it is now",
            }


def _machine_code(row: _Row) -> Json:
    samples = sum(row.samples.values())
    place = row.location
    return {
        "kind": "machine code",
        "at": "" if place is None else short(f"{PurePath(place.file).name}:{place.line}", NAME),
        "text": short(row.text, NAME),
        "samples": samples,
        "share": number(samples / row.total) if row.total else None,
        "reason": "" if not row.samples else short(row.samples.most_common(1)[0][0], NAME),
        "evidence": row.kernel.advice.evidence.value,
        "source": f"{samples} of {row.total} PC samples" if row.total else "the machine code",
    }


class _Line:
    """The line that is asked for; everything where none is."""

    def __init__(self, call: ToolCall) -> None:
        self.name = PurePath(call.text("source_file").replace("\\", "/")).name
        line = call.given.get("line")
        self.line: int | None = None if line is None else int(line)
        if self.line is not None and not self.name:
            raise UsageError("'line' needs 'source_file'")

    def take(self, place: SourceLocation | None) -> None:
        """Ask for that line."""
        if place is not None:
            self.name, self.line = PurePath(place.file).name, place.line

    def is_place(self, place: SourceLocation | None) -> bool:
        """Whether an instruction is of it; those without a line are of everything."""
        if not self.name:
            return True
        same = place is not None and PurePath(place.file).name == self.name
        return same and (self.line is None or (place is not None and place.line == self.line))

    def is_at(self, text: str | None) -> bool:
        """The same for ``file:line``."""
        file, _, line = (text or "").rpartition(":")
        return self.is_place(SourceLocation(file, int(line)) if line.isdigit() else None)


def _without(advised_file: AdvisedFile, selection: _Line) -> Iterator[str]:
    programs: list[Program] = [kernel.analysed.context.program for kernel in advised_file.kernels]
    files = {
        line.location.file for program in programs for f in program.functions for line in f.lines if line
    }
    if not files:
        yield "no line table: compile with -lineinfo"
    elif selection.name and selection.name not in {PurePath(file).name for file in files}:
        yield f"no instruction is of {selection.name}; lines are of " + ", ".join(
            sorted({PurePath(file).name for file in files})[:5]
        )
    for kernel in advised_file.kernels:
        if kernel.analysed.context.blame is None:
            yield f"{kernel.advice.name} has no samples"
    yield from (problem.message for problem in advised_file.advice.problems)
