# SPDX-License-Identifier: Apache-2.0
"""Staging in shared memory that only its own thread reads back."""

from __future__ import annotations

import pytest
from tests.optimizer_values import Listing, Row, context_of, listing

from gpadvisor.estimators.utilisation import L1_REQUESTS
from gpadvisor.evidence.barriers import Needless, needless_barriers
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.model.blame import DependencyClass
from gpadvisor.rules import warp_balance

STAGED = """.function kernel
S2R R9, SR_TID.X
IMAD.SHL.U32 R9, R9, 0x4, RZ
IMAD.WIDE R2, R9, 0x1, c[0x0][0x160]
IMAD.WIDE R4, R9, 0x1, c[0x0][0x168]
{before}
load| LDG.E R8, [R2.64]
store| STS [R9], R8
wait| BAR.SYNC 0x0
read| LDS R0, [{read}]
use| FMNMX R7, RZ, R0, !PT
last| STG.E [R4.64], R7
EXIT
.function divide {kind}
FADD R11, R0, R3
RET.REL.NODEC R20 0x0"""
COUNTS = dict.fromkeys(("load", "store", "read", "use", "last"), (100, 3200))
SHARED = DependencyClass.SHARED_MEMORY
SYNC = DependencyClass.SYNCHRONIZATION
ROWS = [
    Row("long_scoreboard", "store", 60, 60, "load", DependencyClass.GLOBAL_MEMORY),
    Row("barrier", "read", 20, 20, "load", SYNC),
    Row("short_scoreboard", "use", 10, 10, "read", SHARED),
    Row("selected", "store", 3),
    Row("selected", "use", 7),
]


def _code(before: str = "NOP", read: str = "R9", kind: str = "math_helper") -> Listing:
    return listing(STAGED.format(before=before, read=read, kind=kind))


def test_all_that_staging_costs_counts_and_the_load_stays() -> None:
    found = warp_balance.OPTIMIZER.match(context_of(_code(), ROWS, counts=COUNTS))
    assert isinstance(found, Match)
    assert found.cure.startswith("Take the array in shared memory out, and keep its values in registers")
    assert "behind the barrier at" in found.cure
    assert "so that it goes, too" in found.cure
    assert sorted(row for region in found.regions for row in region.rows.tolist()) == [1, 2, 3]
    left = {reduced.resource: reduced.remaining for reduced in found.reduced_loads}
    assert left[L1_REQUESTS] == pytest.approx(0.5)  # two of four accesses


def test_staging_that_other_threads_read_stays() -> None:
    found = warp_balance.OPTIMIZER.match(context_of(_code(read="R12"), ROWS))
    assert not isinstance(found, Match) or "shared memory out" not in found.cure


def test_staging_without_samples_of_its_own_is_rejected() -> None:
    found = warp_balance.OPTIMIZER.match(context_of(_code(), [ROWS[0], ROWS[-1]]))
    assert isinstance(found, Rejection)
    assert "stages for itself" in found.reason


@pytest.mark.parametrize(("kind", "own"), [("math_helper", True), ("device", False)])
def test_library_math_reads_nothing_that_a_barrier_orders(kind: str, own: bool) -> None:
    code = _code("CALL.REL.NOINC divide", kind=kind)
    assert (Needless.OWN in needless_barriers(code.program).values()) is own
