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


def _lines(tree: ast.Module) -> int:
    return max((node.end_lineno or 0 for node in tree.body), default=0)


LARGER_FILES: dict[str, int] = {
    "blamer/attribution.py": 404,
    "cubin/line_program.py": 413,
    "estimators/caps.py": 418,
    "evidence/loops.py": 450,
    "evidence/patterns.py": 491,
    "lsp/analyses.py": 414,
    "lsp/fixes.py": 402,
    "lsp/settings.py": 416,
    "pipeline/what_if.py": 405,
    "rules/block_increase.py": 439,
    "rules/code_reordering.py": 409,
    "rules/fast_math.py": 535,
    "rules/loop_unrolling.py": 611,
    "rules/memory_transaction_reduction.py": 656,
    "rules/register_reuse.py": 562,
    "rules/strength_reduction.py": 610,
    "rules/thread_increase.py": 587,
    "rules/warp_balance.py": 511,
    "sandbox/pool.py": 405,
    "simulator/engine.py": 693,
    "simulator/evaluate.py": 487,
    "simulator/lowering.py": 519,
    "simulator/profile.py": 601,
    "simulator/semantics.py": 669,
    "source/edits/types.py": 429,
    "source/launch_reading.py": 516,
    "store/collection/profile.py": 527,
    "store/ncu/profile.py": 460,
}
LARGER_FUNCTIONS: dict[str, int] = {
    "advice/kernel.py:advise_kernel": 101,
    "cli/profile.py:add_parser": 87,
    "cli/profile.py:run": 65,
    "editor/contents/analysis.py:analyse_for_editor": 78,
    "pipeline/advise.py:advise_file": 102,
    "report/why.py:render_why": 64,
    "rules/block_increase.py:_fullest_sm": 66,
    "rules/strength_reduction.py:_match": 68,
    "toolchain/compile.py:compile_source": 74,
}
MORE_PARAMETERS: dict[str, int] = {
    "analyzer/build.py:build_function": 8,
    "pipeline/programs.py:_listing": 8,
    "profiler/collect/remote.py:_by_ncu": 8,
    "report/tables.py:_row_lines": 8,
    "rules/thread_increase.py:_found": 8,
    "sass/decoder.py:__init__": 13,
    "simulator/engine.py:_behind_queue": 9,
    "simulator/engine.py:_issue": 8,
    "simulator/engine.py:_occupy": 9,
    "simulator/evaluate.py:_write": 8,
    "simulator/evaluate.py:_write_flag": 8,
    "simulator/holders.py:_note_ring": 8,
    "simulator/memory.py:global_access": 8,
    "simulator/memory.py:shared_access": 8,
}


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
        places = [
            one.arg for one in (*node.args.posonlyargs, *node.args.args) if one.arg not in {"self", "cls"}
        ]
        counts[name] = max(counts.get(name, 0), len(places))
    _check(counts, MAX_PARAMETERS, MORE_PARAMETERS)


def test_a_public_class_name_means_one_thing() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for name, tree in _trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    assert not {name: where for name, where in places.items() if len(where) > 1}


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
        graph.add_edges_from(
            (name, other) for other in _imports(name, tree, set(names)) if name != "gpadvisor"
        )
    return graph


IN_CIRCLES: set[frozenset[str]] = {
    frozenset(
        {
            "gpadvisor.lsp.analyses",
            "gpadvisor.lsp.comparing",
            "gpadvisor.lsp.debug_information",
            "gpadvisor.lsp.features.code_actions",
            "gpadvisor.lsp.features.code_lenses",
            "gpadvisor.lsp.features.commands",
            "gpadvisor.lsp.features.custom",
            "gpadvisor.lsp.features.hovers",
            "gpadvisor.lsp.features.inlay_hints",
            "gpadvisor.lsp.features.lifecycle",
            "gpadvisor.lsp.fixes",
            "gpadvisor.lsp.kernels",
            "gpadvisor.lsp.machine_code",
            "gpadvisor.lsp.overview",
            "gpadvisor.lsp.profile_runner",
            "gpadvisor.lsp.publishing",
            "gpadvisor.lsp.server",
            "gpadvisor.lsp.session",
            "gpadvisor.lsp.statuses",
        }
    ),
}


def test_imports_do_not_run_in_circles() -> None:
    found = {frozenset(one) for one in nx.strongly_connected_components(_graph()) if len(one) > 1}
    assert found == IN_CIRCLES, [sorted(one) for one in found ^ IN_CIRCLES]
