# SPDX-License-Identifier: Apache-2.0
"""What is published is the newest analysis, however long the placing of an older one takes."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.editor_values import SOURCE, analysis, file_analysis, kernel

from gpadvisor.lsp import views
from gpadvisor.lsp.background import Background
from gpadvisor.lsp.layers import Entry
from gpadvisor.lsp.state import State
from gpadvisor.lsp.views import Views

pytestmark = pytest.mark.asyncio


async def test_a_view_begun_before_a_new_analysis_does_not_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gather.cu"
    path.write_text(SOURCE)
    state = State()
    made = Views(state, Background())
    state.open(path.as_uri(), SOURCE, 1)
    begun, go_on, make_view = threading.Event(), threading.Event(), views.make_view

    def held(*arguments: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return make_view(*arguments)

    def entry(age: float) -> Entry:
        here = file_analysis(local=str(path))
        return Entry(key="profile", analysis=analysis(kernel(), files=(here,)), is_profile=True, age=age)

    monkeypatch.setattr(views, "make_view", held)
    state.put(entry(1.0))
    first = asyncio.ensure_future(made.view(str(path)))
    await asyncio.to_thread(begun.wait, 60)
    state.put(entry(2.0))
    second = asyncio.ensure_future(made.view(str(path)))
    await asyncio.sleep(0)
    go_on.set()
    for view in await asyncio.gather(first, second):
        assert view is not None
        assert [layer.entry.age for layer in view.layers] == [2.0]


@pytest.mark.timeout(60)
async def test_a_view_of_an_older_text_that_was_just_made_does_not_stop_the_server(tmp_path: Path) -> None:
    path = tmp_path / "gather.cu"
    path.write_text(SOURCE)
    state = State()
    made = Views(state, Background())
    state.open(path.as_uri(), SOURCE, 1)
    here = file_analysis(local=str(path))
    state.put(Entry(key="profile", analysis=analysis(kernel(), files=(here,)), is_profile=True, age=1.0))
    older = await made.view(str(path))
    done = asyncio.ensure_future(asyncio.sleep(0, older))
    await done
    state.open(path.as_uri(), f"{SOURCE}// edited\n", 2)
    # As it is between the end of the work and the call that takes it out of the list.
    made._making[str(path), state.now.revision] = done
    newer = await made.view(str(path))
    assert older is not None
    assert newer is not None
    assert newer.text is not older.text
