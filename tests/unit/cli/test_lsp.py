# SPDX-License-Identifier: Apache-2.0
"""The command that serves an editor."""

from __future__ import annotations

import gc

import pytest

from gpadvisor.cli import main
from gpadvisor.lsp import server, streams


def test_garbage_of_a_long_life_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other commands are short and have theirs collected after millions of values, if ever."""
    before, seen = gc.get_threshold(), []
    monkeypatch.setattr(streams, "leave_workspace", lambda: None)
    monkeypatch.setattr(server, "log_to_stderr", lambda: None)
    monkeypatch.setattr(server, "serve_port", lambda _port: seen.append(gc.get_threshold()))
    try:
        gc.set_threshold(5_000_000, 20, 100)
        assert main(["lsp", "--tcp", "1"]) == 0
    finally:
        gc.set_threshold(*before)
    assert seen[0][0] <= 100_000
