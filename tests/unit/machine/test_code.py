# SPDX-License-Identifier: Apache-2.0
"""The machine code of each architecture: every row of the table, and what stands between and beside them."""

from __future__ import annotations

import pytest

from gpadvisor.machine import architectures, code_form
from gpadvisor.machine.code import read_as
from gpadvisor.model.machine import Feature


@pytest.mark.parametrize(
    ("arch", "parameters", "block", "low_bits", "hides"),
    [
        ("sm_70", 0x160, 0x0, 0, False),
        ("sm_75", 0x160, 0x0, 0, False),
        ("sm_86", 0x160, 0x0, 0, True),
        ("sm_90a", 0x210, 0x0, 8, False),
        ("sm_120", 0x380, 0x360, 8, False),
    ],
)
def test_rows_hold_up_to_the_next(arch: str, parameters: int, block: int, low_bits: int, hides: bool) -> None:
    form = code_form(arch)
    assert (form.parameters_at, form.block_size_at, form.branch_low_bits) == (parameters, block, low_bits)
    assert form.hides_descriptors is hides


@pytest.mark.parametrize(
    ("arch", "other"), [("sm_60", ""), ("sm_70", "sm_75"), ("sm_72", "sm_75"), ("sm_75", ""), ("sm_120", "")]
)
def test_what_tools_have_dropped_is_read_as_another(arch: str, other: str) -> None:
    assert read_as(arch) == other


def test_features_come_and_stay() -> None:
    known: frozenset[Feature] = frozenset()
    for arch in architectures():
        assert known <= code_form(arch).features
        known = code_form(arch).features
    assert known == frozenset(Feature)
    assert Feature.ASYNCHRONOUS_COPY not in code_form("sm_75").features


@pytest.mark.parametrize(
    ("arch", "newest"), [("sm_70", "12.9"), ("sm_72", "12.9"), ("sm_75", ""), ("sm_121", "")]
)
def test_cuda_13_has_dropped_what_was_before_turing(arch: str, newest: str) -> None:
    assert code_form(arch).newest_toolkit == newest
