# SPDX-License-Identifier: Apache-2.0
"""What-if: nothing changed is no gain, more of what bounds is one, and the page's equations are the same."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.views.test_potential import INPUTS, inputs
from tests.what_if_cases import FILE, cases

from gpadvisor.views.potential.adapted import parts
from gpadvisor.views.potential.model import ModelInputs
from gpadvisor.views.potential.what_if import InputChange, changed, what_if


def test_the_cases_that_the_page_is_tested_with_are_these_equations() -> None:
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    assert len(stored) == len(cases())
    for old, new in zip(stored, cases(), strict=True):
        assert old["inputs"] == new["inputs"]
        assert old["change"] == new["change"]
        assert old["speedup"] == pytest.approx(new["speedup"], rel=1e-12)
        was, now = old["parts"], new["parts"]
        assert was.pop("benefits") == pytest.approx(now.pop("benefits"), rel=1e-9, abs=1e-3)
        assert was == pytest.approx(now, rel=1e-12)


@given(inputs, st.floats(1e3, 1e9))
def test_no_change_is_no_gain(of: ModelInputs, cycles: float) -> None:
    found = what_if(of, cycles, InputChange())
    assert found.speedup == 1
    assert found.parts == parts(of)


@pytest.mark.parametrize("change", [InputChange(transactions=0.25), InputChange(bandwidth=4)])
def test_requests_that_take_the_time_take_less_of_it(change: InputChange) -> None:
    bound = replace(INPUTS, requests=1e6)
    assert what_if(bound, 0.0, change).speedup == pytest.approx(4, rel=0.2)


def test_a_clock_speeds_up_what_is_inside_of_the_sm_only() -> None:
    found = changed(INPUTS, InputChange(clock=2.0))
    assert found.latency == INPUTS.l1_latency + 2 * (INPUTS.latency - INPUTS.l1_latency)
    assert found.request_cycles == 2 * INPUTS.request_cycles
    assert (
        changed(replace(INPUTS, request_in_l1=True), InputChange(clock=2.0)).request_cycles
        == INPUTS.request_cycles
    )
    # All of the time is DRAM's: no clock of the SM changes it.
    bound = replace(
        INPUTS, loads=1e5, requests=1e6, request_cycles=100, instructions=1, pipe_cycles=0, serial_cycles=0
    )
    assert what_if(bound, 0.0, InputChange(clock=2.0)).speedup == pytest.approx(1, rel=1e-3)


def test_what_is_not_explained_stays_as_long() -> None:
    cycles = 2 * parts(INPUTS).execution
    assert (
        what_if(INPUTS, cycles, InputChange(warps=64, in_flight=64, transactions=1e-6, clock=1e6)).speedup
        <= 2
    )
