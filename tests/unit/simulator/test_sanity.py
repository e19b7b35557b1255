# SPDX-License-Identifier: Apache-2.0
"""Microbenchmarks with known answers: chains, issue rates, barriers, bandwidth, Little's law, waves."""

from __future__ import annotations

import numpy as np
import pytest
from tests.simulations import reasons, run_text, text_program

from gpadvisor.machine.every_gpu import every_gpu
from gpadvisor.simulator import timing_of

pytestmark = [pytest.mark.nvdisasm]

_CHAIN = """
extern "C" __global__ void k(float* out, int rounds, float a, float b) {
    float x = a;
#pragma unroll 1
    for (int i = 0; i < rounds; ++i) {
#pragma unroll
        for (int j = 0; j < 64; ++j) x = fmaf(x, a, b);
    }
    out[threadIdx.x] = x;
}
"""
_STREAMS = """
extern "C" __global__ void k(float* out, int rounds, float a, float b) {
    float x[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) x[j] = a + j;
#pragma unroll 1
    for (int i = 0; i < rounds; ++i) {
#pragma unroll
        for (int j = 0; j < 64; ++j) x[j % 8] = fmaf(x[j % 8], a, b);
    }
    float s = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) s += x[j];
    out[threadIdx.x] = s;
}
"""
_CHASE = """
extern "C" __global__ void k(int* next, int rounds) {
    int at = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < rounds; ++i) at = next[at];
    next[at] = 0;
}
"""
_COPY = """
extern "C" __global__ void k(const float4* __restrict__ in, float4* __restrict__ out, int rounds) {
    const int step = gridDim.x * blockDim.x;
    int at = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 4
    for (int i = 0; i < rounds; ++i, at += step) out[at] = in[at];
}
"""
_FILL = """
extern "C" __global__ void k(float4* out, int rounds) {
    const int step = gridDim.x * blockDim.x;
    int at = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < rounds; ++i, at += step) out[at] = make_float4(1, 2, 3, 4);
}
"""
_SLOW_WARP = """
extern "C" __global__ void k(float* out, int rounds, float a, float b) {
    float x = a;
    if (threadIdx.x < 32) {
#pragma unroll 1
        for (int i = 0; i < rounds; ++i) x = fmaf(x, a, b);
    }
    __syncthreads();
    out[threadIdx.x] = x;
}
"""
_POINTER = {0: 0, 4: 0x10}


def _rounds(count: int, offset: int = 8) -> dict[int, int]:
    return {**_POINTER, 8: 0, 12: 0x20, offset: count}


def _per_round(text: str, few: int = 100, many: int = 612, **more: object) -> float:
    first, second = (run_text(text, _rounds(count), **more) for count in (few, many))
    return (second.simulated_cycles - first.simulated_cycles) / (many - few)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_a_dependent_chain_takes_the_latency_of_each_link(arch: str) -> None:
    # Four cycles for each of 64 links, and a few for the branch; the store at the end hardly counts.
    cycles = _per_round(_CHAIN, arch=arch)
    assert 64 * 4 <= cycles <= 64 * 4 + 24


@pytest.mark.parametrize(("arch", "per_scheduler"), [("sm_80", 2.0), ("sm_86", 1.0), ("sm_90", 1.0)])
def test_independent_streams_reach_the_issue_rate_of_the_pipe(arch: str, per_scheduler: float) -> None:
    cycles = _per_round(_STREAMS, block=512, arch=arch)
    warps = 512 // 32 / 4
    assert cycles == pytest.approx(64 * warps * per_scheduler, rel=0.12)


def test_a_full_pipe_is_reported_as_such() -> None:
    found = reasons(run_text(_STREAMS, _rounds(64), block=512))
    # One of two cycles is for the stall counts that the compiler wrote, in the other one warp of four issues.
    assert found["math_pipe_throttle"] / sum(found.values()) > 0.15


def test_one_slow_warp_holds_its_block_at_the_barrier() -> None:
    slow = run_text(_SLOW_WARP, _rounds(2000), block=256)
    found = reasons(slow)
    # Seven of eight warps wait for nearly all of the time.
    assert found["barrier"] / sum(found.values()) == pytest.approx(7 / 8, abs=0.05)
    assert slow.simulated_cycles >= 2000 * 4


def test_barrier_stalls_are_due_to_what_holds_up_the_last_warp() -> None:
    slow = run_text(_SLOW_WARP, _rounds(2000), block=256)
    names = [reason.name for reason in slow.profile.reasons]
    rows = slow.truth.reason == names.index("barrier")
    function = text_program(_SLOW_WARP).functions[0]
    barrier = next(i for i, one in enumerate(function.instructions) if one.opcode == "BAR")
    assert set(slow.truth.pc[rows].tolist()) == {16 * (barrier + 1)}  # sampled right behind the barrier
    loop = {
        int(one.pc) for i, one in enumerate(function.instructions) if function.innermost_loop(i) is not None
    }
    inside = np.isin(slow.truth.cause[rows], list(loop))
    assert slow.truth.samples[rows][inside].sum() / slow.truth.samples[rows].sum() > 0.95


def test_a_copy_is_bound_by_the_bandwidth_of_the_sm() -> None:
    arguments = {0: 0, 4: 0x10, 8: 0, 12: 0x20, 16: 64}
    copy = run_text(_COPY, arguments, block=1024, grid=8, sms=4, l1_hit_rate=0.0, l2_hit_rate=0.0)
    # L2 gives 47 bytes a cycle and takes in a packet; a line of 128 bytes that is stored is four of them.
    ceiling = 2 * 128 / (128 / 47.0 + 4)
    moved = 2 * 16 * 1024 * 64 * 2  # both ways, four words a thread, two blocks on this SM
    assert moved / copy.simulated_cycles == pytest.approx(ceiling, rel=0.1)


def test_a_store_ends_in_l2_whether_its_line_is_there_or_not() -> None:
    timing, _ = timing_of("sm_80")
    hit, miss = (
        run_text(_FILL, {0: 0, 4: 0x10, 8: 1}, l2_hit_rate=rate).simulated_cycles for rate in (1.0, 0.0)
    )
    assert abs(miss - hit) <= timing.l2_cycles[1] - timing.l2_cycles[0] + 8


def test_stores_alone_are_bound_by_bandwidth() -> None:
    fill = run_text(_FILL, {0: 0, 4: 0x10, 8: 64}, block=1024, grid=8, sms=4, l2_hit_rate=0.0)
    moved = 16 * 1024 * 64 * 2  # four words a thread, two blocks on this SM
    ceiling = 128 / 4  # a packet a cycle, four for a line
    assert moved / fill.simulated_cycles == pytest.approx(ceiling, rel=0.1)


def test_fewer_sms_take_no_more_than_their_way_to_l2_carries() -> None:
    arguments = {0: 0, 4: 0x10, 8: 0, 12: 0x20, 16: 64}
    copy = run_text(_COPY, arguments, block=1024, grid=2, sms=1, l1_hit_rate=0.0, l2_hit_rate=0.0)
    moved = 2 * 16 * 1024 * 64 * 2
    assert moved / copy.simulated_cycles <= 47.0


def test_throughput_grows_with_the_warps_as_littles_law_says() -> None:
    def loads_per_cycle(warps: int) -> float:
        run = run_text(_CHASE, {0: 0, 4: 0x10, 8: 400}, block=32 * warps, l1_hit_rate=0.0, l2_hit_rate=1.0)
        return 400 * warps / run.simulated_cycles

    one = loads_per_cycle(1)
    timing, _ = timing_of("sm_80")
    # One warp: a load for each round trip to L2, with the few instructions of the loop.
    assert timing.l2_cycles[0] < 1 / one < timing.l2_cycles[1] + 60
    for warps in (2, 4, 8):
        assert loads_per_cycle(warps) / one == pytest.approx(warps, rel=0.1)


def test_one_block_more_than_fits_costs_another_wave() -> None:
    def cycles(blocks: int) -> float:
        run = run_text(_CHAIN, _rounds(64), block=1024, grid=blocks, sms=4)
        assert run.cycles is not None
        return run.cycles

    full = cycles(2 * 4)  # two blocks of 1024 threads fit an SM of sm_80
    assert cycles(2 * 4 + 1) / full == pytest.approx(1.5, rel=0.2)  # a single block runs at twice the speed
    assert cycles(4 * 4) / full == pytest.approx(2.0, rel=0.1)
    assert cycles(16 * 4) / full == pytest.approx(8.0, rel=0.1)


def test_blocks_are_handed_out_one_by_one() -> None:
    """However many SMs there are: 65,536 blocks of 16 threads took an H100 0.86 of them a cycle."""

    def cycles(blocks: int, block: int, sms: int = 100) -> float:
        run = run_text(_CHAIN, _rounds(0), block=block, grid=blocks, sms=sms)
        assert run.cycles is not None
        return run.cycles

    more = cycles(40_000, 32) - cycles(20_000, 32)
    assert 20_000 / more == pytest.approx(every_gpu().blocks_per_cycle, rel=0.02)
    assert cycles(5_000, 256) < cycles(40_000, 32) / 6
    few = cycles(20_000, 32, sms=200) - cycles(10_000, 32, sms=200)
    assert few == pytest.approx(more / 2, rel=0.02)  # twice the SMs are handed no more


def test_of_short_blocks_more_waves_are_simulated() -> None:
    def blocks(rounds: int, **more: int) -> int:
        run = run_text(_CHAIN, _rounds(rounds), block=256, grid=4000, sms=4, **more)
        assert run.cycles is not None
        return run.blocks

    three = 3 * 8
    assert blocks(64) == blocks(1, waves=3) == three
    assert blocks(1) == 6 * three
    assert blocks(1, max_cycles=20_000) == three  # more of them would not end


@pytest.mark.parametrize("blocks", [1, 3, 8, 9, 40])
def test_fewer_simulated_waves_change_little(blocks: int) -> None:
    def cycles(waves: int) -> float:
        run = run_text(_CHAIN, _rounds(64), block=1024, grid=blocks, sms=4, waves=waves)
        assert run.cycles is not None
        return run.cycles

    exact = cycles(64)
    assert cycles(2) == pytest.approx(exact, rel=0.1)
    assert cycles(3) == pytest.approx(exact, rel=0.1)
    assert exact * 0.9 <= cycles(1) <= exact * 1.4  # the last, partial wave counts as a full one


def test_code_that_outgrows_the_instruction_cache_waits_for_instructions() -> None:
    body = "\n".join(f"x = fmaf(x, a, b + {i}.0f); y = fmaf(y, b, a + {i}.5f);" for i in range(2500))
    text = f"""
extern "C" __global__ void k(float* out, int rounds, float a, float b) {{
    float x = a, y = b;
#pragma unroll 1
    for (int i = 0; i < rounds; ++i) {{ {body} }}
    out[threadIdx.x] = x + y;
}}
"""
    large = reasons(run_text(text, _rounds(4), block=128))
    small = reasons(run_text(_CHAIN, _rounds(256), block=128))
    assert large["no_instructions"] / sum(large.values()) > 0.1
    assert small["no_instructions"] / sum(small.values()) < 0.02


def test_straight_code_is_asked_for_ahead_of_a_warp() -> None:
    # 48 KB, more than a scheduler's cache holds and less than the SM's: on an H100 such a kernel waits 3.5 %.
    body = "\n".join(f"x = fmaf(x, a, b + {i}.0f);" for i in range(3000))
    text = f"""
extern "C" __global__ void k(float* out, int rounds, float a, float b) {{
    float x = a;
#pragma unroll 1
    for (int i = 0; i < rounds; ++i) {{ {body} }}
    out[threadIdx.x] = x;
}}
"""
    stalls = reasons(run_text(text, _rounds(32), block=32))
    assert stalls["no_instructions"] / sum(stalls.values()) < 0.08


_TWO_LOADS = """
extern "C" __global__ void k(float *out, const float *a, const float *b) {
    out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}
"""


def test_loads_on_one_scoreboard_hold_a_warp_in_the_same_wait() -> None:
    arguments = {0: 0, 4: 0x10, 8: 0, 12: 0x20, 16: 0, 20: 0x30}
    found = run_text(_TWO_LOADS, arguments, grid=512, block=256, l1_hit_rate=0.5, l2_hit_rate=0.5)
    code = text_program(_TWO_LOADS).functions[0].instructions
    loads = {16 * at for at, one in enumerate(code) if one.opcode == "LDG"}
    adds = 16 * next(at for at, one in enumerate(code) if one.opcode == "FADD")
    truth = found.truth
    names = [reason.name for reason in found.profile.reasons]
    waits = np.flatnonzero((truth.pc == adds) & (truth.reason == names.index("long_scoreboard")))
    held = {truth.awaited[row] for row in waits.tolist()}
    assert frozenset(loads) in held  # both were on their way when the wait began
    assert {int(truth.cause[row]) for row in waits.tolist()} == loads  # either may be the last
    for cause, together in zip(truth.cause.tolist(), truth.awaited, strict=True):
        assert cause in together if cause >= 0 else not together


_TWO_STORES = """
extern "C" __global__ void k(float *far, float *near, int rounds) {
#pragma unroll 1
    for (int i = 0; i < rounds; ++i) {
        far[threadIdx.x * 32 + i] = 1.0f;
        near[threadIdx.x + 1024 * i] = 2.0f;
    }
}
"""


def test_a_full_queue_is_due_to_what_keeps_its_unit_busy() -> None:
    found = run_text(_TWO_STORES, {0: 0, 4: 0x10, 8: 0, 12: 0x20, 16: 64}, block=1024)
    stores = [one for one in text_program(_TWO_STORES).functions[0].instructions if one.opcode == "STG"]
    assert len(stores) == 2
    names = [reason.name for reason in found.profile.reasons]
    truth = found.truth
    waits = truth.reason == names.index("lg_throttle")
    assert set(truth.pc[waits].tolist()) == {int(one.pc) for one in stores}
    shares = [truth.samples[waits & (truth.cause == int(one.pc))].sum() for one in stores]
    assert max(shares) / sum(shares) == pytest.approx(32 / 33, abs=0.03)  # passes through L1
