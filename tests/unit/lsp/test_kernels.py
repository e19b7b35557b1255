# SPDX-License-Identifier: Apache-2.0
"""The launch that is picked is the one that the lens names."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.editor_values import FOUR, ONE, SOURCE, analysis, file_analysis, kernel

from gpadvisor.lsp.features.kernels import kernel_choices
from gpadvisor.lsp.layers import Entry
from gpadvisor.lsp.server import Server
from gpadvisor.model.finding import LaunchView

pytestmark = pytest.mark.asyncio


async def test_launches_are_counted_among_those_of_their_kernel(tmp_path: Path) -> None:
    path = tmp_path / "gather.cu"
    path.write_text(SOURCE)
    times = {0: (FOUR, 9.0), 1: (ONE, 3.0), 4: (ONE, 5.0)}
    launches = tuple(
        LaunchView(
            index=at,
            kernel=name,
            name="gather",
            label="64 x 256 threads, 1 us",
            duration_ns=time,
            analysed=True,
        )
        for at, (name, time) in times.items()
    )
    shown = kernel(launch="launch 2 of 2: 64 x 256 threads", launch_index=4)
    value = analysis(shown, files=(file_analysis(local=str(path)),), launches=launches)
    session = Server().session
    session.state.put(Entry(key="profile", analysis=value, is_profile=True, age=1.0))
    choices = kernel_choices(session.state.now, await session.views.of(path.as_uri()))
    assert [(one.kernel, one.description, one.chosen) for one in choices] == [
        (f"{ONE}@4", "34 % of GPU time, launch 2 of 2: 64 x 256 threads, 1 us", True),
        (f"{ONE}@1", "34 % of GPU time, launch 1 of 2: 64 x 256 threads, 1 us", False),
    ]
