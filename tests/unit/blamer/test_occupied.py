# SPDX-License-Identifier: Apache-2.0
"""How long each instruction keeps the unit behind its queue busy: as counted, else by its code."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from tests.optimizer_values import context_of, listing

from gpadvisor.blamer.occupied import occupied

CODE = """
    atomic| RED.E.ADD.STRONG.GPU [R2.64], R4
    load| LDG.E R4, [R6.64]
    shared| LDS.128 R8, [R5]
    MUFU.RCP R12, R4
    DFMA R10, R12, R14, R16
    FADD R1, R2, R3
    EXIT
    """
SECTORS = "memory_l2_theoretical_sectors_global"
TAGS = "memory_l1_tag_requests_global"
L1 = "l1tex__throughput.avg.pct_of_peak_sustained_active"
WAVEFRONTS = "memory_l1_wavefronts_shared"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
L2 = "lts__throughput.avg.pct_of_peak_sustained_elapsed"


def _passes(
    counted: Mapping[str, Mapping[str, float]] | None = None,
    threads: int = 320,
    metrics: Mapping[str, float] | None = None,
) -> list[float]:
    """Of ten executions of each instruction of ``CODE``, the atomic's by so many threads."""
    counts = {"atomic": (10, threads), "load": (10, 320), "shared": (10, 320)}
    context = context_of(listing(CODE), (), counts=counts, pc_metrics=counted, metrics=metrics)
    assert context.profile is not None
    (function,) = context.program.functions
    issues = np.full(len(function.instructions), 10.0)
    found: list[float] = occupied(context.profile, function, issues, context.machine).tolist()
    return found


def test_without_counters_the_code_tells() -> None:
    """A line in a pass; 16 special functions and, where they are queued, 2 doubles in a cycle."""
    atomic, load, shared, special, double, add, _ = _passes()
    assert (atomic, load, shared, add) == (10, 10, 40, 10)
    assert (special, double) == (20, 160)


@pytest.mark.parametrize(
    ("sectors", "tags", "expected"),
    [(80, 10, 20), (80, 30, 30), (8, 2, 10)],
    ids=["four sectors in a pass", "a pass for each tag", "a pass for each execution"],
)
def test_a_counted_access_takes_a_pass_for_each_line(sectors: float, tags: float, expected: float) -> None:
    assert _passes({SECTORS: {"load": sectors}, TAGS: {"load": tags}})[1] == expected


def test_where_l2_is_busier_than_l1_sectors_count_alone() -> None:
    counted = {SECTORS: {"load": 8}, TAGS: {"load": 30}}
    assert _passes(counted, metrics={L1: 40.0, L2: 60.0})[1] == 2
    assert _passes(counted, metrics={L1: 60.0, L2: 40.0})[1] == 30


def test_the_busier_of_l2_and_dram_counts() -> None:
    counted = {SECTORS: {"load": 8}, TAGS: {"load": 30}}
    assert _passes(counted, metrics={L1: 50.0, L2: 20.0, DRAM: 60.0})[1] == 2
    assert _passes(counted, metrics={L1: 50.0, L2: 50.0, DRAM: 20.0})[1] == 30


def test_where_nothing_was_counted_the_code_tells() -> None:
    atomic, _, shared, special, double, *_ = _passes(
        {SECTORS: {"atomic": 1}, TAGS: {"load": 1}, WAVEFRONTS: {"shared": 1}}
    )
    assert (atomic, shared, special, double) == (320, 1, 20, 160)


@pytest.mark.parametrize(("threads", "expected"), [(320, 10), (80, 10), (81, 81)])
def test_threads_that_add_to_one_word_are_served_one_by_one(threads: int, expected: float) -> None:
    """Ten sectors have eighty words; a load's threads may share theirs."""
    sectors = 40 if threads == 320 else 10
    passes = _passes({SECTORS: {"atomic": sectors, "load": 10}}, threads=threads)
    assert passes[0] == expected
    assert passes[1] == 10


def test_shared_memory_takes_its_wavefronts() -> None:
    assert _passes({WAVEFRONTS: {"shared": 75}})[2] == 75
