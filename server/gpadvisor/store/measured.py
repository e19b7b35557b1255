# SPDX-License-Identifier: Apache-2.0
"""What reads calling contexts of other profilers in a child process."""

from __future__ import annotations

from pathlib import Path

from gpadvisor.errors import GpadvisorError, ProfileFormatError
from gpadvisor.model.contexts import MeasuredContexts
from gpadvisor.sandbox.codec import failure, from_bytes, to_bytes
from gpadvisor.store.hatchet import read_hatchet
from gpadvisor.store.hpctoolkit.contexts import contexts_of
from gpadvisor.store.hpctoolkit.database import read_database
from gpadvisor.store.timeline.paths import run_contexts
from gpadvisor.store.traces import is_trace


def read_contexts(path: Path) -> MeasuredContexts:
    """The tree of a database of HPCToolkit, of a file of Proton or hatchet, or of a traced run.

    Raises:
        ProfileFormatError: it is none, or damaged.
    """
    if path.is_dir():
        return contexts_of(read_database(path))
    return run_contexts(path) if is_trace(path) else read_hatchet(path)


def answer(request: bytes) -> bytes:
    """Read the contexts at a path; both are of the codec."""
    path = from_bytes(request, str)
    try:
        return to_bytes(read_contexts(Path(path)))
    except GpadvisorError as error:
        return to_bytes(failure(error))
    except MemoryError:
        return to_bytes(failure(ProfileFormatError(f"{path} needs too much memory")))
