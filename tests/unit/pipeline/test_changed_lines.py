# SPDX-License-Identifier: Apache-2.0
"""Changed lines of a real repository, with names and contents that look like headings."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpadvisor.errors import UsageError
from gpadvisor.pipeline.changed_lines import changed_lines, parse_diff, repository_root


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=kim", "-c", "user.email=kim@example.com", "-c", "commit.gpgSign=false")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "src").mkdir()
    names = ("src/a.cu", "src/b c.cu", 'src/q"\tü.cu')
    for name in names:
        (tmp_path / name).write_text("".join(f"line {number}\n" for number in range(1, 21)))
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def edit(path: Path, number: int, *lines: str) -> None:
    text = path.read_text().split("\n")
    text[number - 1 : number] = lines
    path.write_text("\n".join(text))


def test_lines_of_a_branch_and_of_the_working_tree(repository: Path) -> None:
    git(repository, "checkout", "-qb", "change")
    edit(repository / "src/a.cu", 3, "++ b/src/wrong.cu", "@@ -1 +90 @@", "three")
    edit(repository / "src/b c.cu", 7)
    git(repository, "commit", "-qam", "second")
    edit(repository / "src/a.cu", 15, "fifteen")
    edit(repository / 'src/q"\tü.cu', 1, "one")
    # What main has gained since is no change of the branch.
    git(repository, "stash")
    git(repository, "checkout", "-q", "main")
    edit(repository / "src/a.cu", 20, "twenty")
    git(repository, "commit", "-qam", "third")
    git(repository, "checkout", "-q", "change")
    git(repository, "stash", "pop")
    expected = {"src/a.cu": ((3, 5), (15, 15)), 'src/q"\tü.cu': ((1, 1),)}
    assert changed_lines(repository, "main") == expected
    assert changed_lines(repository / "src", "main") == expected
    assert repository_root(repository / "src") == repository.resolve()


def test_settings_of_the_repository_run_nothing(repository: Path, tmp_path: Path) -> None:
    script = repository / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    script.chmod(0o755)
    for setting in ("core.fsmonitor", "diff.external", "diff.cuda.textconv", "core.pager"):
        git(repository, "config", setting, str(script))
    (repository / ".gitattributes").write_text("*.cu diff=cuda\n")
    edit(repository / "src/a.cu", 2, "two")
    assert changed_lines(repository, "HEAD") == {"src/a.cu": ((2, 2),)}
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("base", ["nowhere", "--output=x", "", "a\0b"])
def test_what_is_no_commit(repository: Path, base: str) -> None:
    with pytest.raises(UsageError, match="commit"):
        changed_lines(repository, base)
    assert not (repository / "x").exists()


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        changed_lines(tmp_path, "main")
    assert repository_root(tmp_path) == tmp_path.resolve()


def test_a_diff_that_is_cut() -> None:
    assert parse_diff("+++ a.cu\n@@ -1,2 +1,900 @@\n-x\n") == {"a.cu": ((1, 900),)}
    assert parse_diff('+++ "\n@@ -0,0 +1 @@\n') == {'"': ((1, 1),)}
    assert parse_diff("@@ -0,0 +1 @@") == {}
