# SPDX-License-Identifier: Apache-2.0
"""Whose samples are whose: functions side by side, their ends, the filling behind them, and who drains."""

from __future__ import annotations

import pytest
from tests.assembly import function_of, profile_of, program_of

from gpadvisor.blamer.observe import behind_exit, cycles_per_sample, issues, locate, observe
from gpadvisor.model.blame import NO_FUNCTION, NO_INDEX, CodeArea
from gpadvisor.model.program import FunctionKind, Program

IN, BEHIND = CodeArea.FUNCTION.value, CodeArea.AFTER_EXIT.value


def _two() -> Program:
    """Two functions of a section, five instructions apart, and nothing behind the second."""
    return program_of(
        function_of("STG.E [R2.64], R0\nMOV R0, R1\nEXIT\nNOP"),
        function_of("MOV R0, R1\nRET.REL.NODEC R20", number=1, start=5, kind=FunctionKind.DEVICE),
    )


def test_a_sample_is_found_by_its_offset() -> None:
    program = _two()
    profile = profile_of({(at, "selected"): 1 for at in range(9)})
    table = profile.samples
    function, index, place, last = (
        column.tolist() for column in locate(program, profile, table.section, table.pc)
    )
    assert function == [0, 0, 0, 0, NO_FUNCTION, 1, 1, NO_FUNCTION, NO_FUNCTION]
    assert index == [0, 1, 2, 3, NO_INDEX, 0, 1, NO_INDEX, NO_INDEX]
    assert place == [IN, IN, IN, BEHIND, BEHIND, IN, IN, BEHIND, BEHIND]
    assert last == [-1, -1, -1, -1, 0, -1, -1, 1, 1]


def test_before_all_functions_and_outside_of_the_kernel_there_is_no_code() -> None:
    program = program_of(function_of("MOV R0, R1\nEXIT", start=2))
    profile = profile_of({(1, "selected"): 1, (2, "selected"): 1}, external={(16, "selected"): 4})
    table = profile.samples
    function, _, place, last = (
        column.tolist() for column in locate(program, profile, table.section, table.pc)
    )
    assert function == [NO_FUNCTION, 0, NO_FUNCTION]
    assert place == [CodeArea.UNMAPPED.value, IN, CodeArea.EXTERNAL.value]
    assert last == [-1, -1, -1]


@pytest.mark.parametrize(
    ("text", "filling"),
    [
        ("MOV R0, R1\nEXIT\nself: BRA self\nNOP\nNOP", [0, 0, 1, 1, 1]),
        ("MOV R0, R1\nEXIT\nNOP\nMOV R2, R3", [0, 0, 0, 0]),
        ("top: MOV R0, R1\nBRA top\nNOP", [0, 0, 1]),
        ("NOP\nNOP", [0, 1]),
    ],
)
def test_filling_is_what_stands_behind_the_last_that_runs(text: str, filling: list[int]) -> None:
    assert behind_exit(function_of(text)).tolist() == filling


def test_what_falls_on_one_place_is_added_up() -> None:
    profile = profile_of({(1, "wait"): (5, 2), (0, "selected"): (3, 0), (0, "wait"): (7, 7)})
    found = observe(_two(), profile)
    rows = zip(found.index.tolist(), found.reason.tolist(), found.samples, found.latency, strict=True)
    assert [*rows] == [(0, 0, 7, 7), (0, 1, 3, 0), (1, 0, 5, 2)]


def test_a_drain_at_the_entry_of_a_function_is_of_the_one_that_ends_right_before_it() -> None:
    first = function_of("STG.E [R2.64], R0\nEXIT")
    second = function_of("MOV R0, R1\nRET.REL.NODEC R20", number=1, start=2, kind=FunctionKind.DEVICE)
    profile = profile_of({(2, "drain"): 8, (2, "wait"): 4, (3, "drain"): 2})
    found = observe(program_of(first, second), profile)
    assert [*zip(found.function.tolist(), found.index.tolist(), found.samples, found.last, strict=True)] == [
        (1, 0, 4, -1),
        (1, 1, 2, -1),
        (NO_FUNCTION, NO_INDEX, 8, 0),
    ]
    no_exit = program_of(function_of("STG.E [R2.64], R0\nNOP"), second)
    assert observe(no_exit, profile).function.tolist() == [1, 1, 1]
    apart = program_of(first, function_of("MOV R0, R1\nEXIT", number=1, start=3))
    drained = observe(apart, profile_of({(3, "drain"): 8}))
    assert (drained.function.tolist(), drained.index.tolist()) == ([1], [0])


def test_issues_are_executed_counts_or_the_samples_of_those_that_issued() -> None:
    program = _two()
    samples = {(0, "selected"): 3, (0, "wait"): 9, (6, "selected"): 2, (8, "selected"): 5}
    sampled = profile_of(samples)
    found = issues(program, sampled, observe(program, sampled))
    assert [column.tolist() for column in found.values()] == [[3, 0, 0, 0], [0, 2]]
    counted = profile_of(samples, counts={0: 40, 5: 10, 8: 70})
    found = issues(program, counted, observe(program, counted))
    assert [column.tolist() for column in found.values()] == [[40, 0, 0, 0], [10, 0]]


def test_a_sample_of_who_issued_stands_for_as_many_cycles_as_there_are_issues_for_each() -> None:
    program = _two()
    profile = profile_of({(0, "selected"): 3, (0, "wait"): 9, (6, "selected"): 2}, counts={0: 40, 5: 10})
    observed = observe(program, profile)
    weights = issues(program, profile, observed)
    assert cycles_per_sample(observed, profile.reasons, weights) == 50 / 5
    nobody = profile_of({(0, "wait"): 9})
    assert cycles_per_sample(observe(program, nobody), nobody.reasons, weights) == 0
    assert cycles_per_sample(observe(program, profile_of({})), (), weights) == 0
