# SPDX-License-Identifier: Apache-2.0
"""Stalls whose name covers several units are told by the unit that their causes go through."""

from __future__ import annotations

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.advice.kernel import advise_kernel
from gpadvisor.model.blame import DependencyClass
from gpadvisor.model.stalls import stall_reason

QUEUE = DependencyClass.QUEUE
CODE = listing(
    """
    convert| I2F.U8 R2, R3
    load| LDS R4, [R5]
    shuffle| SHFL.DOWN PT, R6, R4, 0x1, 0x1f
    number| S2R R7, SR_TID.X
    plain| FADD R8, R2, R4
    EXIT
    """
)


def _said(reason: str, **causes: int) -> str:
    rows = [Row(reason, "plain", samples, samples, cause, QUEUE) for cause, samples in causes.items()]
    return advise_kernel(context_of(CODE, [*rows, Row("selected", "plain", 10)]), ()).stalls[0].plain


@pytest.mark.parametrize(
    ("causes", "said"),
    [
        ({"convert": 200, "load": 11}, "queue of slow arithmetic (I2F) is full"),
        ({"load": 100}, "queue of shared memory is full"),
        ({"load": 90, "shuffle": 80, "number": 30}, "queue of shared memory and shuffles is full"),
        ({"number": 80}, "queue of special registers (S2R) is full"),
        ({"plain": 80, "load": 20}, stall_reason("mio_throttle").plain),  # nobody knows
    ],
)
def test_a_full_queue_is_named_by_what_fills_it(causes: dict[str, int], said: str) -> None:
    """After an image filter without shared memory, whose conversions of bytes filled the queue."""
    assert _said("mio_throttle", **causes) == said


def test_a_short_wait_is_for_shared_memory_or_for_slow_arithmetic() -> None:
    assert _said("short_scoreboard", load=90, convert=30) == "waiting for shared memory"
    assert _said("short_scoreboard", convert=90) == "waiting for slow arithmetic (I2F)"
    assert _said("long_scoreboard", load=90) == stall_reason("long_scoreboard").plain
