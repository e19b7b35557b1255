# SPDX-License-Identifier: Apache-2.0
"""The skill for coding agents: its head is what clients read, and each of its commands runs as it stands."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docs.generate_demo import source
from tests.kernels import ROOT

from gpadvisor import cli
from gpadvisor.cli import demo

SKILL = (ROOT / "skills" / "gpadvisor" / "SKILL.md").read_text(encoding="utf-8")
COMMANDS = [
    line.split("#")[0].strip()
    for block in re.findall(r"^ *```\n(.*?)^ *```", SKILL, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]


def test_its_head_names_it_and_says_when_to_use_it() -> None:
    head = re.match(r"---\nname: ([a-z-]{1,64})\ndescription: (.{40,1024})\n---\n", SKILL)
    assert head is not None
    assert head[1] == "gpadvisor"
    assert "Use it" in head[2]


def test_every_command_that_it_names_is_one() -> None:
    assert len(COMMANDS) >= 8
    assert all(command.startswith("gpadvisor ") for command in COMMANDS)
    named = set(re.findall(r"`gpadvisor ([a-z]+)", SKILL))
    assert named <= set(cli.COMMANDS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two profiles of our example and its source."""
    made = tmp_path_factory.mktemp("project")
    profile = Path(demo.__file__).parent / "data" / "demo"
    for name in ("run.gpadvisor", "after.gpadvisor"):
        shutil.copyfile(profile, made / name)
    (made / "kernel.cu").write_text(source(), encoding="utf-8")
    return made


@pytest.mark.toolkit
@pytest.mark.parametrize("command", COMMANDS)
def test_its_commands_run(command: str, folder: Path) -> None:
    words = shlex.split(command)[1:]
    done = subprocess.run(
        [sys.executable, "-m", "gpadvisor", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
