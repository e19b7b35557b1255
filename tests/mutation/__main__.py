# SPDX-License-Identifier: Apache-2.0
"""`make mutate`: change one operator or number at a time, and see whether the package's unit tests notice.

A script of ours: mutmut leaves out what stands outside of functions (thresholds) and methods of dataclasses;
cosmic-ray changes the checkout itself, takes no sample, and would bring 28 packages into the hashed lock.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

import pytest
from tests.kept import FOLDER
from tests.mutation.trials import Change, Fate, Trials

ROOT: Final = Path(__file__).resolve().parents[2]
SERVER: Final = ROOT / "server"
_RULES: Final = ("tests/unit/rules", "tests/rules")
TESTS: Final = {
    "blamer": ("tests/unit/blamer",),
    "estimators": ("tests/unit/estimators", "tests/style/test_constants.py", *_RULES),
    "rules": _RULES,
    "sass/decoder.py": ("tests/unit/sass",),
    "editor/place": tuple(
        f"tests/unit/editor/test_{name}.py"
        for name in ("placing", "quieted", "remarks", "lines_in_sentences")
    ),
}
"""The tests that have to notice a change, by what is changed; rules ask most of the estimators."""
_ADVICE: Final = (
    "tests/golden/report",
    "tests/golden/captured",
    *(f"tests/fixtures/test_{name}.py" for name in ("traps", "patterns", "references")),
)
SLOWER_TESTS: Final = {
    "blamer": ("tests/property/blamer", *_ADVICE),
    "estimators": ("tests/property/estimators", *_ADVICE),
    "rules": _ADVICE,
}
"""Asked about what the others let pass: laws, and advice on compiled and on measured kernels, by word."""
MUTANTS: Final = 200
MINUTES: Final = 20
"""After which no test is asked any more; those that run are ended, and count as having noticed nothing."""
SEED: Final = 1
CPU_SECONDS: Final = 240
"""Of one test run, which takes five to ninety; a mutant that needs more does not end, and is caught."""
_SWAPS: Final[Mapping[type[ast.AST], type[ast.AST]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,  # codespell:ignore
    ast.NotIn: ast.In,  # codespell:ignore
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_NAMES: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_OPTIONS: Final = ("-q", "-p", "no:cacheprovider", "--hypothesis-seed=0")
_NOT_RUN: Final = frozenset({"annotation", "returns", "decorator_list"})
"""Parts of a definition that say how it is meant, not what it does."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file."""

    package: str
    file: Path  # below server/
    line: int
    at: int  # of the file's changes, from 0

    def changed(self) -> tuple[str, ast.Module]:
        """What is changed, and the whole file with it."""
        tree = _tree(self.file)
        node, fields = _sites(tree)[self.at]
        before = ast.unparse(node).partition("\n")[0]
        node.__dict__.update(fields)
        after = ast.unparse(node).partition("\n")[0]
        return f"{before}  ->  {after}", ast.fix_missing_locations(tree)


def mutants(package: str) -> Iterator[Mutant]:
    """Every change of a package that is known here."""
    start = SERVER / "gpadvisor" / package
    for file in sorted(start.rglob("*.py")) if start.is_dir() else [start]:
        name = file.relative_to(SERVER)
        yield from (
            Mutant(package, name, node.lineno, at) for at, (node, _) in enumerate(_sites(_tree(name)))
        )


def _tree(file: Path) -> ast.Module:
    return ast.parse((SERVER / file).read_text("utf-8"))


def _sites(tree: ast.Module) -> list[tuple[ast.expr | ast.stmt, dict[str, object]]]:
    """Nodes with new values of their fields, one change at a time."""
    return [(node, fields) for node in _nodes(tree) for fields in _changes(node)]


def _nodes(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    for name, value in ast.iter_fields(node):
        if name in _NOT_RUN:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.keyword) and child.arg == "strict":
                continue  # of zip: an assertion
            if isinstance(child, ast.AST):
                if isinstance(child, ast.expr | ast.stmt):
                    yield child
                yield from _nodes(child)


def _changes(node: ast.expr | ast.stmt) -> Iterator[dict[str, object]]:
    match node:
        case ast.Compare(ops=ops):
            for at, op in enumerate(ops):
                yield {"ops": [*ops[:at], _SWAPS[type(op)](), *ops[at + 1 :]]}
        case ast.BoolOp(values=[ast.Name(id="__doc__"), *_]):
            return  # there always is one
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) if type(op) in _SWAPS:
            yield {"op": _SWAPS[type(op)]()}
        case ast.Constant(value=bool(value)):
            yield {"value": not value}
        case ast.Constant(value=int(value)):
            yield {"value": value + 1}
        case ast.Constant(value=float(value)):
            yield {"value": 1.5 * value or 0.5}
        case ast.Name(id=name) if name in _NAMES:
            yield {"id": _NAMES[name]}
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield {"test": ast.UnaryOp(ast.Not(), test)}
        case ast.UnaryOp(op=ast.Not()):
            yield {"op": ast.Not(), "operand": ast.UnaryOp(ast.Not(), node.operand)}
        case ast.Expr(value=ast.Call()):
            yield {"value": ast.Constant(None)}


def _is_noticed(place: Path, tests: Sequence[str], end: float) -> bool:
    """Whether tests fail in time with the package of a place; what tools tell them all places share."""
    environment = os.environ | {
        FOLDER: str(place.parent),
        "PYTHONPATH": str(place),
        "PYTHONDONTWRITEBYTECODE": "1",  # two changes of a second and a size would be taken for one
        "HYPOTHESIS_STORAGE_DIRECTORY": str(place / "hypothesis"),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-x", *_OPTIONS, *tests],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        try:
            return process.wait(max(0.0, end - time.monotonic())) != 0
        except subprocess.TimeoutExpired:
            process.kill()
            return False


def _left(
    package: str, sample: Mapping[Mutant, Fate], tests: Sequence[str], jobs: int, end: float
) -> dict[Mutant, Fate]:
    """What tests do not notice in time, or cannot tell, in copies of this process; with its fate so far."""
    changes = (Change(str(SERVER / one.file), one.line, one.changed()[1]) for one in sample)
    trials = Trials(str(SERVER / "gpadvisor" / package), changes, jobs, end)
    with redirect_stdout(io.StringIO()):
        pytest.main([*_OPTIONS, "-p", "no:xdist", *tests], plugins=[trials])
    if trials.failed or (len(trials.fates) < len(sample) and time.monotonic() < end):
        sys.exit(f"{' '.join(trials.failed) or package}: these fail without any change")
    fates = {one: trials.fates.get(at, before) for at, (one, before) in enumerate(sample.items())}
    return {one: fate for one, fate in fates.items() if fate is not Fate.CAUGHT}


def _survives(mutant: Mutant, places: SimpleQueue[Path], end: float) -> bool:
    """Whether no test notices in time a change that cannot be made in a process that runs."""
    place = places.get()
    try:
        (place / mutant.file).write_text(ast.unparse(mutant.changed()[1]), "utf-8")
        stages = TESTS[mutant.package], SLOWER_TESTS.get(mutant.package, ())
        noticed = any(_is_noticed(place, tests, end) for tests in stages if tests)
        shutil.copy2(SERVER / mutant.file, place / mutant.file)  # with its time: its byte code is known by it
        return not noticed
    finally:
        places.put(place)


def _print(survivors: Collection[Mutant], sample: Sequence[Mutant], packages: Sequence[str]) -> None:
    for mutant in survivors:
        sys.stdout.write(f"server/{mutant.file}:{mutant.line}: {mutant.changed()[0]}\n")
    for package in packages:
        left, tried = (sum(one.package == package for one in some) for some in (survivors, sample))
        sys.stdout.write(f"{package}: {tried - left} of {tried}\n")
    caught = len(sample) - len(survivors)
    sys.stdout.write(f"{caught} of {len(sample)} caught ({100 * caught / max(1, len(sample)):.0f} %), ")


def main() -> int:
    """Print survivors and the score; what nobody was asked about in time counts as a survivor."""
    parser = argparse.ArgumentParser(prog="make mutate", description=__doc__)
    parser.add_argument("--mutants", type=int, default=MUTANTS)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="then no test is asked")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--package", choices=TESTS, action="append", help="these alone")
    chosen = parser.parse_args()
    end = time.monotonic() + 60 * chosen.minutes
    packages = chosen.package or list(TESTS)
    every = [mutant for package in packages for mutant in mutants(package)]
    sample = random.Random(chosen.seed).sample(every, min(chosen.mutants, len(every)))
    left = {
        package: dict.fromkeys((one for one in sample if one.package == package), Fate.UNTRIED)
        for package in packages
    }
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(chosen.jobs) as pool:
        os.environ[FOLDER] = folder
        for stage in (TESTS, SLOWER_TESTS):  # the slower ones of none before the quick ones of all
            for package in packages:
                tests = stage.get(package, ())
                if tests and left[package] and time.monotonic() < end:
                    left[package] = _left(package, left[package], tests, chosen.jobs, end)
        survivors = {mutant: fate for some in left.values() for mutant, fate in some.items()}
        places: SimpleQueue[Path] = SimpleQueue()
        for job in range(chosen.jobs):
            shutil.copytree(SERVER, Path(folder, str(job)))
            places.put(Path(folder, str(job)))
        undecided = [mutant for mutant, fate in survivors.items() if fate is Fate.UNDECIDED]
        for mutant, survived in zip(
            undecided, pool.map(lambda one: _survives(one, places, end), undecided), strict=True
        ):
            if not survived:
                del survivors[mutant]
    untried = sum(fate is Fate.UNTRIED for fate in survivors.values())
    _print(survivors, sample, packages)
    sys.stdout.write(f"{untried} not tried in time, of {len(every)} mutants, seed {chosen.seed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
