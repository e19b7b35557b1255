# SPDX-License-Identifier: Apache-2.0
"""The table of measured pairs counts what it says."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from tests.advice_values import STRENGTH_REDUCTION
from tests.validation.pairs import (
    Outcome,
    Pair,
    fitted,
    least_removed,
    left_out,
    log_error,
    outcome,
    read_pairs,
    report,
    report_name,
    summary,
)

from gpadvisor.model.advice import Suggestion

PAIR = Pair(
    name="a", repository="some/where", report=Path("a.ncu-rep"), launch=0, change="a change", achieved=2.0,
    accepted=frozenset({"GPA102"}), same_code="a:0",
)  # fmt: skip


def suggestion(code: str, low: float, expected: float, high: float) -> Suggestion:
    assert STRENGTH_REDUCTION.speedup is not None
    estimate = replace(STRENGTH_REDUCTION.speedup, low=low, expected=expected, high=high, paper=1.5)
    return replace(STRENGTH_REDUCTION, code=code, speedup=estimate)


def test_a_cure_that_is_not_offered_counts_as_no_gain() -> None:
    one = outcome(PAIR, [suggestion("GPA201", 1.0, 3.0, 4.0)])
    assert (one.cure, one.rank, one.expected, one.paper, one.best) == (None, None, 1.0, 1.0, 3.0)
    assert not one.inside
    assert log_error(one.expected, one.pair.achieved) == pytest.approx(math.log(2))


def test_the_rank_is_among_all_suggestions_and_the_ends_count_as_inside() -> None:
    one = outcome(PAIR, [suggestion("GPA201", 1.0, 3.0, 4.0), suggestion("GPA102", 1.5, 1.8, 2.0)])
    assert (one.rank, one.expected, one.paper, one.ends) == (2, 1.8, 1.5, (1.5, 2.0))
    assert one.inside


def test_a_summary_has_the_errors_and_the_bias_of_its_rows() -> None:
    half: list[Outcome] = [outcome(PAIR, [suggestion("GPA102", 0.9, 1.0, 1.1)])]
    full = [outcome(replace(PAIR, achieved=1.0), [suggestion("GPA102", 1.0, 2.0, 2.0)])]
    text = summary("both", half + full).split()
    assert text[:2] == ["both", "2"]
    assert [float(value) for value in text[2:6]] == pytest.approx([0.693, 0.347, 0.347, 0.0], abs=0.001)
    assert text[6] == "50"


def test_what_cures_removed_of_what_was_expected_counts_those_that_gained() -> None:
    half = outcome(replace(PAIR, achieved=4 / 3), [suggestion("GPA102", 1.0, 2.0, 2.0)])
    nothing = outcome(replace(PAIR, achieved=1.0), [suggestion("GPA102", 1.0, 2.0, 2.0)])
    control = outcome(replace(PAIR, accepted=frozenset()), [suggestion("GPA102", 1.0, 2.0, 2.0)])
    found = [outcome(PAIR, [suggestion("GPA102", 1.0, 2.0, 2.0)]), half, nothing, control]
    assert least_removed(found) == "Of what was expected 2 cures with a gain removed 0.50, 1.00 and more"


def test_controls_stand_apart_and_promises_on_them_are_counted() -> None:
    control = replace(PAIR, name="am-add-v2-v3", achieved=0.9, accepted=frozenset())
    text = report(
        [
            outcome(control, [suggestion("GPA106", 1, 1.9, 2), suggestion("GPA201", 1.0, 1.3, 1.4)]),
            outcome(PAIR, [suggestion("GPA102", 1, 2, 3)]),
        ]
    )
    assert "1 of 1 controls were promised more than 1.1x" in text
    assert "am-add-v2-v3             0.90   1.30   1.90" in text
    assert "all cures                              1 " in text


def test_pairs_without_their_report_are_left_out(tmp_path: Path) -> None:
    side = {"repo": "a/b", "path": "x/y.ncu-rep", "launch": 3}
    row = {"id": "P", "before": side, "after": side, "achieved": 1.5, "change": "c", "accepted": []}
    other = {**row, "id": "Q", "before": {**side, "path": "z.ncu-rep"}}
    (tmp_path / "pairs.json").write_text(json.dumps([row, other]))
    (tmp_path / report_name(side)).touch()
    (found,) = read_pairs(tmp_path / "pairs.json", tmp_path)
    assert (found.name, found.launch, found.report.name) == ("P", 3, "a_b__x__y.ncu-rep")


def test_a_repository_is_judged_with_what_fits_the_others() -> None:
    def found(repository: str, expected: float) -> Outcome:
        pair = replace(PAIR, repository=repository)
        return outcome(pair, [suggestion("GPA102", 1.0, expected, 3.0)])

    by_overlap = {
        2.0: [found("one", 2.0), found("two", 1.5)],
        3.0: [found("one", 1.2), found("two", 1.9)],
    }
    fits = {
        name: (value, [one.expected for one in own]) for name, (value, own) in left_out(by_overlap).items()
    }
    assert fits == {"one": (3.0, [1.2]), "two": (2.0, [1.5])}
    assert fitted(by_overlap) == "OVERLAP that fits best: 2; 3 without one, 2 without two"
