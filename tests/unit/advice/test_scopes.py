# SPDX-License-Identifier: Apache-2.0
"""Samples by line, inlined function, loop, function and kernel."""

from __future__ import annotations

from tests import hand_made as made

from gpadvisor.advice.scopes import scope_summaries
from gpadvisor.model.advice import ScopeKind, ScopeSummary
from gpadvisor.model.profile import Evidence
from gpadvisor.model.program import FunctionKind, Program

LINES = {0: (3, None), 4: (5, None), 8: (7, None), 9: (7, "load"), 12: (9, None)}


def code() -> Program:
    return made.program(
        made.function(lines=LINES),
        made.function(number=1, name="_Z6helperf", kind=FunctionKind.DEVICE, lines={0: (7, None)}),
    )


def of_kind(found: tuple[ScopeSummary, ...], kind: ScopeKind) -> list[ScopeSummary]:
    return [row for row in found if row.scope.kind is kind]


def blamed() -> tuple[ScopeSummary, ...]:
    blame = made.blame(
        made.Row(samples=100, latency=90, definition=4, use=9),
        made.selected(30, use=9),
        made.Row(samples=20, latency=10, reason="wait", definition=8, use=12),
        made.Row(samples=7, latency=7, function=1, definition=0, use=0),
        made.external(5),
    )
    measured = made.profile(counted=made.counts([(0, 9 * 16, 64), (0, 12 * 16, 8)]))
    return scope_summaries(made.context(blame, of=code(), measured=measured))


def test_the_kernel_has_every_sample() -> None:
    (kernel,) = of_kind(blamed(), ScopeKind.KERNEL)
    assert (kernel.samples, kernel.latency, kernel.caused) == (162, 107, 157)
    assert kernel.dominant_reason == "long_scoreboard"


def test_a_line_has_what_was_taken_and_what_it_caused() -> None:
    lines = {row.scope.location.line: row for row in of_kind(blamed(), ScopeKind.LINE) if row.scope.location}
    assert (lines[7].samples, lines[7].caused) == (137, 30 + 20 + 7)  # both functions have line 7
    assert (lines[5].samples, lines[5].caused) == (0, 100)
    assert lines[7].executed_warps == 64
    assert (lines[9].samples, lines[9].dominant_reason) == (20, "wait")


def test_loops_hold_what_is_nested_in_them() -> None:
    loops = {row.scope.loop: row for row in of_kind(blamed(), ScopeKind.LOOP)}
    assert (loops[0].samples, loops[0].caused) == (130, 150)  # type: ignore[index]  # loop 0 is there
    assert (loops[1].samples, loops[1].caused) == (130, 50)  # type: ignore[index]  # loop 1 is there


def test_device_functions_and_inlined_ones() -> None:
    (helper,) = of_kind(blamed(), ScopeKind.FUNCTION)
    assert (helper.scope.name, helper.samples) == ("helperf", 7)
    (inlined,) = of_kind(blamed(), ScopeKind.INLINED)
    assert (inlined.scope.name, inlined.samples) == ("load", 130)


def test_counts_alone_give_places_without_samples() -> None:
    measured = made.profile(counted=made.counts([(0, 9 * 16, 64), (0, 4 * 16, 8)]), evidence=Evidence.COUNTED)
    found = scope_summaries(made.context(of=code(), measured=measured, evidence=Evidence.COUNTED))
    assert {row.samples for row in found} == {0}
    lines = [row.scope.location.line for row in of_kind(found, ScopeKind.LINE) if row.scope.location]
    assert lines == [7, 5]  # the most executed first
    assert scope_summaries(made.context(of=code())) == ()


def test_outer_kinds_come_first_and_heavy_places_before_light_ones() -> None:
    found = blamed()
    kinds = [list(ScopeKind).index(row.scope.kind) for row in found]
    assert kinds == sorted(kinds)
    lines = [row.samples for row in of_kind(found, ScopeKind.LINE)]
    assert lines == sorted(lines, reverse=True)
