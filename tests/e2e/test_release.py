# SPDX-License-Identifier: Apache-2.0
"""Everything up to the last command of a release: builds that are the same, one version, the manual page."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml
from tests.kernels import ROOT

from gpadvisor import __version__
from gpadvisor.cli import COMMANDS, main


def _copy(folder: Path) -> Path:
    """What git would check out, without the work of this machine."""
    names = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--",
         "server", "docs", "README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml",
         "hatch_build.py", ".gitignore"],
        capture_output=True, check=False,
    )  # fmt: skip
    if names.returncode:
        pytest.skip("no git repository")
    for name in filter(None, names.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def _build(source: Path, out: Path, umask: int) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(out)],
        cwd=source, capture_output=True, text=True, check=False, umask=umask, timeout=250,
        env={key: value for key, value in os.environ.items() if key != "SOURCE_DATE_EPOCH"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in out.iterdir()}


@pytest.mark.slow
def test_what_is_built_twice_is_the_same_bit_for_bit(tmp_path: Path) -> None:
    first = _build(_copy(tmp_path / "one"), tmp_path / "a", 0o022)
    other = _copy(tmp_path / "elsewhere" / "two")
    for path in other.rglob("*.py"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    assert _build(other, tmp_path / "b", 0o077) == first
    assert sorted(first) == [f"gpadvisor-{__version__}-py3-none-any.whl", f"gpadvisor-{__version__}.tar.gz"]
    # A change is seen.
    with (other / "server/gpadvisor/errors.py").open("a") as stream:
        stream.write("# one more\n")
    assert _build(other, tmp_path / "c", 0o022) != first
    names = zipfile.ZipFile(next((tmp_path / "a").glob("*.whl"))).namelist()
    assert not [name for name in names if "__pycache__" in name or ".." in name]
    with tarfile.open(next((tmp_path / "a").glob("*.tar.gz"))) as archive:
        assert f"gpadvisor-{__version__}/docs/ci.md" in archive.getnames()


def test_there_is_one_version() -> None:
    client = ROOT / "vscode-client"
    lock = json.loads((client / "package-lock.json").read_text())
    assert {
        json.loads((client / "package.json").read_text())["version"],
        lock["version"],
        lock["packages"][""]["version"],
    } == {__version__}
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)


def test_a_release_is_published_by_trust_after_its_build_was_attested() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    build, publish = jobs["build"], jobs["publish"]
    assert publish["needs"] == ["build", "compiled"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"] == "release"
    used = [step.get("uses", "").partition("@")[0] for step in build["steps"]]
    assert {"actions/attest-build-provenance", "actions/attest-sbom"} <= set(used)
    wheels = {step.get("uses", "").partition("@")[0]: step for step in jobs["compiled"]["steps"]}
    assert wheels["pypa/cibuildwheel"]["env"]["CIBW_ENVIRONMENT"] == "GPADVISOR_COMPILED=1"
    assert "actions/attest-build-provenance" in wheels
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text()
    makefile = (ROOT / "Makefile").read_text()
    assert any(step.get("run", "").startswith("make dist TAG=") for step in build["steps"])
    assert re.search(r"^dist:", makefile, re.MULTILINE)


def test_the_pipeline_runs_every_part_of_the_script() -> None:
    (job,) = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"].values()
    script = (ROOT / ".ci/run").read_text()
    (default,) = re.findall(r"parts=\((\w[\w -]*)\)", script)
    assert job["strategy"]["matrix"]["part"] == default.split()
    assert job["steps"][-1]["run"] == ".ci/run ${{ matrix.part }}"


@pytest.mark.skipif(sys.platform != "linux", reason="the pipeline runs on Linux")
@pytest.mark.parametrize(
    "broken", ["", "installed", "check", "test-python", "test-compiled", "e2e", "advisories"]
)
def test_the_pipeline_runs_everything_and_one_failure_fails_it(broken: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    parts = ("installed", "check", "test-python", "test-compiled", "client-test", "e2e", "advisories")
    rules = [f"{part}:\n\t@echo made {part}; test {part} != '{broken}'\n" for part in parts]
    (tmp_path / "Makefile").write_text("".join(["test: test-python client-test e2e\n", *rules]))
    for name in ("bin/apt-get", "vscode-client/e2e/setup.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [tmp_path / ".ci/run"], capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert (done.returncode == 0) is (broken == ""), done.stderr
    if broken != "installed":
        for part in parts:
            assert f"made {part}\n" in done.stdout
    assert (f"{broken}]" in done.stderr + done.stdout) is bool(broken)


def test_the_manual_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["completion", "man"]) == 0
    page = capsys.readouterr().out
    for name in COMMANDS:
        assert f'.SS "{name}"' in page
    assert '.SS "ci comment"' in page
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-P-c"], input=page, capture_output=True, text=True, check=True,
        timeout=120,
    )  # fmt: skip
    assert done.stderr == ""
    shown = re.sub(r".\x08", "", done.stdout)
    assert "--update-baseline" in shown
    assert "gpadvisor compare before.cubin after.cubin --gate spills=0" in shown
    assert "a gate is met, fails or cannot be decided" in shown


def test_an_archive_says_nothing_of_when_and_where_it_was_made(tmp_path: Path) -> None:
    texts = {
        "extension/package.json": "{}",
        "extension/dist/extension.js": "0;",
        "[Content_Types].xml": "<a/>",
    }

    def packed(name: str, year: int, mode: int, *, backwards: bool = False) -> bytes:
        made, target = tmp_path / f"{name}.made", tmp_path / f"{name}.vsix"
        with zipfile.ZipFile(made, "w") as archive:
            for file, text in sorted(texts.items(), reverse=backwards):
                entry = zipfile.ZipInfo(file, (year, 1, 1, 0, 0, 0))
                entry.external_attr = mode << 16
                archive.writestr(entry, text)
        script = ROOT / "vscode-client" / "repack.py"
        subprocess.run([sys.executable, script, made, target], check=True, timeout=60)
        return target.read_bytes()

    first = packed("one", 2020, 0o100600)
    assert packed("two", 2026, 0o100664, backwards=True) == first
    with zipfile.ZipFile(tmp_path / "two.vsix") as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == texts
    texts["extension/package.json"] = "[]"
    assert packed("three", 2020, 0o100600) != first
