# SPDX-License-Identifier: Apache-2.0
"""Comparing two runs: lines keep their identity through edits, regressions stay visible."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests import advice_values as values
from tests import hand_made as made

from gpadvisor.advice.compare import _stand_ins, compare_kernels, map_lines, pair_kernels
from gpadvisor.advice.kernel import advise_kernel
from gpadvisor.model.advice import KernelAdvice


def _pairs(before: dict[str, str], after: dict[str, str]) -> list[tuple[str, str]]:
    """Names of the kernels that are paired, of kernels given by name with their mangled names."""
    one = advise_kernel(made.context(made.blame(made.selected(100)), measured=made.profile()), ())
    sides = [
        [replace(one, name=name, mangled=mangled) for name, mangled in side.items()]
        for side in (before, after)
    ]
    return [(old.name, new.name) for old, new in pair_kernels(*sides)[0]]


def test_kernels_of_an_unnamed_namespace_are_paired_by_their_own_names() -> None:
    names = (
        "void lib::(anonymous namespace)::gather<int>(int)",
        "void lib::(anonymous namespace)::fill<int>(int)",
    )
    found = _pairs(
        {names[0]: "_GLOBAL__N__1_a", names[1]: "_GLOBAL__N__1_b"},
        {names[1]: "_GLOBAL__N__2_b", names[0]: "_GLOBAL__N__2_a"},
    )
    assert sorted(found) == sorted((name, name) for name in names)
    wider = names[0].replace("<int>", "<long>")
    assert _pairs({names[0]: "a1", names[1]: "b1"}, {wider: "c", "other(int)": "d"}) == [
        (names[0], wider),
        (names[1], "other(int)"),  # what is left alone
    ]


def test_kernels_of_a_library_are_paired_across_architectures() -> None:
    before = {"cub::SM_800::scan<128>": "SM_800scan128", "cub::SM_800::scan<7>": "SM_800x"}
    after = {"cub::SM_1200::scan<7>": "SM_1200x", "cub::SM_1200::scan<256>": "SM_1200scan256"}
    assert sorted(_pairs(before, after)) == sorted(zip(before, reversed(after), strict=True))


def test_an_inserted_line_moves_the_rest() -> None:
    assert map_lines("a\nb\nc", "a\nnew\nb\nc") == {1: 1, 2: 3, 3: 4}


def test_an_edited_line_is_nobody() -> None:
    assert map_lines("a\nb\nc", "a\nB\nc") == {1: 1, 3: 3}


@given(st.lists(st.sampled_from("abcde"), max_size=30), st.lists(st.sampled_from("abcde"), max_size=30))
def test_mapped_lines_are_equal_and_in_order(before: list[str], after: list[str]) -> None:
    mapped = map_lines("\n".join(before), "\n".join(after))
    assert all(before[old - 1] == after[new - 1] for old, new in mapped.items())
    pairs = sorted(mapped.items())
    assert all(one[1] < two[1] for one, two in pairwise(pairs))


def test_a_repetitive_middle_leaves_its_surroundings() -> None:
    lines = ["same"] * 5_000
    before = "\n".join(["first", "old", *lines, "last"])
    after = "\n".join(["first", "new", *lines, "other", *lines, "last"])
    mapped = map_lines(before, after)
    assert mapped[1] == 1
    assert mapped[5_003] == 10_004
    assert 2 not in mapped


def test_an_edited_line_stands_in_for_the_one_at_its_place() -> None:
    mapped = map_lines("a\nb\nc\nd\ne", "new\na\nB\nc\nD\nmore\ne")
    assert _stand_ins(mapped, [2, 4]) == {2: 3}  # of d there are two now
    assert _stand_ins({}, [1]) == {}


MEASURED = values.measured().kernels[0]
PREDICTED = [one.code for one in MEASURED.suggestions if one.speedup is not None]


def faster(**changes: object) -> KernelAdvice:
    """The second run: half the time, and nothing suggested any more."""
    assert MEASURED.duration_ns is not None
    return replace(MEASURED, duration_ns=MEASURED.duration_ns / 2, suggestions=(), **changes)  # type: ignore[arg-type] # any field


def test_a_cause_that_is_gone_is_set_against_what_was_achieved() -> None:
    found = compare_kernels(MEASURED, faster(), {}, {})
    stalls = [one for one in found.predictions if one.code not in {"GPA301", "GPA302"}]
    assert stalls
    assert all(one.changed and one.time_after_ns == 0 and one.achieved == 2 for one in stalls)
    assert "not changed" not in {one.verdict for one in stalls}


def test_a_cause_that_is_still_there_was_not_changed() -> None:
    found = compare_kernels(
        MEASURED, replace(MEASURED, duration_ns=0.9 * (MEASURED.duration_ns or 0)), {}, {}
    )
    assert [one.code for one in found.predictions] == PREDICTED
    assert {one.verdict for one in found.predictions} == {"not changed"}


def test_the_same_machine_code_leaves_the_launch_alone_to_have_changed() -> None:
    assert MEASURED.launch is not None
    launch = replace(MEASURED.launch, block=(64, 1, 1))
    found = compare_kernels(MEASURED, faster(launch=launch), {}, {}, same_code=True)
    changed = {one.code for one in found.predictions if one.changed}
    assert changed == {"GPA302"} & set(PREDICTED)
    assert any(text.startswith("block ") and text.endswith("-> 64x1x1") for text in found.differences)
    assert any("threads in all" in text for text in found.differences)
    assert compare_kernels(MEASURED, MEASURED, {}, {}).differences == ()


def test_stalls_are_side_by_side_and_lines_of_two_functions_are_not() -> None:
    found = compare_kernels(MEASURED, faster(), {}, {})
    assert [row.reason for row in found.stalls]
    assert found.line_mapping is not None
    assert {one.reason for one in found.stalls} == {row.reason for row in MEASURED.stalls}
    changes = [abs(one.change_ns or 0.0) for one in found.stalls]
    assert changes == sorted(changes, reverse=True)
    other = compare_kernels(MEASURED, faster(name="another(int)"), {}, {})
    assert other.line_mapping is None
    assert not any(line.before and line.after for line in other.lines)
