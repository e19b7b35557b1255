# SPDX-License-Identifier: Apache-2.0
"""Writing files as a whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Write beside the target and rename, so that a full disk leaves no partial file.

    A link stays one and its target is replaced; a device or a pipe is written to, never replaced.

    Raises:
        OSError: the folder does not exist, is read-only or full; it names the target.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a folder, name a file in it")
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            _replace(path.resolve(), data)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), os.fspath(path)) from error


def _replace(path: Path, data: bytes) -> None:
    import tempfile  # noqa: PLC0415 most answers go to the terminal

    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
