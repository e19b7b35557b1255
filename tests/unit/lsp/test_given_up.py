# SPDX-License-Identifier: Apache-2.0
"""A wish that is given up leaves nothing behind, and who has it gets what came of the newer one."""

from __future__ import annotations

import asyncio
import gc
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.editor_values import analysis, kernel

from gpadvisor.errors import GpadvisorError
from gpadvisor.lsp.inputs import Inputs
from gpadvisor.lsp.server import Server
from gpadvisor.sandbox.codec import to_json


async def _given_up(path: str) -> None:
    session = Server().session
    wishes = [session.profiles.read(path), session.profiles.read(path)]
    session.cancel_analyses()
    await asyncio.gather(*wishes, return_exceptions=True)
    assert all(wish.cancelled() for wish in wishes)


def test_no_work_is_left_that_nobody_waits_for(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio.run(_given_up(str(tmp_path / "run.ncu-rep")))
        gc.collect()
    assert not [str(one.message) for one in told if "never awaited" in str(one.message)]


@pytest.mark.asyncio
async def test_an_import_is_not_stopped_by_a_scan_that_finds_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(b"report")
    session = Server().session
    runs: list[str] = []

    async def run(_self: Inputs, _job: str, arguments: dict[str, Any], *_: object) -> dict[str, Any]:
        runs.append(arguments["path"])
        if len(runs) > 1:
            raise GpadvisorError("no report")
        await asyncio.sleep(3600)
        return {}

    monkeypatch.setattr(Inputs, "run", run)
    asked = session.profiles.read(str(path))
    while not runs:
        await asyncio.sleep(0.01)
    session.profiles.read(str(path))  # as a scan does that finds the file grown
    with pytest.raises(GpadvisorError, match="no report"):  # what came of the newer one
        await asked


@pytest.mark.asyncio
async def test_what_the_user_stops_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(b"report")
    session = Server().session

    async def run(_self: Inputs, _job: str, _arguments: dict[str, Any], *_: object) -> dict[str, Any]:
        session.cancel_analyses()
        await asyncio.sleep(3600)
        return {"analysis": to_json(analysis(kernel())), "launches": {}}

    monkeypatch.setattr(Inputs, "run", run)
    older, newer = session.profiles.read(str(path)), session.profiles.read(str(path))
    for wish in (older, newer):
        with pytest.raises(asyncio.CancelledError):
            await wish
