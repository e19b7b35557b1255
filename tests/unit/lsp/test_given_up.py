# SPDX-License-Identifier: Apache-2.0
"""A wish that is given up before it began leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import warnings
from pathlib import Path

from gpadvisor.lsp.server import Server


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
