# SPDX-License-Identifier: Apache-2.0
"""What a GPU waits for in a traced run; the trace is read and blamed in a child process with limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from gpadvisor.errors import GpadvisorError, ProfileFormatError, ToolError
from gpadvisor.files import open_file
from gpadvisor.model.timeline import DeviceIdleness, IdleShare
from gpadvisor.sandbox.children import call

_READER: Final = "gpadvisor.pipeline.idle:answer"
_SECONDS: Final = 300.0
_MEMORY_BYTES: Final = 8 << 30
_OUTPUT_BYTES: Final = 64 << 20
_SQLITE: Final = b"SQLite format 3\0"
_MOST_NS: Final = 1 << 62


def idle_of(path: Path) -> tuple[DeviceIdleness, ...]:
    """The idle time of each device of an export of Nsight Systems.

    Raises:
        ProfileFormatError: it is none, or damaged, or too large for the child.
    """
    try:
        with open_file(path) as stream:
            head = stream.read(len(_SQLITE))
    except OSError as error:
        raise ProfileFormatError(f"{path} cannot be read: {error.strerror or error}") from error
    if head != _SQLITE:
        raise ProfileFormatError(
            f"{path} is no SQLite export of Nsight Systems; make one: nsys export --type sqlite REPORT"
        )
    try:
        data = call(
            _READER,
            json.dumps(str(path.absolute())).encode(),
            timeout_seconds=_SECONDS,
            memory_bytes=_MEMORY_BYTES,
            output_bytes=_OUTPUT_BYTES,
        )
        said: Any = json.loads(data)
        if "message" in said:
            raise ProfileFormatError(str(said["message"]))
        return tuple(_device(one) for one in said["devices"])
    except (ToolError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProfileFormatError(
            f"the process that read {path} failed ({error}); it is damaged or too large:"
            " trace a part of the run"
        ) from error


def answer(request: bytes) -> bytes:
    """Read the export at a path (JSON); the idle time of its ``devices``, or the ``message`` of an error."""
    from gpadvisor.advice.idleness import idleness  # noqa: PLC0415 of the child
    from gpadvisor.store.timeline import read_nsys  # noqa: PLC0415 of the child

    try:
        said: dict[str, Any] = {
            "devices": [asdict(one) for one in idleness(read_nsys(Path(json.loads(request))))]
        }
    except GpadvisorError as error:
        said = {"message": str(error)}
    except MemoryError:
        said = {"message": f"{json.loads(request)} needs too much memory; trace a part of the run"}
    return json.dumps(said).encode()


def _device(said: Mapping[str, Any]) -> DeviceIdleness:
    found = DeviceIdleness(
        device=int(said["device"]),
        span_ns=int(said["span_ns"]),
        busy_ns=int(said["busy_ns"]),
        gaps=int(said["gaps"]),
        by_call=tuple(map(_share, said["by_call"])),
        by_end=tuple(map(_share, said["by_end"])),
    )
    if not 0 <= found.busy_ns <= found.span_ns < _MOST_NS:
        raise ValueError("times that no run has")
    return found


def _share(said: Mapping[str, Any]) -> IdleShare:
    return IdleShare(name=str(said["name"]), idle_ns=float(said["idle_ns"]), gaps=int(said["gaps"]))
