# SPDX-License-Identifier: Apache-2.0
"""Trees of Proton and hatchet: times by context, and what is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpadvisor.cli import main
from gpadvisor.errors import ProfileFormatError
from gpadvisor.model.contexts import MeasuredPlace, PlaceKind
from gpadvisor.store.hatchet import read_hatchet


def node(name: str, *children: object, **metrics: object) -> dict[str, object]:
    """A node whose metrics have spaces for underscores."""
    named = {key.replace("__", " (") + ")" * ("__" in key): value for key, value in metrics.items()}
    return {"frame": {"name": name, "type": "function"}, "metrics": named, "children": list(children)}


PROTON = [
    node(
        "ROOT",
        node(
            "/src/net.py:forward@12",
            node("matmul", time__ns=300, count=2, device_type="CUDA", device_id="0"),
            node("softmax", time__ns=100, count=1, device_type="CUDA", device_id="0"),
        ),
        time__ns=0,
        count=0,
    ),
    {"CUDA": {"0": {"arch": "86", "num_sms": 16}}},
]


@pytest.fixture
def proton(tmp_path: Path) -> Path:
    """As Proton writes it."""
    path = tmp_path / "run.hatchet"
    path.write_text(json.dumps(PROTON))
    return path


def test_kernels_are_below_what_launched_them(proton: Path) -> None:
    contexts = read_hatchet(proton)
    assert contexts.metrics == ("time_ns", "count")
    assert contexts.places == (
        MeasuredPlace(-1, PlaceKind.FUNCTION, "ROOT"),
        MeasuredPlace(0, PlaceKind.FUNCTION, "forward", "/src/net.py", 12),
        MeasuredPlace(1, PlaceKind.KERNEL, "matmul"),
        MeasuredPlace(1, PlaceKind.KERNEL, "softmax"),
    )
    assert contexts.own == ((0, 0), (0, 0), (300, 2), (100, 1))


def test_the_command_shows_them(proton: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tree", str(proton), "--format", "folded"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "all;ROOT;forward;matmul 300",
        "all;ROOT;forward;softmax 100",
    ]
    assert main(["tree", str(proton)]) == 0
    assert "75.0 %" in capsys.readouterr().out


def test_values_with_what_is_below_are_left_to_the_tree(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    tree = [node("A", node("B", time__inc=4.0, time=4.0), time__inc=6.0, time=2.0, _hatchet_nid=7)]
    path.write_text(json.dumps(tree))
    contexts = read_hatchet(path)
    assert (contexts.metrics, contexts.own) == (("time",), ((2.0,), (4.0,)))


def test_metrics_of_names_that_are_alike_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text('[{"frame": {"name": "A"}, "metrics": {"a b": 1, "a_b": 2, "9": 3}}]')
    contexts = read_hatchet(path)
    assert (contexts.metrics, contexts.units) == (("a_b", "a_b_2", "m_9"), ("a b", "a_b", "9"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        "[1, 2]",
        '[{"frame": 3}]',
        '[{"frame": {"name": "A"}, "children": 7}]',
        '[{"frame": {"name": "A"}, "children": [1]}]',
        '[{"frame": {"name": "A"}, "metrics": {"time": -1}}]',
        '[{"frame": {"name": "A"}, "metrics": {"time": NaN}}]',
        "[" * 100_000,
    ],
)
def test_what_is_no_tree_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(ProfileFormatError, match="no tree of contexts"):
        read_hatchet(path)
