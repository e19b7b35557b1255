# SPDX-License-Identifier: Apache-2.0
"""Conditions on data: guessed alike in whatever form the compiler wrote them, and no more of them."""

from __future__ import annotations

import pytest
from tests.simulations import run_text, text_program

from gpadvisor.model.instruction import MemorySpace, OpcodeClass
from gpadvisor.simulator import Argument, Simulation, argument_words

_ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")
_STEPS = """
extern "C" __global__ void k(const int* in, int* out, int steps, int n) {
    __shared__ int line[256], next[256];
    const int t = threadIdx.x;
    line[t] = in[t];
    __syncthreads();
    bool inside;
    for (int i = 0; i < steps; ++i) {
        inside = false;
        if (t >= i + 1 && t <= 254 - i && t < n) {
            inside = true;
            next[t] = min(line[t - 1], line[t + 1]) + in[i];
        }
        __syncthreads();
        if (i == steps - 1) break;
        if (inside) line[t] = next[t];
        __syncthreads();
    }
    if (inside) out[t] = next[t];
}
"""
_VISIT = """
extern "C" __global__ void k(const int2* range, const int* edges, const unsigned char* seen, int* cost,
                             unsigned char* next) {
    const int vertex = blockIdx.x * blockDim.x + threadIdx.x;
    int end = range[vertex].y;
UNROLL
    for (int e = range[vertex].x; e < end; ++e) {
        const int other = edges[e];
        if (!seen[other]) {
            cost[other] = cost[vertex] + 1;
            next[other] = 1;
            end = range[vertex].y;
        }
    }
}
"""
_BOTH = """
extern "C" __global__ void k(const int* least, const int* most, const int* at, int* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    TESTS {
        int sum = i;
#pragma unroll
        for (int k = 0; k < 16; ++k) sum = at[sum];
        out[i] = sum;
    }
    __syncthreads();
}
"""


def _threads(done: Simulation, text: str, arch: str, opclass: OpcodeClass, line: int | None = None) -> int:
    """Threads that did the accesses of a class to device memory, in all or on one line."""
    counts = done.profile.counts
    assert counts is not None
    threads = dict(zip(counts.pc.tolist(), counts.threads.tolist(), strict=True))
    return sum(
        threads[int(instruction.pc)]
        for function in text_program(text, arch).functions
        for instruction, entry in zip(function.instructions, function.lines, strict=True)
        if instruction.info.opclass is opclass
        and instruction.info.space is MemorySpace.GLOBAL
        and (line is None or (entry is not None and entry.location.line == line))
    )


@pytest.mark.parametrize("arch", _ARCHITECTURES)
@pytest.mark.parametrize(("steps", "n"), [(1, 300), (20, 300), (20, 100)])
def test_a_bool_that_a_loop_carries_decides_as_the_code_says(arch: str, steps: int, n: int) -> None:
    values = [Argument("integer", 4, steps), Argument("integer", 4, n)]
    arguments = argument_words([Argument("pointer", 8)] * 2 + values)
    done = run_text(_STEPS, arguments, arch, block=256)
    stored = sum(steps <= t <= 255 - steps and t < n for t in range(256))
    assert _threads(done, _STEPS, arch, OpcodeClass.STORE) == stored
    assert not any("conditional exits" in text for text in done.assumptions)


def _visits(arch: str, unroll: int, trips: int) -> tuple[int, int]:
    """Edges that threads looked at, and stores of threads."""
    text = _VISIT.replace("UNROLL", f"#pragma unroll {unroll}")
    arguments = argument_words([Argument("pointer", 8)] * 5)
    loop, edge = (
        next(number for number, part in enumerate(text.splitlines(), 1) if word in part)
        for word in ("for (", "edges[e]")
    )
    done = run_text(text, arguments, arch, grid=16, block=256, loop_trips={loop: trips})
    return _threads(done, text, arch, OpcodeClass.LOAD, edge), _threads(done, text, arch, OpcodeClass.STORE)


@pytest.mark.parametrize("arch", _ARCHITECTURES)
def test_what_a_loaded_condition_guards_is_done_by_half_of_the_warps(arch: str) -> None:
    looked_at, stored = _visits(arch, 1, 8)
    assert stored == pytest.approx(looked_at, rel=0.2)  # two stores for every other edge


@pytest.mark.parametrize("trips", [3, 6, 8, 9])
@pytest.mark.parametrize("arch", _ARCHITECTURES)
def test_a_loop_that_its_copies_leave_does_the_work_of_one_that_is_not_unrolled(
    arch: str, trips: int
) -> None:
    assert _visits(arch, 1, trips)[0] == _visits(arch, 4, trips)[0] == 16 * 256 * trips


@pytest.mark.parametrize("arch", _ARCHITECTURES)
def test_conditions_that_are_joined_hold_as_often_as_one(arch: str) -> None:
    stored = []
    for tests in ("if (least[i] < 3) if (most[at[i]] > 5) if (most[at[i + 1]] > 7)", "if (least[i] < 3)"):
        text = _BOTH.replace("TESTS", tests)
        done = run_text(text, argument_words([Argument("pointer", 8)] * 4), arch, grid=64, block=256)
        stored.append(_threads(done, text, arch, OpcodeClass.STORE))
    assert stored[0] == pytest.approx(stored[1], rel=0.2)
    assert stored[1] == pytest.approx(64 * 256 / 2, rel=0.2)
