# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's rules beside ours."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests import advice_values as values
from tests import hand_made as made

from gpadvisor.advice.nvidia_rules import AGREES, DISAGREES, NOT_COMPARABLE, OurSide, compare_rules, twins
from gpadvisor.model.advice import Rejection, RuleComparison, SampleSummary, StallSummary, Utilisation
from gpadvisor.model.profile import RuleResult
from gpadvisor.rules import OPTIMIZERS


def stall(reason: str, samples: int) -> StallSummary:
    return StallSummary(
        reason=reason, plain=reason, samples=samples, latency=0, blamed=0, self=samples, unattributed=0,
        blamed_latency=0, self_latency=0, unattributed_latency=0,
    )  # fmt: skip


OURS = OurSide(
    suggestions=(),
    rejected=(Rejection(code="GPA106", reason="sectors are ideal"),),
    hidden={"GPA302": "expected 1.001x"},
    stalls=(stall("selected", 400), stall("lg_throttle", 300), stall("wait", 200), stall("barrier", 100)),
    samples=SampleSummary(
        total=1000, latency=600, active=400, blamed=0, self=1000, unattributed=0, external=0, after_exit=0,
        truncated=False, expected=None,
    ),
    occupancy=replace(made.NO_OCCUPANCY, theoretical=0.5, achieved=0.45, limiter="registers"),
    utilisations=(
        Utilisation(name="L1", percent=98.0, metric="l1"),
        Utilisation(name="ALU pipe", percent=40.0, metric="alu"),
    ),
    twins=twins(OPTIMIZERS),
)  # fmt: skip


def compared(
    identifier: str, message: str, kind: str = "warning", title: str | None = None, ours: OurSide = OURS
) -> RuleComparison:
    rule = RuleResult(
        identifier=identifier, name=identifier, section=None, kind=kind, message=message,
        estimated_speedup=None, title=title,
    )  # fmt: skip
    (found,) = compare_rules([rule], ours)
    return found


@pytest.mark.parametrize(
    ("identifier", "message", "kind", "title", "agreement"),
    [
        ("UncoalescedGlobalAccess", "uncoalesced", "warning", None, DISAGREES),
        ("UncoalescedGlobalAccess", "fine", "ok", None, AGREES),
        ("MemoryCacheAccessPattern", "not optimal", "warning", None, DISAGREES),
        ("Occupancy", "limited by registers", "optimization", None, AGREES),
        ("Occupancy", "not impacted by any block limit", "ok", None, DISAGREES),
        ("LaunchConfiguration", "small grid", "warning", None, DISAGREES),
        ("CPIStall", "each warp spends 11.6 cycles", "warning", "lg_throttle", AGREES),
        ("CPIStall", "stalled waiting for sibling warps at a CTA barrier", "optimization", None, DISAGREES),
        ("CPIStallLgThrottle", "spends many cycles", "warning", None, AGREES),
        ("CPIStallLongScoreboard", "spends 8.0 cycles", "warning", None, DISAGREES),
        ("CPIStall", "Check the Source Counters section", "ok", None, NOT_COMPARABLE),
        ("IssueSlotUtilization", "only issues an instruction every 2.1 cycles", "warning", None, AGREES),
        ("IssueSlotUtilization", "fine", "ok", None, DISAGREES),
        ("SOLBottleneck", "utilizing greater than 80.0% of", "ok", "High Throughput", AGREES),
        (
            "SOLBottleneck",
            "low compute throughput and memory bandwidth utilization",
            "warning",
            None,
            DISAGREES,
        ),
        ("SOLBottleneck", "Memory is more heavily utilized than Compute", "warning", None, AGREES),
        ("SOLBottleneck", "Compute is more heavily utilized than Memory", "warning", None, DISAGREES),
        ("HighPipeUtilization", "ALU is the highest-utilized pipeline (40.2%)", "ok", "Balanced", AGREES),
        ("HighPipeUtilization", "All compute pipelines are under-utilized", "warning", None, AGREES),
        ("ThreadDivergence", "threads diverge", "warning", None, DISAGREES),
        ("RuleOfTheFuture", "something new", "warning", None, NOT_COMPARABLE),
    ],
)
def test_agreement(identifier: str, message: str, kind: str, title: str | None, agreement: str) -> None:
    found = compared(identifier, message, kind, title)
    assert found.agreement == agreement
    assert found.explanation


def test_warps_that_are_not_selected_are_counted_where_a_rule_is_about_them() -> None:
    stalls = (stall("selected", 460), stall("not_selected", 240), stall("wait", 200), stall("barrier", 100))
    found = compared("CPIStall", "spends 4 cycles", title="Not Selected", ours=replace(OURS, stalls=stalls))
    assert found.agreement == AGREES
    assert found.explanation == "not_selected has 24.0 % of our samples, number 1 of the reasons to wait"
    waits = compared("CPIStall", "spends 3 cycles", title="Stall Wait", ours=replace(OURS, stalls=stalls))
    assert waits.explanation == "wait has 20.0 % of our samples, number 1 of the reasons to wait"


def test_a_small_grid_that_ours_finds_too() -> None:
    (blocks,) = [one for one in values.measured().kernels[0].suggestions if one.code == "GPA302"]
    ours = replace(OURS, suggestions=(replace(blocks, code="GPA301"),), hidden={})
    found = compared(
        "SOLBottleneck", "This kernel grid is too small to fill the available resources", ours=ours
    )
    assert (found.agreement, found.ours) == (AGREES, ("GPA301",))
    assert found.explanation == "both find it"


def test_what_ours_could_not_look_at_is_no_disagreement() -> None:
    blind = [Rejection(code=code, reason="no machine code", looked=False) for code in ("GPA301", "GPA302")]
    ours = replace(OURS, rejected=blind, hidden={})
    found = compared("LaunchConfiguration", "small grid", ours=ours)
    assert (found.agreement, found.explanation) == (NOT_COMPARABLE, "ours could not look: no machine code")
    looked = replace(OURS, rejected=[blind[0], replace(blind[1], looked=True)], hidden={})
    assert compared("LaunchConfiguration", "small grid", ours=looked).agreement == DISAGREES


def test_disagreement_says_why_ours_does_not() -> None:
    assert "GPA106: sectors are ideal" in compared("UncoalescedGlobalAccess", "uncoalesced").explanation
    told = compared("TheoreticalOccupancy", "50 %").explanation
    assert (
        told
        == "ours: 50 % in theory, limited by registers, 45 % achieved; GPA302 stays below the thresholds "
        "(expected 1.001x)"
    )


def test_occupancy_of_uneven_work_and_of_what_is_not_known() -> None:
    rule = RuleResult(
        identifier="AchievedOccupancy",
        name="n",
        section=None,
        kind="warning",
        message="m",
        estimated_speedup=None,
    )
    uneven = replace(made.NO_OCCUPANCY, theoretical=1.0, achieved=0.7)
    (found,) = compare_rules([rule], replace(OURS, occupancy=uneven))
    assert found.agreement == AGREES
    (even,) = compare_rules([rule], replace(OURS, occupancy=replace(uneven, achieved=0.95)))
    assert even.agreement == DISAGREES
    (unknown,) = compare_rules([rule], replace(OURS, occupancy=made.NO_OCCUPANCY))
    assert unknown.agreement == NOT_COMPARABLE


def test_a_rule_that_says_nothing_is_left_out() -> None:
    rule = RuleResult(
        identifier="Occupancy",
        name="Occupancy",
        section=None,
        kind="none",
        message=" ",
        estimated_speedup=None,
    )
    assert compare_rules([rule], OURS) == ()


def test_one_result_for_each_instruction_becomes_one() -> None:
    places = [
        RuleResult(
            identifier="UncoalescedGlobalAccess", name="n", section=None, kind="warning",
            message=f"expected {wanted} sectors, got {got} ({got / wanted:.2f}x) at PC 1483b1454{wanted}e0",
            estimated_speedup=None,
        )
        for wanted, got in ((100, 676), (120, 300), (60, 61))
    ]  # fmt: skip
    ours = replace(OURS, sectors="all global accesses take 77 sectors against an ideal of 76")
    (found,) = compare_rules(places, ours)
    assert found.rule is places[0]
    assert found.explanation.endswith(
        "; all global accesses take 77 sectors against an ideal of 76; one of 3 such results, each for one "
        "place"
    )
    others = [replace(place, message=place.message.replace(" at PC ", " in line ")) for place in places]
    assert len(compare_rules(others, ours)) == 3
