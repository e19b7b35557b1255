# SPDX-License-Identifier: Apache-2.0
"""What reads a foreign profile in a child process: the file, then its plain form."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gpadvisor.errors import GpadvisorError
from gpadvisor.sandbox.codec import Failure, failure, from_bytes, to_bytes

COLUMNS: Final = "columns.npz"
BLOBS: Final = "blobs.bin"
NO_ROOM: Final = "NoRoom"
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """What is read, and the folder that columns and blobs are written into."""

    path: str
    gpubins: str | None  # of a database of HPCToolkit
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadProfile:
    """A profile's document, and kind, digest and size of each blob in order."""

    document: dict[str, Any]  # as ``store.parts`` takes it, which looks at all of it
    blobs: tuple[tuple[str, str, int], ...]


def answer(request: bytes) -> bytes:
    """The ``ReadProfile`` of a ``ReadRequest``, or a ``Failure``."""
    asked = from_bytes(request, ReadRequest)
    reply: ReadProfile | Failure
    try:
        gpubins = None if asked.gpubins is None else Path(asked.gpubins)
        reply = _read(Path(asked.path), Path(asked.folder), gpubins)
    except GpadvisorError as error:
        reply = failure(error)
    except (MemoryError, ImportError):  # a library that does not fit into the memory is not loaded
        reply = Failure(error="MemoryError", message="")
    except OSError as error:
        name = NO_ROOM if error.errno in _NO_ROOM else "Exception"
        reply = Failure(error=name, message=error.strerror or str(error))
    except Exception as error:  # noqa: BLE001 the border of the process: what is not foreseen is still one sentence
        reply = Failure(error="Exception", message=f"{type(error).__name__}: {error}")
    return to_bytes(reply)


def _read(path: Path, folder: Path, gpubins: Path | None) -> ReadProfile:
    import numpy as np  # noqa: PLC0415 its absence, or no memory for it, is an answer

    from gpadvisor.store.load import load_profile  # noqa: PLC0415 memory may end in it
    from gpadvisor.store.parts import take_apart  # noqa: PLC0415 memory may end in it

    parts = take_apart(load_profile(path, gpubins))
    columns = {
        f"{table}.{name}": values
        for table, columns in parts.tables.items()
        for name, values in columns.items()
    }
    with (folder / COLUMNS).open("wb") as file:
        np.savez(file, allow_pickle=False, **columns)
    index: list[tuple[str, str, int]] = []
    with (folder / BLOBS).open("wb") as file:
        for kind, blobs in parts.blobs.items():
            for key, data in blobs.items():
                index.append((kind, key, len(data)))
                file.write(data)
    return ReadProfile(document=parts.document, blobs=tuple(index))
