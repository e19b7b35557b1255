# SPDX-License-Identifier: Apache-2.0
"""The shape of the house: what stands where, how large it may get, and that nothing runs in circles.

What is larger than a limit today is named with its size: it may shrink, and nothing may join it.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx
from tests.kernels import ROOT

SERVER = ROOT / "server"
PACKAGE = SERVER / "gpadvisor"
MAX_LINES, MAX_FUNCTION_LINES, MAX_PARAMETERS = 400, 60, 7


@cache
def _trees() -> dict[str, ast.Module]:
    return {
        str(path.relative_to(PACKAGE)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def _room(name: str) -> str:
    return name.partition("/")[0]


def test_codes_of_rules_stand_in_the_rules() -> None:
    elsewhere = [
        f"{name}:{node.lineno}"
        for name, tree in _trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"GPA[1-4]\d\d", node.value)
        and _room(name) != "rules"
    ]
    assert not elsewhere


STARTERS = re.compile(r"Popen|create_subprocess_\w+|fork\w*|posix_spawn\w*|exec[lv]\w*|spawn[lv]\w*|system|popen")


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


def _lines(tree: ast.Module) -> int:
    return max((node.end_lineno or 0 for node in tree.body), default=0)


LARGER_FILES: dict[str, int] = {}
LARGER_FUNCTIONS: dict[str, int] = {}
MORE_PARAMETERS: dict[str, int] = {}


def _check(found: dict[str, int], limit: int, known: dict[str, int]) -> None:
    over = {name: size for name, size in found.items() if size > max(limit, known.get(name, 0))}
    assert not over, "shorten them"
    done = {name for name in known if found.get(name, 0) <= limit}
    assert not done, "within the limit now: take them off the list"


def test_files_fit_the_eye() -> None:
    _check({name: _lines(tree) for name, tree in _trees().items()}, MAX_LINES, LARGER_FILES)


def _functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for name, tree in _trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{name}:{node.name}", node


def test_functions_fit_a_screen() -> None:
    sizes = {name: (node.end_lineno or 0) - node.lineno + 1 for name, node in _functions()}
    _check(sizes, MAX_FUNCTION_LINES, LARGER_FUNCTIONS)


def test_functions_take_few_parameters() -> None:
    """Those that stand in their place; keywords say what they are."""
    counts: dict[str, int] = {}
    for name, node in _functions():
        places = [one.arg for one in (*node.args.posonlyargs, *node.args.args) if one.arg not in {"self", "cls"}]
        counts[name] = max(counts.get(name, 0), len(places))
    _check(counts, MAX_PARAMETERS, MORE_PARAMETERS)


SHARED_NAMES: set[str] = set()


def test_a_public_class_name_means_one_thing() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for name, tree in _trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    shared = {name for name, where in places.items() if len(where) > 1}
    assert shared <= SHARED_NAMES, {name: places[name] for name in shared - SHARED_NAMES}
    assert shared >= SHARED_NAMES, "used once now: take them off the list"


def _imports(name: str, tree: ast.Module, known: set[str]) -> set[str]:
    """Modules of this package that one imports when it is imported, types included."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("gpadvisor"):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return found & known


def _graph() -> nx.DiGraph:
    names = {
        f"gpadvisor.{name.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__"): tree
        for name, tree in _trees().items()
    }
    graph = nx.DiGraph()
    for name, tree in names.items():
        # The package itself is what users import; others take its version from it.
        graph.add_edges_from((name, other) for other in _imports(name, tree, set(names)) if name != "gpadvisor")
    return graph


IN_CIRCLES: set[frozenset[str]] = set()


def test_imports_do_not_run_in_circles() -> None:
    found = {frozenset(one) for one in nx.strongly_connected_components(_graph()) if len(one) > 1}
    assert found == IN_CIRCLES, [sorted(one) for one in found ^ IN_CIRCLES]
