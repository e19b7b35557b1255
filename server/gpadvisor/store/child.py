# SPDX-License-Identifier: Apache-2.0
"""What reads a foreign profile in a child process: the file, then its plain form."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any, Final

from gpadvisor.errors import GpadvisorError

COLUMNS: Final = "columns.npz"
BLOBS: Final = "blobs.bin"
NO_ROOM: Final = "NoRoom"
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})


def answer(request: bytes) -> bytes:
    """Read what is at ``path``, a database with ``gpubins``; write columns and blobs into ``folder`` (JSON).

    The answer is its ``document`` with an index of ``blobs``, or the ``class`` and ``message`` of an error.
    """
    parameters = json.loads(request)
    folder = Path(parameters["folder"])
    try:
        gpubins = parameters.get("gpubins")
        reply = _read(Path(parameters["path"]), folder, None if gpubins is None else Path(gpubins))
    except GpadvisorError as error:
        reply = {"class": type(error).__name__, "message": str(error)}
    except (MemoryError, ImportError):  # a library that does not fit into the memory is not loaded
        reply = {"class": "MemoryError", "message": ""}
    except OSError as error:
        name = NO_ROOM if error.errno in _NO_ROOM else "Exception"
        reply = {"class": name, "message": error.strerror or str(error)}
    except Exception as error:  # noqa: BLE001 the border of the process: what is not foreseen is still one sentence
        reply = {"class": "Exception", "message": f"{type(error).__name__}: {error}"}
    return json.dumps(reply).encode()


def _read(path: Path, folder: Path, gpubins: Path | None) -> dict[str, Any]:
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
    return {"document": parts.document, "blobs": index}
