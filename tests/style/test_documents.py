# SPDX-License-Identifier: Apache-2.0
"""The documents name files, packages and commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.kernels import ROOT

from gpadvisor.cli import COMMANDS, build_parser

DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
PACKAGE = ROOT / "server" / "gpadvisor"


def _name(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_files_that_are_named_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|md|toml|cu|json))`", text))
    made = {name for name in named if re.search(r"your|YOURS|NAME|nnn|NN", name)}  # by whom it tells how
    missing = [name for name in named - made if not (ROOT / name).exists() and not (PACKAGE / name).exists()]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_links_inside_the_repository_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    missing = [link for link in links if not (document.parent / link).exists()]
    assert not missing


def test_every_package_has_its_row_in_the_architecture() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("## Packages")[2].partition("##")[0]
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} | {
        "api",
        "errors",
        "files",
        "graphs",
    }
    first_cells = " ".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))
    assert packages == set(re.findall(r"`(\w+)`", first_cells))


def test_the_readme_names_only_commands_that_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    known = {name for action in build_parser()._subparsers._group_actions for name in action.choices or ()}  # type: ignore[union-attr] # the parser has subcommands
    assert len(known) == len(COMMANDS)
    assert {line.removeprefix("$ ").split()[1] for line in _commands(text)} <= known


def _commands(text: str) -> list[str]:
    return [
        line.strip()
        for block in re.findall(r"```[a-z]*\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines()
        if line.strip().removeprefix("$ ").startswith("gpadvisor ")
    ]
