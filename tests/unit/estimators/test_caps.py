# SPDX-License-Identifier: Apache-2.0
"""Measured utilisations under the names of several tool versions, and the caps that follow."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import hand_made as made

from gpadvisor.estimators.caps import cap_speedup, remaining, time_left, together
from gpadvisor.estimators.utilisation import loads, utilisations, where_work_is, while_active
from gpadvisor.model.advice import ReducedLoad

PCT = ".avg.pct_of_peak_sustained_elapsed"
NAIVE_GEMM = {
    f"l1tex__data_pipe_lsu_wavefronts{PCT}": 98.54,
    f"l1tex__lsuin_requests{PCT}": 11.94,
    f"lts__throughput{PCT}": 3.65,
    f"gpu__dram_throughput{PCT}": 0.2,
    "l1tex__throughput.avg.pct_of_peak_sustained_active": 98.75,
    f"gpu__compute_memory_throughput{PCT}": 98.54,
}


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (f"gpu__dram_throughput{PCT}", "DRAM"),
        (f"dram__throughput{PCT}", "DRAM"),
        ("dram__bytes.sum.pct_of_peak_sustained_elapsed", "DRAM"),
        (f"lts__t_sectors{PCT}", "L2"),
        ("l1tex__throughput.avg.pct_of_peak_sustained_active", "L1"),
        ("l1tex__lsuin_requests.sum.pct_of_peak_sustained_elapsed", "L1 requests"),
        ("smsp__issue_active.avg.pct_of_peak_sustained_active", "issue"),
        ("sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active", "FP64 pipe"),
        (f"gpu__compute_memory_throughput{PCT}", "memory"),
    ],
)
def test_names_of_several_versions(metric: str, name: str) -> None:
    (found,) = utilisations(made.profile({metric: 50.0}))
    assert (found.name, found.percent, found.metric) == (name, 50.0, metric)


def test_more_than_its_peak_is_no_load_of_a_unit() -> None:
    metric = "l1tex__throughput.avg.pct_of_peak_sustained_active"
    assert [entry.percent for entry in utilisations(made.profile({metric: 102.0}))] == [102.0]
    assert utilisations(made.profile({metric: 272.0})) == ()


def test_issue_slots_from_a_rate_per_cycle() -> None:
    (found,) = utilisations(made.profile({"smsp__issue_active.avg.per_cycle_active": 0.25}))
    assert (found.name, found.percent) == ("issue", 25.0)


def test_elapsed_is_preferred_and_the_busiest_comes_first() -> None:
    found = utilisations(
        made.profile(
            {
                "lts__throughput.avg.pct_of_peak_sustained_active": 60.0,
                f"lts__throughput{PCT}": 40.0,
                f"dram__throughput{PCT}": 70.0,
            }
        )
    )
    assert [(entry.name, entry.percent) for entry in found] == [("DRAM", 70.0), ("L2", 40.0)]


def test_a_whole_says_something_only_where_its_parts_do_not() -> None:
    assert "memory" not in {entry.name for entry in utilisations(made.profile(NAIVE_GEMM))}
    unknown = {f"gpu__compute_memory_throughput{PCT}": 90.0, f"gpu__dram_throughput{PCT}": 20.0}
    assert utilisations(made.profile(unknown))[0].name == "memory"


def test_a_whole_is_named_by_its_busiest_part() -> None:
    whole = f"sm__throughput{PCT}"
    metrics = {
        whole: 90.0,
        f"breakdown:{whole}": f"sm__a{PCT}, sm__b{PCT},sm__c{PCT}",
        f"sm__a{PCT}": 5.0,
        f"sm__b{PCT}": 90.0,
    }
    (found,) = utilisations(made.profile(metrics))
    assert (found.name, found.percent, found.metric) == ("SM", 90.0, f"sm__b{PCT}")


def test_a_pipe_is_as_busy_as_its_busiest_operation() -> None:
    metrics = {
        f"sm__pipe_tensor_op_hmma_cycles_active{PCT}": 0.0,
        f"sm__pipe_tensor_op_imma_cycles_active{PCT}": 54.0,
    }
    (found,) = utilisations(made.profile(metrics))
    assert (found.name, found.percent) == ("tensor pipe", 54.0)


def test_nothing_measured_caps_nothing() -> None:
    assert (
        utilisations(made.profile({"gpu__time_duration.sum": 5.0, f"lts__throughput{PCT}": float("nan")}))
        == ()
    )
    assert [entry.percent for entry in utilisations(made.profile({f"lts__throughput{PCT}": 0.0}))] == [0.0]
    assert cap_speedup((), (), best=True) is None
    assert cap_speedup(utilisations(made.profile({f"lts__throughput{PCT}": 0.0})), (), best=False) is None


def test_issue_slots_from_samples_where_no_counter_has_them() -> None:
    blamed = made.blame(made.Row(samples=400, latency=300), made.selected(600))
    (found,) = loads(made.context(blamed))
    assert (found.name, found.percent) == ("issue", pytest.approx(70.0))
    counted = made.profile({"smsp__issue_active.avg.per_cycle_active": 0.5})
    assert [entry.percent for entry in loads(made.context(blamed, measured=counted))] == [50.0]


def test_the_busiest_unit_caps() -> None:
    cap = cap_speedup(utilisations(made.profile(NAIVE_GEMM)), (), best=True)
    assert cap is not None
    assert cap.speedup == pytest.approx(1 / 0.9854)
    assert "l1tex__data_pipe_lsu_wavefronts" in cap.reason


def test_a_unit_is_expected_to_get_as_full_as_units_get() -> None:
    half = utilisations(made.profile({f"dram__throughput{PCT}": 50.0}))
    full = utilisations(made.profile({f"dram__throughput{PCT}": 97.0}))
    for measured, expected in ((half, 0.95 / 0.5), (full, 1.0)):
        cap = cap_speedup(measured, (), best=False)
        assert cap is not None
        assert cap.speedup == pytest.approx(expected)


def test_a_cap_says_what_is_left_of_the_unit_in_whole_percents() -> None:
    full = utilisations(made.profile({f"dram__throughput{PCT}": 90.0}))
    cap = cap_speedup(full, (ReducedLoad(resource="DRAM", remaining=0.414, remaining_best=0.414),), best=True)
    assert cap is not None
    assert cap.reason.endswith("), of which 41 % would be left")


def test_use_above_the_peak_caps_at_one() -> None:
    cap = cap_speedup(utilisations(made.profile({f"dram__throughput{PCT}": 104.0})), (), best=False)
    assert cap is not None
    assert cap.speedup == 1.0


def test_the_load_of_a_part_and_of_a_whole_is_reduced() -> None:
    reduced = (ReducedLoad(resource="L1 data", remaining=0.4, remaining_best=0.1),)
    assert remaining("L1 data", reduced, best=False) == 0.4
    assert remaining("L1 data", reduced, best=True) == 0.1
    assert remaining("L1", reduced, best=False) == 0.4
    assert remaining("L1 requests", reduced, best=False) == 1.0
    whole = (ReducedLoad(resource="L1", remaining=0.4, remaining_best=0.1),)
    assert remaining("L1 requests", whole, best=False) == 0.4


def test_of_several_reductions_of_a_load_the_strongest_counts() -> None:
    some = ReducedLoad(resource="DRAM", remaining=0.4, remaining_best=0.3)
    other = ReducedLoad(resource="DRAM", remaining=0.7, remaining_best=0.1)
    for reduced_loads in ((some, other), (other, some)):
        assert remaining("DRAM", reduced_loads, best=False) == 0.4
        assert remaining("DRAM", reduced_loads, best=True) == 0.1


def test_l1_as_a_whole_limits_where_it_is_fuller_than_its_parts() -> None:
    """On sm_75 its counter is twice that of its busiest part, and falls with it."""
    measured = utilisations(
        made.profile({"l1tex__throughput" + PCT: 90.0, "l1tex__m_l1tex2xbar_req_cycles_active" + PCT: 45.0})
    )
    quarter = (ReducedLoad(resource="L1 to L2", remaining=0.25, remaining_best=0.25),)
    for reduced, left in (((), 1.0), (quarter, 0.25)):
        cap = cap_speedup(measured, reduced, best=True)
        assert cap is not None
        assert cap.speedup == pytest.approx(1 / (0.9 * left))


@pytest.mark.parametrize(
    ("metric", "name"), [("sm__inst_executed_pipe_adu", "ADU pipe"), ("nvlrx__bytes", "nvlrx")]
)
def test_a_unit_without_a_name_here_limits_under_the_name_of_the_report(metric: str, name: str) -> None:
    found = utilisations(made.profile({f"{metric}{PCT}": 93.0}))
    assert [(entry.name, entry.percent) for entry in found] == [(name, 93.0)]
    cap = cap_speedup(found, (), best=True)
    assert cap is not None
    assert cap.speedup == pytest.approx(1 / 0.93)


@pytest.mark.parametrize(
    ("pipe", "reduced"), [("shared", "FP64 pipe"), ("shared", "tensor pipe"), ("fmaheavy", "FMA pipe")]
)
def test_the_load_of_a_pipe_that_others_share_falls_with_theirs(pipe: str, reduced: str) -> None:
    found = utilisations(made.profile({f"sm__pipe_{pipe}_cycles_active{PCT}": 70.0}))
    cap = cap_speedup(found, (ReducedLoad(resource=reduced, remaining=0.5, remaining_best=0.5),), best=True)
    assert cap is not None
    assert cap.speedup == pytest.approx(1 / 0.35)


def test_idle_sms_and_time_without_warps_are_no_load() -> None:
    """8 of 64 SMs have a block: their pipes are eight times as full as the mean over all SMs says."""
    profile = made.profile(
        {
            f"sm__pipe_fp64_cycles_active{PCT}": 8.0,
            f"dram__throughput{PCT}": 9.0,
            "smsp__issue_active.avg.pct_of_peak_sustained_active": 30.0,
            "sm__cycles_active.avg": 100.0,
            "sm__cycles_active.max": 800.0,
            "sm__cycles_elapsed.max": 1000.0,
        }
    )
    found = {entry.name: entry.percent for entry in while_active(profile, utilisations(profile))}
    assert found == {"FP64 pipe": pytest.approx(80.0), "DRAM": pytest.approx(11.25), "issue": 30.0}


def test_stages_that_are_equally_busy_do_not_overlap_perfectly() -> None:
    metrics = {f"dram__throughput{PCT}": 60.0, f"lts__throughput{PCT}": 60.0}
    reduced = (ReducedLoad(resource="L2", remaining=0.5, remaining_best=0.5),)
    both = utilisations(made.profile(metrics))
    assert together(both, ()) == pytest.approx(0.6 * 2 ** (1 / 3))
    assert 0.6 < together(both, reduced) < together(both, ())
    assert together(both[:1], ()) == pytest.approx(0.6)


def test_sectors_of_the_naive_gemm() -> None:
    """1,109 M sectors against an ideal of 168 M, where 8.2x was achieved."""
    left = 168 / 1109
    measured = utilisations(made.profile(NAIVE_GEMM))
    reduced = [ReducedLoad(resource="L1 data", remaining=left, remaining_best=0.0)]
    found = time_left(measured, reduced, 1 / 4.56)
    assert found.busy_now == pytest.approx(0.9854)
    assert found.busy == pytest.approx(((0.9854 * left) ** 3 + 0.0365**3 + 0.002**3) ** (1 / 3), rel=1e-3)
    assert 6 < 1 / found.apart <= 1 / found.overlapped < 8.2
    assert 1 / time_left(measured, reduced, 1 / 4.56, best=True).busy == pytest.approx(1 / 0.1194)


def test_loads_one_after_the_other_take_their_time_once_the_unit_that_hid_them_is_free() -> None:
    """As 16 blocks whose threads each read a row: 7.6x by the sectors alone, 1.13x measured."""
    measured = utilisations(made.profile(NAIVE_GEMM))
    reduced = [ReducedLoad(resource="L1 data", remaining=0.1, remaining_best=0.1)]
    found = time_left(measured, reduced, 0.5, in_turn=(0.2, 0.4))
    assert (found.overlapped, found.apart) == (0.2, 0.4)
    assert time_left(measured, (), 0.5, in_turn=(2.0, 4.0)) == time_left(measured, (), 0.5)


def test_idle_units_leave_the_papers_value() -> None:
    for waiting in (0.25, 1.0, 1.2):
        found = time_left((), (), waiting)
        assert (found.apart, found.overlapped, found.expected) == pytest.approx((waiting,) * 3)


def test_a_full_unit_that_keeps_its_load_leaves_nothing_to_gain() -> None:
    full = utilisations(made.profile({f"dram__throughput{PCT}": 100.0}))
    assert time_left(full, (), 0.3).expected == pytest.approx(1.0)


@given(
    now=st.floats(0.01, 100),
    other=st.floats(0.01, 100),
    left=st.floats(0, 1),
    waiting=st.floats(0.001, 2),
    best=st.booleans(),
)
def test_the_expected_time_lies_between_no_overlap_and_all(
    now: float, other: float, left: float, waiting: float, best: bool
) -> None:
    measured = utilisations(made.profile({f"dram__throughput{PCT}": now, f"lts__throughput{PCT}": other}))
    reduced = [ReducedLoad(resource="DRAM", remaining=left, remaining_best=left)]
    found = time_left(measured, reduced, waiting, best=best)
    assert found.busy <= found.busy_now <= 1
    assert found.overlapped <= found.expected * (1 + 1e-9) <= found.apart * (1 + 1e-9) ** 2
    assert found.overlapped >= found.busy


@pytest.mark.parametrize(("most", "percent"), [(None, 80.0), (60.0, 60.0), (10.0, 20.0)])
def test_of_units_with_work_the_busiest_counts_else_the_mean_of_those(
    most: float | None, percent: float
) -> None:
    metrics = {f"l1tex__data_pipe_lsu_wavefronts{PCT}": 20.0, f"gpu__dram_throughput{PCT}": 30.0}
    if most is not None:
        metrics["l1tex__data_pipe_lsu_wavefronts.max.pct_of_peak_sustained_elapsed"] = most
    found = made.profile(metrics)
    few = replace(found, launch=replace(found.launch, grid=(20, 1, 1)), device=replace(found.device, sms=80))
    loads = {unit.name: unit.percent for unit in where_work_is(few, utilisations(few))}
    # 20 blocks on 80 SMs: L1 of those with work is four times as full, DRAM is one for all.
    assert loads == {"L1 data": percent, "DRAM": 30.0}
