# SPDX-License-Identifier: Apache-2.0
"""Integer division by values known at run time only is followed, through its reciprocal in floating point."""

from __future__ import annotations

import pytest
from tests.simulations import run_text

from gpadvisor.simulator import Argument, argument_words

_CHECKED = """
extern "C" __global__ void k(int* out, TYPE first, TYPE step, TYPE divisor) {
    const TYPE value = first + step * (TYPE)(32 * blockIdx.x + threadIdx.x);
    const TYPE quotient = value / divisor, rest = value % divisor;
    const bool right = quotient * divisor + rest == value && (rest < 0 ? -rest : rest) < BOUND;
    if (!right) out[threadIdx.x] = 1;
}
"""
_ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
_WORDS = ((0, 1, 3), (5, 977, 1), (4_000_000_000, 9_000_001, 7), (17, 123_456_789, 0xFFFF_FFF0), (0, 1, 40))
_PAIRS = ((1 << 63, 977 << 40, 3), (0, 1, 10_000_000_019), (5, (1 << 58) + 1, (1 << 40) + 9), (0, 3, 7))


def undecided(kind: str, size: int, row: tuple[int, int, int], arch: str) -> list[str]:
    """Branches that are not known, of a launch that stores where a quotient and its rest do not fit."""
    bound = "(divisor < 0 ? -divisor : divisor)"
    text = _CHECKED.replace("TYPE", kind).replace("BOUND", bound)
    numbers = [Argument("integer", size, value) for value in row]
    done = run_text(text, argument_words([Argument("pointer", 8), *numbers]), arch, grid=8)
    assert "memory_l2_theoretical_sectors_global" not in done.profile.pc_metrics, "a wrong quotient"
    return [one for one in done.assumptions if "branches" in one or "exits" in one]


@pytest.mark.parametrize("arch", _ARCHITECTURES)
@pytest.mark.parametrize("row", _WORDS)
@pytest.mark.parametrize("kind", ["unsigned", "int"])
def test_quotients_and_rests_of_words_are_followed(kind: str, row: tuple[int, int, int], arch: str) -> None:
    assert not undecided(kind, 4, row, arch)


@pytest.mark.parametrize("arch", _ARCHITECTURES)
@pytest.mark.parametrize("row", _PAIRS)
@pytest.mark.parametrize("kind", ["unsigned long long", "long long"])
def test_quotients_and_rests_of_pairs_are_followed(kind: str, row: tuple[int, int, int], arch: str) -> None:
    assert not undecided(kind, 8, row, arch)
