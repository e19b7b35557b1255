# SPDX-License-Identifier: Apache-2.0
"""A content-addressed cache on disk: what was asked of which bytes, by which version, gives the same answer.

Only the standard library is imported here, so that an answer from the cache costs the start of Python.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Final

from gpadvisor import __version__
from gpadvisor.files import is_ours, open_file, read_file

SCHEMA: Final = 1
_MOST_BYTES: Final = 16 << 30  # of a file that is read; a report has 4 GiB at most
MAX_BYTES: Final = 512 << 20
_CHUNK: Final = 1 << 20
_TOOLS: Final = ("nvdisasm", "cuobjdump", "nvcc")


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes.

    Raises:
        OSError: as of `open_file`; larger than anything that is read here (EFBIG).
    """
    digest = hashlib.sha256()
    with open_file(path) as stream:
        if os.fstat(stream.fileno()).st_size > _MOST_BYTES:
            raise OSError(errno.EFBIG, f"is larger than {_MOST_BYTES >> 30} GiB, the most that is read", path)
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def installation_digest() -> str:
    """Changes when gpadvisor or a package or tool it uses changes."""
    digest = hashlib.sha256(f"{SCHEMA} {__version__}".encode())
    digest.update("".join(_stamps(Path(__file__).resolve().parent.parent)).encode())
    for place in _tool_places():
        with contextlib.suppress(OSError):
            digest.update(f"{place} {place.stat().st_mtime_ns};".encode())
    return digest.hexdigest()


def _stamps(folder: Path | str) -> Iterator[str]:
    """Name, size and time of each file below a folder, always in the same order."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=attrgetter("name")):
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _stamps(entry.path)
            else:
                status = entry.stat()
                yield f"{entry.name} {status.st_size} {status.st_mtime_ns};"


def _tool_places() -> list[Path]:
    # Files and folders whose time stamp changes when a tool is installed, removed or replaced.
    places = [Path(entry) for entry in sys.path if entry.endswith("site-packages")]
    tools = (os.environ.get(f"GPADVISOR_{name.upper()}") or shutil.which(name) for name in _TOOLS)
    places += [Path(tool) for tool in tools if tool]
    toolkits = (os.environ.get(variable) for variable in ("CUDA_HOME", "CUDA_PATH"))
    places += [Path(toolkit) / "bin" for toolkit in toolkits if toolkit]
    return places


class Cache:
    """Values by key; every failure of the disk is a miss, never an error."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @property
    def is_on(self) -> bool:
        """Whether anything is kept: what is put into it may take long to write down."""
        return self._folder is not None

    @staticmethod
    def key(kind: str, parts: Mapping[str, object]) -> str:
        """The key of everything that decides an answer; ``parts`` must be JSON values."""
        text = json.dumps([kind, SCHEMA, parts], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def get(self, key: str) -> bytes | None:
        """The stored bytes; None on a miss or where the entry is damaged."""
        if self._folder is None:
            return None
        try:
            path = self._path(key)
            if not is_ours(path):  # an answer that somebody else could have written is none
                return None
            data = read_file(path, max_bytes=MAX_BYTES)
        except OSError:
            return None
        checksum, body = data[:32], data[32:]
        return body if hashlib.sha256(body).digest() == checksum else None

    def put(self, key: str, body: bytes) -> None:
        """Store bytes; a full or read-only disk is not an error."""
        if self._folder is None or len(body) > MAX_BYTES // 4:
            return
        import tempfile  # noqa: PLC0415 a warm answer writes nothing

        path = self._path(key)
        temporary: str | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not is_ours(path.parent):
                return
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            with os.fdopen(handle, "wb") as stream:
                stream.write(hashlib.sha256(body).digest() + body)
            Path(temporary).replace(path)
        except OSError:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    Path(temporary).unlink()
            return
        self._trim()

    def _path(self, key: str) -> Path:
        if self._folder is None:
            raise ValueError("the cache is off")
        return self._folder / f"v{SCHEMA}" / key[:2] / key[2:]

    def _trim(self) -> None:
        """Drop the entries that were written longest ago until the cache fits."""
        if self._folder is None:
            return
        entries: list[tuple[float, int, Path]] = []
        with contextlib.suppress(OSError):
            for path in (self._folder / f"v{SCHEMA}").glob("*/*"):
                status = path.stat()
                entries.append((status.st_mtime, status.st_size, path))
        excess = sum(size for _, size, _ in entries) - MAX_BYTES
        for _, size, path in sorted(entries, key=lambda entry: entry[0]):
            if excess <= 0:
                break
            with contextlib.suppress(OSError):
                path.unlink()
                excess -= size
