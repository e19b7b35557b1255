# SPDX-License-Identifier: Apache-2.0
"""What estimates know beside the equations: turns, local traffic, launch bounds, the model's error."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.estimators.utilisation import DRAM, L2
from gpadvisor.model.advice import Estimate, Match
from gpadvisor.model.blame import DependencyClass
from gpadvisor.model.profile import Evidence
from gpadvisor.model.program import KernelFacts
from gpadvisor.rules import memory_transaction_reduction, register_reuse, strength_reduction, thread_increase

EXCURSION = (
    "wide| F2F.F64.F32 R4, R2 // 3\nmul| DMUL R4, R4, 2 // 3\nnarrow| F2F.F32.F64 R6, R4 // 3\n"
    "add| FADD R8, R6, R9 // 3\nput| STG.E [R10.64], R8 // 4\nend| EXIT"
)
TAGS = ("wide", "mul", "narrow", "add", "put", "end")
ISSUED = tuple(Row("selected", tag, 100) for tag in TAGS)
WAITS = (
    Row("short_scoreboard", "mul", 100, 100, "wide", DependencyClass.ARITHMETIC),
    Row("short_scoreboard", "add", 100, 100, "narrow", DependencyClass.ARITHMETIC),
)


def _estimate(rows: tuple[Row, ...], evidence: Evidence = Evidence.MEASURED) -> Estimate:
    context = replace(context_of(listing(EXCURSION), rows), evidence=evidence)
    match = strength_reduction.OPTIMIZER.match(context)
    assert isinstance(match, Match)
    return strength_reduction.OPTIMIZER.estimate(context, match)


def test_waits_for_a_turn_go_with_the_instructions_that_took_it() -> None:
    calm = _estimate((*ISSUED, *WAITS, Row("wait", "put", 300)))
    crowded = _estimate((*ISSUED, *WAITS, Row("not_selected", "put", 300)))
    assert crowded.paper == calm.paper
    assert crowded.expected > calm.expected
    assert "waited for their turn" in crowded.reason
    assert "waited for their turn" not in calm.reason


def test_a_modelled_range_is_that_of_the_same_samples_measured() -> None:
    rows = (*ISSUED, *WAITS)
    assert _estimate(rows, Evidence.MODELLED) == _estimate(rows)


def test_local_traffic_loads_what_lies_behind_l1() -> None:
    text = "spill| STL [R1], R4\nload| LDL R4, [R1]\nuse| FADD R8, R4, R9\nput| STG.E [R10.64], R8\nEXIT"
    rows = (
        Row("long_scoreboard", "use", 500, 450, "load", DependencyClass.LOCAL_MEMORY),
        Row("selected", "put", 500),
    )
    metrics = {
        "memory_l2_theoretical_sectors_local": {"spill": 150.0, "load": 150.0},
        "memory_l2_theoretical_sectors_global": {"put": 100.0},
    }
    match = register_reuse.OPTIMIZER.match(context_of(listing(text), rows, pc_metrics=metrics))
    assert isinstance(match, Match)
    found = {one.resource: (one.remaining, one.remaining_best) for one in match.reduced_loads}
    assert found[L2] == found[DRAM] == pytest.approx((1 - 0.375, 0.25))


def test_a_modelled_cache_holds_back_as_much_after_the_cure() -> None:
    text = "load| LDG.E R4, [R2.64]\nuse| FADD R8, R4, R9\nEXIT"
    rows = (Row("lg_throttle", "load", 500, 450), Row("selected", "use", 500))
    context = context_of(
        listing(text),
        rows,
        pc_metrics={
            "memory_l2_theoretical_sectors_global": {"load": 800.0},
            "memory_l2_theoretical_sectors_global_ideal": {"load": 100.0},
        },
        metrics={"dram__sectors_read.sum": 200.0},
    )
    assert context.profile is not None
    modelled = replace(context, profile=replace(context.profile, evidence=Evidence.MODELLED))
    left = {}
    for one in (context, modelled):
        match = memory_transaction_reduction.OPTIMIZER.match(one)
        assert isinstance(match, Match)
        reduced = next(reduced for reduced in match.reduced_loads if reduced.resource == DRAM)
        left[one.profile.evidence if one.profile else None] = (reduced.remaining, reduced.remaining_best)
    assert left == {Evidence.MEASURED: (0.5, 0.125), Evidence.MODELLED: (0.125, 0.125)}


@pytest.mark.parametrize("bound", [32, None])
def test_launch_bounds_of_todays_block_grow_with_it(bound: int | None) -> None:
    facts = KernelFacts(
        registers_per_thread=24, static_shared_bytes=0, stack_bytes=0, max_threads_per_block=bound,
        required_block=None, min_blocks_per_sm=None, uses_barriers=0,
    )  # fmt: skip
    index = "S2R R0, SR_CTAID.X\nS2R R1, SR_TID.X\nIMAD R0, R0, c[0x0][0x0], R1\n"
    guard = "ISETP.GE.AND P0, PT, R0, c[0x0][0x160], PT\n@P0 EXIT\n"
    code = listing(f"{index}{guard}add| FADD R8, R6, R9\nEXIT", "sm_80", facts)
    rows = (Row("long_scoreboard", "add", 500, 450), Row("selected", "add", 100))
    match = thread_increase.OPTIMIZER.match(context_of(code, rows, block=32, registers=24, grid=40000))
    assert isinstance(match, Match)
    assert match.parallel is not None
    assert match.parallel.threads_new == 256
    assert ("Raise __launch_bounds__" in match.advice) == (bound == 32)
