# SPDX-License-Identifier: Apache-2.0
"""GPA401 names what no optimizer covers, and leaves the rest to the optimizers."""

from __future__ import annotations

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.model.advice import Match
from gpadvisor.model.blame import DependencyClass
from gpadvisor.optimizers import unmatched_stalls

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
        assert unmatched_stalls.OPTIMIZER.estimate(context, found).paper is None
