# SPDX-License-Identifier: Apache-2.0
"""Hits are found by address: what fits L1, what other blocks share, what stays in L2, what atomics cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.simulations import run_text, text_program

from gpadvisor import machine
from gpadvisor.simulator import Simulation, SimulationConfig, simulate, timing_of
from gpadvisor.simulator.state import HOT_SLICES

pytestmark = [pytest.mark.nvdisasm]

_AGAIN = """
extern "C" __global__ void k(const float* in, float* out, int rounds, int words) {
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < rounds; ++i)
#pragma unroll 1
        for (int at = threadIdx.x; at < words; at += blockDim.x) sum += in[at];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""
_OWN_ROW = _AGAIN.replace("in[at]", "in[blockIdx.x * words + at]")
_LESS_L1 = _AGAIN.replace(
    "float sum = 0;", "__shared__ float tile[11000]; tile[threadIdx.x] = 1; float sum = 0;"
)
_LESS_L1 = _LESS_L1.replace("= sum;", "= sum + tile[threadIdx.x ^ 1];")
_ROWS = """
extern "C" __global__ void k(const float* in, float* out) {
    out[(blockIdx.y * gridDim.x + blockIdx.x) * 32 + threadIdx.x] = in[blockIdx.INDEX * 32 + threadIdx.x];
}
"""
_GATHER = """
extern "C" __global__ void k(const float* in, float* out, const int* at) {
    out[threadIdx.x] = in[at[threadIdx.x]];
}
"""
_STORES = """
extern "C" __global__ void k(float* out, int step, int rounds) {
#pragma unroll 1
    for (int i = 0; i < rounds; ++i)
        out[((i * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x) * step] = 1.0f;
}
"""
_SUMS = """
extern "C" __global__ void k(TYPE* sum, int apart) {
    atomicAdd(&sum[INDEX * apart], (TYPE)1);
}
"""
_COUNTS = """
extern "C" __global__ void k(int* bins, const int* which) {
    atomicAdd(&bins[which[blockIdx.x * blockDim.x + threadIdx.x]], 1);
}
"""
_COPY = """
extern "C" __global__ void k(const float4* in, float4* out) {
    __shared__ float4 tile[32];
    const unsigned place = __cvta_generic_to_shared(&tile[threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(&in[4 * threadIdx.x]));
    asm volatile("cp.async.wait_all;");
    out[threadIdx.x] = tile[threadIdx.x];
}
"""
_POINTERS = {0: 0, 4: 0x10, 8: 0, 12: 0x20}
_READ, _WRITTEN, _TO_L2 = (
    "dram__sectors_read.sum",
    "dram__sectors_write.sum",
    "lts__t_sectors_srcunit_tex.sum",
)


def _run(text: str, rounds: int, words: int, **more: Any) -> Simulation:
    return run_text(text, {**_POINTERS, 16: rounds, 20: words}, block=256, **more)


def _metric(run: Simulation, name: str) -> float:
    value = run.profile.metrics[name]
    assert isinstance(value, float)
    return value


def _hits(run: Simulation) -> float:
    return _metric(run, "l1tex__t_sector_hit_rate.pct")


def test_what_fits_l1_is_fetched_once() -> None:
    run = _run(_AGAIN, 10, 8192)
    assert _hits(run) == pytest.approx(90.0)  # nine of ten rounds
    assert _metric(run, _READ) == 8192 / 8


def test_what_outgrows_l1_comes_from_l2_again_and_from_dram_once() -> None:
    words = 524_288  # 2 MiB, of the 192 KiB that an SM has
    run = _run(_AGAIN, 3, words)
    assert _hits(run) == pytest.approx(0.0, abs=1.0)
    assert _metric(run, _READ) == words / 8
    assert _metric(run, "lts__t_sector_hit_rate.pct") == pytest.approx(100 * 2 / 3, abs=1.0)


def test_of_what_outgrows_l1_a_little_some_stays() -> None:
    rounds, words = 8, 65_536  # 256 KiB, of which the best order keeps three quarters, the strict one nothing
    hits = _hits(_run(_AGAIN, rounds, words)) * rounds / (rounds - 1)
    assert 25.0 < hits < 75.0


def test_shared_memory_is_cut_off_l1() -> None:
    words = 24_576  # 96 KiB
    assert _hits(_run(_AGAIN, 4, words)) == pytest.approx(75.0)
    roomy = {"arch": "sm_86"}  # 128 KiB in all, of which 44 KiB and more go to a block here
    assert _hits(_run(_AGAIN, 4, words, **roomy)) == pytest.approx(75.0)
    assert _hits(_run(_LESS_L1, 4, words, **roomy)) < 40.0


def test_what_all_blocks_read_is_fetched_about_once_for_all_sms() -> None:
    words, blocks, sms = 4096, 64, 16
    shared = _run(_AGAIN, 1, words, grid=blocks, sms=sms)
    own = _run(_OWN_ROW, 1, words, grid=blocks, sms=sms)
    assert _metric(own, _READ) == blocks * words / 8
    assert _metric(shared, _READ) < 3 * words / 8  # drawn: one SM of 16 asks first
    assert own.cycles is not None
    assert shared.cycles is not None
    assert own.cycles > 1.2 * shared.cycles


@pytest.mark.parametrize(("index", "rows"), [("x", 64), ("y", 32)])
def test_the_index_that_an_address_hangs_on_tells_which_blocks_share_it(index: str, rows: int) -> None:
    config = SimulationConfig(grid=(64, 32, 1), block=(32, 1, 1), arguments=_POINTERS, sms=16)
    program = text_program(_ROWS.replace("INDEX", index))
    runs = [
        simulate(program, "k", machine.load("sm_80"), replace(config, seed=seed)).profile for seed in range(8)
    ]
    read = sum(float(run.metrics[_READ] or 0) for run in runs) / len(runs)
    assert read < 64 * 32 * 4 / 8  # each block by itself would be 8,192 sectors
    assert read >= rows


def test_a_told_share_goes_before_addresses() -> None:
    run = _run(_AGAIN, 10, 8192, l1_hit_rate=0.25, l2_hit_rate=0.0)
    assert "l1tex__t_sector_hit_rate.pct" not in run.profile.metrics
    assert (
        "global accesses hit L1 with 25 %, L2 with 0 %; local loads hit L1 with 97 %, stores go to L2"
        in run.assumptions
    )
    assert _metric(run, _READ) > 8192 / 8 * 5


def test_the_share_of_known_addresses_is_told() -> None:
    known = " ".join(_run(_AGAIN, 1, 1024).assumptions)
    assert "addresses of global accesses follow from the launch: they hit what is in 190 KiB of L1" in known
    assert "L1 with 50 %" not in known
    run = run_text(_GATHER, {**_POINTERS, 16: 0, 20: 0x30})
    assert "addresses of 67 % of the global accesses follow from the launch" in " ".join(run.assumptions)
    assert (
        "the other global accesses hit L1 with 50 %, L2 with 50 %; local loads hit L1 with 97 %, "
        "stores go to L2" in run.assumptions
    )
    assert "l1tex__t_sector_hit_rate.pct" not in run.profile.metrics


def test_stores_stay_in_l2_until_more_is_brought_than_fits() -> None:
    few = run_text(_STORES, {0: 0, 4: 0x10, 8: 1, 12: 1}, grid=64, block=256, sms=16)
    assert _metric(few, _WRITTEN) == 0
    blocks = 1 << 17  # 128 MiB, of 40 MiB
    many = run_text(_STORES, {0: 0, 4: 0x10, 8: 1, 12: 1}, grid=blocks, block=256)
    assert _metric(many, _WRITTEN) == pytest.approx(blocks * 256 / 8, rel=0.2)


def test_sectors_that_are_stored_one_by_one_take_l2_a_packet_more_each() -> None:
    near, far = (
        run_text(_STORES, {0: 0, 4: 0x10, 8: step, 12: 32}, grid=4, block=1024, sms=4) for step in (1, 8)
    )
    assert near.cycles is not None
    assert far.cycles is not None
    assert _metric(far, _TO_L2) == 8 * _metric(near, _TO_L2)
    # Whole lines take four for four sectors, sectors alone two each.
    assert far.cycles / near.cycles > 5


@pytest.mark.parametrize("kind", ["int", "float"])
def test_operations_on_one_word_are_done_one_after_the_other_for_all_sms(kind: str) -> None:
    timing, _ = timing_of("sm_80")
    cost = timing.atomic_cycles if kind == "int" else timing.float_atomic_cycles
    text = _SUMS.replace("TYPE", kind).replace(
        "INDEX", "threadIdx.x % 2"
    )  # no sum of the warp by the compiler
    arguments = {**_POINTERS, 8: 0}
    run = run_text(text, arguments, grid=16, block=256, sms=16)
    assert run.cycles == pytest.approx(16 * 256 * cost, rel=0.15)
    own = run_text(
        text.replace("INDEX", "").replace("sum[", "sum[blockIdx.x * 64 + "),
        arguments,
        grid=16,
        block=256,
        sms=16,
    )
    assert own.cycles is not None
    assert run.cycles is not None
    assert own.cycles < run.cycles / 4


def test_lanes_on_neighbouring_words_go_together() -> None:
    text = _SUMS.replace("TYPE", "float").replace("INDEX", "threadIdx.x")
    same, apart = (
        run_text(text, {**_POINTERS, 8: step}, grid=16, block=256, sms=16).cycles for step in (0, 1)
    )
    assert same is not None
    assert apart is not None
    assert same > 10 * apart


def test_sectors_of_512_bytes_take_turns_in_one_slice() -> None:
    timing, _ = timing_of("sm_80")
    text = _SUMS.replace("TYPE", "float").replace("INDEX", "threadIdx.x % 32 * 8")  # 32 sectors, 1 KiB
    run = run_text(text, {**_POINTERS, 8: 1}, grid=16, block=256, sms=16)
    assert run.cycles == pytest.approx(16 * 8 * 16 * timing.float_atomic_cycles, rel=0.15)


def test_how_busy_the_fullest_slice_is_with_operations_is_counted() -> None:
    most, mean = (
        f"lts__d_atomic_input_cycles_active.{name}.pct_of_peak_sustained_elapsed" for name in ("max", "avg")
    )
    text = _SUMS.replace("TYPE", "int").replace("INDEX", "threadIdx.x % 2")
    same = run_text(text, {**_POINTERS, 8: 0}, grid=256, block=256, sms=16).profile.metrics
    assert same[most] == pytest.approx(100.0, abs=15.0)
    assert same[mean] == pytest.approx(same[most] / HOT_SLICES)
    assert most not in _run(_AGAIN, 2, 1024).profile.metrics


def test_lanes_whose_words_are_not_known_are_told() -> None:
    found = run_text(_COUNTS, _POINTERS, grid=16, block=256, sms=16)
    assert (
        "lanes of atomic operations whose addresses are not known work on different lines"
        in found.assumptions
    )


def test_addresses_of_copies_to_shared_memory_are_followed() -> None:
    found = run_text(_COPY, _POINTERS)
    assert "addresses of global accesses follow from the launch" in " ".join(found.assumptions)
    assert found.profile.pc_metrics["memory_l2_theoretical_sectors_global"].value.tolist() == [32, 16]


_LOCAL = """
extern "C" __global__ void k(const int* in, int* out) {
    int counts[16];
    #pragma unroll 1
    for (int i = 0; i < 16; ++i) counts[i] = 0;
    #pragma unroll 1
    for (int i = 0; i < 64; ++i) counts[INDEX & 15] += i;
    int sum = 0;
    #pragma unroll 1
    for (int i = 0; i < 16; ++i) sum += counts[i] * i;
    out[threadIdx.x] = sum;
}
"""


def test_stores_to_local_memory_go_to_l2_and_threads_with_an_index_of_their_own_to_rows_of_their_own() -> (
    None
):
    """On an H100 as many sectors went to L2 as local stores had, 25 for each store by an index from data."""
    sectors = {
        index: _metric(run_text(_LOCAL.replace("INDEX", index), _POINTERS, arch="sm_90"), _TO_L2)
        for index in ("i", "(i + threadIdx.x)", "in[i * 32 + threadIdx.x]")
    }
    stores = 16 + 64
    assert 4 * stores <= sectors["i"] < 6 * stores  # four sectors hold the words of 32 threads side by side
    assert sectors["(i + threadIdx.x)"] >= 16 * 4 + 64 * 32
    # Eight threads that draw one of the words each find two of them on one now and then.
    assert 16 * 4 + 64 * 24 <= sectors["in[i * 32 + threadIdx.x]"] < 16 * 4 + 64 * 32


_WORDS = """
extern "C" __global__ void k(const float* in, float* out) {
    const float value = in[threadIdx.x];
    #pragma unroll
    for (int word = 0; word < 4; ++word) out[(threadIdx.x PLACE) * 4 + word] = value * word;
}
"""


def test_words_that_a_thread_stores_one_after_the_other_go_to_l2_together() -> None:
    """A quarter of the sectors reached L2 on an RTX 3080, 64 % of a structure's fields on an H100."""
    run = run_text(_WORDS.replace("PLACE", ""), _POINTERS)
    assert _metric(run, _TO_L2) == 4 + 16
    # Several warps on the same sectors do not go together, as in a transposition.
    run = run_text(_WORDS.replace("PLACE", "/ 32 * 0 + threadIdx.x % 32"), _POINTERS, block=128)
    assert _metric(run, _TO_L2) == 4 * 4 + 4 * 16
