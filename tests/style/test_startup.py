# SPDX-License-Identifier: Apache-2.0
"""What starting costs: ``--help``, a look at the version, and the language server import nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

HEAVY = ("numpy", "networkx", "duckdb", "elftools", "tree_sitter", "zstandard", "cuda", "ncu_report")
"""Packages that only an analysis needs; each costs tens of milliseconds."""
ANALYSIS = tuple(
    f"gpadvisor.{name}"
    for name in ("analyzer", "blamer", "estimators", "rules", "report", "model.advice", "model.profile")
)
"""What the language server leaves to its workers, and shows without when it is kept."""

_PROBE = """
import contextlib, io, json, sys
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    from gpadvisor.cli import main
    code = main(json.loads(sys.argv[1]))
heavy = json.loads(sys.argv[2])
print(json.dumps([code, sorted(name for name in heavy if name in sys.modules)]))
"""


def _run(arguments: list[str]) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, json.dumps(arguments), json.dumps(HEAVY)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    code, loaded = json.loads(done.stdout)
    return code, loaded


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["advise", "--help"], ["rules", "--help"]])
def test_help_imports_no_heavy_package(arguments: list[str]) -> None:
    code, loaded = _run(arguments)
    assert code == 0
    assert loaded == []


@pytest.mark.parametrize(
    ("module", "left_out"),
    [
        ("gpadvisor", (*HEAVY, *ANALYSIS)),
        ("gpadvisor.lsp.server", (*HEAVY, *ANALYSIS)),
        ("gpadvisor.cubin.decoded", HEAVY),  # in a process of its own beside the disassembler
        ("gpadvisor.pipeline.timeline", set(HEAVY) - {"numpy"}),  # the same, beside the analysis
    ],
)
def test_importing_leaves_out_what_is_not_needed(module: str, left_out: Collection[str]) -> None:
    probe = (
        f"import {module}, sys, json; "
        "print(json.dumps([m for m in json.loads(sys.argv[1]) if m in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, json.dumps([*left_out])],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout) == []


def test_a_project_file_without_our_settings_is_not_parsed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "app"\n', encoding="utf-8")
    probe = (
        "import sys; from pathlib import Path; from gpadvisor.pipeline.settings import find_settings; "
        "print(find_settings(Path(sys.argv[1])).path, 'tomllib' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["None", "False"]
