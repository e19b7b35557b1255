# SPDX-License-Identifier: Apache-2.0
"""Gates on two runs: noise, what cannot be decided, counters, and the formats."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from gpadvisor.gate.formats import gate_json, gate_junit, gate_markdown, gate_text
from gpadvisor.gate.limits import GatedKernel, GateOutcome, checks, parse_limit, verdict

SIDE = GatedKernel(
    kernel="gemm(float *)",
    durations_ns=(100e3, 101e3, 99e3, 100e3, 100.5e3),
    modelled=False,
    device="A100",
    launch="grid 10x1x1",
    counters={"insts": 1000.0, "registers": 40, "spills": 0, "shared": 0, "findings": 1},
)


def outcome(before: GatedKernel, after: GatedKernel, *limits: str) -> GateOutcome:
    return verdict(checks([(before, after)], [parse_limit(text) for text in limits]))


def times(factor: float) -> GatedKernel:
    return replace(SIDE, durations_ns=tuple(factor * value for value in SIDE.durations_ns))


def test_times_with_their_noise() -> None:
    assert outcome(SIDE, SIDE, "5%") is GateOutcome.PASS
    assert outcome(SIDE, times(0.5), "5%") is GateOutcome.PASS
    assert outcome(SIDE, times(1.2), "5%") is GateOutcome.FAIL
    assert outcome(SIDE, times(1.055), "5%") is GateOutcome.INCONCLUSIVE
    noisy = replace(SIDE, durations_ns=(80e3, 100e3, 130e3))
    assert outcome(noisy, replace(noisy, durations_ns=(90e3, 115e3, 140e3)), "5%") is GateOutcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"durations_ns": (200e3,)}, "launches"),
        ({"durations_ns": ()}, "no time"),
        ({"durations_ns": (5e3, 5e3, 5e3)}, "10 us"),
        ({"device": "H100"}, "two GPUs"),
        ({"modelled": True}, "modelled"),
        ({"launch": "grid 20x1x1"}, "another launch"),
    ],
)
def test_what_cannot_be_decided_says_why(change: dict[str, object], reason: str) -> None:
    (found,) = checks([(SIDE, replace(SIDE, **change))], [parse_limit("5%")])  # type: ignore[arg-type]  # keywords by name
    assert found.outcome is GateOutcome.INCONCLUSIVE
    assert reason in found.reason


def test_counters_have_no_noise() -> None:
    def with_(**counters: float | None) -> GatedKernel:
        return replace(SIDE, counters={**SIDE.counters, **counters})

    assert outcome(SIDE, with_(insts=1010.0), "insts=1%") is GateOutcome.PASS
    assert outcome(SIDE, with_(insts=1011.0), "insts=1%") is GateOutcome.FAIL
    assert outcome(SIDE, with_(spills=1), "spills=0") is GateOutcome.FAIL
    assert outcome(with_(spills=5), with_(spills=5), "spills=0") is GateOutcome.PASS
    assert outcome(SIDE, with_(registers=48), "registers=8") is GateOutcome.PASS
    assert outcome(SIDE, with_(insts=None), "insts=1%") is GateOutcome.INCONCLUSIVE
    assert outcome(SIDE, replace(SIDE, launch="grid 5x1x1"), "insts=1%") is GateOutcome.INCONCLUSIVE


def test_a_named_kernels_limit_stands_in_place_of_the_others() -> None:
    other = replace(times(1.2), kernel="axpy(float *)")
    pairs = [(SIDE, SIDE), (replace(SIDE, kernel="axpy(float *)"), other)]
    found = checks(pairs, [parse_limit("5%"), parse_limit("kernel=^axpy:30%")])
    assert [(one.kernel, one.limit, one.outcome) for one in found] == [
        ("gemm(float *)", "5%", GateOutcome.PASS),
        ("axpy(float *)", "kernel=^axpy:30%", GateOutcome.PASS),
    ]
    # A pattern that means nothing, and two runs with nothing in common, are no pass.
    assert verdict(checks(pairs, [parse_limit("kernel=nobody:5%")])) is GateOutcome.INCONCLUSIVE
    assert verdict(checks([], [parse_limit("5%")])) is GateOutcome.INCONCLUSIVE


@pytest.mark.parametrize(
    "text", ["", "5", "-1%", "speed=3%", "kernel=(:3%", "kernel=:3%", "spills", "1e9%", "nan%", "kernel=x"]
)
def test_what_is_no_limit(text: str) -> None:
    with pytest.raises(ValueError, match=r"limit|LIMIT|percent|expression"):
        parse_limit(text)


def test_formats() -> None:
    hostile = replace(SIDE, kernel='</td><img src=x>|`@all "\x1b[31m')
    found = checks([(hostile, replace(times(1.5), kernel="b"))], [parse_limit("5%"), parse_limit("insts=1%")])
    assert "Gate: fail" in gate_text(found, 80)
    markdown = gate_markdown(found)
    assert "+50.0 +-" in markdown
    assert all(
        text not in out for out in (markdown, gate_text(found, 80), gate_junit(found)) for text in ("\x1b",)
    )
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    assert len(rows) == 3
    suite = ET.fromstring(gate_junit(found))[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    value = gate_json(found)
    assert (value["verdict"], [one["outcome"] for one in value["checks"]]) == ("fail", ["fail", "pass"])
