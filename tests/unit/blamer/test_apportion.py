# SPDX-License-Identifier: Apache-2.0
"""Eq. 1 and the sharing out of whole samples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpadvisor.blamer.apportion import apportion, apportion_carrying, apportion_stalls, ratios


def test_figure_4d_twice_the_issues_at_twice_the_distance_is_the_same_share() -> None:
    assert ratios([2, 4], [10, 20]) == pytest.approx([0.5, 0.5])


def test_eq_1_as_printed() -> None:
    distances, issues = [3, 5, 6], [4.0, 1.0, 9.0]
    path = [1 / one / sum(1 / other for other in distances) for one in distances]  # R_path
    issue = [one / sum(issues) for one in issues]  # R_issue
    products = [a * b for a, b in zip(path, issue, strict=True)]
    assert ratios(distances, issues) == pytest.approx([one / sum(products) for one in products])


def test_without_any_issue_the_distance_decides() -> None:
    assert ratios([1, 3], [0, 0]) == pytest.approx([0.75, 0.25])


def test_a_source_that_never_issued_gets_nothing() -> None:
    assert ratios([1, 3], [0, 5]) == [0.0, 1.0]
    assert ratios([], []) == []


def test_largest_remainder() -> None:
    assert apportion(10, [0.55, 0.25, 0.2]) == [6, 2, 2]
    assert apportion(1, [0.5, 0.5]) == [1, 0]
    assert apportion(7, [0.0, 1.0]) == [0, 7]
    assert apportion(5, [0.0, 0.0]) == [3, 2]


SHARES = st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 10**12)), min_size=1, max_size=9)


@given(SHARES, st.integers(0, 10**12), st.data())
def test_parts_add_up_and_latency_never_exceeds_samples(
    sources: list[tuple[int, int]], samples: int, data: st.DataObject
) -> None:
    latency = data.draw(st.integers(0, samples))
    shares = ratios([one[0] for one in sources], [one[1] for one in sources])
    assert sum(shares) == pytest.approx(1)
    parts = apportion_stalls(samples, latency, shares)
    assert sum(part for part, _ in parts) == samples
    assert sum(part for _, part in parts) == latency
    assert all(0 <= part_latency <= part for part, part_latency in parts)
    for (part, _), share in zip(parts, shares, strict=True):
        assert abs(part - share * samples) <= 2 + samples * 1e-9


@given(
    waits=st.lists(
        st.integers(0, 50).flatmap(lambda total: st.tuples(st.just(total), st.integers(0, total))),
        max_size=40,
    ),
    weights=st.lists(st.integers(1, 100), min_size=1, max_size=12),
)
def test_what_is_carried_on_evens_out(waits: list[tuple[int, int]], weights: list[int]) -> None:
    shares = {source: weight / sum(weights) for source, weight in enumerate(weights)}
    owed: dict[int, float] = {}
    given_ = [0] * len(weights)
    for samples, latency in waits:
        parts = apportion_carrying(samples, latency, shares, owed)
        assert (sum(one for one, _ in parts), sum(one for _, one in parts)) == (samples, latency)
        assert all(0 <= part_latency <= part for part, part_latency in parts)
        given_ = [known + part for known, (part, _) in zip(given_, parts, strict=True)]
    total = sum(samples for samples, _ in waits)
    for source, share in shares.items():
        assert abs(given_[source] - share * total) <= 3


def test_what_was_rounded_away_is_owed() -> None:
    owed: dict[int, float] = {}
    halves = {0: 0.5, 1: 0.5}
    assert apportion_carrying(3, 1, halves, owed) == [(2, 1), (1, 0)]
    assert owed == {0: -0.5, 1: 0.5}
    assert apportion_carrying(1, 1, halves, owed) == [(0, 0), (1, 1)]
    assert owed == {0: 0, 1: 0}


def test_who_got_more_than_ever_due_gets_nothing_and_owes_on() -> None:
    owed = {0: -2.0, 1: 0.0}
    assert apportion_carrying(2, 0, {0: 0.5, 1: 0.5}, owed) == [(0, 0), (2, 0)]
    assert owed == {0: -1, 1: -1}
    assert apportion_carrying(0, 0, {0: 0.5, 1: 0.5}, {}) == [(0, 0), (0, 0)]


def test_latency_samples_are_shared_out_by_the_same_shares() -> None:
    assert apportion_stalls(10, 4, [0.75, 0.25]) == [(8, 3), (2, 1)]
    assert apportion_stalls(10, 4, [0.5, 0.5]) == [(5, 2), (5, 2)]
