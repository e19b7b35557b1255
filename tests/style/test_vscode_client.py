# SPDX-License-Identifier: Apache-2.0
"""The VS Code extension agrees with the server: version, commands, and the tests' own tools."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

from tests.kernels import ROOT

from gpadvisor import __version__
from gpadvisor.lsp import protocol

CLIENT = ROOT / "vscode-client"


def _manifest() -> dict[str, Any]:
    read: dict[str, Any] = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    return read


def test_the_extension_has_the_version_of_the_wheel_that_it_carries() -> None:
    lock = json.loads((CLIENT / "package-lock.json").read_text(encoding="utf-8"))
    assert {_manifest()["version"], lock["version"]} == {__version__}


def test_a_tagged_commit_has_the_version_of_its_tag() -> None:
    told = subprocess.run(
        ["git", "tag", "--points-at", "HEAD", "v*"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert set(told.stdout.split()) <= {f"v{__version__}"}


def test_the_commands_that_lenses_and_actions_name_exist() -> None:
    named = {value for name, value in vars(protocol).items() if name.startswith("CLIENT_")}
    sources = "".join(path.read_text(encoding="utf-8") for path in (CLIENT / "src").glob("*.ts"))
    registered = set(re.findall(r"gpadvisor\.\w+", sources)) | {
        f"gpadvisor.{name}" for name in re.findall(r"^    (\w+)[,:]", sources, re.MULTILINE)
    }
    views = _manifest()["contributes"]["views"].values()
    made = {f"{view['id']}.focus" for group in views for view in group}  # by VS Code itself
    assert {name for name in named if name.startswith("gpadvisor.")} <= registered | made


def test_the_lock_names_no_registry() -> None:
    assert '"resolved"' not in (CLIENT / "package-lock.json").read_text(encoding="utf-8")


def test_the_extension_asks_for_no_more_than_it_says() -> None:
    manifest = _manifest()
    assert manifest["extensionKind"] == ["workspace"]
    assert manifest["capabilities"]["untrustedWorkspaces"]["supported"] == "limited"
    assert not {"*", "onStartupFinished"} & set(manifest["activationEvents"])
    assert "extensionDependencies" not in manifest
