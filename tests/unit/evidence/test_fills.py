# SPDX-License-Identifier: Apache-2.0
"""Kernels that set data up, which no rule about arithmetic names without samples."""

from __future__ import annotations

import pytest
from tests.optimizer_values import context_of, listing

from gpadvisor.evidence.fills import only_fills
from gpadvisor.model.advice import Match
from gpadvisor.rules import fast_math

STORED = "again:\nMUFU.RCP R3, R4\nFADD R3, R3, R5\nSTG.E [R6.64], R3\n@P0 BRA again\nEXIT"


@pytest.mark.parametrize(
    ("text", "fills"),
    [
        (STORED, True),
        ("STG.E [R6.64], R3\nEXIT", True),
        (f"LDG.E R4, [R8.64]\n{STORED}", False),
        (f"LDS R4, [R8]\n{STORED}", False),
        (f"RED.E.ADD [R8.64], R2\n{STORED}", False),
        (f"work:\nFADD R5, R5, R2\n@P1 BRA work\n{STORED}", False),  # a fractal is worked out in a loop
        ("FADD R5, R5, R2\nEXIT", False),
    ],
)
def test_what_loads_nothing_and_stores_in_each_pass_sets_data_up(text: str, fills: bool) -> None:
    assert only_fills(listing(text).program.functions) is fills


@pytest.mark.parametrize("load", ["", "LDG.E.64 R4, [R8.64]\n"])
def test_a_quotient_in_a_kernel_that_sets_a_boundary_up_is_not_told(load: str) -> None:
    division = (
        "MUFU.RCP64H R3, 12\nDFMA R8, -R4, R2, 1\nDFMA R8, R8, R8, R8\n@P1 BRA over\nCALL.REL.NOINC slow\n"
    )
    text = f"again:\n{load}{division}over:\nSTG.E.64 [R6.64], R8\n@P0 BRA again\nEXIT"
    found = fast_math.OPTIMIZER.match(context_of(listing(text)))
    assert isinstance(found, Match) is bool(load)
