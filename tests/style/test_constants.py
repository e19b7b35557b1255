# SPDX-License-Identifier: Apache-2.0
"""Numbers behind what is told stand in one table, and those of the paper follow from its Table III."""

from __future__ import annotations

import ast
import statistics
from collections.abc import Callable, Iterator

import pytest
from tests.kernels import ROOT

from gpadvisor.estimators import constants
from gpadvisor.estimators.constants import Constant, Ground

PACKAGE = ROOT / "server" / "gpadvisor"
UNITS = {0.0, 1.0, 1e5, 1e6, 1e9}
"""None, all, and how counts and times are written."""
GUARDS = {1e-12, 1e-9, 1000.0, 1.959964}
"""Against division by nothing and percentages that cannot be, and the normal distribution's quantile."""


def _floats() -> Iterator[tuple[str, float]]:
    files = [*(PACKAGE / "rules").glob("*.py"), *(PACKAGE / "estimators").glob("*.py")]
    files += [PACKAGE / "advice" / "standing.py", PACKAGE / "pipeline" / "what_if.py"]
    for path in files:
        if path.name == "constants.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, float):
                yield f"{path.name}:{node.lineno}", node.value


def test_no_rule_or_estimator_has_a_number_of_its_own() -> None:
    found = list(_floats())
    assert found
    assert not [(place, value) for place, value in found if value not in UNITS | GUARDS]


def test_every_constant_says_where_it_comes_from() -> None:
    table = constants.table()
    assert len(table) > 50
    assert all(one.reason and isinstance(one.ground, Ground) for one in table.values())
    public = {name for name, value in vars(constants).items() if isinstance(value, Constant)}
    assert public == set(table)


PUBLISHED = {
    "cheaper": [(1.21, 1.24), (1.14, 1.09), (1.11, 1.06)],  # backprop, hotspot, ExaTENSOR
    "fast": [(1.60, 1.68), (1.22, 1.13), (1.03, 1.09)],  # cfd, myocyte, Minimod
    "balanced": [(1.15, 1.14), (1.07, 1.17), (1.07, 1.09), (1.02, 1.10)],  # backprop, huffman, nw, sradv1
    "unrolled": [(1.12, 1.59), (1.17, 1.18), (1.11, 1.20), (1.11, 1.12)],  # bfs, heartwall, kmeans, lavaMD
    "reordered": [(1.04, 1.31), (1.16, 1.28), (1.41, 1.48), (1.04, 1.05)],  # pathfinder, b+tree, lud, Minimod
    "inlined": [(1.14, 1.18)],
    "reused": [(1.02, 1.04)],
    "requests": [(1.03, 1.05)],
}
"""Achieved and estimated speedups of the paper's Table III; kernels with an obstacle stand first."""


@pytest.mark.parametrize(
    ("constant", "rule", "of"),
    [
        ("CHEAPER_LEAST", "cheaper", min),
        ("CHEAPER_MOST", "cheaper", statistics.fmean),
        ("FAST_LEAST", "fast", min),
        ("FAST", "fast", statistics.fmean),
        ("FAST_MOST", "fast", max),
        ("BALANCED_LEAST", "balanced", min),
        ("BALANCED", "balanced", statistics.fmean),
        ("BALANCED_MOST", "balanced", max),
        ("UNROLLED_LEAST", "unrolled", min),
        ("UNROLLED", "unrolled", lambda shares: statistics.fmean(shares[1:])),
        ("HELD", "unrolled", lambda shares: shares[0] / statistics.fmean(shares[1:])),
        ("REORDERED_LEAST", "reordered", min),
        ("REORDERED", "reordered", lambda shares: statistics.fmean(shares[1:])),
        ("INLINED", "inlined", min),
        ("REUSED", "reused", min),
        ("REQUESTS", "requests", min),
    ],
)
def test_shares_of_table_iii_follow_from_its_speedups(
    constant: str, rule: str, of: Callable[[list[float]], float]
) -> None:
    shares = [(1 - 1 / achieved) / (1 - 1 / estimated) for achieved, estimated in PUBLISHED[rule]]
    assert constants.table()[constant] == pytest.approx(of(shares), abs=0.03)
    assert constants.table()[constant].ground is Ground.PAPER
