# SPDX-License-Identifier: Apache-2.0
"""Files of a database as bounded bytes: header, footer, sections, texts and rows by the strides they name.

The layout is that of ``FORMATS.md``, which HPCToolkit writes into each database.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.errors import ProfileFormatError
from gpadvisor.files import read_file

MAX_BYTES: Final = 2 << 30
"""Of each file."""
MAJOR: Final = 4
_MAGIC: Final = b"HPCTOOLKIT"
_HEADER: Final = 16
_SECTION: Final = 16
_FOOTER: Final = 8
_TEXT_BYTES: Final = 1 << 16
_FILES: Final = {
    "meta.db": (b"meta", b"_meta.db"),
    "profile.db": (b"prof", b"_prof.db"),
    "cct.db": (b"ctxt", b"__ctx.db"),
    "trace.db": (b"trce", b"trace.db"),
}


def fields(*columns: tuple[str, str, int], size: int = 0) -> np.dtype[Any]:
    """A structure of (name, type, offset), at least as long as its last field."""
    least = max(offset + np.dtype(kind).itemsize for _, kind, offset in columns)
    return np.dtype(
        {
            "names": [name for name, _, _ in columns],
            "formats": [kind for _, kind, _ in columns],
            "offsets": [offset for _, _, offset in columns],
            "itemsize": max(least, size),
        }
    )


class DatabaseFile:
    """One file, of which nothing outside is read."""

    def __init__(self, folder: Path, name: str) -> None:
        """Read it whole.

        Raises:
            ProfileFormatError: it is not there, of another kind or version, or cut short.
        """
        self.name = name
        self.path = folder / name
        try:
            self._data = read_file(self.path, max_bytes=MAX_BYTES)
        except OSError as error:
            why = (
                f"has more than the {MAX_BYTES >> 30} GiB that are read"
                if error.errno == errno.EFBIG
                else f"cannot be read: {error.strerror or error}"
            )
            raise ProfileFormatError(f"{self.path} {why}") from error
        kind, footer = _FILES[name]
        head = self._data[:_HEADER]
        if head[:10] != _MAGIC or head[10:14] != kind:
            raise ProfileFormatError(f"{self.path} is no {name} of HPCToolkit; name a folder of hpcprof")
        if len(head) < _HEADER or head[14] != MAJOR:
            raise ProfileFormatError(
                f"{self.path} is of version {'.'.join(map(str, head[14:16]))} of the format, and {MAJOR} is"
                " read; run hpcprof of HPCToolkit 2022.05 or newer over the measurements"
            )
        if not self._data.endswith(footer):
            raise ProfileFormatError(
                f"{self.path} is cut short: it does not end with {footer.decode()}; copy the database again,"
                " or run hpcprof again"
            )

    def __len__(self) -> int:
        return len(self._data)

    def section(self, index: int) -> int:
        """Where a section begins."""
        size, place = self.numbers("<QQ", _HEADER + _SECTION * index)
        if not _HEADER <= place <= len(self._data) - _FOOTER or size > len(self._data) - place:
            raise self.damaged(f"section {index} lies outside of it")
        return int(place)

    def numbers(self, layout: str, place: int) -> tuple[Any, ...]:
        """Numbers as ``struct`` has them."""
        try:
            return struct.unpack_from(layout, self._data, place)
        except (struct.error, OverflowError):
            raise self.damaged(f"it has no {struct.calcsize(layout)} bytes at {place}") from None

    def text(self, place: int) -> str:
        """The text at a place; nothing at 0."""
        if not place:
            return ""
        end = self._data.find(b"\0", place, place + _TEXT_BYTES)
        if end < 0:
            raise self.damaged(f"the text at {place} has no end")
        return self._data[place:end].decode("utf-8", "replace")

    def rows(self, place: int, count: int, row: np.dtype[Any], stride: int = 0) -> NDArray[np.void]:
        """So many structures beside each other, each ``stride`` bytes long (default: as long as it is)."""
        stride = stride or row.itemsize
        if not count:
            return np.zeros(0, row)
        if stride < row.itemsize or place < 0 or place + count * stride > len(self._data):
            raise self.damaged(f"{count} rows of {stride} bytes at {place} are not in it")
        return np.ndarray((count,), row, self._data, place, (stride,))

    def spans(self, first: Sequence[int], rows: int) -> NDArray[np.int64]:
        """How many rows each begins with ``first``, the last up to ``rows``."""
        bounds = np.append(np.asarray(first, np.uint64), np.uint64(rows)).astype(np.int64)
        counts = np.diff(bounds)
        if (counts < 0).any() or bounds[0] != 0:
            raise self.damaged("an index of values is out of order")
        return counts

    def damaged(self, reason: str) -> ProfileFormatError:
        """An error that says what is wrong with it."""
        return ProfileFormatError(
            f"{self.path} is damaged: {reason}; copy the database again, or run hpcprof again"
        )
