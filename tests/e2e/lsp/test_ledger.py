# SPDX-License-Identifier: Apache-2.0
"""A fix that was applied in the editor and profiled again writes its line of the ledger, if it may."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from tests.lsp_client import editor, plain
from tests.lsp_projects import make_project, report_of

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.asyncio]
KERNEL, NAME, LEDGER = "thermal_stencil", "kernel.cu", ".gpadvisor-ledger.jsonl"


async def fixed_and_profiled(tmp_path: Path, setting: str, *, fix: bool = True) -> Path:
    (tmp_path / "project").mkdir()
    project = make_project(tmp_path / "project", KERNEL, report=report_of(KERNEL))
    settings: dict[str, Any] = {"debounceMilliseconds": 0, "profiles": {"ledger": setting}}
    async with editor(project, settings=settings) as one:
        one.open(NAME)
        found = await one.shown(NAME, lambda all_: any("[measured" in each.message for each in all_))
        place = next(each for each in found if each.code == "GPA102")
        actions = await one.actions(NAME, place.range)
        action = next(each for each in actions if "float literal" in each.title)
        uri, identity, *_ = action.command.arguments
        if fix:
            assert await one.execute("gpadvisor.server.applyFix", uri, identity, True) is True
        (project / "run.ncu-rep").write_bytes(report_of(KERNEL, duration_ns=4e5, scale=2))
        event = lsp.FileEvent(uri=one.uri("run.ncu-rep"), type=lsp.FileChangeType.Changed)
        one.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([event]))
        statuses = one.own["gpadvisor/status"]
        await one.until(lambda: "promised" in plain(statuses[-1])["detail"])
    return project


async def test_an_applied_fix_writes_its_line(tmp_path: Path) -> None:
    project = await fixed_and_profiled(tmp_path, LEDGER)
    head, line = (project / LEDGER).read_text().splitlines()
    assert json.loads(head) == {"gpadvisor-ledger": 1}
    row = json.loads(line)
    assert (row["rule"], row["known_by"], row["achieved"], row["beside"]) == ("GPA102", "fix", 2.5, 0)
    assert row["low"] <= row["expected"] <= row["high"]
    assert row["before"] != row["after"]
    assert str(tmp_path) not in line


@pytest.mark.parametrize(("setting", "fix"), [("", True), (LEDGER, False), ("../out.jsonl", True)])
async def test_nothing_is_written_unasked_nor_elsewhere(tmp_path: Path, setting: str, fix: bool) -> None:
    await fixed_and_profiled(tmp_path, setting, fix=fix)
    assert not list(tmp_path.rglob("*.jsonl"))
