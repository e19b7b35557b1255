# SPDX-License-Identifier: Apache-2.0
"""The tuple of optimizers is complete, codes fit their category, every rule has its page and tests."""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
from tests.kernels import ROOT

from gpadvisor import rules as optimizers
from gpadvisor.estimators.context import Optimizer
from gpadvisor.estimators.run_facts import RunRule
from gpadvisor.model.advice import Category

HEADINGS = (
    "What it finds",
    "Why warps stall",
    "What to try",
    "Example",
    "When this advice is wrong",
    "How the gain is estimated",
)
TABLE_TWO = {
    "GPA101": "register_reuse",
    "GPA102": "strength_reduction",
    "GPA103": "function_split",
    "GPA104": "fast_math",
    "GPA105": "warp_balance",
    "GPA106": "memory_transaction_reduction",
    "GPA201": "loop_unrolling",
    "GPA202": "code_reordering",
    "GPA203": "function_inlining",
    "GPA301": "block_increase",
    "GPA302": "thread_increase",
}
FIRST_DIGIT = {
    Category.STALL_ELIMINATION: "1",
    Category.LATENCY_HIDING: "2",
    Category.PARALLEL: "3",
}


def _named(registered: str) -> dict[str, Any]:
    """What each module registers by a name of its own: an optimizer, or a rule on a whole run."""
    modules = {
        module.name: importlib.import_module(f"gpadvisor.rules.{module.name}")
        for module in pkgutil.iter_modules(optimizers.__path__)
    }
    assert all(hasattr(module, "OPTIMIZER") != hasattr(module, "RULE") for module in modules.values())
    return {
        name: getattr(module, registered) for name, module in modules.items() if hasattr(module, registered)
    }


def _modules() -> dict[str, Optimizer]:
    return _named("OPTIMIZER")


def test_every_module_is_in_the_tuple_once() -> None:
    listed = [id(optimizer) for optimizer in optimizers.OPTIMIZERS]
    assert sorted(listed) == sorted(id(optimizer) for optimizer in _modules().values())


def test_every_rule_on_a_run_is_in_its_tuple_once() -> None:
    rules = {name: cast("RunRule", rule) for name, rule in _named("RULE").items()}
    assert sorted(map(id, optimizers.RUN_RULES)) == sorted(map(id, rules.values()))
    assert all(rule.slug == name.replace("_", "-") for name, rule in rules.items())
    assert all(re.fullmatch(r"GPA5\d\d", rule.code) for rule in rules.values())


def test_all_eleven_of_table_two_are_there() -> None:
    found = {optimizer.code: name for name, optimizer in _modules().items()}
    assert TABLE_TWO.items() <= found.items()


def test_codes_are_unique_and_in_the_range_of_their_category() -> None:
    codes = [optimizer.code for optimizer in optimizers.OPTIMIZERS]
    assert len(set(codes)) == len(codes)
    for optimizer in optimizers.OPTIMIZERS:
        assert re.fullmatch(r"GPA[1-9]\d\d", optimizer.code)
        digit = FIRST_DIGIT.get(optimizer.category)
        assert optimizer.code[3] == digit if digit else optimizer.code[3] in "49"


def test_slugs_are_named_after_the_files() -> None:
    for name, optimizer in _modules().items():
        assert optimizer.slug == name.replace("_", "-")


@pytest.mark.parametrize("optimizer", optimizers.OPTIMIZERS, ids=lambda optimizer: optimizer.code)
def test_the_page_has_every_heading_in_order(optimizer: Optimizer) -> None:
    found = re.findall(r"^## (.+)$", optimizer.document, re.MULTILINE)
    assert tuple(found) == HEADINGS
    for section in re.split(r"^## .+$", optimizer.document, flags=re.MULTILINE)[1:]:
        assert section.strip()


@pytest.mark.parametrize("optimizer", optimizers.OPTIMIZERS, ids=lambda optimizer: optimizer.code)
def test_every_rule_is_tested(optimizer: Optimizer) -> None:
    assert re.search(rf"{optimizer.code}|{optimizer.slug.replace('-', '_')}", _tests())


@cache
def _tests() -> str:
    """All that tests say, but for those of the style."""
    paths = (path for path in Path(ROOT, "tests").rglob("test_*.py") if "style" not in path.parts)
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)
