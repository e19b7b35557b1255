# SPDX-License-Identifier: Apache-2.0
"""Rows and edges of a Blame in a form that tests can compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from tests.assembly import Samples, function_of, model, profile_of, program_of

from gpadvisor.blamer import DEFAULT_RULES, BlameRules, blame
from gpadvisor.blamer.graph import FunctionGraph
from gpadvisor.model.blame import CLASSES, NO_INDEX, Blame, CodeArea, DependencyEdge, Role
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function, Program


class Row(NamedTuple):
    """One row of a blame table."""

    reason: str
    role: str
    dependency: str
    definition: int | None
    use: int | None
    samples: int
    latency: int
    distance: int | None
    place: str
    function: int


def rows(result: Blame) -> list[Row]:
    """All rows in the table's order."""
    table = result.rows
    return [
        Row(
            result.reasons[int(table.reason[at])].name,
            Role(int(table.role[at])).name.lower(),
            CLASSES[int(table.dependency_class[at])].value,
            _index(int(table.def_index[at])),
            _index(int(table.use_index[at])),
            int(table.samples[at]),
            int(table.latency[at]),
            _index(int(table.distance[at])),
            CodeArea(int(table.place[at])).name.lower(),
            int(table.function[at]),
        )
        for at in range(len(table))
    ]


def _index(value: int) -> int | None:
    return None if value == NO_INDEX else value


def blamed(result: Blame, reason: str) -> dict[int | None, tuple[str, int]]:
    """By def: class and samples of a reason's blamed rows."""
    return {
        row.definition: (row.dependency, row.samples)
        for row in rows(result)
        if row.reason == reason and row.role == "blamed"
    }


def edge_of(result: Blame, definition: int, use: int) -> DependencyEdge:
    """The only edge between two instructions."""
    (edge,) = [one for one in result.edges if (one.def_index, one.use_index) == (definition, use)]
    return edge


def blame_text(
    text: str | Function,
    samples: Samples,
    *,
    rules: BlameRules = DEFAULT_RULES,
    counts: Mapping[int, int] | None = None,
    arch: str = "sm_80",
) -> Blame:
    """Blame the samples of a few lines."""
    function = function_of(text, arch=arch) if isinstance(text, str) else text
    return blame(program_of(function, arch=arch), profile_of(samples, counts=counts), model(arch), rules)


def graph_of(
    text: str, issues: Sequence[int] | None = None, *, waiting: Sequence[int] = (), arch: str = "sm_80"
) -> FunctionGraph:
    """Of a few lines that each issue once where nothing is said, and keep their unit for one pass."""
    function = function_of(text, arch=arch)
    count = len(function.instructions)
    issued = np.array([1] * count if issues is None else issues, dtype=np.int64)
    return FunctionGraph(function, model(arch), issued, frozenset(waiting), np.ones(count))


def assert_conserved(program: Program, profile: KernelProfile, result: Blame) -> None:
    """Per reason, samples and latency samples: blamed + self + unattributed = observed."""
    del program
    for index, reason in enumerate(profile.reasons):
        chosen = profile.samples.reason == index
        mine = result.rows.reason == index
        assert int(result.rows.samples[mine].sum()) == int(profile.samples.total[chosen].sum()), reason
        assert int(result.rows.latency[mine].sum()) == int(profile.samples.latency[chosen].sum()), reason
    table = result.rows
    assert (table.latency <= table.samples).all()
    assert (table.samples > 0).all()
    assert ((table.role == Role.BLAMED.value) == (table.def_index != NO_INDEX)).all()
