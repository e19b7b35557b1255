# SPDX-License-Identifier: Apache-2.0
"""The files of a collection directory, bounded and only regular ones."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from gpadvisor.errors import ProfileFormatError
from gpadvisor.files import open_file, read_file
from gpadvisor.store.collection.layout import FILE_HEADER
from gpadvisor.store.collection.records import read_header
from gpadvisor.store.paths import COLLECTION_SUFFIX, HOST_LINES

HostLine: TypeAlias = tuple[str | None, str | None, int | None]
"""Function, file and line of a native frame."""

_MAX_LINES_BYTES: Final = 64 << 20
MAX_FILES: Final = 4096
MAX_BYTES: Final = 4 << 30
_CUBIN: Final = re.compile(r"[0-9a-f]{64}\.cubin")
_NONE: Final = (
    "holds no file of the cupti collector: the application did not use CUDA, or could not load the library;"
    " run it again and read what it prints"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What a collection has so far, by the counters that its processes keep."""

    processes: int
    launches: int
    samples: int
    kernels: int
    lost_records: int
    file_bytes: int


def process_files(path: Path) -> tuple[Path, ...]:
    """The files of all processes, the oldest first.

    Raises:
        ProfileFormatError: there are none, or more than a collection has.
    """
    if not path.is_dir():
        return (path,)
    paths = [entry for entry in sorted(path.glob(f"*{COLLECTION_SUFFIX}")) if _is_regular(entry)]
    if not paths:
        raise ProfileFormatError(f"the directory {_NONE}")
    if len(paths) > MAX_FILES or sum(entry.stat().st_size for entry in paths) > MAX_BYTES:
        raise ProfileFormatError(
            f"the collection has {len(paths)} files or more bytes than the {MAX_BYTES} that are read;"
            " collect a shorter run, or fewer processes"
        )
    return tuple(sorted(paths, key=lambda entry: (_started(entry), entry.name)))


def read_bounded(path: Path) -> bytes:
    """The bytes of one regular file, no more than a collection may have."""
    try:
        return read_file(path, max_bytes=MAX_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise ProfileFormatError(
                f"{path} has more than the {MAX_BYTES} bytes that are read; collect a shorter run"
            ) from error
        raise ProfileFormatError(f"{path} cannot be read: {error.strerror or error}") from error


def stored_cubins(path: Path) -> Iterator[tuple[str, bytes]]:
    """Every stored image whose content has the hash that its name says."""
    folder = (path if path.is_dir() else path.parent) / "cubins"
    remaining_bytes = MAX_BYTES
    if not folder.is_dir():
        return
    for entry in sorted(folder.iterdir()):
        if _CUBIN.fullmatch(entry.name) and _is_regular(entry):
            remaining_bytes -= entry.stat().st_size
            if remaining_bytes < 0:
                return
            data = read_bounded(entry)
            if hashlib.sha256(data).hexdigest() == entry.stem:
                yield entry.stem, data


def host_lines(path: Path) -> Mapping[tuple[str, int], HostLine]:
    """What the collector found out about native frames, by module and offset; empty where it is not there."""
    entry = (path if path.is_dir() else path.parent) / HOST_LINES
    if not _is_regular(entry):
        return {}
    try:
        document: Any = json.loads(read_file(entry, max_bytes=_MAX_LINES_BYTES))
        return {
            (str(module), int(offset)): _host_line(line)
            for module, lines in document.items()
            for offset, line in lines.items()
        }
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}  # names only: the profile is as good without


def _host_line(line: Any) -> HostLine:
    function, file, number = line
    return (
        None if function is None else str(function),
        None if file is None else str(file),
        None if number is None else int(number),
    )


def live_counters(path: Path) -> Live:
    """The counters of a collection that may still grow; files that are just being made count nothing."""
    processes = launches = samples = kernels = lost = size = 0
    for entry in path.glob(f"*{COLLECTION_SUFFIX}"):
        try:
            with open_file(entry) as file:
                header = read_header(file.read(FILE_HEADER.size))
            size += entry.stat().st_size
        except (OSError, ProfileFormatError):
            continue
        processes += 1
        launches += header.launches
        samples += header.samples
        kernels += header.kernels
        lost += header.lost_records
    return Live(
        processes=processes,
        launches=launches,
        samples=samples,
        kernels=kernels,
        lost_records=lost,
        file_bytes=size,
    )


def _is_regular(path: Path) -> bool:
    """No link, pipe or device: a collection from elsewhere names nothing outside of itself."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _started(path: Path) -> int:
    try:
        with open_file(path) as file:
            return read_header(file.read(FILE_HEADER.size)).started_ns
    except (OSError, ProfileFormatError):
        return 0
