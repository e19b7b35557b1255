# SPDX-License-Identifier: Apache-2.0
"""What the code of a source says is shown before its simulation begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from tests.editor_values import SOURCE, analysis, file_analysis, kernel

from gpadvisor.lsp.inputs import Inputs
from gpadvisor.lsp.server import Server
from gpadvisor.sandbox.codec import to_json
from gpadvisor.sandbox.pool import Workers


@pytest.mark.asyncio
async def test_the_file_that_is_looked_at_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many that wait: the one that was opened last, until another one is asked about."""
    session = Server().session
    ranks: dict[str, Callable[[], float]] = {}

    async def run(_self: Workers, _job: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
        ranks[Path(arguments["path"]).stem] = more["rank"]
        return {"analysis": to_json(analysis(kernel())), "launches": {}, "models": False}

    monkeypatch.setattr(Workers, "run", run)
    monkeypatch.setattr(session.publisher, "analyses_changed", lambda _: None)
    monkeypatch.setattr(session.publisher, "say_all", lambda: None)
    for name in "abc":
        path = tmp_path / f"{name}.cu"
        path.write_text(f"// {name}\n{SOURCE}")
        session.opened(
            lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(path.as_uri(), "cuda-cpp", 1, SOURCE))
        )
        await session.sources.analyse(str(path))

    def order() -> str:
        return "".join(sorted(ranks, key=lambda name: -ranks[name]()))

    assert order() == "cba"
    await session.views.asked((tmp_path / "a.cu").as_uri())
    assert order() == "acb"


@pytest.mark.asyncio
@pytest.mark.parametrize("launch_is_known", [True, False])
async def test_findings_of_the_code_do_not_wait_for_a_simulation(
    launch_is_known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gather.cu"
    path.write_text(SOURCE)
    session = Server().session
    done: list[str] = []

    async def run(_self: Inputs, _job: str, arguments: dict[str, Any], *_: object) -> dict[str, Any]:
        done.append(arguments["model"])
        values = analysis(kernel(), files=(file_analysis(local=str(path)),))
        later = arguments["model"] == "later" and launch_is_known
        return {"analysis": to_json(values), "launches": {}, "models": later}

    def show(_changed: object) -> None:
        done.extend("shown" for _ in session.state.now.entries)

    monkeypatch.setattr(Inputs, "run", run)
    monkeypatch.setattr(session.publisher, "analyses_changed", show)
    await session.sources.analyse(str(path))
    assert done == (["later", "shown", "known", "shown"] if launch_is_known else ["later", "shown"])
