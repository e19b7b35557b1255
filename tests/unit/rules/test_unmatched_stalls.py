# SPDX-License-Identifier: Apache-2.0
"""GPA401 names what no rule covers, and leaves the rest to the optimizers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.model.advice import Match, Rejection
from gpadvisor.model.blame import DependencyClass
from gpadvisor.rules import block_increase, data_reuse, thread_increase, unmatched_stalls

TEXT = "slow| DADD R4, R6, R8\nfast| FADD R1, R2, R3\nput| STG.E [R6.64], R1\nend| EXIT"
SECTORS = "memory_l2_theoretical_sectors_global"


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (Row("math_pipe_throttle", "fast", 50), True),
        (Row("math_pipe_throttle", "slow", 50), False),  # Strength Reduction
        (Row("imc_miss", "fast", 50), True),
        (Row("branch_resolving", "end", 50), True),
        (Row("imc_miss", "fast", 1), False),  # under one percent
        (Row("drain", "end", 50, 40, "put", DependencyClass.STORE_IN_FLIGHT), True),
    ],
)
def test_what_is_named(row: Row, named: bool) -> None:
    ideal = {SECTORS: {"put": 100.0}, f"{SECTORS}_ideal": {"put": 100.0}}
    context = context_of(listing(TEXT), [row, Row("selected", "fast", 150)], pc_metrics=ideal)
    found = unmatched_stalls.OPTIMIZER.match(context)
    assert isinstance(found, Match) == named
    if isinstance(found, Match):
        assert row.reason in found.advice
        estimate = unmatched_stalls.OPTIMIZER.estimate(context, found)
        assert estimate.paper is None
        assert (estimate.low, estimate.expected, estimate.high) == (1, 1, 1)  # a note promises nothing


OPCODES = (
    "thread| S2R R0, SR_TID.X\nparameter| IMAD R1, R0, c[0x0][0x160], RZ\ntable| FMUL R2, R1, c[0x3][0x8]\n"
    "indexed| LDC R3, c[0x3][R1]\nshared| LDS R4, [R1]\nshuffle| SHFL.DOWN PT, R5, R4, 0x10, 0x1f\n"
    "call| CALL.REL.NOINC 0x90\nother| FADD R6, R6, R5\nEXIT"
)


@pytest.mark.parametrize(
    ("reason", "at", "hint"),
    [
        ("mio_throttle", "thread", "with which threads begin"),
        ("mio_throttle", "shared", "fewer shared memory accesses"),
        ("mio_throttle", "shuffle", "fewer shuffles"),
        ("imc_miss", "parameter", "first reads of parameters"),
        ("imc_miss", "table", "keep tables in shared"),
        ("imc_miss", "indexed", "keep tables in shared"),
        ("branch_resolving", "call", "inlined"),
        ("branch_resolving", "other", "branch-free"),
    ],
)
def test_the_opcode_decides_what_helps(reason: str, at: str, hint: str) -> None:
    context = context_of(listing(OPCODES), [Row(reason, at, 50), Row("selected", "other", 150)])
    found = unmatched_stalls.OPTIMIZER.match(context)
    assert isinstance(found, Match)
    assert hint in found.advice


@pytest.mark.parametrize("rule", [block_increase, data_reuse, thread_increase, unmatched_stalls])
def test_a_rule_that_machine_code_tells_nothing_says_that_it_did_not_look(rule: Any) -> None:
    bare = replace(context_of(listing(TEXT)), profile=None, blame=None)
    found = rule.OPTIMIZER.match(bare)
    assert isinstance(found, Rejection)
    assert not found.looked
    assert found.reason.startswith("needs ")
