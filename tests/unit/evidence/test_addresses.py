# SPDX-License-Identifier: Apache-2.0
"""Addresses as sums, and runs of accesses that one wider access could replace."""

from __future__ import annotations

import tracemalloc

import pytest
from tests.optimizer_values import listing

from gpadvisor.evidence.addresses import Neighbours, neighbours


def _runs(text: str) -> list[tuple[str, ...]]:
    """Tags of each run in the order of the addresses."""
    code = listing(text)
    names = {index: tag for tag, (_, index) in code.tags.items()}
    return [tuple(names[index] for index in run.indices) for run in neighbours(code.program.functions[0])]


def test_constant_offsets() -> None:
    loads = (
        "b| LDG.E R8, [R4.64+0x4]",
        "a| LDG.E R9, [R4.64]",
        "c| LDG.E R7, [R4.64+0x8]",
        "far| LDG.E R6, [R4.64+0x20]",
    )
    text = "\n".join((*loads, "EXIT"))
    assert _runs(text) == [("a", "b", "c")]


@pytest.mark.parametrize(
    "second",
    [
        "IADD3 R20, R21, 0x1, RZ\nLEA R12, P1, R20, R16, 0x2",
        "IADD3 R20, R21, 0x1, RZ\nMOV R3, 0x4\nIMAD.WIDE R12, R20, R3, R16",
        "SHF.L.U32 R20, R21, 0x2, RZ\nIADD3 R12, R20, 0x4, R16",
        "IMAD.IADD R20, R21, 0x1, R16\nIMAD R20, R21, 0x3, R20\nIADD3 R12, R20, 0x4, RZ",
    ],
)
def test_indices_that_differ_by_one(second: str) -> None:
    assert _runs(
        f"LEA R14, P1, R21, R16, 0x2\na| LDG.E R8, [R14.64]\n{second}\nb| LDG.E R9, [R12.64]\nEXIT"
    ) == [("a", "b")]


@pytest.mark.parametrize(
    "between",
    [
        "LDG.E R4, [R2.64]",  # the base is loaded anew
        "@P0 IADD3 R4, R4, 0x1, RZ",  # it may have changed
        "IMAD R4, R4, R6, RZ",
        "SHF.R.U32.HI R4, RZ, 0x1, R4",
    ],
)
def test_a_base_that_changes_in_between_is_another(between: str) -> None:
    assert not _runs(f"a| LDS R8, [R4]\n{between}\nb| LDS R9, [R4+0x4]\nEXIT")


def test_a_base_that_is_stepped_is_followed() -> None:
    assert _runs("a| LDS R8, [R4]\nIADD3 R4, R4, 0x10, RZ\nb| LDS R9, [R4+-0xc]\nEXIT") == [("a", "b")]


def test_kinds_widths_and_guards_are_kept_apart() -> None:
    narrow = "LDS R8, [R4]\nLDS.64 R10, [R4+0x4]\n@P0 LDS R9, [R4+0xc]\nSTS [R4+0x4], R5"
    assert not _runs(f"{narrow}\nLDS.128 R12, [R4+0x10]\nEXIT")


@pytest.mark.parametrize("odd", ["0x", "0xg", "-QNAN", "c[0x0]", "1.5", "R", "+", ""])
def test_operands_that_are_not_understood_are_unknown_values(odd: str) -> None:
    assert _runs(f"a| LDS R8, [R4]\nIADD3 R5, {odd or 'RZ'}, R5, RZ\nb| LDS R9, [R4+0x4]\nEXIT") == [
        ("a", "b")
    ]


def test_stores_are_compared_by_their_place() -> None:
    assert _runs("a| STS [R4+0x8], R5\nb| STS [R4+0xc], R9\nEXIT") == [("a", "b")]


@pytest.mark.parametrize(
    ("count", "width", "per"), [(2, 4, 2), (3, 4, 2), (4, 4, 4), (9, 4, 4), (2, 8, 2), (5, 1, 4)]
)
def test_the_width_of_the_access_that_takes_them(count: int, width: int, per: int) -> None:
    assert Neighbours(tuple(range(count)), width).per_access == per


def test_a_chain_of_products_takes_no_more_memory_with_each_of_them() -> None:
    squares = "IMAD R4, R4, R4, RZ\n" * 12
    tracemalloc.start()
    try:
        assert _runs(f"{squares}a| LDS R8, [R4]\nb| LDS R9, [R4+0x4]\nEXIT") == [("a", "b")]
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
