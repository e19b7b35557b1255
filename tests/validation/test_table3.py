# SPDX-License-Identifier: Apache-2.0
"""Table III: every row can be run, and what is simulated of its change is what the advice promises."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.validation.table3 import Outcome, figures, outcome_of, replaced, table, text_of
from tests.validation.table3_rows import ROWS, Row

_FOLDER = os.environ.get("GPADVISOR_RODINIA")
_ROWS = {row.name: row for row in ROWS}


def _toy(folder: Path, **changes: object) -> Row:
    place = folder / "cuda" / "toy"
    place.mkdir(parents=True)
    (place / "toy.h").write_text("#define N 4\n")
    (place / "toy.cu").write_text("int host;\n__global__ void k(float* x) {\n    x[0] = 2.0;\n}\nint more;\n")
    values = {
        "name": "toy", "kernel": "k", "code": "GPA102", "achieved": 1.1, "estimated": 1.2,
        "file": "toy/toy.cu",
        "begin": "__global__", "end": "int more", "includes": ("toy/toy.h",), "prelude": "typedef int one;",
        "grid": (1, 1, 1), "block": (32, 1, 1), "arguments": "pointer",
    }  # fmt: skip
    return Row(**{**values, **changes})  # type: ignore[arg-type] # fields by name


def test_a_unit_is_the_kernel_with_what_it_needs(tmp_path: Path) -> None:
    row = _toy(tmp_path, port=((r"2\.0", "3.0"),))
    assert text_of(row, tmp_path) == (
        "#define N 4\n\ntypedef int one;\n__global__ void k(float* x) {\n    x[0] = 3.0;\n}\n"
    )


def test_a_change_that_finds_nothing_is_an_error_and_not_a_row_without_gain(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing matches"):
        replaced("a b", [("c", "d")])
    row = _toy(tmp_path, change=((r"4\.0", "4.0f"),))
    outcome = outcome_of(row, tmp_path)
    assert outcome.simulated is None
    assert "nothing matches" in outcome.failure
    assert "not run: nothing matches" in table([(row, outcome)])[1]


def test_the_figures_count_what_is_not_shown_as_no_gain(tmp_path: Path) -> None:
    row = _toy(tmp_path)
    shown = Outcome(simulated=1.1, rank=1, low=1.0, expected=1.21, high=1.3, equation=1.4)
    hidden = Outcome(simulated=1.25, rank=None)
    text = "\n".join(figures([(row, shown), (row, hidden), (row, Outcome(simulated=None, rank=None))]))
    assert "rows run                                   2 of 3" in text
    assert "first or second (aim 85 %)                 1 (50%)" in text
    assert "inside the range (aim 85 %)                1 (50%)" in text
    assert "against the simulated change    15.0%" in text  # 10 % above, and 20 % below


@pytest.mark.validate
@pytest.mark.slow
@pytest.mark.skipif(_FOLDER is None, reason="reports: GPADVISOR_RODINIA names no checkout of Rodinia")
@pytest.mark.parametrize("name", ["cfd", "myocyte"])
def test_where_the_fix_is_the_published_change_the_pair_is_the_estimate(name: str) -> None:
    outcome = outcome_of(_ROWS[name], Path(str(_FOLDER)))
    assert outcome.failure == ""
    assert outcome.simulated == pytest.approx(outcome.expected)
    assert outcome.inside
