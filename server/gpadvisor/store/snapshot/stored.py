# SPDX-License-Identifier: Apache-2.0
"""Members of an archive that are stored as they are, read again without its directory."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, Final
from zipfile import ZIP_STORED, ZipFile

from gpadvisor.errors import ProfileFormatError

_PLACE: Final = struct.Struct("<3Q")
_HEAD: Final = struct.Struct("<4s22x2H")
"""Of a member in front of its bytes: the mark, and the lengths of its name and of what is said beside."""
_MARK: Final = b"PK\x03\x04"


def stored_places(archive: ZipFile, names: Sequence[str]) -> bytes | None:
    """Where members are, with their sizes and checksums; None where one is packed."""
    entries = [archive.getinfo(name) for name in names]
    if any(entry.compress_type != ZIP_STORED for entry in entries):
        return None
    return b"".join(_PLACE.pack(entry.header_offset, entry.file_size, entry.CRC) for entry in entries)


def stored(stream: BinaryIO, places: bytes, numbers: Iterable[int]) -> Iterator[bytes]:
    """The bytes of members at places that were looked up before, which are numbered.

    Raises:
        ProfileFormatError: they are not what the archive says.
    """
    for number in numbers:
        offset, size, checksum = _PLACE.unpack_from(places, number * _PLACE.size)
        stream.seek(offset)
        head = stream.read(_HEAD.size)
        if len(head) < _HEAD.size or not head.startswith(_MARK):
            raise ProfileFormatError("a member of the snapshot's archive is damaged; import it again")
        _, name, more = _HEAD.unpack(head)
        stream.seek(name + more, 1)
        data = stream.read(size)
        if len(data) < size or zlib.crc32(data) != checksum:
            raise ProfileFormatError("a member of the snapshot's archive is damaged; import it again")
        yield data
