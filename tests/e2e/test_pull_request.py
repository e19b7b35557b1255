# SPDX-License-Identifier: Apache-2.0
"""A pull request's life in a git repository: a baseline, a change that a gate stops, its fix."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.kernels import FOLDER
from tests.unit.pipeline.test_changed_lines import git

from gpadvisor.cli import main

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.usefixtures("reads_here")]
BASELINE = ".gpadvisor-baseline.jsonl"
CHECK = ("ci", "check", "src/stencil.cu", "--baseline", BASELINE, "--fail-on", "new", "--diff", "main")


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its main branch has a kernel without findings, and the baseline of it."""
    monkeypatch.setenv("GPADVISOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GITHUB_OUTPUT", raising=False)
    folder = tmp_path / "repository"
    (folder / "src").mkdir(parents=True)
    monkeypatch.chdir(folder)
    git(folder, "init", "-q", "-b", "main")
    shutil.copy(FOLDER / "thermal_stencil/after.cu", "src/stencil.cu")
    assert main(["advise", "src/stencil.cu", "--baseline", BASELINE, "--update-baseline"]) == 0
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "A stencil")
    git(folder, "checkout", "-qb", "change")
    return folder


def verdict() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("gpadvisor-out/verdict.json").read_text())
    return found


def test_from_the_baseline_to_a_fix(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(list(CHECK)) == 0
    assert verdict() == {"verdict": "pass", "why": [], "new": 0, "known": 0, "fixed": 0}
    # A change brings double precision into the loop.
    shutil.copy(FOLDER / "thermal_stencil/before.cu", "src/stencil.cu")
    git(repository, "commit", "-qam", "Faster?")
    assert main(list(CHECK)) == 1
    assert verdict()["verdict"] == "fail"
    assert verdict()["new"] == 1
    (found,) = json.loads(Path("gpadvisor-out/codequality.json").read_text())
    changed = Path("src/stencil.cu").read_text().split("\n")[found["location"]["lines"]["begin"] - 1]
    assert "2.0 *" in changed or "0.5 *" in changed
    assert found["location"]["path"] == "src/stencil.cu"
    comment = Path("gpadvisor-out/comment.md").read_text()
    assert "### gpadvisor: fail" in comment
    assert "| New | GPA102 | `thermal_stencil` | `stencil.cu` |" in comment
    # The fix of the report is applied, as an editor would.
    text = Path("src/stencil.cu").read_text()
    (result,) = json.loads(Path("gpadvisor-out/advice.sarif").read_text())["runs"][0]["results"]
    for fix in result["fixes"]:
        for one in fix["artifactChanges"][0]["replacements"]:
            region = one["deletedRegion"]
            assert (region["startLine"], region["startColumn"]) == (region["endLine"], region["endColumn"])
    edits = sorted(
        {
            (
                one["deletedRegion"]["startLine"],
                one["deletedRegion"]["startColumn"],
                one["insertedContent"]["text"],
            )
            for fix in result["fixes"]
            for one in fix["artifactChanges"][0]["replacements"]
        },
        reverse=True,
    )
    lines = text.split("\n")
    for line, column, new in edits:
        lines[line - 1] = lines[line - 1][: column - 1] + new + lines[line - 1][column - 1 :]
    Path("src/stencil.cu").write_text("\n".join(lines))
    git(repository, "commit", "-qam", "Single precision")
    capsys.readouterr()
    assert main(list(CHECK)) == 0
    assert verdict()["verdict"] == "pass"
    assert "gpadvisor: pass" in capsys.readouterr().out
    # What is in the baseline is a merge's matter of lines alone.
    git(repository, "checkout", "-q", "main")
    git(repository, "merge", "-q", "--no-edit", "change")


@pytest.mark.parametrize("damage", [b"", b"{", b"[]\n", b'{"gpadvisor-baseline": 9}\n', b"\x00\xff"])
def test_a_damaged_baseline_is_one_sentence(damage: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    Path(BASELINE).write_bytes(damage)
    assert main(list(CHECK)) == 3
    err = capsys.readouterr().err
    assert BASELINE in err
    assert err.count("\n") == 1
    assert Path(BASELINE).read_bytes() == damage
    assert not Path("gpadvisor-out").exists()


def test_another_projects_baseline_is_inconclusive(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "align_tile/before.cu", tmp_path / "other.cu")
    other = tmp_path / "other.jsonl"
    assert main(["advise", str(tmp_path / "other.cu"), "--baseline", str(other), "--update-baseline"]) == 0
    shutil.copy(other, BASELINE)
    assert main(list(CHECK)) == 1
    assert verdict()["verdict"] == "inconclusive"
    assert "another project's" in verdict()["why"][0]
    assert verdict()["new"] == 0
