# SPDX-License-Identifier: Apache-2.0
"""Timelines of runs: exports of Nsight Systems, Chrome traces as PyTorch's, databases of HPCToolkit."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpadvisor.errors import NoTimelineError, ProfileFormatError
from gpadvisor.files import open_file
from gpadvisor.model.timeline import Timeline
from gpadvisor.store.paths import TRACE, is_collection
from gpadvisor.store.timeline.chrome import read_chrome
from gpadvisor.store.timeline.hpctoolkit import read_trace
from gpadvisor.store.timeline.nsys import read_nsys
from gpadvisor.store.timeline.recorded import read_recorded
from gpadvisor.store.timeline.stored import read_stored
from gpadvisor.store.traces import GZIP, SQLITE, is_json

_ZIP: Final = b"PK\3\4"


def read_timeline(path: Path, *, paths: bool = False) -> Timeline:
    """Read a trace of any of these formats, with whole call paths where they are asked for.

    Raises:
        NoTimelineError: it is none of these.
        ProfileFormatError: it is damaged, or without work of a GPU.
    """
    if is_collection(path):
        return read_recorded(path)
    if path.is_dir() or path.name == TRACE:
        return read_trace(path if path.is_dir() else path.parent)
    try:
        with open_file(path) as stream:
            head = stream.read(64)
    except OSError as error:
        raise ProfileFormatError(f"{path} cannot be read: {error.strerror or error}") from error
    if head.startswith(_ZIP):
        return read_stored(path)
    if head.startswith(SQLITE):
        return read_nsys(path, paths=paths)
    if head.startswith(GZIP) or is_json(head):
        return read_chrome(path, paths=paths)
    raise NoTimelineError(
        f"{path} is no timeline: neither a SQLite export of Nsight Systems (nsys export --type sqlite"
        " REPORT), nor a Chrome trace, as PyTorch writes it, nor a database of HPCToolkit, nor a snapshot"
    )
