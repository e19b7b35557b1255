# SPDX-License-Identifier: Apache-2.0
"""The tools for coding agents as the editor's client asks for them: `gpadvisor mcp` answers the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pygls.exceptions import JsonRpcException
from tests.lsp_client import Editor, editor
from tests.lsp_projects import make_project, report_of
from tests.mcp_client import client

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.asyncio]
TOOL = "gpadvisor/tool"
REPORT = {"file": "run.ncu-rep"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", "thermal_stencil", report=report_of("thermal_stencil"))


async def refused(one: Editor, name: str, **more: object) -> str:
    with pytest.raises(JsonRpcException) as wrong:
        await one.ask(TOOL, {"name": name, "arguments": {}, **more})
    return str(wrong.value.message)


async def test_answers_are_those_of_the_protocol_for_agents(project: Path) -> None:
    calls = {
        "list_kernels": REPORT,
        "advise": {**REPORT, "max_bytes": 2048},
        "why": {**REPORT, "suggestion": "1"},
        "explain": {"name": "long_scoreboard"},
        "compare": {"before": "run.ncu-rep", "after": str(project / "run.ncu-rep")},
    }
    async with editor(project) as one, client(project) as agent:
        for name, arguments in calls.items():
            shown = await one.ask(TOOL, {"name": name, "arguments": arguments})
            told = await agent.call_tool(name, dict(arguments))
            assert not told.is_error, told
            assert json.loads(shown["text"]) == told.structured_content
            assert json.loads(shown["text"])["items"]


async def test_what_is_not_allowed_is_refused(project: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.cu").write_text("__global__ void secret() {}\n", encoding="utf-8")
    async with editor(project) as one:
        for path in ("../secret.cu", "../../etc/passwd", "/etc/passwd", str(tmp_path / "secret.cu")):
            assert "is outside of" in await refused(one, "advise", arguments={"file": path})
        ran = tmp_path / "ran"
        command = {"command": ["touch", str(ran)]}
        assert "has not agreed to" in await refused(one, "profile", arguments=command)
        assert "has not agreed to" in await refused(one, "profile", arguments=command, agreed=False)
        assert not ran.exists()
        assert "there is no tool 'erase'" in await refused(one, "erase")
        assert "needs 'file'" in await refused(one, "advise")
        assert "is of the wrong type" in await refused(one, "advise", arguments=["run.ncu-rep"])
        assert "letters, more than" in await refused(one, "explain", arguments={"name": "x" * (10 << 20)})
        assert (await one.ask(TOOL, {"name": "explain", "arguments": {"name": "wait"}}))["text"]


async def test_a_workspace_that_is_not_trusted_and_one_without_a_folder_give_nothing(project: Path) -> None:
    async with editor(project, options={"trusted": False}) as one:
        assert "is not trusted" in await refused(one, "advise", arguments=REPORT)
    async with editor(project, folders=[]) as one:
        wanted = {"file": str(project / "run.ncu-rep")}
        assert "nothing may be read" in await refused(one, "advise", arguments=wanted)
