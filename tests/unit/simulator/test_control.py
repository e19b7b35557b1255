# SPDX-License-Identifier: Apache-2.0
"""Where control goes when data decides it: waits, traps, prints, loops that a return ends, calls in calls."""

from __future__ import annotations

import pytest
from tests.simulations import run_text, text_program

from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.program import InlineFrame, LineEntry
from gpadvisor.simulator import Simulation
from gpadvisor.simulator.control import kernel_line

_ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
_TRAP = """
extern "C" __global__ void k(float factor) {
    float value = threadIdx.x;
    for (int i = 0; i < 64; ++i) value = value * factor + 1;
    if (value == 12345.f) __trap();
}
"""
_SYSTEM = """
extern "C" __device__ int vprintf(const char*, const char*);
extern "C" __global__ void k(const int* in, int* out) {
    if (in[threadIdx.x] < 0) vprintf("negative", nullptr);
    out[threadIdx.x] = in[threadIdx.x];
}
"""
_LOCK = """
extern "C" __global__ void k(int* lock, int* data) {
    while (atomicCAS(lock, 0, 1) != 0);
    data[threadIdx.x] += 1;
    __threadfence();
    atomicExch(lock, 0);
}
"""
_FLAG = """
extern "C" __global__ void k(volatile int* flag, int* data) {
    while (*flag == 0);
    data[threadIdx.x] = 1;
}
"""
_RETRY = """
extern "C" __global__ void k(int* target, float value) {
    int old = *target, assumed;
    do {
        assumed = old;
        old = atomicCAS(target, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
    } while (assumed != old);
}
"""
_QUEUE = """
extern "C" __global__ void k(int* next, float* data, int count) {
    for (;;) {
        const int at = atomicAdd(next, 1);
        if (at >= count) return;
        data[at] *= 2;
    }
}
"""
_NESTED = """
__device__ __noinline__ int third(int x) { return x * 3 + 1; }
__device__ __noinline__ int second(int x) { return third(x) + third(x * x + 7); }
__device__ __noinline__ int first(int x) { return second(x) - second(x * x + 5); }
extern "C" __global__ void k(int* out, int x) { out[threadIdx.x] = first(x) * first(x + 1); }
"""
_GUESS = """
extern "C" __global__ void k(const int* in, int* out) {
    int sum = 0;
#pragma unroll 1
    for (int i = 0; i < 8; ++i)
        if (in[i]) {
#pragma unroll
            for (int k = 0; k < 16; ++k) sum = in[sum];
            out[sum] = i;
        }
}
"""
_FAR = """
extern "C" __global__ void k(float* y, const float* x, long long n) {
    long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = threadIdx.x; i < n; i += stride) y[i] = x[i] + 1.0f;
}
"""
_RECURSIVE = """
__device__ __noinline__ int ways(int n) { return n < 2 ? n : ways(n - 1) + ways(n - 2); }
extern "C" __global__ void k(int* out, int n) { out[threadIdx.x] = ways(n); }
"""


def executed(simulation: Simulation, text: str, arch: str, opcode: str, *modifiers: str) -> list[int]:
    """How often warps executed each instruction of an opcode."""
    counts = simulation.profile.counts
    assert counts is not None
    warps = dict(zip(counts.pc.tolist(), counts.warps.tolist(), strict=True))
    return [
        warps[int(instruction.pc)]
        for function in text_program(text, arch).functions
        for instruction in function.instructions
        if instruction.opcode == opcode and {*modifiers} <= {*instruction.modifiers}
    ]


@pytest.mark.parametrize("arch", _ARCHITECTURES)
def test_a_trap_is_not_run_into(arch: str) -> None:
    done = run_text(_TRAP, None, arch)
    assert done.cycles is not None
    assert executed(done, _TRAP, arch, "BPT") == [0]


@pytest.mark.parametrize("arch", _ARCHITECTURES)
def test_nothing_is_printed_by_chance(arch: str) -> None:
    done = run_text(_SYSTEM, None, arch, block=1024)
    assert executed(done, _SYSTEM, arch, "CALL") == [0]
    assert any("prints" in one for one in done.assumptions)


@pytest.mark.parametrize("arch", _ARCHITECTURES)
@pytest.mark.parametrize("text", [_LOCK, _FLAG, _RETRY], ids=["lock", "flag", "retry"])
def test_what_only_waits_or_tries_again_does_so_once(text: str, arch: str) -> None:
    done = run_text(text, None, arch)
    polled = executed(done, text, arch, "ATOMG", "CAS") or executed(done, text, arch, "LDG", "STRONG")
    assert polled[:1] == [1]
    assert any("run once, since they only wait or try again" in one for one in done.assumptions)


@pytest.mark.parametrize("arch", _ARCHITECTURES)
def test_a_loop_that_only_a_return_ends_is_counted(arch: str) -> None:
    done = run_text(_QUEUE, None, arch)
    assert done.cycles is not None
    assert max(executed(done, _QUEUE, arch, "ATOMG")) in {16, 17}


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("passes", [50, 51])
def test_a_counter_of_64_bits_is_followed(arch: str, passes: int) -> None:
    """Three words are added at once there, which may carry two."""
    done = run_text(_FAR, {0: 0, 4: 0x10, 8: 0, 12: 0x20, 16: 32 * passes, 20: 0}, arch)
    assert done.profile.metrics["lts__t_sectors_srcunit_tex.sum"] == 2 * 4 * passes


@pytest.mark.parametrize("arch", _ARCHITECTURES)
def test_functions_inside_one_another_return_to_where_they_were_called(arch: str) -> None:
    done = run_text(_NESTED, None, arch)
    assert done.cycles is not None
    calls, returns = executed(done, _NESTED, arch, "CALL"), executed(done, _NESTED, arch, "RET")
    assert sorted(returns) == [2, 4, 8]
    assert sum(calls) == 14


@pytest.mark.parametrize("arch", _ARCHITECTURES)
def test_a_function_that_calls_itself_returns_as_often_as_it_is_called(arch: str) -> None:
    done = run_text(_RECURSIVE, None, arch, branch_taken=0.4, max_instructions=400_000)
    returned_at_once = sum(int(one.split()[0]) for one in done.assumptions if "inside one another" in one)
    calls, returns = (sum(executed(done, _RECURSIVE, arch, opcode)) for opcode in ("CALL", "RET"))
    # Where the limit cut the run off, calls are still open.
    assert calls - returned_at_once - returns in (range(1) if done.cycles is not None else range(65))


def test_what_was_inlined_is_shown_where_the_kernel_has_it() -> None:
    inner, outer = SourceLocation("intrinsics.hpp", 274), SourceLocation("kernel.cu", 5)
    assert kernel_line(LineEntry(outer)) == outer
    middle = InlineFrame("middle", SourceLocation("other.h", 12))
    assert kernel_line(LineEntry(inner, (middle, InlineFrame("outer", outer)))) == outer


def test_a_line_without_a_loop_is_named() -> None:
    done = run_text(_QUEUE, None, loop_trips={3: 5, 77: 5})
    assert "line 77, for which iterations are told, has no loop in the machine code" in done.assumptions
    assert not any(one.startswith("line 3,") for one in done.assumptions)


def test_the_largest_grid_is_counted() -> None:
    done = run_text(_TRAP, None, grid=(1 << 31) - 1, block=1024)
    assert done.profile.counts is not None
    assert int(done.profile.counts.warps.max()) == ((1 << 31) - 1) * 32


def test_dynamic_shared_memory_that_nobody_states_is_said() -> None:
    text = """
    extern __shared__ float buffer[];
    extern "C" __global__ void k(float* out) {
        buffer[threadIdx.x] = out[threadIdx.x];
        __syncthreads();
        out[threadIdx.x] = buffer[31 - threadIdx.x];
    }
    """
    said = "no size is stated for the dynamic shared memory that the code uses"
    assert said in run_text(text).assumptions
    assert said not in run_text(text, dynamic_shared_bytes=128).assumptions


def test_guesses_hang_on_the_seed_and_not_on_how_fast_memory_is() -> None:
    def executed(**more: float) -> list[int]:
        counts = run_text(_GUESS, grid=16, block=128, sms=2, **more).profile.counts
        assert counts is not None
        return counts.warps.tolist()

    assert executed(l1_hit_rate=0.9, l2_hit_rate=0.9) == executed(l1_hit_rate=0.1, l2_hit_rate=0.1)
    assert any(0.4 < count / (16 * 4 * 8) < 0.6 for count in executed())
    assert executed() != executed(seed=2)


def test_the_slow_path_of_a_sine_is_not_taken() -> None:
    """It has a loop, which is entered for arguments above 100,000 alone."""
    run = run_text(
        'extern "C" __global__ void k(const float* in, float* out) {\n'
        "    out[threadIdx.x] = sinf(in[threadIdx.x]) + cosf(in[threadIdx.x] * 3.0f);\n}\n"
    )
    said = " ".join(run.assumptions)
    assert "slow paths of math functions are not taken: line 2" in said
    assert "are entered" not in said
