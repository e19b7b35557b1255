# SPDX-License-Identifier: Apache-2.0
"""The measurement of recovered lines: what counts as right, as the same statement, and as wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.assembly import function_of, profile_of, program_of
from tests.validation.lines import Share, hidden, share, statements

from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.program import LineEntry, Program

CODE = "LDG.E R2, [R4.64] | W0\nFADD R6, R2, R3 | ?0\nSTG.E [R8.64], R6\nEXIT"


def of_lines(*lines: int) -> Program:
    entries = tuple(LineEntry(SourceLocation("/a/k.cu", line)) for line in lines)
    return program_of(function_of(CODE, lines=entries))


def measured(tmp_path: Path, *lines: int) -> Share:
    source = tmp_path / "k.cu"
    source.write_text("int a;\nf(a,\n  b);\nint c;  // and\nint d;\n")
    known = of_lines(1, 2, 4, 5)
    profile = profile_of({(0, "wait"): 10, (1, "wait"): 30, (2, "wait"): 20, (3, "wait"): 40})
    profile = replace(profile, launch=replace(profile.launch, kernel=known.functions[0].name))
    found = share("k", hidden(known), known, of_lines(*lines), profile, source)
    assert found is not None
    return found


def test_samples_count_where_their_lines_are(tmp_path: Path) -> None:
    same = measured(tmp_path, 1, 2, 4, 5)
    assert (same.right, same.near, same.wrong, same.samples) == (1, 0, 0, 100)
    other = measured(tmp_path, 1, 3, 5, 5)
    assert (other.right, other.near, other.wrong) == (0.5, 0.3, 0.2)


def test_a_statement_goes_over_lines(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("int a;\nf(a,\n  b);\nif (a) {\n")
    assert statements(source)[:4] == [0, 1, 1, 2]
