# SPDX-License-Identifier: Apache-2.0
"""The shape of the house: what stands where, how large it may get, and that nothing runs in circles.

What is larger than a limit today is named with its size: it may shrink, and nothing may join it.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from functools import cache

from docs import figures
from docs.figures import MAX_FUNCTION_LINES, MAX_LINES, MAX_PARAMETERS
from tests.kernels import ROOT


@cache
def _trees() -> figures.Trees:
    return figures.trees(ROOT)


def _room(name: str) -> str:
    return name.partition("/")[0]


def test_codes_of_rules_stand_in_the_rules() -> None:
    elsewhere = [
        f"{name}:{node.lineno}"
        for name, tree in _trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"GPA[1-5]\d\d", node.value)
        and _room(name) != "rules"
    ]
    assert not elsewhere


OTHER_PERCENTS = {"estimators/contention.py": 4, "gate/formats.py": 1, "report/words.py": 1}
"""Ranges that share one sign, a change with its sign and its band, and an expression that finds percents."""


def test_percents_are_written_in_one_place() -> None:
    found: Counter[str] = Counter()
    for name, tree in _trees().items():
        for text in (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)):
            for value, after in zip(text.values, [*text.values[1:], None], strict=True):
                if isinstance(value, ast.FormattedValue) and (
                    (value.format_spec is not None and "%" in ast.unparse(value.format_spec))
                    or (isinstance(after, ast.Constant) and re.match(r" ?%(?![A-Za-z])", str(after.value)))
                ):
                    found[name] += 1
    assert found.pop("model/figures.py") == 1
    assert found == OTHER_PERCENTS


STARTERS = re.compile(
    r"Popen|create_subprocess_\w+|fork\w*|posix_spawn\w*|exec[lv]\w*|spawn[lv]\w*|system|popen"
)


def test_only_the_sandbox_starts_processes() -> None:
    elsewhere = [
        f"{name}:{node.lineno}"
        for name, tree in _trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in {"os", "subprocess", "asyncio", "multiprocessing", "pty"}
        and STARTERS.fullmatch(node.func.attr)
        and _room(name) != "sandbox"
    ]
    assert not elsewhere


def test_the_contract_on_processes_names_every_other_room() -> None:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (contract,) = (
        one for one in document["tool"]["importlinter"]["contracts"] if "starts processes" in one["name"]
    )
    rooms = {_room(name).removesuffix(".py") for name in _trees()} - {"__init__", "sandbox"}
    assert {name.removeprefix("gpadvisor.") for name in contract["source_modules"]} == rooms


LARGER_FILES: dict[str, int] = {}
LARGER_FUNCTIONS: dict[str, int] = {}
MORE_PARAMETERS: dict[str, int] = {}


def _check(found: dict[str, int], limit: int, known: dict[str, int]) -> None:
    over = {name: size for name, size in found.items() if size > max(limit, known.get(name, 0))}
    assert not over, "shorten them"
    done = {name for name in known if found.get(name, 0) <= limit}
    assert not done, "within the limit now: take them off the list"


def test_files_fit_the_eye() -> None:
    _check({name: figures.lines(tree) for name, tree in _trees().items()}, MAX_LINES, LARGER_FILES)


def test_functions_fit_a_screen() -> None:
    sizes = {name: size for name, (size, _) in figures.functions(_trees()).items()}
    _check(sizes, MAX_FUNCTION_LINES, LARGER_FUNCTIONS)


def test_functions_take_few_parameters() -> None:
    """Those that stand in their place; keywords say what they are."""
    counts = {name: count for name, (_, count) in figures.functions(_trees()).items()}
    _check(counts, MAX_PARAMETERS, MORE_PARAMETERS)


def test_a_public_class_name_means_one_thing() -> None:
    assert not figures.shared_names(_trees())


def test_no_other_type_takes_the_name_of_a_class() -> None:
    classes = {
        node.name
        for tree in _trees().values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    }
    aliases = {
        target.id
        for tree in _trees().values()
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    assert not classes & aliases


def test_imports_do_not_run_in_circles() -> None:
    """Not through a package's own module, either, which import-linter takes for its contents."""
    assert not figures.circles(_trees())
