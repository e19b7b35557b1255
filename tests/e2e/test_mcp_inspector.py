# SPDX-License-Identifier: Apache-2.0
"""`gpadvisor mcp` as the protocol's own inspector sees it, in its command-line form."""

from __future__ import annotations

import fcntl
import filecmp
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.kernels import ROOT

from gpadvisor.cli import demo

LOCKED = ROOT / "tests" / "inspector"
INSTALLED = ROOT / "build" / "inspector"
SERVER = (sys.executable, "-m", "gpadvisor", "mcp")
DEMO = Path(demo.__file__).parent / "data" / "demo"


@pytest.fixture(scope="module")
def inspector() -> Path:
    """The version that is locked, installed once; its launcher."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("the inspector of MCP needs npm")
    INSTALLED.mkdir(parents=True, exist_ok=True)
    with (INSTALLED / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = INSTALLED / "installed.json"
        if not stamp.is_file() or not filecmp.cmp(LOCKED / "package-lock.json", stamp, shallow=False):
            for name in ("package.json", "package-lock.json", ".npmrc"):
                shutil.copyfile(LOCKED / name, INSTALLED / name)
            words = [npm, "ci", "--loglevel=error"]
            done = subprocess.run(
                words, cwd=INSTALLED, capture_output=True, text=True, check=False, timeout=200
            )
            if done.returncode:
                pytest.skip(f"the inspector of MCP could not be installed: {done.stderr.strip()[-300:]}")
            shutil.copyfile(LOCKED / "package-lock.json", stamp)
    return INSTALLED / "node_modules" / ".bin" / "mcp-inspector"


def asked(inspector: Path, folder: Path, *words: str) -> tuple[int, Any, str]:
    """Exit status, the answer, and what stands on standard error."""
    done = subprocess.run(
        [inspector, "--cli", *SERVER, *words],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "GPADVISOR_CACHE": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    return done.returncode, json.loads(done.stdout), done.stderr


def called(tool: str, *arguments: str) -> tuple[str, ...]:
    given = (word for argument in arguments for word in ("--tool-arg", argument))
    return ("--method", "tools/call", "--tool-name", tool, *given)


def test_it_finds_nothing_wrong_with_the_tools(inspector: Path, tmp_path: Path) -> None:
    code, answer, said = asked(inspector, tmp_path, "--method", "tools/list", "--strict")
    assert code == 0, said
    assert {tool["name"] for tool in answer["tools"]} >= {"list_kernels", "advise", "compare"}
    assert "Warning:" not in said, said
    assert "Error:" not in said, said


def test_it_calls_tools_and_hears_of_errors(inspector: Path, tmp_path: Path) -> None:
    shutil.copyfile(DEMO, tmp_path / "run.gpadvisor")
    code, answer, said = asked(inspector, tmp_path, *called("advise", "file=run.gpadvisor"))
    assert code == 0, said
    page = answer["structuredContent"]
    assert json.loads(answer["content"][0]["text"]) == page
    assert page["items"][0]["verify"].startswith("gpadvisor why ")
    code, answer, said = asked(inspector, tmp_path, *called("advise", "file=../../etc/passwd"))
    assert code != 0
    assert answer["isError"]
    assert "outside of" in answer["content"][0]["text"]
