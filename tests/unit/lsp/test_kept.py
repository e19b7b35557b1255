# SPDX-License-Identifier: Apache-2.0
"""What was said of a profile is said again by the next server without a worker, as long as it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.damage import document_of
from tests.lsp_projects import make_project, report_of

from gpadvisor.lsp.jobs import JOBS
from gpadvisor.lsp.kept import kept_answer

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm]
NAME = "kernel.cu"


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Of a job on the profile of a project."""
    monkeypatch.setenv("GPADVISOR_CACHE", str(tmp_path / "cache"))
    project = make_project(tmp_path / "project", "thermal_stencil", report=report_of("thermal_stencil"))
    report = next(project.glob("*.ncu-rep"))
    return {"path": str(report), "root": str(project), "trusted": True}


def test_the_same_profile_beside_the_same_source_is_not_read_again(arguments: dict[str, Any]) -> None:
    assert kept_answer(arguments) is None
    answer = JOBS["profile"](arguments, lambda _: None)
    assert kept_answer(arguments) == document_of(answer)


@pytest.mark.parametrize("other", [{"launch": 0}, {"trusted": False}])
def test_what_is_asked_otherwise_is_not_known(arguments: dict[str, Any], other: dict[str, Any]) -> None:
    JOBS["profile"](arguments, lambda _: None)
    assert kept_answer({**arguments, **other}) is None


@pytest.mark.parametrize("changed", [NAME, "gpadvisor.toml", "profile"])
def test_what_changed_is_read_again(arguments: dict[str, Any], changed: str) -> None:
    JOBS["profile"](arguments, lambda _: None)
    project = Path(arguments["root"])
    if changed == "profile":
        path = Path(arguments["path"])
        path.write_bytes(report_of("thermal_stencil", scale=2))
    else:
        path = project / changed
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(f"{text}\n" if path.suffix == ".cu" else "top = 3\n", encoding="utf-8")
    assert kept_answer(arguments) is None


def test_a_damaged_answer_is_none(arguments: dict[str, Any], tmp_path: Path) -> None:
    JOBS["profile"](arguments, lambda _: None)
    for path in (tmp_path / "cache").glob("v*/*/*"):
        path.write_bytes(path.read_bytes()[:-1])
    assert kept_answer(arguments) is None
