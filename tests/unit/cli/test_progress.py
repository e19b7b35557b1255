# SPDX-License-Identifier: Apache-2.0
"""The line of progress on a terminal."""

from __future__ import annotations

import io

import pytest

from gpadvisor.cli import progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [20, 40, 80])
def test_the_line_of_progress_stays_on_one_line_of_the_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A longer one is broken by the terminal, and what is before the break is never removed."""
    screen = _Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    shown = progress.TerminalProgress(ticking=False)
    shown("analysing void a_kernel_of_many_parameters<float>(unsigned long, unsigned long, float const*)")
    shown.clear()
    parts = screen.getvalue().split("\r")
    assert max(map(len, parts)) == columns - 1
    assert parts[1].startswith("gpadvisor: analysing"[: columns - 1])
