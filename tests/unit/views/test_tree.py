# SPDX-License-Identifier: Apache-2.0
"""Calling contexts: the figures worked out for the paper's algorithm, and conservation."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections import defaultdict
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpadvisor.errors import UsageError
from gpadvisor.model.profile import CallFrame
from gpadvisor.report.style import Style
from gpadvisor.views.tree.build import host_path
from gpadvisor.views.tree.formats import render_json
from gpadvisor.views.tree.formula import parse_formula
from gpadvisor.views.tree.model import RowKind, TreeColumn, TreeRow, TreeView
from gpadvisor.views.tree.reconstruct import MAX_NODES, Arrival, CallEdge, Contexts, reconstruct
from gpadvisor.views.tree.rows import RowsBuilder, arranged, summed
from gpadvisor.views.tree.stacks import largest_remainder, render_folded, render_speedscope
from gpadvisor.views.tree.text import render_text
from gpadvisor.views.tree.turned import turned

# kernmain, heart, top1, top2, common1, common2, slow path
COSTS = (2_625_536, 3_186_688, 23_998_464, 38_854_656, 50_151_424, 37_285_888, 3_907_584)
CALLS = (
    (0, 1, 12_288),
    (1, 2, 45_056),
    (1, 3, 32_768),
    (2, 4, 745_472),
    (3, 4, 712_704),
    (3, 6, 0),
    (4, 5, 1_863_680),
    (5, 3, 192_512),
    (5, 2, 167_936),
)


def edges(calls: tuple[tuple[int, int, float], ...]) -> list[CallEdge]:
    return [CallEdge(caller, site, callee, weight) for site, (caller, callee, weight) in enumerate(calls)]


def spent(contexts: Contexts, costs: tuple[float, ...]) -> dict[tuple[int | None, int], float]:
    """What each function costs below each call that leads to its place."""
    found: defaultdict[tuple[int | None, int], float] = defaultdict(float)
    for place in contexts.places:
        for function in place.members:
            found[place.edge, function] += place.factor * costs[function]
    return found


def test_the_shape_of_the_papers_figure() -> None:
    """Samples miss the call of B: it weighs one. D and E call each other."""
    costs = (10, 20, 30, 40, 60)
    calls = ((0, 1, 0), (0, 2, 3), (1, 3, 2), (2, 3, 6), (3, 4, 5), (4, 3, 4))
    contexts = reconstruct(costs, edges(calls), 0, counted=False)
    assert contexts.edges[0].weight == 1
    assert spent(contexts, costs) == {
        (None, 0): 10, (0, 1): 20, (1, 2): 30, (2, 3): 10, (2, 4): 15, (3, 3): 30, (3, 4): 45,
    }  # fmt: skip


def test_a_measured_recursion() -> None:
    """Samples of HPCToolkit's recursion-cuda on an A100: four functions in a circle, entered 11 : 8."""
    contexts = reconstruct(COSTS, edges(CALLS), 0, counted=False)
    found = spent(contexts, COSTS)
    by_line_44 = [found[1, function] for function in (2, 3, 4, 5)]
    by_line_45 = [found[2, function] for function in (2, 3, 4, 5)]
    assert by_line_44 == pytest.approx([13_893_847.6, 22_494_800.8, 29_035_034.9, 21_586_566.7], abs=0.06)
    assert by_line_45 == pytest.approx([10_104_616.4, 16_359_855.2, 21_116_389.1, 15_699_321.3], abs=0.06)
    slow = [place.factor * COSTS[6] for place in contexts.places if place.members == (6,)]
    assert sorted(slow) == pytest.approx([1_645_298.5, 2_262_285.5], abs=0.06)
    assert sum(found.values()) == pytest.approx(sum(COSTS))


def test_what_nothing_calls_is_below_an_unknown_caller() -> None:
    costs = (5, 7, 0, 9)
    contexts = reconstruct(costs, edges(((1, 3, 2), (0, 3, 2))), 0, counted=True)
    unknown = [place for place in contexts.places if place.arrival is Arrival.UNKNOWN]
    assert [place.members for place in unknown] == [(1,)], "one that costs nothing is nowhere"
    assert spent(contexts, costs)[0, 3] == 4.5


def test_samples_that_miss_every_call_into_a_circle_still_have_a_way_to_it() -> None:
    costs = (5, 7, 9)
    contexts = reconstruct(costs, edges(((0, 1, 0), (1, 2, 3), (2, 1, 4))), 0, counted=False)
    assert [(place.arrival, place.members) for place in contexts.places] == [
        (Arrival.KERNEL, (0,)),
        (Arrival.CALLED, (1, 2)),
    ]


def test_a_call_that_was_counted_and_never_made_leads_nowhere() -> None:
    costs = (5, 7, 9)
    contexts = reconstruct(costs, edges(((0, 1, 4), (0, 2, 4), (1, 2, 0))), 0, counted=True)
    assert not [
        place for place in contexts.places if place.parent and contexts.places[place.parent].members == (1,)
    ]
    assert len(contexts.places) == 3


def test_recursion_into_the_kernel_does_not_count_it_twice() -> None:
    costs = (5, 7)
    contexts = reconstruct(costs, edges(((0, 1, 4), (1, 0, 3), (1, 1, 2))), 0, counted=True)
    assert [place.members for place in contexts.places] == [(0, 1)]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[float], list[CallEdge], bool, int]:
    size = draw(st.integers(1, 40))
    functions = st.integers(0, size - 1)
    weights = st.one_of(st.just(0.0), st.integers(1, 10**9).map(float))
    calls = draw(st.lists(st.tuples(functions, functions, weights, st.booleans()), max_size=120))
    costs = draw(st.lists(st.one_of(st.just(0), st.integers(0, 10**9)), min_size=size, max_size=size))
    made = [
        CallEdge(caller, site, callee, weight, possible)
        for site, (caller, callee, weight, possible) in enumerate(calls)
    ]
    return [float(one) for one in costs], made, draw(st.booleans()), draw(st.integers(1, 60))


def check(costs: list[float], contexts: Contexts) -> None:
    """Each function that costs something is there once in all, and each place behind its parent."""
    factors: defaultdict[int, float] = defaultdict(float)
    for at, place in enumerate(contexts.places):
        assert place.parent is None or place.parent < at
        for function in place.members:
            factors[function] += place.factor
    for function, cost in enumerate(costs):
        if cost > 0 or function in factors:
            assert factors[function] == pytest.approx(1, rel=1e-9)


@given(graphs())
@settings(max_examples=300)
def test_the_places_of_a_function_have_all_that_it_costs(
    graph: tuple[list[float], list[CallEdge], bool, int],
) -> None:
    costs, calls, counted, most = graph
    check(costs, reconstruct(costs, calls, 0, counted=counted))
    check(costs, reconstruct(costs, calls, 0, counted=counted, max_nodes=most))


@given(st.integers(0, 10**6), st.sampled_from([500, 5000]), st.booleans())
@settings(max_examples=10, deadline=None)
def test_large_graphs_take_bounded_work(seed: int, size: int, counted: bool) -> None:
    """Each function calls two later ones, so that there are more ways to the last than can be counted."""
    random = Random(seed)
    costs = [float(random.randrange(100)) for _ in range(size)]
    calls = [
        CallEdge(caller, site, min(size - 1, caller + random.randrange(1, 4)), float(random.randrange(50)))
        for caller in range(size - 1)
        for site in range(2)
    ]
    calls += [CallEdge(random.randrange(size), 9, random.randrange(size), 1.0) for _ in range(size // 100)]
    contexts = reconstruct(costs, calls, 0, counted=counted, max_nodes=2000)
    check(costs, contexts)
    assert contexts.work <= 20 * (size + len(calls)) + 2 * 2000
    assert len(contexts.places) <= 2000 + size


def test_what_does_not_fit_is_kept_by_function() -> None:
    size = 40
    calls = [CallEdge(at, site, at + 1, 1.0) for at in range(size) for site in range(2)]
    contexts = reconstruct([1.0] * (size + 1), calls, 0, counted=True, max_nodes=100)
    check([1.0] * (size + 1), contexts)
    assert any(place.arrival is Arrival.FURTHER for place in contexts.places)
    assert len(contexts.places) <= 100 + size


@given(st.lists(st.floats(0, 1e9), max_size=50))
def test_rounding_by_largest_remainder(amounts: list[float]) -> None:
    whole = largest_remainder(amounts)
    assert sum(whole) == round(math.fsum(amounts))
    assert all(abs(one - amount) < 1 for one, amount in zip(whole, amounts, strict=True))


def test_formulas_are_those_of_a_spreadsheet() -> None:
    columns = {"a": np.array([4.0, 0.0]), "b": np.array([2.0, 3.0])}
    for text, expected in (
        ("a + b * 2", [8, 6]),
        ("(a + b) * 2", [12, 6]),
        ("a - b - 1", [1, -4]),
        ("b ^ 2 ^ 3", [256, 6561]),
        ("-a ^ 2", [-16, 0]),
        ("a / b / 2", [1, 0]),
        ("b / a", [0.5, np.nan]),
        ("min(a, b) + max(a, b)", [6, 3]),
        ("name = 1.5e1 * a", [60, 0]),
    ):
        assert parse_formula(text).evaluate(columns).tolist() == pytest.approx(expected, nan_ok=True), text
    assert parse_formula("of all = a").title == "of all"


leaves = st.sampled_from(["a", "b", "2", "0.5"])
formulas = st.recursive(
    leaves,
    lambda one: st.one_of(
        st.tuples(one, st.sampled_from("+-*/"), one).map(lambda parts: f"({' '.join(parts)})"),
        one.map(lambda inner: f"-{inner}"),
    ),
    max_leaves=12,
)


@given(formulas, st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=2, max_size=9))
def test_what_is_said_to_add_up_does(text: str, values: list[tuple[int, int]]) -> None:
    if "a" not in text and "b" not in text:
        return
    formula = parse_formula(text)
    table = np.array(values, dtype=np.float64)
    parts = formula.evaluate({"a": table[:, 0], "b": table[:, 1]})
    whole = formula.evaluate({"a": table[:, :1].sum(axis=0), "b": table[:, 1:].sum(axis=0)})
    if formula.is_additive and np.isfinite(parts).all():
        assert parts.sum() == pytest.approx(whole[0], abs=1e-6)


LETTERS = (
    "\t",
    " ",
    "(",
    ")",
    "-",
    "a+",
    "a^",
    "min(",
    "a,",
    "=",
    "a =",
    " =",
    "1e9",
    ".",
    "a/0+",
    "\0",
    "\u202e",
    "_",
)


@pytest.mark.parametrize("letters", LETTERS)
def test_a_long_formula_takes_time_in_proportion(letters: str) -> None:
    """A thousand tabs took four seconds, thousands of times as long as a sum of that length."""

    def seconds(text: str) -> float:
        begun = time.thread_time()
        with contextlib.suppress(UsageError):
            parse_formula(text, ("a",)).evaluate({"a": np.array([0.0, 1.0])})
        return time.thread_time() - begun

    long, sum_of_that_length = (letters * 1000)[:1000], "a+" * 499 + "aa"
    assert min(seconds(long) for _ in range(3)) < 100 * min(seconds(sum_of_that_length) for _ in range(3))


@given(st.text(max_size=60))
def test_any_text_is_a_formula_or_a_clear_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse_formula(text).columns


def test_python_stands_in_the_place_of_its_interpreter() -> None:
    def frame(function: str, module: str) -> CallFrame:
        return CallFrame(module=module, address=16, function=function, file=None, line=None)

    stack = [frame("step", "python"), frame("train", "python"), frame("launch", "/x/libtorch.so"),
             frame("_PyEval_EvalFrame", "/usr/bin/python3.11"), frame("Py_Main", "/lib/libpython3.11.so.1.0"),
             frame("_start", "/usr/bin/env")]  # fmt: skip
    assert [(row.kind, row.name) for row in host_path(stack)] == [
        (RowKind.HOST, "_start"),
        (RowKind.PYTHON, "train"),
        (RowKind.PYTHON, "step"),
        (RowKind.HOST, "launch"),
    ]
    assert [row.name for row in host_path(stack[:2])] == ["train", "step"]


def test_a_chain_of_5000_functions_in_every_view_and_format() -> None:
    made, at = RowsBuilder(), 0
    for number in range(5000):
        at = made.add(at, TreeRow(kind=RowKind.FUNCTION, name=f"f{number}"))
        at = made.add(at, TreeRow(kind=RowKind.LINE, name=f"a.cu:{number}"))
    metric = parse_formula("samples")
    column = TreeColumn(name="samples", what="PC samples")
    tree = summed(made, np.ones((len(made.rows), 1)), (column,))
    for view in TreeView:
        shown = turned(tree, view)
        assert len(shown.rows) <= MAX_NODES + 2 * 5000
        ordered = arranged(shown, shown.stacked[:, 0])
        assert len(json.loads(render_json(ordered, [metric], []))["rows"]) == len(ordered.rows)
        folded = render_folded(ordered, metric)
        assert sum(int(line.rpartition(" ")[2]) for line in folded.splitlines()) == 10_001
        events = json.loads(render_speedscope(ordered, [metric], "chain"))["profiles"][0]["events"]
        assert len(events) == 2 * len(ordered.rows)
        text = render_text(ordered, [metric], [], width=80, rows=20, style=Style(enabled=False))
        assert len(text.splitlines()) <= 30
