# SPDX-License-Identifier: Apache-2.0
"""The dependency graph as a table: apportioned stalls, and the edges that were cut, with the rule."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from gpadvisor.model.blame import CLASSES, NO_INDEX, Blame, CodeArea, Role
from gpadvisor.model.instruction import register_name
from gpadvisor.model.program import Program
from gpadvisor.report.names import short_name
from gpadvisor.report.tables import Column, Overflow, format_table
from gpadvisor.report.words import clean, cleaned, csv_cell


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameRow:
    """One line of the table; None where there is no such thing."""

    role: str  # "blamed", "self", "unattributed" or "pruned"
    use_pc: int | None
    use: str | None  # the sampled instruction
    use_line: str | None
    reason: str | None
    dependency_class: str | None
    def_pc: int | None
    definition: str | None
    def_line: str | None
    samples: int
    latency: int
    distance_instructions: int | None
    registers: str | None
    pruned_by: str | None
    detail: str | None  # for a pruned edge: what decided; for samples outside the program: where they are
    function: str | None


def blame_rows(program: Program, blame: Blame) -> tuple[BlameRow, ...]:
    """Every row of the blame, most samples first, then every pruned edge in the order of its use."""
    order = (-blame.rows.samples).argsort(kind="stable")
    rows = [_blamed(program, blame, int(row)) for row in order]
    pruned = [edge for edge in blame.edges if edge.pruned_by is not None]
    for edge in sorted(pruned, key=lambda edge: (edge.function, edge.use_index, edge.def_index)):
        use, use_line = _place(program, edge.function, edge.use_index)
        definition, def_line = _place(program, edge.function, edge.def_index)
        rows.append(
            BlameRow(
                role="pruned",
                use_pc=_pc(program, edge.function, edge.use_index),
                use=use,
                use_line=use_line,
                reason=None,
                dependency_class=None,
                def_pc=_pc(program, edge.function, edge.def_index),
                definition=definition,
                def_line=def_line,
                samples=0,
                latency=0,
                distance_instructions=edge.distance_instructions,
                registers=" ".join(register_name(register) for register in edge.registers),
                pruned_by=None if edge.pruned_by is None else edge.pruned_by.value,
                detail=edge.prune_detail,
                function=program.functions[edge.function].demangled,
            )
        )
    return tuple(rows)


def render_blame_text(name: str, rows: Sequence[BlameRow], *, limit: int | None, width: int) -> str:
    """The table for a terminal: the heaviest rows, then the pruned edges of the instructions in them."""
    sampled = [row for row in rows if row.role != "pruned"][:limit]
    uses = {(row.function, row.use_pc) for row in sampled}
    pruned = [row for row in rows if row.role == "pruned" and (row.function, row.use_pc) in uses][:limit]
    sampled, pruned = list(cleaned(tuple(sampled))), list(cleaned(tuple(pruned)))
    columns = (
        Column(title="samples", right=True),
        Column(title="latency", right=True, drop=3),
        Column(title="reason"),
        Column(title="class", drop=1),
        Column(title="dist", right=True),
        Column(title="def", min_width=14, overflow=Overflow.CUT_END),
        Column(title="def line", min_width=8, overflow=Overflow.CUT_START, drop=4),
        Column(title="use", min_width=14, overflow=Overflow.CUT_END),
        Column(title="use line", min_width=8, overflow=Overflow.CUT_START, drop=2),
    )
    total = sum(row.samples for row in rows)
    latency = sum(row.latency for row in rows)
    lines = [short_name(clean(name), width), f"{total:,} samples, {latency:,} of them latency samples", ""]
    lines += format_table(columns, [_cells(row) for row in sampled], width=width)
    hidden = sum(1 for row in rows if row.role != "pruned") - len(sampled)
    if hidden > 0:
        lines.append(f"... and {hidden:,} more rows; --top 0 shows all")
    if pruned:
        lines += ["", "Pruned edges into these instructions:", ""]
        cut = (
            Column(title="rule"),
            Column(title="def", min_width=14),
            Column(title="use", min_width=14),
            Column(title="why", min_width=20, overflow=Overflow.WRAP),
        )
        lines += format_table(cut, [_pruned_cells(row) for row in pruned], width=width)
    return "\n".join(lines) + "\n"


def render_blame_json(kernels: Sequence[tuple[str, Sequence[BlameRow]]]) -> str:
    """The whole table of each kernel as JSON."""
    value = [{"kernel": name, "rows": [asdict(row) for row in rows]} for name, rows in kernels]
    return json.dumps({"schema": 1, "kernels": value}, indent=1, allow_nan=False) + "\n"


def render_blame_csv(kernels: Sequence[tuple[str, Sequence[BlameRow]]]) -> str:
    """The whole table of each kernel as CSV, empty cells for what there is not."""
    stream = io.StringIO()
    names = [entry.name for entry in fields(BlameRow)]
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["kernel", *names])
    for kernel, rows in kernels:
        cells = ([kernel, *(getattr(row, name) for name in names)] for row in rows)
        writer.writerows(map(csv_cell, row) for row in cells)
    return stream.getvalue()


def _blamed(program: Program, blame: Blame, row: int) -> BlameRow:
    table = blame.rows
    function, definition, use = int(table.function[row]), int(table.def_index[row]), int(table.use_index[row])
    distance = int(table.distance[row])
    use_text, use_line = _place(program, function, use)
    def_text, def_line = _place(program, function, definition)
    place = CodeArea(int(table.place[row]))
    return BlameRow(
        role=Role(int(table.role[row])).name.lower(),
        use_pc=_pc(program, function, use),
        use=use_text,
        use_line=use_line,
        reason=blame.reasons[int(table.reason[row])].name,
        dependency_class=CLASSES[int(table.dependency_class[row])].value,
        def_pc=_pc(program, function, definition),
        definition=def_text,
        def_line=def_line,
        samples=int(table.samples[row]),
        latency=int(table.latency[row]),
        distance_instructions=None if distance == NO_INDEX else distance,
        registers=None,
        pruned_by=None,
        detail=None if place is CodeArea.FUNCTION else place.name.lower(),
        function=program.functions[function].demangled if function < len(program.functions) else None,
    )


def _pc(program: Program, function: int, index: int) -> int | None:
    if index == NO_INDEX or function >= len(program.functions):
        return None
    return program.functions[function].instructions[index].pc


def _place(program: Program, function: int, index: int) -> tuple[str | None, str | None]:
    if index == NO_INDEX or function >= len(program.functions):
        return None, None
    owner = program.functions[function]
    line = owner.lines[index]
    where = None if line is None else f"{line.location.file}:{line.location.line}"
    return owner.instructions[index].text, where


def _cells(row: BlameRow) -> tuple[str, ...]:
    definition = row.definition or {"self": "itself", "unattributed": "not found"}[row.role]
    return (
        f"{row.samples:,}",
        f"{row.latency:,}",
        row.reason or "",
        (row.dependency_class or "").replace("_", " "),
        "" if row.distance_instructions is None else str(row.distance_instructions),
        _at(row.def_pc, definition),
        _short(row.def_line),
        _at(row.use_pc, row.use or row.detail or ""),
        _short(row.use_line),
    )


def _pruned_cells(row: BlameRow) -> tuple[str, ...]:
    return (
        row.pruned_by or "",
        _at(row.def_pc, row.definition or ""),
        _at(row.use_pc, row.use or ""),
        row.detail or "",
    )


def _at(pc: int | None, text: str) -> str:
    return text if pc is None else f"{pc:04x} {text}"


def _short(line: str | None) -> str:
    return "" if line is None else line.rpartition("/")[2]
