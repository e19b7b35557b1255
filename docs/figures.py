# SPDX-License-Identifier: Apache-2.0
"""How large and how tangled the sources are: ``make figures``, of this tree and of the commits named.

``make figures ARGS="407341e --report FILE"`` also follows a report through the tree's own code: which files
run until an editor's contents are made of it, how often a call goes up a layer, and of how many kinds the
values are that it is put in.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final

import networkx as nx

ROOT: Final = Path(__file__).resolve().parents[1]
MAX_LINES, MAX_FUNCTION_LINES, MAX_PARAMETERS = 400, 60, 7
_ARCHITECTURES: Final = frozenset({60, 70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121})
_VAGUE: Final = frozenset(
    {
        "asked",
        "at",
        "back",
        "every",
        "found",
        "given",
        "here",
        "kept",
        "known",
        "last",
        "left",
        "made",
        "meant",
        "named",
        "now",
        "one",
        "other",
        "others",
        "own",
        "rest",
        "said",
        "seen",
        "shown",
        "so",
        "taken",
        "there",
        "told",
        "wanted",
        "way",
        "what",
        "whole",
        "each",
    }
)
"""Names that say little of what they stand for."""
Trees = Mapping[str, ast.Module]


def trees(root: Path) -> Trees:
    """The modules of the package in a tree, by path below the package."""
    package = root / "server" / "gpadvisor"
    return {
        path.relative_to(package).as_posix(): ast.parse(path.read_text("utf-8"))
        for path in sorted(package.rglob("*.py"))
    }


def lines(tree: ast.Module) -> int:
    """Lines of a file, down to its last statement."""
    return max((node.end_lineno or 0 for node in tree.body), default=0)


def functions(modules: Trees) -> Mapping[str, tuple[int, int]]:
    """Lines and parameters of every function, by file and name; of several with one name the most."""
    found: dict[str, tuple[int, int]] = {}
    for name, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                key, arguments = f"{name}:{node.name}", (*node.args.posonlyargs, *node.args.args)
                size = (node.end_lineno or 0) - node.lineno + 1
                count = sum(one.arg not in {"self", "cls"} for one in arguments)
                before = found.get(key, (0, 0))
                found[key] = max(before[0], size), max(before[1], count)
    return found


def vague_share(modules: Trees) -> float:
    """The share of bound names (variables, parameters, functions, classes) that say little."""
    names: list[str] = []
    for node in (node for tree in modules.values() for node in ast.walk(tree)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        elif isinstance(node, ast.arg):
            names.append(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
    return sum(name in _VAGUE for name in names) / max(1, len(names))


def shared_names(modules: Trees) -> Mapping[str, list[str]]:
    """Public class names that stand for several things, with their files."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, tree in modules.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    return {name: where for name, where in places.items() if len(where) > 1}


def imports(modules: Trees) -> nx.DiGraph:
    """Which module imports which, types included; the package itself only says its version to others."""
    names = {
        f"gpadvisor.{name.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__"): tree
        for name, tree in modules.items()
    }
    graph = nx.DiGraph()
    for name, tree in names.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpadvisor"):
                targets = [f"{node.module}.{alias.name}" for alias in node.names]
                graph.add_edges_from((name, one if one in names else node.module) for one in targets)
            elif isinstance(node, ast.Import):
                graph.add_edges_from((name, alias.name) for alias in node.names if alias.name in names)
    graph.remove_edges_from([*graph.out_edges("gpadvisor")])
    return graph


def circles(modules: Trees) -> list[list[str]]:
    """Modules that import each other, by circle."""
    return [sorted(one) for one in nx.strongly_connected_components(imports(modules)) if len(one) > 1]


# ---- what an addition touches ----


def _of_rules(modules: Trees) -> float:
    """Files that name a rule's code or import its module, its own included: the mean over all rules."""
    folder = "rules/" if any(name.startswith("rules/") for name in modules) else "optimizers/"
    named = {name: _named(tree) for name, tree in modules.items()}
    touched = []
    for name, tree in modules.items():
        text = ast.unparse(tree) if name.startswith(folder) else ""
        if "OPTIMIZER" in text and (code := re.search(r"GPA\d{3}", text)):
            wanted = {code[0], Path(name).stem}
            touched.append(sum(bool(wanted & one) for one in named.values()))
    return sum(touched) / len(touched)


def _named(tree: ast.Module) -> set[str]:
    """Strings of a module, and the last names of what it imports and imports from."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(value)) | ast.alias(name=value):
                found.add(value)
            case ast.ImportFrom(module=str(module)):
                found.add(module.rpartition(".")[2])
    return found


def _of_architectures(modules: Trees) -> int:
    """Files whose code compares with the number of an architecture, or names one."""
    return sum(
        any(
            (
                isinstance(node, ast.Compare)
                and re.search(r"arch|sm_number|capability", ast.unparse(node.left)) is not None
                and any(
                    isinstance(one, ast.Constant) and one.value in _ARCHITECTURES for one in node.comparators
                )
            )
            or (isinstance(node, ast.Constant) and re.fullmatch(r"sm_\d+a?", str(node.value)) is not None)
            for node in ast.walk(tree)
        )
        for tree in modules.values()
    )


def _of_formats(modules: Trees) -> int:
    """Files outside of ``store`` that import from a format's own modules."""
    inner = re.compile(r"gpadvisor\.store\.(ncu|collection|snapshot|parquet|tables|redaction|line_paths)\b")
    return sum(
        not name.startswith("store/")
        and any(
            isinstance(node, ast.ImportFrom) and inner.match(node.module or "") for node in ast.walk(tree)
        )
        for name, tree in modules.items()
    )


def _of_features(modules: Trees) -> float:
    """Files whose code names a feature of the editor: the mean of inlay hints, code lenses and hovers."""
    counts = []
    for words in ("inlay_?hint", "code_?lens", "hover"):
        wanted = re.compile(words, re.IGNORECASE)
        names = (
            {
                word
                for node in ast.walk(tree)
                for word in (getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "name", ""))
                if isinstance(word, str) and wanted.search(word)
            }
            for tree in modules.values()
        )
        counts.append(sum(bool(one) for one in names))
    return sum(counts) / len(counts)


# ---- a run ----

_WALK: Final = """
import sys, json
from pathlib import Path
tree, report = sys.argv[1:]
sys.path[:0] = [tree, tree + "/server"]
from docs_figures import walked
print(json.dumps(walked(Path(tree), Path(report))))
"""


def walked(tree: Path, report: Path) -> dict[str, int]:
    """What runs in this process from a report to an editor's contents; children read the file itself."""
    layers = _layers(tree)
    package = str(tree / "server" / "gpadvisor") + os.sep
    files: set[str] = set()
    calls: set[tuple[str, str]] = set()
    values: set[str] = set()

    def room(file: str) -> int:
        return layers.get(file.partition("/")[0].removesuffix(".py"), 0)

    def note(frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        name = frame.f_code.co_filename
        if name == "<string>" and frame.f_code.co_name == "__init__":
            kind = type(frame.f_locals.get("self"))
            if kind.__module__.startswith("gpadvisor.") and not kind.__name__.startswith("_"):
                values.add(f"{kind.__module__}.{kind.__name__}")
        if not name.startswith(package):
            return
        file = name[len(package) :]
        files.add(file)
        caller = frame.f_back.f_code.co_filename if frame.f_back is not None else ""
        if caller.startswith(package) and caller != name:
            calls.add((caller[len(package) :], file))

    analyse, request, cache = _entry()
    sys.setprofile(note)
    analyse(report, request, lambda _: None, cache)
    sys.setprofile(None)
    return {
        "files that run": len(files),
        "calls from file to file": len(calls),
        "of them up a layer": sum(room(callee) > room(caller) for caller, callee in calls),
        "kinds of values made": len(values),
    }


def _layers(tree: Path) -> Mapping[str, int]:
    document = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))
    rows = next(one["layers"] for one in document["tool"]["importlinter"]["contracts"] if "layers" in one)
    return {name: -at for at, row in enumerate(rows) for name in re.findall(r"\w+", row)}


def _entry() -> tuple[Callable[..., object], object, object]:
    """The function from a file to an editor's contents, by today's name or an earlier one."""
    import importlib  # noqa: PLC0415  # only in the child, whose package is that of the tree

    def first(*names: str) -> Any:  # of another tree: its types are not known here
        for name in names:
            module, _, value = name.partition(":")
            with contextlib.suppress(ModuleNotFoundError, AttributeError):
                return getattr(importlib.import_module(f"gpadvisor.{module}"), value)
        raise LookupError(names)

    request = first("pipeline.request:Request", "workflow.request:Request")
    settings = first("pipeline.settings:Settings", "workflow.settings:Settings")
    analyse = first(
        "editor.contents.analysis:advise_and_show",
        "editor.contents.analysis:analyse_for_editor",
        "workflow.editor:analyse_for_editor",
    )
    cache = first("pipeline.cache:Cache", "workflow.cache:Cache")
    return analyse, request(settings=settings()), cache(None)


def _walk(tree: Path, report: Path) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "docs_figures.py").write_text(Path(__file__).read_text("utf-8"), "utf-8")
        done = subprocess.run(
            [sys.executable, "-c", _WALK, str(tree), str(report.resolve())],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": folder},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    counted: dict[str, int] = json.loads(done.stdout)
    return counted


# ---- the table ----


def figures(root: Path, report: Path | None = None) -> dict[str, str]:
    """The rows of the table for a tree."""
    modules = trees(root)
    own, sizes, rings = functions(modules), [*map(lines, modules.values())], circles(modules)
    found: dict[str, object] = {
        "files in `server`": len(modules),
        "lines": sum(len(path.read_text("utf-8").splitlines()) for path in (root / "server").rglob("*.py")),
        f"files over {MAX_LINES} lines": sum(size > MAX_LINES for size in sizes),
        f"functions over {MAX_FUNCTION_LINES} lines": sum(
            size > MAX_FUNCTION_LINES for size, _ in own.values()
        ),
        f"functions with more than {MAX_PARAMETERS} positions": sum(
            count > MAX_PARAMETERS for _, count in own.values()
        ),
        "circles of imports (modules in them)": f"{len(rings)} ({sum(map(len, rings))})",
        "class names with several meanings": len(shared_names(modules)),
        f"names among {len(_VAGUE)} words that say little": f"{100 * vague_share(modules):.1f} %",
        "files that name a rule, on average": f"{_of_rules(modules):.1f}",
        "files that name an architecture": _of_architectures(modules),
        "files outside of `store` that name a format": _of_formats(modules),
        "files that name a feature of the editor, on average": f"{_of_features(modules):.1f}",
    }
    if report is not None:
        found |= {f"report to editor: {name}": count for name, count in _walk(root, report).items()}
    return {name: f"{value:,}" if isinstance(value, int) else str(value) for name, value in found.items()}


def main() -> None:
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser(prog="make figures", description=__doc__)
    parser.add_argument("commits", nargs="*", metavar="COMMIT", help="beside this tree")
    parser.add_argument("--report", type=Path, help="follow this one")
    chosen = parser.parse_args()
    columns = {}
    for commit in chosen.commits:
        with tempfile.TemporaryDirectory() as folder:
            packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True)  # noqa: S607  # the git that is there
            with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
                archive.extractall(folder, filter="data")
            columns[commit] = figures(Path(folder), chosen.report)
    columns["now"] = figures(ROOT, chosen.report)
    out = [f"| | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
    out += [f"| {name} | {' | '.join(rows[name] for rows in columns.values())} |" for name in columns["now"]]
    sys.stdout.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
