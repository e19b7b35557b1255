# SPDX-License-Identifier: Apache-2.0
"""Addresses to sections: the symbol index decides, samples break ties, overlaps are resolved."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tests.tiny_cubin import tiny_cubin

from gpadvisor.cubin import Cubin, read_cubin
from gpadvisor.store.ncu.placement import NOWHERE, Placement, candidates_of
from gpadvisor.store.ncu.placement import place as decide
from gpadvisor.store.ncu.report import LoadedFunction

CUBIN = read_cubin(tiny_cubin({"a": [("same", 32)], "b": [("same", 64)]}))
INDEX = {(s.name, y.name): y.elf_index for s in CUBIN.sections for y in s.symbols}
NO_SAMPLES = np.zeros(0, np.uint64)


def place(
    cubin: Cubin,
    functions: list[LoadedFunction],
    addresses: list[int],
    kernel: str,
    sampled: NDArray[np.uint64],
) -> Placement:
    return decide(candidates_of(cubin, functions), addresses, kernel, sampled)


def _loaded(section: str, name: str, address: int, *, indexed: bool = True) -> LoadedFunction:
    return LoadedFunction(
        name=name, address=address, symbol_index=INDEX[(section, name)] if indexed else None
    )


def test_a_helper_places_its_section() -> None:
    found = place(CUBIN, [_loaded("b", "same", 0x9040)], [], "a", NO_SAMPLES)
    assert (found.names, found.start.tolist(), found.end.tolist()) == (("b",), [0x9000], [0x9080])


def test_a_name_alone_decides_only_when_it_is_unique() -> None:
    assert place(CUBIN, [_loaded("b", "same", 0x9040, indexed=False)], [], "a", NO_SAMPLES).names == ()
    assert place(CUBIN, [_loaded("b", "b", 0x9000, indexed=False)], [], "a", NO_SAMPLES).names == ("b",)


def test_an_index_that_names_something_else_is_not_believed() -> None:
    wrong = LoadedFunction(name="b", address=0x9000, symbol_index=INDEX[("a", "a")])
    assert place(CUBIN, [wrong], [], "a", NO_SAMPLES).names == ("b",)


def test_among_two_addresses_the_samples_decide() -> None:
    both = [_loaded("a", "a", 0x1000), _loaded("a", "a", 0x5000)]
    assert place(CUBIN, both, [], "a", NO_SAMPLES).start.tolist() == [0x1000]
    assert place(CUBIN, both, [], "a", np.array([0x5010], np.uint64)).start.tolist() == [0x5000]


def test_function_addresses_help_the_kernel_only() -> None:
    found = place(CUBIN, [], [0x7000, 0x8000], "a", np.array([0x8010, 0x8020], np.uint64))
    assert (found.names, found.start.tolist()) == (("a",), [0x8000])


def test_overlapping_sections_leave_one() -> None:
    rows = [_loaded("a", "a", 0x1000), _loaded("b", "b", 0x1040)]
    found = place(CUBIN, rows, [], "a", np.array([0x10B0], np.uint64))
    assert found.names == ("b",)


def test_addresses_at_the_edges() -> None:
    found = place(CUBIN, [_loaded("a", "a", 0x1000), _loaded("b", "b", 0x1080)], [], "a", NO_SAMPLES)
    row, offset = found.locate(np.array([0, 0xFFF, 0x1000, 0x107F, 0x1080, 0x1100, (1 << 64) - 1], np.uint64))
    assert row.tolist() == [-1, -1, 0, 0, 1, -1, -1]
    assert offset.tolist() == [0, 0xFFF, 0, 0x7F, 0, 0x1100, (1 << 64) - 1]


def test_nowhere() -> None:
    row, offset = NOWHERE.locate(np.array([16], np.uint64))
    assert (row.tolist(), offset.tolist()) == ([-1], [16])


def test_hostile_addresses_do_not_wrap() -> None:
    rows = [_loaded("a", "a", (1 << 64) - 16), _loaded("b", "same", 8)]
    assert place(CUBIN, rows, [(1 << 64) - 1], "a", NO_SAMPLES).names == ()


def test_only_a_module_without_choices_is_settled() -> None:
    one, two = _loaded("a", "a", 0x1000), _loaded("a", "a", 0x5000)
    settled = candidates_of(CUBIN, [one]).settled()
    assert settled is not None
    assert settled.names == ("a",)
    assert candidates_of(CUBIN, [one, two]).settled() is None
