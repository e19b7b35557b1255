# SPDX-License-Identifier: Apache-2.0
"""GPA101: how much of local memory goes, by the places that its values have instead and by what it moves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.estimators import constants
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.model.blame import DependencyClass
from gpadvisor.model.program import KernelFacts
from gpadvisor.rules.register_reuse import OPTIMIZER

SPILL = "spill| STL [R1+0x10], R20\nfill| LDL R5, [R1+0x10]\nuse| FFMA R8, R5, R9, R8\nEXIT"
BY_DATA = (
    "LDG.E R11, [R2.64]\nIMAD R12, R11, 0x4, R1\nspill| STL [R1+0x10], R20\nfill| LDL R5, [R12]\n"
    "use| FFMA R8, R5, R9, R8\nEXIT"
)
ROWS = (
    Row("long_scoreboard", "use", 100, 90, "fill", DependencyClass.LOCAL_MEMORY),
    Row("selected", "use", 10),
)
SECTORS = {
    "memory_l2_theoretical_sectors_local": {"fill": 500.0, "spill": 500.0},
    "memory_l2_theoretical_sectors_global": {"use": 100.0},
}
COUNTED = {
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld_lookup_miss.sum": 100.0,
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum": 500.0,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_miss.sum": 300.0,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 100.0,
    "dram__sectors_read.sum": 350.0,
    "dram__sectors_write.sum": 150.0,
}


def _facts(registers: int, stack: int, threads: int | None = None) -> KernelFacts:
    return replace(KernelFacts(registers, 0, 64, threads, None, None, None), stack_bytes=stack)


def _match(text: str, facts: KernelFacts, **parts: Any) -> Match:
    found = OPTIMIZER.match(context_of(listing(text, facts=facts), ROWS, **parts))
    assert isinstance(found, Match), found
    return found


@pytest.mark.parametrize(("stack", "share"), [(64, 1.0), (128, 1.0), (256, 0.5)])
def test_spills_go_as_far_as_registers_are_free(stack: int, share: float) -> None:
    """A block of 1,024 threads stays alone on its SM with 64 registers as with 32: 128 bytes of a thread."""
    found = _match(SPILL, _facts(32, stack, 1024), registers=32, block=1024)
    (adjustment,) = found.adjustments
    assert adjustment.expected == pytest.approx(share + constants.REUSED * (1 - share))
    assert adjustment.low == pytest.approx(constants.MIDDLE * share)


def test_spills_without_free_registers_go_as_in_the_paper() -> None:
    (adjustment,) = _match(SPILL, _facts(64, 64, 1024), registers=64, block=1024).adjustments
    assert (adjustment.low, adjustment.expected) == (0.0, constants.REUSED)


def test_an_array_in_shared_memory_takes_as_many_instructions() -> None:
    tags = ("spill", "fill", "use")
    counts = dict.fromkeys(tags, (100, 3200))
    found = _match(BY_DATA, _facts(40, 64), block=32, counts=counts, pc_metrics=SECTORS)
    left = {one.resource: one.remaining for one in found.reduced_loads}
    assert "issue" not in left
    assert "LSU pipe" not in left
    assert left["L2"] == pytest.approx(1 - 1000 / 1100)
    # 300 instructions in 10 samples of issue: 100 samples are 3,000 cycles, for 100 loads.
    assert found.adjustments[0].expected == pytest.approx(1 - 19 / 30)


def test_stores_pass_l1_and_loads_that_hit_do_not() -> None:
    found = _match(SPILL, _facts(32, 64, 1024), registers=32, block=1024, pc_metrics=SECTORS, metrics=COUNTED)
    left = {one.resource: one.remaining for one in found.reduced_loads}
    assert left["L2"] == left["L1 to L2"] == pytest.approx(1 - 600 / 1000)


def test_local_memory_that_stays_in_l2_frees_no_dram() -> None:
    found = _match(SPILL, _facts(32, 64, 1024), registers=32, block=1024, pc_metrics=SECTORS, metrics=COUNTED)
    (dram,) = [one for one in found.reduced_loads if one.resource == "DRAM"]
    assert dram.remaining == pytest.approx(400 / 500)  # global accesses moved no more than 400
    assert dram.remaining_best == 0.0
    fewer = COUNTED | {"dram__sectors_read.sum": 250.0}
    found = _match(SPILL, _facts(32, 64, 1024), registers=32, block=1024, pc_metrics=SECTORS, metrics=fewer)
    (dram,) = [one for one in found.reduced_loads if one.resource == "DRAM"]
    assert dram.remaining == 1.0


def test_without_samples_what_stands_beside_a_loop_runs_seldom() -> None:
    """A kernel without a loop has nothing that runs more often."""
    loop = "again:\nIADD3 R4, R4, 0x1, RZ\n@P0 BRA again\n"
    facts = KernelFacts(255, 0, 64, None, None, None, None)
    beside = OPTIMIZER.match(context_of(listing(loop + SPILL, facts=facts)))
    assert isinstance(beside, Rejection)
    assert "2 local memory accesses, none of them in a loop" in beside.reason
    assert isinstance(OPTIMIZER.match(context_of(listing(SPILL, facts=facts))), Match)


_BODY, _SPILLED = "FFMA R8, R8, R9, R8\n", SPILL.removesuffix("EXIT").rstrip()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"{_BODY * 36}{SPILL}", True),
        (f"{_BODY * 37}{SPILL}", False),
        (f"again:\n{_BODY * 37}{_SPILLED}\n@P0 BRA again\nEXIT", True),
    ],
    ids=["many without loops", "few around what was unrolled", "few in a loop"],
)
def test_without_samples_spills_around_what_repeats_are_not_told(text: str, *, told: bool) -> None:
    facts = KernelFacts(255, 0, 64, None, None, None, None)
    assert isinstance(OPTIMIZER.match(context_of(listing(text, facts=facts))), Match) is told
