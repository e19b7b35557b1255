# SPDX-License-Identifier: Apache-2.0
"""Every rule fires on its fixture, says what to do in numbers, and is silent on its near miss."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.optimizer_values import load_case

from gpadvisor.estimators.context import Optimizer
from gpadvisor.model.advice import Category, Match, Rejection
from gpadvisor.rules import OPTIMIZERS

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
def test_is_quiet(optimizer: Optimizer) -> None:
    case = load_case(_case(optimizer, "quiet"))
    found = optimizer.match(case.context)
    assert isinstance(found, Rejection), found
    assert found.code == optimizer.code
    assert case.reason is not None
    assert case.reason in found.reason
