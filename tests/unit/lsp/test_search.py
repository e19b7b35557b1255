# SPDX-License-Identifier: Apache-2.0
"""Which files are profiles, and what the machine code of a source depends on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpadvisor.lsp import search
from gpadvisor.lsp.search import find_profiles, is_profile, source_state

PATTERNS = ("**/*.ncu-rep", "runs/*.gpadvisor")


def make(path: Path, seconds: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x", encoding="utf-8")
    os.utime(path, (seconds, seconds))


def test_profiles_are_found_newest_first(tmp_path: Path) -> None:
    make(tmp_path / "old.ncu-rep", 100)
    make(tmp_path / "deep" / "new.ncu-rep", 300)
    make(tmp_path / "runs" / "a.gpadvisor", 200)
    make(tmp_path / "other" / "b.gpadvisor", 400)
    make(tmp_path / ".hidden" / "c.ncu-rep", 500)
    make(tmp_path / "node_modules" / "d.ncu-rep", 500)
    (tmp_path / "empty.ncu-rep").touch()
    (tmp_path / "folder.ncu-rep").mkdir()
    os.mkfifo(tmp_path / "pipe.ncu-rep")
    found = find_profiles(tmp_path, PATTERNS, 10)
    assert [Path(one.path).name for one in found] == ["new.ncu-rep", "a.gpadvisor", "old.ncu-rep"]
    assert [Path(one.path).name for one in find_profiles(tmp_path, PATTERNS, 1)] == ["new.ncu-rep"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/w/a.ncu-rep", True), ("/w/x/y/a.ncu-rep", True), ("/w/a.cu", False), ("/w/runs/a.gpadvisor", True)],
)
def test_names_that_fit(path: str, *, expected: bool) -> None:
    assert is_profile(path, Path("/w"), PATTERNS) is expected


def test_a_source_depends_on_what_it_includes(tmp_path: Path) -> None:
    source = tmp_path / "a.cu"
    source.write_text('#include "b.cuh"\n#include <cstdio>\n', encoding="utf-8")
    (tmp_path / "include").mkdir()
    (tmp_path / "b.cuh").write_text('  #  include "c.cuh"\n#include "a.cu"\n', encoding="utf-8")
    (tmp_path / "include" / "c.cuh").write_text("int c;\n", encoding="utf-8")
    before = source_state(str(source), tmp_path, "x")
    assert before is not None
    assert {Path(path).name for path in before.files} == {"a.cu", "b.cuh", "c.cuh"}
    assert source_state(str(source), tmp_path, "x") == before
    assert source_state(str(source), tmp_path, "y") != before
    (tmp_path / "include" / "c.cuh").write_text("int d;\n", encoding="utf-8")
    after = source_state(str(source), tmp_path, "x")
    assert after is not None
    assert after.digest != before.digest
    (tmp_path / "gpadvisor.toml").write_text("top = 1\n", encoding="utf-8")
    third = source_state(str(source), tmp_path, "x")
    assert third is not None
    assert third.digest != after.digest
    assert source_state(str(tmp_path / "none.cu"), tmp_path, "x") is None


def test_folders_count_as_files_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree of folders alone is no more to walk than one of files."""
    monkeypatch.setattr(search, "MAX_ENTRIES", 20)
    for number in range(40):
        (tmp_path / f"{number:02d}").mkdir()
    (tmp_path / "39" / "far.ncu-rep").write_bytes(b"x")
    (tmp_path / "05" / "near.ncu-rep").write_bytes(b"x")
    found = find_profiles(tmp_path, PATTERNS, 10)
    assert [Path(one.path).name for one in found] == ["near.ncu-rep"]
