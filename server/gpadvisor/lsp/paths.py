# SPDX-License-Identifier: Apache-2.0
"""Names of files as the server knows them, and the text of those that no editor has open."""

from __future__ import annotations

import os
from typing import Final

from pygls.uris import to_fs_path

from gpadvisor.files import read_file

MAX_TEXT_BYTES: Final = 8 << 20
"""Of a file that no editor has open and that findings are placed in."""


def file_path(uri: str) -> str | None:
    """The resolved path of a ``file`` URI; None for other schemes and for untitled documents."""
    if not uri.startswith("file:"):
        return None
    path = to_fs_path(uri)
    return resolved(path) if path and can_be_path(path) else None


def can_be_path(text: str) -> bool:
    """Whether a file system can be asked for it: JSON can name what none can have."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def resolved(path: str) -> str:
    """One name for each file, whatever links lead to it."""
    return os.path.realpath(path)


def read_text(path: str) -> str | None:
    """A source that no editor has open; None where it cannot be read or is no text by its size."""
    try:
        return read_file(path, max_bytes=MAX_TEXT_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
