# SPDX-License-Identifier: Apache-2.0
"""A profile as a child process reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpadvisor.model.profile import Profile
from gpadvisor.store.isolation import being_read


def read_isolated(
    path: Path,
    *,
    timeout_seconds: float = 300.0,
    memory_bytes: int = 8 << 30,
    cancelled: Callable[[], bool] | None = None,
) -> Profile:
    """The profile, or the error that the child gave."""
    with being_read(
        path, timeout_seconds=timeout_seconds, memory_bytes=memory_bytes, cancelled=cancelled
    ) as profile:
        return profile()
