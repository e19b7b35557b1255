# SPDX-License-Identifier: Apache-2.0
"""The SQLite export of Nsight Systems as a timeline, opened read-only."""

from __future__ import annotations

import posixpath
import re
import sqlite3
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gpadvisor.errors import NoTimelineError, ProfileFormatError
from gpadvisor.model.timeline import CallPaths, HostPlace, KernelName, Operation, Timeline
from gpadvisor.store.timeline.columns import NO_SHAPE, Numbers, call_rows, timeline, work_rows
from gpadvisor.store.timeline.frames import PathRows

_PREFIX: Final = "CUPTI_ACTIVITY_KIND_"
_VERSION: Final = re.compile(r"_(?:v\d+|ptsz|ptds)(?=_|$)")
_SHAPE: Final = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
_NAMES: Final = ("mangledName", "demangledName")
_OF_COPY: Final = ("streamId", "copyKind", "srcKind", "dstKind")
_COPIES: Final = {1: Operation.TO_DEVICE, 2: Operation.TO_HOST, 12: Operation.MIGRATION}  # of copyKind
_PAGEABLE: Final = 0  # of srcKind and dstKind
_CHAINS: Final = "CUDA_CALLCHAINS"
_TEXTS: Final = "StringIds"
_NOT_OURS: Final = re.compile(
    r"(lib(c|pthread|stdc\+\+|gcc_s|cu\w+|nv[\w-]+|Tools\w+|torch\w*|c10\w*|python[\w.]*)(-[\d.]+)?\.so|ld-|ld\d*\.|\[)"
)
_CUDA: Final = re.compile(r"(lib(cu\w+|nv[\w-]+|Tools\w+)(-[\d.]+)?\.so|\[)")
_NOT_CALLERS: Final = re.compile(  # what starts a program, and the runtime linked into it, with its templates
    r"(_start|__libc_\w+|clone3?|start_thread|__pthread_\w+|__device_stub\w*|__cudart\d*|0x[0-9a-f]+)$"
    r"|(cudaError(_t)? )?(cuda|cu)[A-Z]\w*(<.*>)?(\(|$)",
    re.DOTALL,
)
_EXPORT: Final = "export it again: nsys export --type sqlite REPORT"


def read_nsys(path: Path, *, paths: bool = False) -> Timeline:
    """Read an export.

    Raises:
        NoTimelineError: it is another database.
        ProfileFormatError: it is damaged, or without work of a GPU.
    """
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            if not _columns(database, _TEXTS):
                raise NoTimelineError(f"{path} is a database, but no export of Nsight Systems; {_EXPORT}")
            return _timeline(database, paths=paths)
    except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
        raise ProfileFormatError(
            f"{path} cannot be read as an export of Nsight Systems ({error}); {_EXPORT}"
        ) from error


def _timeline(database: sqlite3.Connection, *, paths: bool) -> Timeline:
    work, calls = work_rows(), call_rows()
    kernels, called = Numbers[tuple[object, object]](), Numbers[object]()
    texts = dict(database.execute(f"SELECT id, value FROM {_TEXTS}"))
    for *times, stream, mangled, demangled, gx, gy, gz, bx, by, bz in _rows(
        database, "KERNEL", ("streamId", *_NAMES, *_SHAPE)
    ):
        which = kernels.of((mangled or demangled, demangled))
        work.add(*times, which, stream, Operation.KERNEL.value, None, gx, gy, gz, bx, by, bz)
    for *times, stream, kind, source, target in _rows(database, "MEMCPY", _OF_COPY):
        operation = _COPIES.get(kind, Operation.OTHER_COPY)
        host = {Operation.TO_DEVICE: source, Operation.TO_HOST: target}.get(operation)
        pageable = None if host is None else int(host == _PAGEABLE)
        work.add(*times, None, stream, operation.value, pageable, *NO_SHAPE)
    for *times, stream in _rows(database, "MEMSET", ("streamId",)):
        work.add(*times, None, stream, Operation.SET.value, None, *NO_SHAPE)
    places = _places(database, texts)
    numbers, chains = Numbers[HostPlace](), array("q")
    for *times, name, chain in _rows(database, "RUNTIME", ("nameId", "callchainId"), "globalTid"):
        place = places.get(chain)
        chains.append(chain if paths and type(chain) is int else -1)
        calls.add(*times, called.of(name), None if place is None else numbers.of(place))
    found = timeline(
        work,
        calls,
        [
            KernelName(mangled=str(texts.get(mangled, "")), demangled=str(texts.get(demangled, "")))
            for mangled, demangled in kernels.found
        ],
        [plain_call(str(texts.get(identifier, f"call {identifier}"))) for identifier in called.found],
        places=list(numbers.found),
    )
    return replace(found, paths=_paths(database, texts, chains)) if paths else found


def _paths(database: sqlite3.Connection, texts: Mapping[object, object], chains: Sequence[int]) -> CallPaths:
    """All frames of each call chain but those of CUDA's libraries, and what starts a program."""
    trie, innermost = PathRows(), dict[object, int]()
    for chain, symbol, module, unknown, address in _frames(database, outermost_first=True):
        name, path = str(texts.get(symbol, "")), str(texts.get(module, ""))
        if _NOT_CALLERS.match(name) or _CUDA.match(posixpath.basename(path)):
            continue
        at = address if type(address) is int and address > 0 else 0
        is_known = bool(name) and not unknown
        place = HostPlace(
            function=name if is_known else f"{posixpath.basename(path) or 'unknown module'}+{at:#x}",
            module=path,
            address=at,
        )
        innermost[chain] = trie.of(innermost.get(chain, -1), place)
    return trie.paths([innermost.get(chain, -1) for chain in chains])


def _frames(database: sqlite3.Connection, *, outermost_first: bool = False) -> Iterator[tuple[Any, ...]]:
    """Chain, function, module, whether it is not resolved, and address of each frame of call chains."""
    columns = _columns(database, _CHAINS)
    if {"id", "symbol", "module", "stackDepth"} <= columns:
        unresolved, address = (name if name in columns else "NULL" for name in ("unresolved", "originalIP"))
        yield from database.execute(
            f"SELECT id, symbol, module, {unresolved}, {address} FROM {_CHAINS}"
            f" ORDER BY id, stackDepth {'DESC' if outermost_first else ''}"
        )


def _rows(
    database: sqlite3.Connection, kind: str, names: tuple[str, ...], whose: str = "deviceId"
) -> Iterator[tuple[Any, ...]]:
    """Rows of a table: when, whose, correlation, and wanted columns, None where it has no such one."""
    columns = _columns(database, f"{_PREFIX}{kind}")
    if columns:
        selected = ", ".join(name if name in columns else "NULL" for name in names)
        yield from database.execute(
            f'SELECT start, "end", {whose}, correlationId, {selected} FROM {_PREFIX}{kind}'
        )


def _places(database: sqlite3.Connection, texts: Mapping[object, object]) -> dict[object, HostPlace]:
    """By call chain the innermost function that is no library's of CUDA or of the system."""
    places: dict[object, HostPlace] = {}
    for chain, symbol, module, unknown, place in _frames(database):
        if chain in places or unknown:
            continue
        name, path = str(texts.get(symbol, "")), str(texts.get(module, ""))
        if name and path and is_application(name, path):
            places[chain] = HostPlace(
                function=name, module=path, address=place if type(place) is int and place > 0 else 0
            )
    return places


def plain_call(name: str) -> str:
    """The name of a call without the version that tracers have in it."""
    return _VERSION.sub("", name)


def is_application(function: str, module: str) -> bool:
    """Whether a native frame is the application's: neither of CUDA's nor of the system's libraries."""
    return not _NOT_CALLERS.match(function) and not _NOT_OURS.match(posixpath.basename(module))


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    """Names of its columns; none where there is no such table."""
    return {str(row[1]) for row in database.execute(f"PRAGMA table_info({table})")}
