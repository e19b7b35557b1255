# SPDX-License-Identifier: Apache-2.0
"""No source ends in silence: each state has words for the status bar and a next step."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lsp_client import editor
from tests.lsp_projects import make_project, report_of

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.asyncio]

KERNEL = "thermal_stencil"
NAME = "kernel.cu"


@pytest.mark.parametrize("text", ["", "#include <cstdio>\nint main() { return 0; }\n"])
async def test_a_source_without_a_kernel_is_no_error(tmp_path: Path, text: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / NAME).write_text(text, encoding="utf-8")
    async with editor(project) as one:
        one.open(NAME)
        said = await one.status("noKernel", "error")
        assert said["state"] == "noKernel"
        assert said["bar"] == "GPA: no kernel here"
        assert not one.diagnostics(NAME)
        assert not one.client.messages


async def test_the_state_names_findings_their_gain_and_the_next_step(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", KERNEL, report=report_of(KERNEL))
    async with editor(project, settings={"run": "manual"}) as one:
        one.open(NAME)
        await one.shown(NAME)
        said = await one.status("idle")
        assert said["bar"].startswith(f"GPA: {said['findings']} finding")
        assert ", best " in said["bar"]
        assert said["next"]
        one.edit(NAME, one.texts[NAME].replace("0.", "1."))
        said = await one.status("stale")
        assert said["bar"].endswith("% stale")
        assert said["next"][0]["command"] == "gpadvisor.profile"


async def test_without_a_profile_the_way_to_numbers_is_the_next_step(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", KERNEL)
    async with editor(project) as one:
        one.open(NAME)
        await one.shown(NAME)
        said = await one.status("idle")
        assert said["profile"] is None
        assert said["bar"].endswith(", code only")
        commands = [step["command"] for step in said["next"]]
        assert commands == ["gpadvisor.importProfile", "gpadvisor.profile", "gpadvisor.modelFile"]
