# SPDX-License-Identifier: Apache-2.0
"""SARIF and Code Quality of real inputs in a git repository, read by the public validator of SARIF."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.kernels import FOLDER, ROOT
from tests.ncu_writer import write_report
from tests.sampled import sampled_launch
from tests.unit.pipeline.test_changed_lines import edit, git

from gpadvisor.cli import main
from gpadvisor.report.line_hash import line_hashes

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.usefixtures("reads_here")]
MULTITOOL = ROOT / "vscode-client/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool"
SHARED = sorted(Path(os.environ.get("GPADVISOR_REPORTS", "/nonexistent")).glob("*.ncu-rep"))[:3]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a kernel in a folder of it, which is the current one."""
    monkeypatch.setenv("GPADVISOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GPADVISOR_PAGES", "https://x.example/docs/rules/")
    (tmp_path / "repository" / "src").mkdir(parents=True)
    git(tmp_path / "repository", "init", "-q", "-b", "main")
    shutil.copy(FOLDER / "thermal_stencil/before.cu", tmp_path / "repository/src/before.cu")
    git(tmp_path / "repository", "add", ".")
    git(tmp_path / "repository", "commit", "-qm", "first")
    monkeypatch.chdir(tmp_path / "repository" / "src")
    return tmp_path / "repository"


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report([sampled_launch("thermal_stencil")]))
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    assert main([str(word) for word in words]) == 0
    return json.loads(capsys.readouterr().out)


def lines(log: Any) -> list[tuple[str, str, int]]:
    return [
        (
            found["ruleId"],
            (place := found["locations"][0]["physicalLocation"])["artifactLocation"]["uri"],
            place["region"]["startLine"],
        )
        for found in log["runs"][0]["results"]
    ]


def complaints(*paths: Path) -> list[list[str]]:
    """What the validator says of each file, by the rules of the standard and those of GitHub."""
    if not MULTITOOL.is_file():
        pytest.skip("the SARIF multitool is not installed (npm ci in vscode-client)")
    MULTITOOL.chmod(0o755)  # not so where npm runs no scripts of packages
    told = paths[0].with_suffix(".validated")
    words = ["validate", *paths, "--rule-kind", "Sarif;Gh", "-o", told, "--log", "ForceOverwrite"]
    environment = {**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
    done = subprocess.run([MULTITOOL, *words], capture_output=True, text=True, env=environment, timeout=200)
    assert "Analysis completed successfully" in done.stdout, done.stdout + done.stderr
    found: dict[str, list[str]] = {path.as_uri(): [] for path in paths}
    for one in json.loads(told.read_text(encoding="utf-8-sig"))["runs"][0].get("results", []):
        place = one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        found[place].append(f"{one['ruleId']}: {one['message']}")
    return list(found.values())


def test_paths_hashes_and_fixes_of_a_report(
    capsys: pytest.CaptureFixture[str], project: Path, report: Path
) -> None:
    log = run(capsys, "advise", report, "--format", "sarif")
    assert lines(log)
    assert {uri for _, uri, _ in lines(log)} == {"src/before.cu"}
    hashes = line_hashes((project / "src/before.cu").read_text())
    results = log["runs"][0]["results"]
    for found, (_, _, line) in zip(results, lines(log), strict=True):
        assert found["partialFingerprints"]["primaryLocationLineHash"] == hashes[line - 1]
    # The report carries this very text, so that its edits are for the file here.
    fixes = [fix for found in results for fix in found.get("fixes", [])]
    assert fixes
    (change, *_) = fixes[0]["artifactChanges"]
    assert change["artifactLocation"] == {"uri": "src/before.cu", "uriBaseId": "%SRCROOT%"}
    edit_, region = change["replacements"][0], change["replacements"][0]["deletedRegion"]
    text = (project / "src/before.cu").read_text().split("\n")[region["startLine"] - 1]
    assert edit_["insertedContent"]["text"] == "f"
    assert text[: region["startColumn"] - 1].endswith(("2.0", "0.5"))
    # The file is another one: lines are followed, edits would be of other text.
    edit(project / "src/before.cu", 1, "// one more", "// line")
    moved = run(capsys, "advise", report, "--format", "sarif")
    assert lines(moved) == [(code, uri, line + 1) for code, uri, line in lines(log)]
    assert not any("fixes" in found for found in moved["runs"][0]["results"])
    prints = [
        [one["partialFingerprints"]["gpadvisor/v1"] for one in each["runs"][0]["results"]]
        for each in (log, moved)
    ]
    assert prints[0] == prints[1]


def test_a_changed_line_is_the_place(capsys: pytest.CaptureFixture[str], project: Path, report: Path) -> None:
    before = run(capsys, "advise", "before.cu", "--format", "sarif", "--diff", "main")
    (code, _, line) = lines(before)[0]
    other = next(
        place["physicalLocation"]["region"]["startLine"]
        for place in before["runs"][0]["results"][0]["relatedLocations"][1:]
        if place["physicalLocation"]["region"]["startLine"] != line
    )
    text = (project / "src/before.cu").read_text().split("\n")[other - 1]
    edit(project / "src/before.cu", other, text + " // changed")
    after = run(capsys, "advise", "before.cu", "--format", "sarif", "--diff", "main")
    assert lines(after)[0] == (code, "src/before.cu", other)
    assert lines(run(capsys, "advise", "before.cu", "--format", "sarif"))[0] == (code, "src/before.cu", line)
    quality = run(capsys, "advise", "before.cu", "--format", "codequality", "--diff", "main")
    assert quality[0]["location"] == {"path": "src/before.cu", "lines": {"begin": other}}


def test_options_for_another_format_or_commit(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    for words in (
        ["--diff", "main"],
        ["--category", "a"],
        ["--omit-suppressed"],
        ["--format", "sarif", "--diff", "nowhere"],
        ["--format", "sarif", "--diff=--output=evil"],
        ["--format", "sarif", "--category", "a b"],
    ):
        assert main(["advise", "before.cu", *words]) == 2
        assert "Traceback" not in capsys.readouterr().err
    assert not (project / "src/evil").exists()


def test_pages_and_categories(
    capsys: pytest.CaptureFixture[str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = run(capsys, "advise", "before.cu", "--format", "sarif", "--category", "gemm/nightly")
    driver = log["runs"][0]["tool"]["driver"]
    for rule in driver["rules"]:
        address, _, page = rule["helpUri"].rpartition("/")
        assert address == "https://x.example/docs/rules"
        assert (ROOT / "docs/rules" / page).is_file()
        assert page.startswith(rule["id"])
    assert log["runs"][0]["automationDetails"]["id"] == "gemm/nightly/"
    monkeypatch.delenv("GPADVISOR_PAGES")
    driver = run(capsys, "advise", "before.cu", "--format", "sarif")["runs"][0]["tool"]["driver"]
    assert "informationUri" not in driver
    assert not any("helpUri" in rule for rule in driver["rules"])
    for rule in driver["rules"]:
        assert main(rule["help"]["text"].partition(" All of it: gpadvisor ")[2].split()) == 0
        assert rule["id"] in capsys.readouterr().out


def test_the_validator_finds_nothing_in_fixtures(project: Path, tmp_path: Path) -> None:
    """Six of them, whom it is started for once: that takes longer than a file."""
    files = []
    for folder in sorted(path for path in FOLDER.iterdir() if path.is_dir())[:6]:
        shutil.copy(folder / "before.cu", project / "src" / "k.cu")
        files.append(tmp_path / f"{folder.name}.sarif")
        assert main(["advise", "k.cu", "--format", "sarif", "--diff", "main", "-o", str(files[-1])]) == 0
    assert complaints(*files) == [[]] * 6


@pytest.mark.parametrize("pages", [True, False], ids=["pages", "no pages"])
def test_the_validator_finds_nothing_in_a_report(
    project: Path, report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: bool
) -> None:
    if not pages:
        monkeypatch.delenv("GPADVISOR_PAGES")
    sarif = tmp_path / "run.sarif"
    assert main(["advise", str(report), "--format", "sarif", "-o", str(sarif)]) == 0
    log = json.loads(sarif.read_text())
    log["runs"][0]["results"][0]["ruleIndex"] = 900
    wrong = tmp_path / "wrong.sarif"
    wrong.write_text(json.dumps(log))
    told, told_of_wrong = complaints(sarif, wrong)
    # Without an address of the pages there is none of the tool, which the validator would like to have.
    assert [one.partition(":")[0] for one in told] == ([] if pages else ["SARIF2005"])
    assert any("ruleIndex" in one for one in told_of_wrong)  # it would find something


@pytest.mark.reports
@pytest.mark.parametrize("path", SHARED, ids=lambda path: path.stem)
def test_the_validator_finds_nothing_in_real_reports(path: Path, project: Path, tmp_path: Path) -> None:
    sarif = tmp_path / "run.sarif"
    assert main(["advise", str(path), "--format", "sarif", "-o", str(sarif)]) == 0
    assert complaints(sarif) == [[]]
    assert main(["advise", str(path), "--format", "codequality", "-o", str(tmp_path / "q.json")]) == 0
    assert json.loads((tmp_path / "q.json").read_text()) == []  # none of them has lines of files here
