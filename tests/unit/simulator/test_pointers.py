# SPDX-License-Identifier: Apache-2.0
"""Without arguments, addresses follow from the launch as far as their pattern does."""

from __future__ import annotations

import pytest
from tests.simulations import run_text

from gpadvisor.simulator import Argument, Simulation, argument_words

_SCATTERED = """
extern "C" __global__ void k(const float* a, float* b, int n) { b[threadIdx.x] = a[8 * threadIdx.x]; }
"""
_RANGE = """
extern "C" __global__ void k(const float* first, const float* last, float* out) {
    float sum = 0;
    for (const float* at = first; at != last; ++at) sum += *at;
    out[threadIdx.x] = sum;
}
"""
_OFFSET = """
extern "C" __global__ void k(char* text, int skipped, int rounds) {
    for (int i = 0; i < rounds; ++i) text[64 * threadIdx.x + skipped + i] = 0;
}
"""
_ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
_SECTORS = "memory_l2_theoretical_sectors_global"


def pointers(simulation: Simulation) -> list[str]:
    """What is assumed of pointers."""
    return [one for one in simulation.assumptions if "pointers" in one]


@pytest.mark.parametrize("arch", _ARCHITECTURES)
def test_sectors_need_no_arguments(arch: str) -> None:
    stated = argument_words([Argument("pointer", 8), Argument("pointer", 8), Argument("integer", 4, 5)])
    told, found = run_text(_SCATTERED, stated, arch), run_text(_SCATTERED, None, arch)
    assert pointers(told) == []
    assert pointers(found) == ["pointers among the parameters (2) are aligned as allocations are"]
    assert found.profile.pc_metrics[_SECTORS].value.tolist() == [32, 4]
    assert told.profile.pc_metrics[_SECTORS].value.tolist() == [32, 4]
    assert "neighbouring" not in " ".join(found.assumptions)


@pytest.mark.parametrize("arch", _ARCHITECTURES)
def test_the_length_of_a_range_does_not_come_from_places_made_up(arch: str) -> None:
    found = run_text(_RANGE, None, arch)
    assert found.cycles is not None
    assert pointers(found) == ["pointers among the parameters (1) are aligned as allocations are"]


@pytest.mark.parametrize("arch", _ARCHITECTURES)
def test_numbers_side_by_side_are_no_pointer(arch: str) -> None:
    found = run_text(_OFFSET, None, arch)
    assert pointers(found) == ["pointers among the parameters (1) are aligned as allocations are"]
    assert any("16 iterations" in one or "run 16 times" in one for one in found.assumptions)
