# SPDX-License-Identifier: Apache-2.0
"""The child process that reads a foreign profile: limits, then the file, then its plain form."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import signal
import sys
from pathlib import Path
from typing import Final

ANSWER: Final = "answer.json"
COLUMNS: Final = "columns.npz"
BLOBS: Final = "blobs.bin"
NO_ROOM: Final = "NoRoom"
_SET_PARENT_DEATH_SIGNAL: Final = 1  # linux/prctl.h
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})


def limit_resources(memory_bytes: int, cpu_seconds: int) -> None:
    """Bound memory and time where the platform can; a crash leaves no core file."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 absent on Windows

    for kind, amount in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, memory_bytes),
    ):
        with contextlib.suppress(ValueError, OSError):  # a lower hard limit, or a kind that macOS ignores
            resource.setrlimit(kind, (amount, amount))


def end_with_parent() -> None:
    """Have the system kill this process when the one that started it is killed and cannot."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it has ended meanwhile
        os._exit(1)


def main(arguments: list[str]) -> int:
    """``path folder memory_bytes cpu_seconds``: write the profile, or the error, into the folder."""
    path, folder, memory_bytes, cpu_seconds = arguments
    end_with_parent()
    limit_resources(int(memory_bytes), int(cpu_seconds))
    from gpadvisor.errors import GpadvisorError  # noqa: PLC0415 limits come before everything else

    try:
        _read(Path(path), Path(folder))
    except GpadvisorError as error:
        answer = {"class": type(error).__name__, "message": str(error)}
    except (MemoryError, ImportError):  # a library that does not fit into the memory is not loaded
        answer = {"class": "MemoryError", "message": ""}
    except OSError as error:
        name = NO_ROOM if error.errno in _NO_ROOM else "Exception"
        answer = {"class": name, "message": error.strerror or str(error)}
        for big in (COLUMNS, BLOBS):  # the answer needs room, too
            (Path(folder) / big).unlink(missing_ok=True)
    except Exception as error:  # noqa: BLE001 the border of the process: what is not foreseen is still one sentence
        answer = {"class": "Exception", "message": f"{type(error).__name__}: {error}"}
    else:
        return 0
    (Path(folder) / ANSWER).write_text(json.dumps(answer), "utf-8")
    return 3


def _read(path: Path, folder: Path) -> None:
    import numpy as np  # noqa: PLC0415 limits come before everything else

    from gpadvisor.store.load import load_profile  # noqa: PLC0415 limits come before everything else
    from gpadvisor.store.parts import take_apart  # noqa: PLC0415 limits come before everything else

    parts = take_apart(load_profile(path))
    columns = {
        f"{table}.{name}": values for table, named in parts.tables.items() for name, values in named.items()
    }
    with (folder / COLUMNS).open("wb") as file:
        np.savez(file, allow_pickle=False, **columns)
    index: list[tuple[str, str, int]] = []
    with (folder / BLOBS).open("wb") as file:
        for kind, blobs in parts.blobs.items():
            for key, data in blobs.items():
                index.append((kind, key, len(data)))
                file.write(data)
    # Last, so that its presence says that all is there.
    (folder / ANSWER).write_text(json.dumps({"document": parts.document, "blobs": index}), "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
