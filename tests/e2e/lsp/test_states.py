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


COMPLAINTS = {
    "missing header": (
        '// a kernel\n#include "not_here.h"\n__global__ void k(float *p) { *p = OF_IT; }\n',
        1,
    ),
    "device code": ("// a kernel\n\n__global__ void k(float *p) { *p = nothing; }\n", 2),
}


@pytest.mark.parametrize("kind", COMPLAINTS)
async def test_what_the_compiler_says_stands_at_its_place(tmp_path: Path, kind: str) -> None:
    text, line = COMPLAINTS[kind]
    project = tmp_path / "project"
    project.mkdir()
    (project / NAME).write_text(text, encoding="utf-8")
    async with editor(project, settings={"debounceMilliseconds": 0}) as one:
        one.open(NAME)
        found, *_ = await one.shown(NAME)
        assert (found.code, found.range.start.line) == ("GPA908", line)
        assert found.message.startswith("Not analysed: ")
        said = await one.status("error")
        assert said["bar"] == "GPA: does not compile"
        assert said["next"][0]["command"] == "workbench.actions.view.problems"
        titles = [action.title for action in await one.actions(NAME, found.range)]
        assert titles == (["Set include folders"] if kind == "missing header" else [])
        one.edit(NAME, "// one line more\n" + text)
        await one.shown(NAME, lambda all_: [each.range.start.line for each in all_][:1] == [line + 1])
        one.edit(NAME, "__global__ void k(float *p) { *p = 1; }\n")
        one.save(NAME)
        await one.shown(NAME, lambda all_: not all_)


async def test_a_profile_without_a_line_here_says_so(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "run.ncu-rep").write_bytes(report_of(KERNEL, source=False))
    (project / "other.cu").write_text("__global__ void other(float *p) { *p = 1; }\n", encoding="utf-8")
    async with editor(project, settings={"run": "manual"}) as one:
        one.open("other.cu")
        await one.until(lambda: [each.message for each in one.client.messages])
        (said,) = one.client.messages
        assert "suggestion" in said.message[:40], "what is there comes first, as a narrow message is cut"
        assert "on no line of a file here (run.ncu-rep): " in said.message
        state = await one.status("noProfile")
        assert "on no line of a file here" in state["detail"]
        assert state["bar"] == "GPA: not in a profile"
        assert state["next"][0]["command"] == "gpadvisor.findings.focus"
