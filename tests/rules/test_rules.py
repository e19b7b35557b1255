# SPDX-License-Identifier: Apache-2.0
"""Every rule fires on its fixture, says what to do in numbers, and is silent on its near miss."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.optimizer_values import load_case

from gpadvisor.estimators.context import Optimizer
from gpadvisor.model.advice import Category, Match, Rejection
from gpadvisor.model.profile import Evidence
from gpadvisor.model.sentence import Sentence
from gpadvisor.rules import OPTIMIZERS

VERBS = frozenset(
    [
        "add",
        "call",
        "combine",
        "compute",
        "copy",
        "count",
        "declare",
        "divide",
        "fill",
        "give",
        "inline",
        "keep",
        "launch",
        "let",
        "load",
        "lower",
        "make",
        "mark",
        "move",
        "multiply",
        "put",
        "raise",
        "remove",
        "replace",
        "reserve",
        "share",
        "sort",
        "split",
        "start",
        "take",
        "test",
        "unroll",
        "use",
        "write",
    ]
)
"""What the first word of a change can be."""
CONDITIONS = re.compile(
    r"\b(?:if|unless|where the address) [^.,;:]+|[^.]*(?:change it, too|take it from)[^.]*\."
)
FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "rules"


def _case(optimizer: Optimizer, which: str) -> Path:
    return FOLDER / f"{optimizer.code}-{optimizer.slug}" / f"{which}.toml"


def test_every_folder_belongs_to_a_rule() -> None:
    folders = {path.name for path in FOLDER.iterdir() if path.is_dir()}
    assert folders == {f"{optimizer.code}-{optimizer.slug}" for optimizer in OPTIMIZERS}


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda optimizer: optimizer.code)
def test_fires(optimizer: Optimizer) -> None:
    case = load_case(_case(optimizer, "fires"))
    found = optimizer.match(case.context)
    assert isinstance(found, Match), found
    assert case.title is not None
    assert case.title in found.title
    for part in case.advice:
        assert part in found.advice
    estimate = optimizer.estimate(case.context, found)
    assert estimate.low <= estimate.expected <= estimate.high
    if optimizer.category is not Category.NOTE:
        assert estimate.paper is not None
        assert estimate.paper > 1
    rows = [row for region in found.regions for row in region.rows.tolist()]
    assert len(rows) == len(set(rows))


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda optimizer: optimizer.code)
def test_the_change_is_said_in_full_and_first(optimizer: Optimizer) -> None:
    """What is shown where there is no room for all begins with a verb and keeps each condition."""
    found = optimizer.match(load_case(_case(optimizer, "fires")).context)
    assert isinstance(found, Match)
    if optimizer.category is Category.NOTE or not found.actionable:
        return
    assert found.cure.split()[0].lower() in VERBS, found.cure
    for condition in CONDITIONS.findall(found.advice):
        assert condition.strip() in found.cure


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda optimizer: optimizer.code)
def test_lines_that_are_named_are_values(optimizer: Optimizer) -> None:
    """An editor tells them as they are in today's text: none is a part of the words."""
    context = load_case(_case(optimizer, "fires")).context
    found = optimizer.match(context)
    assert isinstance(found, Match)
    estimate = optimizer.estimate(context, found)
    for text in (found.title, found.advice, found.cure, *estimate.reasons):
        words = Sentence(text).at(lambda _: "?")
        assert not re.search(r"\bline \d|\w\.\w+:\d", words), words


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda optimizer: optimizer.code)
def test_is_quiet(optimizer: Optimizer) -> None:
    case = load_case(_case(optimizer, "quiet"))
    found = optimizer.match(case.context)
    assert isinstance(found, Rejection), found
    assert found.code == optimizer.code
    assert case.reason is not None
    assert case.reason in found.reason


@pytest.mark.parametrize("which", ["fires", "quiet"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda optimizer: optimizer.code)
def test_answers_whatever_was_not_measured(optimizer: Optimizer, which: str) -> None:
    """Counters without samples, and the machine code alone: what is found then has no samples either."""
    measured = load_case(_case(optimizer, which)).context
    for context in (
        replace(measured, blame=None, evidence=Evidence.COUNTED),
        replace(measured, blame=None, profile=None, evidence=Evidence.STATIC),
    ):
        found = optimizer.match(context)
        if isinstance(found, Match):
            assert not any(len(region.rows) for region in found.regions)
        else:
            assert found.code == optimizer.code
            assert found.reason
