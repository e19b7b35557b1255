# SPDX-License-Identifier: Apache-2.0
"""Habits of every file: license line, docstring, no machine's paths, nothing left undone."""

from __future__ import annotations

import ast
import os
import re
import sys
from functools import cache
from pathlib import Path

import pytest
from tests.kernels import ROOT

SKIPPED_FOLDERS = {"build", "dist", "bundled", "node_modules", "__pycache__"}
DEMO = ROOT / "server" / "gpadvisor" / "cli" / "data" / "demo"
"""A snapshot, which is a zip file."""
TEXT_SUFFIXES = {
    ".py",
    ".md",
    ".toml",
    ".cu",
    ".cuh",
    ".json",
    ".txt",
    ".ambr",
    ".yml",
    ".yaml",
    ".ts",
    ".mjs",
    ".cjs",
    ".sh",
    "",
}


@cache
def _files() -> list[Path]:
    found = []
    for at, folders, names in os.walk(ROOT):
        folders[:] = [
            one for one in folders if one not in SKIPPED_FOLDERS and (one[0] != "." or one == ".ci")
        ]
        found += [Path(at, name) for name in names if name[0] != "." or name == ".gitignore"]
    return sorted(path for path in found if path.suffix in TEXT_SUFFIXES and path != DEMO and path.is_file())


def _python() -> list[Path]:
    return [path for path in _files() if path.suffix == ".py"]


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_there_are_files_to_check() -> None:
    assert len(_python()) > 20


def test_sources_start_with_the_license_line() -> None:
    wanted = {
        ".py": "# ",
        ".toml": "# ",
        ".cu": "// ",
        ".ts": "// ",
        ".mjs": "// ",
        ".cjs": "// ",
        ".sh": "# ",
    }
    missing = [
        _name(path)
        for path in _files()
        if path.suffix in wanted
        and path.name != "pyproject.toml"
        and not _text(path).startswith((f"{wanted[path.suffix]}SPDX-License-Identifier: Apache-2.0\n", "#!/"))
    ]
    assert not missing


def test_python_files_have_a_docstring_and_lazy_annotations() -> None:
    for path in _python():
        tree = ast.parse(_text(path))
        assert ast.get_docstring(tree), _name(path)
        defines = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        assert not defines or any(node.module == "__future__" for node in imports), _name(path)


THIS_MACHINE = sorted({str(ROOT), str(Path.home()), sys.base_prefix} - {"/", "/usr"})
FORBIDDEN = {
    "a path of this machine": "|".join(map(re.escape, THIS_MACHINE)),
    "a registry's host": r"(pypi|files\.pythonhosted)\.org|registry\.npmjs|/simple/",
    "something left undone": r"\b(TODO|FIXME|XXX|HACK)\b",
    "a merge conflict": r"^(<{7}|>{7}) ",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what: str) -> None:
    own = Path(__file__).resolve()
    forbidden = re.compile(FORBIDDEN[what], re.MULTILINE)
    found = [
        f"{_name(path)}:{number}: {line.strip()[:80]}"
        for path in _files()
        if path.resolve() != own and forbidden.search(_text(path))
        for number, line in enumerate(_text(path).splitlines(), 1)
        if forbidden.search(line)
    ]
    assert not found, f"{what}: {found}"


def test_ignored_checks_say_why() -> None:
    """``# type: ignore`` and ``# noqa`` carry their rule and a reason in words on the same line."""
    marks = re.compile(
        r"# (?:type: ignore(?P<rule>\[[\w, -]+\])?|noqa(?P<code>: [A-Z0-9, ]+)?)(?P<reason>.*)"
    )
    bare = []
    for path in _python():
        if path.resolve() == Path(__file__).resolve():
            continue
        for number, line in enumerate(_text(path).splitlines(), 1):
            found = marks.search(line)
            if found and not ((found["rule"] or found["code"]) and len(found["reason"]) > 8):
                bare.append(f"{_name(path)}:{number}")
    assert not bare


def test_no_cubin_listing_or_report_is_checked_in() -> None:
    foreign = [
        _name(path)
        for path in ROOT.joinpath("fixtures").rglob("*")
        if path.is_file()
        and path.suffix in {".cubin", ".sass", ".ptx", ".fatbin"}
        # Our own Python kernels as their compilers translate them, which the tests do not depend on.
        and not (path.suffix == ".ptx" and path.with_suffix(".py").is_file())
    ]
    assert not foreign
