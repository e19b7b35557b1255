# SPDX-License-Identifier: Apache-2.0
"""A Chrome trace (JSON) as PyTorch's profiler writes it, read event by event."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Protocol

import ijson

from gpadvisor.errors import ProfileFormatError
from gpadvisor.files import open_file
from gpadvisor.model.timeline import KernelName, Operation, Timeline
from gpadvisor.store.timeline.columns import NO_SHAPE, Numbers, call_rows, timeline, work_rows
from gpadvisor.store.timeline.frames import FrameRows

MAX_BYTES: Final = 16 << 30
"""Of the text, unpacked."""
_KERNELS: Final = frozenset({"kernel"})
_OTHER_WORK: Final = frozenset({"gpu_memcpy", "gpu_memset", "memcpy", "memset"})
_CALLS: Final = frozenset({"cuda_runtime", "cuda_driver", "runtime"})
_FRAMES: Final = "python_function"
_NS: Final = 1000  # a microsecond
_DIRECTIONS: Final = (("htod", Operation.TO_DEVICE), ("dtoh", Operation.TO_HOST))


def read_chrome(path: Path, *, paths: bool = False) -> Timeline:
    """Read a trace, packed by gzip or not.

    Raises:
        ProfileFormatError: it is none, damaged, or without work of a GPU.
    """
    try:
        with open_file(path) as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if packed:
                with gzip.open(raw) as stream:
                    return _timeline(stream, paths=paths)
            return _timeline(raw, paths=paths)
    except (ijson.JSONError, OSError, EOFError, zlib.error, ValueError, TypeError, ArithmeticError) as error:
        raise ProfileFormatError(
            f"{path} cannot be read as a Chrome trace ({error}); export it again, with"
            " torch.profiler's ProfilerActivity.CUDA among the activities"
        ) from error


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...
    def seek(self, place: int, /) -> int: ...


class _Limited:
    """A stream with a first line of defence against what unpacks without end."""

    def __init__(self, stream: _Readable) -> None:
        self._stream = stream
        self._left = MAX_BYTES

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise ValueError(f"it has more than {MAX_BYTES >> 30} GiB; trace a part of the run")
        return data


def _timeline(stream: _Readable, *, paths: bool) -> Timeline:
    work, calls, frames = work_rows(), call_rows(), FrameRows(paths=paths)
    kernels, called = Numbers[str](), Numbers[str]()
    devices, threads, streams = Numbers[object](), Numbers[object](), Numbers[object]()
    for event in _events(stream):
        category = str(event.get("cat", "")).lower()
        about = event.get("args")
        about = about if isinstance(about, dict) else {}
        if category in _KERNELS or category in _OTHER_WORK:
            is_kernel = category in _KERNELS
            device, name = about.get("device", event.get("pid")), str(event.get("name"))
            on = about.get("stream", event.get("tid"))
            operation = Operation.KERNEL if is_kernel else _operation(category, name)
            work.add(
                *_times(event),
                device if type(device) is int else -2 - devices.of(str(device)),
                _whole(about.get("correlation")),
                kernels.of(name) if is_kernel else None,
                on if type(on) is int else -2 - streams.of(str(on)),
                operation.value,
                int("pageable" in name.lower())
                if operation in {Operation.TO_DEVICE, Operation.TO_HOST}
                else None,
                *(_shape(about) if is_kernel else NO_SHAPE),
            )
        elif category in _CALLS or category == _FRAMES:
            thread = threads.of((str(event.get("pid")), str(event.get("tid"))))
            if category == _FRAMES:
                frames.add(*_times(event), thread, str(event.get("name")))
            else:
                number = called.of(str(event.get("name")))
                calls.add(*_times(event), thread, _whole(about.get("correlation")), number, None)
    names = [KernelName(mangled=name, demangled=name) for name in kernels.found]
    read = timeline(work, calls, names, list(called.found))
    return frames.placed(read)


def _operation(category: str, name: str) -> Operation:
    """Of a copy or a memset, whose name says the direction: ``Memcpy HtoD (Pageable -> Device)``."""
    if "memset" in category:
        return Operation.SET
    return next((operation for word, operation in _DIRECTIONS if word in name.lower()), Operation.OTHER_COPY)


def _events(stream: _Readable) -> Iterator[dict[str, Any]]:
    """The complete events of a trace, which is a list of them or has one."""
    head = stream.read(1)
    while head.isspace():
        head = stream.read(1)
    stream.seek(0)
    where = "item" if head == b"[" else "traceEvents.item"
    for event in ijson.items(_Limited(stream), where):
        if isinstance(event, dict) and event.get("ph") == "X":
            yield event


def _times(event: dict[str, Any]) -> tuple[int, int]:
    start, lasts = event.get("ts"), event.get("dur")
    if not isinstance(start, int | Decimal) or not isinstance(lasts, int | Decimal):
        raise ValueError(f"an event has the times {start!r} and {lasts!r}")  # noqa: TRY004 a bad file
    return int(start * _NS), int((start + lasts) * _NS)


def _whole(value: object) -> int | None:
    return value if type(value) is int else None


def _shape(about: dict[str, Any]) -> tuple[int | None, ...]:
    sizes = [*(about.get("grid") or ()), *(about.get("block") or ())]
    whole_numbers = tuple(value for value in sizes if type(value) is int)
    return whole_numbers if len(whole_numbers) == len(NO_SHAPE) == len(sizes) else NO_SHAPE
