# SPDX-License-Identifier: Apache-2.0
"""Time limits that are over when a test says so, and not when a loaded machine happens to be slow."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import ModuleType

import pytest

from gpadvisor.sandbox import application

_LEAP_SECONDS = 1e6


class _Clock:
    """The time module as what runs programs uses it."""

    sleep = staticmethod(time.sleep)

    def __init__(self, leaps: Callable[[], bool]) -> None:
        self._leaps = leaps
        self._ahead = 0.0

    def monotonic(self) -> float:
        if not self._ahead and self._leaps():
            self._ahead = _LEAP_SECONDS
        return time.monotonic() + self._ahead


def leap(monkeypatch: pytest.MonkeyPatch, when: Callable[[], bool], module: ModuleType = application) -> None:
    """Let every time limit that a module keeps pass once ``when`` is true."""
    monkeypatch.setattr(module, "time", _Clock(when))
