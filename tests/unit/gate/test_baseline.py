# SPDX-License-Identifier: Apache-2.0
"""Baselines: what is new, known, fixed or not comparable, and files that people merge and damage."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests import advice_values as values

from gpadvisor.gate.baseline import (
    BaselineError,
    Examined,
    Findings,
    Known,
    difference,
    dump,
    joined,
    parse,
    updated,
)
from gpadvisor.gate.state import state_of
from gpadvisor.model.ids import SourceLocation

ONE = Known(kernel="k", rule="GPA106", file="k.cu", fingerprint="a", device="sm_80", expected=1.5)
TWO = Known(kernel="k", rule="GPA201", file="k.cu", fingerprint="b", device="sm_80", expected=1.1)


def state(*known: Known, kernel: str = "k", device: str = "sm_80", compiler: str = "") -> Findings:
    return Findings(examined=(Examined(kernel=kernel, device=device, compiler=compiler),), known=known)


def test_new_known_and_fixed() -> None:
    found = difference(state(ONE), state(TWO))
    assert (found.new, found.known, found.fixed) == ((TWO,), (), (ONE,))
    found = difference(state(ONE, TWO), state(replace(ONE, expected=1.7)))
    assert (found.new, found.known, found.fixed) == ((), (replace(ONE, expected=1.7),), (TWO,))


def test_an_edited_line_is_the_same_advice_where_there_is_only_one() -> None:
    moved = replace(ONE, fingerprint="c")
    assert difference(state(ONE), state(moved)).new == ()
    several = difference(state(ONE, replace(ONE, fingerprint="d")), state(moved))
    assert several.new == (moved,)


def test_another_device_is_not_comparable_and_nothing_is_new() -> None:
    found = difference(state(ONE), state(replace(TWO, device="sm_90"), device="sm_90"))
    assert (found.new, found.fixed) == ((), ())
    assert "sm_90" in found.not_comparable[0]
    # Also a kernel that the baseline does not know, on a device that it does not know.
    other = joined([state(ONE), state(TWO)])
    now = joined(
        [state(device="sm_90"), state(replace(TWO, kernel="q", device="sm_90"), kernel="q", device="sm_90")]
    )
    assert difference(other, now).new == ()


def test_another_compiler_is_not_comparable_and_an_unknown_one_is() -> None:
    found = difference(state(ONE, compiler="13.0"), state(TWO, compiler="13.1"))
    assert found.new == ()
    assert "13.1" in found.not_comparable[0]
    assert difference(state(ONE, compiler="13.0"), state(TWO)).new == (TWO,)


def test_a_baseline_for_two_devices_serves_both() -> None:
    other = replace(ONE, device="sm_90", fingerprint="h")
    both = joined([state(ONE), state(other, device="sm_90")])
    assert difference(both, state(ONE)).known == (ONE,)
    assert difference(both, state(other, device="sm_90")).known == (other,)
    # An update on one leaves the other's lines.
    assert other in updated(both, state(TWO), "2").known


def test_another_projects_baseline_says_so() -> None:
    found = difference(state(ONE), state(replace(TWO, kernel="q"), kernel="q"))
    assert found.new == ()
    assert "another project" in found.not_comparable[0]


def test_a_kernel_that_was_not_looked_at_is_not_fixed() -> None:
    both = joined([state(ONE), state(replace(TWO, kernel="q"), kernel="q")])
    found = difference(both, state(ONE))
    assert found.fixed == ()
    assert found.elsewhere == ("q",)
    assert replace(TWO, kernel="q") in updated(both, state(ONE), "2").known


def test_an_update_keeps_who_saw_it_first_and_the_note() -> None:
    old = replace(ONE, since="0.1", note="accepted until the rewrite")
    (kept, new) = updated(state(old), state(replace(ONE, expected=2.0), TWO), "0.2").known
    assert (kept.since, kept.note, kept.expected) == ("0.1", "accepted until the rewrite", 2.0)
    assert new.since == "0.2"


def test_the_file_is_sorted_and_comes_back() -> None:
    whole = state(TWO, ONE)
    text = dump(whole)
    assert text == dump(state(ONE, TWO))
    assert parse(text.encode(), "b") == state(ONE, TWO)
    assert len(text.splitlines()) == 4  # what it is, one kernel, two suggestions


def test_advice_without_a_line_comes_back() -> None:
    """As of a report without a line table: what was written must be read."""
    before = state(replace(ONE, file=""))
    assert parse(dump(before).encode(), "b") == before


def test_a_merge_that_keeps_lines_of_both_sides_is_read() -> None:
    merged = dump(state(ONE)) + dump(state(TWO))
    assert parse(merged.encode(), "b") == state(ONE, TWO)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "{}",
        '{"gpadvisor-baseline": 1}\n<<<<<<< ours\n',
        '{"gpadvisor-baseline": 1}\n{"rule": "GPA106"}\n',
        '{"gpadvisor-baseline": 1}\n{"kernel": 5, "device": "sm_80"}\n',
        '{"gpadvisor-baseline": 1}\n' + json.dumps({"kernel": "x" * 5_000, "device": "sm_80"}),
        dump(state(ONE)).replace("1.5", "NaN"),
        '{"gpadvisor-baseline": 2}\n',
        "[" * 100_000,
    ],
)
def test_damage_is_named(text: str) -> None:
    with pytest.raises(BaselineError, match=r"b\.jsonl"):
        parse(text.encode(), "b.jsonl")


def test_neither_lines_nor_paths_nor_samples_stand_in_it() -> None:
    advice = values.measured()
    text = dump(state_of(advice, values.SOURCES, {}))
    assert "/home" not in text
    assert '"rule"' in text
    moved = {name: f"// a line more\n{source}" for name, source in values.SOURCES.items()}
    assert dump(state_of(_a_line_down(advice), moved, {})) == text


def test_silenced_advice_is_not_in_it() -> None:
    told = state_of(values.suppressed(), values.SOURCES, {})
    silent = [one for kernel in values.suppressed().kernels for one in kernel.suggestions if one.suppressed]
    assert silent
    assert not {one.rule for one in told.known} & {one.code for one in silent}


def _a_line_down(advice: values.Advice) -> values.Advice:
    def down(place: SourceLocation | None) -> SourceLocation | None:
        return None if place is None else replace(place, line=place.line + 1)

    def moved(one: values.Suggestion) -> values.Suggestion:
        spots = tuple(
            replace(
                spot,
                definition=spot.definition
                and replace(spot.definition, location=down(spot.definition.location)),
                use=spot.use and replace(spot.use, location=down(spot.use.location)),
            )
            for spot in one.hotspots
        )
        return replace(one, hotspots=spots, scope=replace(one.scope, location=down(one.scope.location)))

    kernels = tuple(
        replace(kernel, suggestions=tuple(map(moved, kernel.suggestions))) for kernel in advice.kernels
    )
    return replace(advice, kernels=kernels)
