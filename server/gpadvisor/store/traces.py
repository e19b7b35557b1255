# SPDX-License-Identifier: Apache-2.0
"""What files of traced runs begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpadvisor.files import open_file

SQLITE: Final = b"SQLite format 3\0"
GZIP: Final = b"\x1f\x8b"
_BLANK: Final = b" \t\r\n\xef\xbb\xbf"
_EVENTS: Final = b'"ph"'
_PEEK: Final = 1 << 16


def is_trace(path: Path) -> bool:
    """Whether a file looks like an SQLite export or a Chrome trace."""
    try:
        with open_file(path) as stream:
            head = stream.read(_PEEK)
    except OSError:
        return False
    return head.startswith((SQLITE, GZIP)) or (is_json(head) and _EVENTS in head)


def is_json(head: bytes) -> bool:
    """Whether a file that begins like that has an object or a list."""
    return head.lstrip(_BLANK)[:1] in {b"{", b"["}
