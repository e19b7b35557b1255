# SPDX-License-Identifier: Apache-2.0
"""Addresses that loaded words decide: which they are, and what the simulator makes of them."""

from __future__ import annotations

from typing import Final

import pytest
from tests.simulations import run_text, text_program

from gpadvisor.simulator import Argument, argument_words
from gpadvisor.simulator.by_data import ByData, follow_loaded
from gpadvisor.simulator.configuration import SimulationConfig
from gpadvisor.simulator.parameters import constant_words
from gpadvisor.simulator.slices import SectionGraph, relevance

_ARGUMENTS: Final = argument_words([Argument("pointer", 8)] * 3 + [Argument("integer", 4, 1 << 20)])
_TEXT: Final = """
extern "C" __global__ void k(const float* a, const TYPE* index, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    BODY
}
"""
_GATHER: Final = "out[i] = a[AT];"


def _kinds(at: str, kind: str = "int", arch: str = "sm_90") -> set[ByData]:
    """Of the access to ``a``: everything else follows from the launch."""
    text = _TEXT.replace("TYPE", kind).replace("BODY", _GATHER.replace("AT", at))
    functions = text_program(text, arch).functions
    config = SimulationConfig(grid=(8, 1, 1), block=(64, 2, 1), arguments=_ARGUMENTS)
    graph = SectionGraph(functions)
    found = follow_loaded(
        graph, relevance(graph, constant_words(arch, config).get, addresses=True), config.block
    )
    return set(found.addresses.values())


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
def test_addresses_that_loaded_words_decide(arch: str) -> None:
    assert _kinds("index[i]", arch=arch) == {ByData.DRAWN}
    assert _kinds("index[i] & 255", arch=arch) == {ByData.DRAWN}
    assert _kinds("index[i] < 0 ? 3 : index[i] + 1", arch=arch) == {ByData.DRAWN}
    assert _kinds("(int)index[i]", "float", arch) == {ByData.APART}  # a conversion is not followed
    assert _kinds("min(index[i], n)", arch=arch) == {ByData.APART}  # nearly always n, if it were drawn


@pytest.mark.parametrize(
    "at", ["i", "i + index[blockIdx.x]", "i + index[threadIdx.y]", "i + index[threadIdx.x / 32]", "i % n"]
)
def test_words_that_a_warp_shares_move_no_thread_away_from_its_neighbours(at: str) -> None:
    assert not _kinds(at)


def _time(at: str, kind: str = "int") -> float:
    text = _TEXT.replace("TYPE", kind).replace("BODY", _GATHER.replace("AT", at))
    found = run_text(text, _ARGUMENTS, "sm_90", grid=64, block=256)
    assert found.cycles is not None
    return found.cycles


def test_a_gather_takes_longer_than_neighbours_and_than_a_small_table() -> None:
    neighbours, gather, table = _time("i"), _time("index[i]"), _time("index[i]", "unsigned char")
    assert gather > 1.5 * neighbours
    assert table < gather


def _adds(most: int) -> float:
    text = _TEXT.replace("TYPE", "int").replace("BODY", f"atomicAdd(&out[index[i] & {most}], 1.0f);")
    found = run_text(text, _ARGUMENTS, "sm_90", grid=64, block=256)
    assert found.cycles is not None
    return found.cycles


def test_additions_meet_in_few_bins() -> None:
    assert _adds(0) > 2 * _adds(255)


def test_what_was_drawn_is_told_with_its_line() -> None:
    text = _TEXT.replace("TYPE", "int").replace("BODY", _GATHER.replace("AT", "index[i]"))
    found = run_text(text, _ARGUMENTS, "sm_90", grid=4, block=256)
    assert "loaded words that decide an address are drawn evenly: line 4" in found.assumptions
    text = _TEXT.replace("TYPE", "float").replace("BODY", _GATHER.replace("AT", "(int)index[i]"))
    found = run_text(text, _ARGUMENTS, "sm_90", grid=4, block=256)
    assert any("loaded words decide the address: line 4" in one for one in found.assumptions)
    # Of such addresses no sectors are counted, for nobody knows them.
    sectors = found.profile.pc_metrics["memory_l2_theoretical_sectors_global"]
    assert sectors.value.sum() == 2 * 4 * 8 * 4  # the index and the result: four sectors for each warp


def test_two_runs_draw_the_same() -> None:
    assert _time("index[i] & 4095") == _time("index[i] & 4095")


@pytest.mark.parametrize("arch", ["sm_90", "sm_100", "sm_120"])
def test_a_clamped_index_follows_from_the_launch(arch: str) -> None:
    """On sm_100 a minimum writes two predicates, too."""
    text = _TEXT.replace("TYPE", "int").replace("BODY", "out[i] = a[min(max(i - 3, 0), 100)];")
    found = run_text(text, _ARGUMENTS, arch, grid=4, block=256)
    assert not any("do not follow" in one for one in found.assumptions)
