# SPDX-License-Identifier: Apache-2.0
"""What is left of a unit's load when scattered accesses come together, by the way that it is full."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests import hand_made as made
from tests.optimizer_values import context_of, listing

from gpadvisor.estimators.traffic_loads import full_unit, loads_left, transactions_gone
from gpadvisor.evidence.traffic import kernel_traffic
from gpadvisor.model.profile import Evidence

SECTORS = "memory_l2_theoretical_sectors_global"
CODE = "load| LDG.E R2, [R6.64]\nstore| STG.E [R8.64], R2\nEXIT"
Counted = dict[str, dict[str, float]]
COUNTED: Counted = {
    SECTORS: {"load": 400.0, "store": 3200.0},
    f"{SECTORS}_ideal": {"load": 400.0, "store": 400.0},
}
BEHIND_L1 = {
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_miss.sum": 400.0,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 3200.0,
}
PERCENT = ".avg.pct_of_peak_sustained_elapsed"


def _left(
    loads: dict[str, float], behind: dict[str, float] = BEHIND_L1, counted: Counted = COUNTED
) -> dict[str, float]:
    metrics = behind | {name + PERCENT: percent for name, percent in loads.items()}
    context = context_of(listing(CODE), (), pc_metrics=counted, metrics=metrics)
    assert context.profile is not None
    traffic = kernel_traffic(context.program, context.kernel, context.profile)
    assert traffic is not None
    return {one.resource: one.remaining for one in loads_left(context.profile, traffic)}


@pytest.mark.parametrize(
    ("units", "full"),
    [
        ({"l1tex__throughput": 95.0}, "L1"),  # nothing counted its parts
        ({"l1tex__throughput": 95.0, "l1tex__data_pipe_lsu_wavefronts": 82.0}, "L1 data"),
        ({"l1tex__throughput": 95.0, "l1tex__data_pipe_lsu_wavefronts": 60.0}, None),
        ({"lts__t_sectors": 85.0, "l1tex__throughput": 60.0}, "L2"),
    ],
)
def test_the_full_unit_is_a_part_of_l1_where_parts_were_counted(
    units: dict[str, float], full: str | None
) -> None:
    unit = full_unit(made.profile({name + PERCENT: percent for name, percent in units.items()}))
    assert (None if unit is None else unit.name) == full


def test_of_the_waits_the_share_goes_that_is_waste_and_half_of_it_at_the_least() -> None:
    counted = transactions_gone(0.4)
    assert (counted.low, counted.expected, counted.high) == (pytest.approx(0.2), 0.4, 1.0)
    assert "40.0 % of the transactions are waste" in counted.reason
    assert transactions_gone(None).low == 0.0


def test_scattered_stores_fill_the_way_to_l2() -> None:
    """After a transpose: a request is enough for the four sectors of a line that is read."""
    left = _left({"lts__throughput": 85.0, "lts__xbar2lts_cycles_active": 85.0, "lts__t_sectors": 24.0})
    assert left["L2"] == pytest.approx((400 + 400 / 4) / (3200 + 400 / 4))
    assert left["L1 to L2"] == left["L2"]


def test_all_sectors_count_where_another_part_of_l2_is_full() -> None:
    left = _left({"lts__throughput": 85.0, "lts__xbar2lts_cycles_active": 60.0, "lts__t_sectors": 85.0})
    assert left["L2"] == pytest.approx(800 / 3600)
    assert left["L1 to L2"] == left["L2"]
    assert _left({"lts__throughput": 85.0})["L2"] == pytest.approx(800 / 3600)


def test_without_the_tables_of_memory_the_hit_rate_of_l1_tells_what_goes_on_to_l2() -> None:
    """As in reports of the detailed set: stores, and the share of all sectors that L1 had not."""
    left = _left({"lts__throughput": 85.0}, {"l1tex__t_sector_hit_rate.pct": 90.0})
    assert left["L2"] == pytest.approx(800 / (3200 + 360))
    assert "L2" not in _left({"lts__throughput": 85.0}, {})


def test_what_local_memory_moves_stays() -> None:
    """As in a kernel whose arrays fit no registers: they load L1 and L2 beside the scattered stores."""
    counted = {**COUNTED, "memory_l2_theoretical_sectors_local": {"load": 3600.0}}
    left = _left({"lts__throughput": 85.0}, counted=counted)
    assert left["L2"] == pytest.approx((800 + 3600) / (3600 + 3600))
    assert left["L1 data"] == pytest.approx((800 + 3600) / (3600 + 3600))


@pytest.mark.parametrize(("moved", "left"), [(3600.0, 800 / 3600), (14400.0, (800 + 10800) / 14400)])
def test_what_moves_in_a_model_without_a_known_address_stays(moved: float, left: float) -> None:
    """As a hash table's atomics, beside which two loads of neighbouring words were told to gain 1.9x."""
    metrics = {"lts__throughput" + PERCENT: 98.0, "lts__t_sectors_srcunit_tex.sum": moved}
    context = context_of(listing(CODE), (), pc_metrics=COUNTED, metrics=metrics)
    assert context.profile is not None
    modelled = replace(context.profile, evidence=Evidence.MODELLED)
    traffic = kernel_traffic(context.program, context.kernel, modelled)
    assert traffic is not None
    found = {one.resource: (one.remaining, one.remaining_best) for one in loads_left(modelled, traffic)}
    assert found["L2"] == pytest.approx((left, left))
