# SPDX-License-Identifier: Apache-2.0
"""What the extension installs is what was tested, by hash, under licences that were looked at."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_SPEC = importlib.util.spec_from_file_location("supply", ROOT / "vscode-client" / "supply.py")
assert _SPEC is not None
assert _SPEC.loader is not None
supply = importlib.util.module_from_spec(_SPEC)
sys.modules["supply"] = supply
_SPEC.loader.exec_module(supply)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_locked_versions_are_those_that_are_tested_each_with_hashes() -> None:
    locked = supply.packages(supply.REQUIREMENTS.read_text(encoding="utf-8"))
    pinned = supply.packages(supply.CONSTRAINTS.read_text(encoding="utf-8"))
    tested = {_plain(one.name): one.version for one in pinned}
    assert {_plain(one.name): one.version for one in locked}.items() <= tested.items()
    assert all(one.hashes for one in (*locked, *pinned))


def test_everything_that_the_package_needs_is_locked() -> None:
    locked = {_plain(one.name) for one in supply.packages(supply.REQUIREMENTS.read_text(encoding="utf-8"))}
    waiting, seen = ["gpadvisor"], set()
    while waiting:
        name = waiting.pop()
        for line in metadata.requires(name) or ():
            wanted, _, marker = line.partition(";")
            extra = re.search(r"extra == ['\"]([^'\"]+)", marker)
            if extra is not None and (name, extra[1]) != ("gpadvisor", "compile"):
                continue
            if re.search(
                r"sys_platform == ['\"](?!linux)|python_version < ['\"]3\.(?:\d|1[01])['\"]", marker
            ):
                continue
            found = re.match(r"[\w.-]+", wanted)
            assert found is not None
            if _plain(found[0]) not in seen:
                seen.add(_plain(found[0]))
                waiting.append(found[0])
    assert seen <= locked


def test_what_extras_bring_is_locked_and_looked_at() -> None:
    """All that a user can have installed, those that no other extra needs included."""
    names = {_plain(one.name) for one in supply.shipped()}
    locked = {_plain(one.name) for one in supply.packages(supply.REQUIREMENTS.read_text(encoding="utf-8"))}
    assert locked < names
    assert {"mcp", "mcp-types", "pydantic-core", "starlette", "cryptography", "cuda-bindings"} <= names
    assert not {"pytest", "ruff", "sphinx", "gpadvisor", "typer"} & names
    assert all(one.hashes for one in supply.shipped())


def test_licences_are_on_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    assert supply.unlicensed() == []
    known = supply.licence
    monkeypatch.setattr(supply, "licence", lambda name: "secret" if name == "mcp" else known(name))
    assert supply.unlicensed() == ["mcp: secret"]


@pytest.mark.parametrize("which", ["package", "extension"])
def test_the_bill_of_materials_names_every_package(which: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert supply.main(["sbom", which]) == 0
    document = json.loads(capsys.readouterr().out)
    listed = supply.shipped()
    if which == "extension":
        listed = supply.packages(supply.REQUIREMENTS.read_text(encoding="utf-8"))
    assert [one["purl"] for one in document["components"]] == [
        f"pkg:pypi/{one.name}@{one.version}" for one in listed
    ]
