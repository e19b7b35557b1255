# SPDX-License-Identifier: Apache-2.0
"""How `make mutate` sets a change into modules that are imported already."""

from __future__ import annotations

import ast
import os
import time
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from tests.mutation.trials import Change, Fate, Trials, changed_functions, changed_value, functions_by_file

from gpadvisor.model import integers


def _change(old: str, new: str) -> Change:
    file = Path(integers.__file__)
    text = file.read_text("utf-8")
    assert text.count(old) == 1
    line = text[: text.index(old)].count("\n") + 1
    return Change(str(file), line, ast.parse(text.replace(old, new)))


def _changed(change: Change) -> dict[FunctionType, CodeType]:
    return changed_functions(change, functions_by_file())


def test_a_change_inside_of_a_function_is_its_new_code() -> None:
    functions = _changed(_change("low = value & MASK", "low = value | MASK"))
    ((function, code),) = functions.items()
    assert function is integers.signed
    assert code.co_varnames == function.__code__.co_varnames


def test_a_function_that_holds_the_changed_one_has_new_code_too() -> None:
    functions = _changed(_change("if kind is None or packed", "if kind is None and packed"))
    assert {function.__qualname__ for function in functions} == {"_extreme", "_extreme.<locals>.rule"}


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("BITS: Final = 32", "BITS: Final = 33", "BITS"),
        ('"LDCU", "CS2R"', '"LDCU", "CS3R"', "_CONSTANTS"),
        ("sign: int = 1", "sign: int = 2", None),  # a default, which is nobody's name
    ],
)
def test_a_value_is_bound_by_the_name_of_its_statement(old: str, new: str, name: str | None) -> None:
    change = _change(old, new)
    assert not _changed(change)
    found = changed_value(change)
    assert (None if found is None else found[:2]) == (None if name is None else (integers, name))


@pytest.mark.parametrize(("seconds", "fates"), [(0.0, {0: Fate.CAUGHT}), (60.0, {})])
def test_what_still_runs_when_time_is_up_is_ended(seconds: float, fates: dict[int, Fate]) -> None:
    trials = Trials("", [], 1, time.monotonic() + 1)
    pid = os.fork()
    if pid == 0:
        time.sleep(seconds)
        os._exit(Fate.CAUGHT.value)
    trials._await({pid: 0})
    assert trials.fates == fates
