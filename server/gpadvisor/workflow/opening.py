# SPDX-License-Identifier: Apache-2.0
"""Opening what the user names: a profile with its cubins, a bare cubin, or a source to compile."""

from __future__ import annotations

from pathlib import Path

from gpadvisor import store
from gpadvisor.model.profile import Profile
from gpadvisor.workflow.settings import Settings

READ_SECONDS = 300.0


def load(path: Path, settings: Settings) -> Profile:
    """A profile, read by a child process with limits of time and memory.

    Raises:
        ProfileError: the file is damaged, foreign or too large for the limits.
    """
    return store.load_profile_isolated(
        path, timeout_seconds=READ_SECONDS, memory_bytes=settings.memory_mib << 20
    )
