# SPDX-License-Identifier: Apache-2.0
"""Iterations that are told are those of the source, however often the compiler wrote the body out."""

from __future__ import annotations

import numpy as np
import pytest
from tests.simulations import run_text, text_program

from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass
from gpadvisor.simulator import Simulation
from gpadvisor.simulator.unrolling import parts

pytestmark = [pytest.mark.nvdisasm]

_SUM = """
extern "C" __global__ void k(const float* __restrict__ x, float* y, int n) {
    float sum = 0.0f;
#pragma unroll FACTOR
    for (int i = 0; i < n; ++i) {
        const float one = x[i * 32 + threadIdx.x];
        sum = fmaf(one, one, sum);
    }
    y[threadIdx.x] = sum;
}
"""
_LINE = 5
_PAIRS = """
extern "C" __global__ void k(const float* x, float* y, int n) {
    float sum = 0.0f;
#pragma unroll 1
    for (int i = 0; i < n; ++i) {
        sum += x[i] * x[i + 77];
        sum = fmaf(x[i + 99], x[i + 55], sum) * sum;
    }
    y[threadIdx.x] = sum;
}
"""
_CHOICE = """
extern "C" __global__ void k(const float* x, float* y, int n, const int* flag) {
    float sum = 0.0f;
    if (*flag) {
#pragma unroll 1
        for (int i = 0; i < n; ++i) sum += x[i];
    } else {
#pragma unroll 1
        for (int i = 0; i < n; ++i) sum *= y[i];
    }
    y[threadIdx.x] = sum;
}
"""


def _loads(simulation: Simulation, text: str, arch: str = "sm_80") -> int:
    return _count(
        simulation,
        [
            one
            for one in text_program(text, arch).functions[0].instructions
            if one.info.opclass is OpcodeClass.LOAD and one.info.space is MemorySpace.GLOBAL
        ],
    )


def _executed(simulation: Simulation, opcode: str, text: str, arch: str) -> int:
    instructions = text_program(text, arch).functions[0].instructions
    return _count(simulation, [one for one in instructions if one.opcode == opcode])


def _count(simulation: Simulation, instructions: list[Instruction]) -> int:
    counts = simulation.profile.counts
    assert counts is not None
    return int(counts.warps[np.isin(counts.pc, [int(one.pc) for one in instructions])].sum())


@pytest.mark.parametrize("trips", [1, 3, 8, 13, 32, 45])
@pytest.mark.parametrize("factor", [1, 4])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_told_iterations_are_those_of_the_source(arch: str, factor: int, trips: int) -> None:
    text = _SUM.replace("FACTOR", str(factor))
    simulation = run_text(text, arch=arch, loop_trips={_LINE: trips})
    assert _loads(simulation, text, arch) == trips
    assert f"as told for line {_LINE}" in " ".join(simulation.assumptions)


@pytest.mark.parametrize("factor", [1, 2, 4, 8])
def test_without_a_word_a_loop_does_the_same_work_unrolled_or_not(factor: int) -> None:
    text = _SUM.replace("FACTOR", str(factor))
    assert _loads(run_text(text), text) == 16


def test_the_assumption_says_how_often_the_body_stands_in_the_code() -> None:
    said = " ".join(run_text(_SUM.replace("FACTOR", "4"), loop_trips={_LINE: 32}).assumptions)
    assert "of them in one pass of the machine code" in said
    said = " ".join(run_text(_SUM.replace("FACTOR", "1"), loop_trips={_LINE: 32}).assumptions)
    assert "run 32 times, as told for line 5" in said
    assert "of them in one pass" not in said


def test_a_body_with_like_statements_is_not_taken_for_an_unrolled_one() -> None:
    found = parts(text_program(_PAIRS).functions[0])
    assert [part.copies for part in found if part.loop is not None and part.size > 2] == [1]
    assert _loads(run_text(_PAIRS, loop_trips={_LINE: 10}), _PAIRS) == 40


def test_a_choice_between_two_loops_is_left_to_chance() -> None:
    said = " ".join(run_text(_CHOICE).assumptions)
    assert "50 % take the branches" in said


_NESTED = """
extern "C" __global__ void k(const float* x, float* y, int n, int m) {
    float sum = 0.0f;
#pragma unroll FACTOR
    for (int i = 0; i < n; ++i)
#pragma unroll 1
        for (int j = 0; j < m; ++j) sum += x[i * m + j];
    y[threadIdx.x] = sum;
}
"""


@pytest.mark.parametrize("factor", [1, 4])
def test_a_loop_around_others_is_counted_by_them(factor: int) -> None:
    text = _NESTED.replace("FACTOR", str(factor))
    assert _loads(run_text(text, loop_trips={5: 8, 7: 3}), text) == 8 * 3


_WRITTEN_OUT = _NESTED.replace("#pragma unroll 1\n", "")  # four or sixteen copies of the inner body, too
_BETWEEN = _WRITTEN_OUT.replace("j = 0; j < m", "j = n & 3; j <= m")


@pytest.mark.parametrize("factor", [2, 4, 8])
@pytest.mark.parametrize("text", [_WRITTEN_OUT, _BETWEEN])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_each_copy_of_a_body_has_loops_of_its_own(arch: str, text: str, factor: int) -> None:
    text = text.replace("FACTOR", str(factor))
    for outer, inner in ((16, 16), (8, 32)):
        done = run_text(text, arch=arch, loop_trips={5: outer, 6: inner})
        assert _loads(done, text, arch) == outer * inner


@pytest.mark.parametrize("outer", [9, 11, 14])
def test_copies_of_a_body_behind_its_loop_take_what_is_left(outer: int) -> None:
    text = _BETWEEN.replace("FACTOR", "8")
    assert _loads(run_text(text, loop_trips={5: outer, 6: 16}), text) == outer * 16


_FOLLOWED = """
extern "C" __global__ void k(const float* x, float* y, const int* ends, int step) {
    float sum = 0.0f;
#pragma unroll 1
    for (int at = threadIdx.x; at < ends[0]; at += step) {
        const int last = min(ends[at], step);
#pragma unroll 1
        for (int i = ends[at + 1]; i <= last; ++i)
#pragma unroll 1
            for (int j = ends[at + 2]; j <= last; ++j) sum += x[i * step + j];
    }
#pragma unroll 1
    for (int at = 0; at < ends[3]; ++at) sum *= y[at];
    y[threadIdx.x] = sum;
}
"""


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_the_way_past_a_loop_to_the_next_one_is_not_taken(arch: str) -> None:
    done = run_text(_FOLLOWED, None, arch, loop_trips={5: 2, 8: 3, 10: 5, 13: 7})
    assert "take the branches" not in " ".join(done.assumptions)
    assert _executed(done, "FADD", _FOLLOWED, arch) == 2 * 3 * 5
    assert _executed(done, "FMUL", _FOLLOWED, arch) == 7
