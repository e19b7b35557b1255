# SPDX-License-Identifier: Apache-2.0
"""Timelines of runs: read in a child process with limits, and joined with advice."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from gpadvisor.advice.in_run import in_run, part_of, untold
from gpadvisor.errors import (
    GpadvisorError,
    NoTimelineError,
    ProfileFormatError,
    ProfileMismatchError,
    ToolError,
)
from gpadvisor.model.advice import KernelAdvice
from gpadvisor.model.timeline import (
    DeviceIdleness,
    IdleShare,
    KernelName,
    KernelTime,
    RunFinding,
    RunIdleness,
    RunStrip,
    RunTimes,
)
from gpadvisor.pipeline.cache import Cache, installation_digest
from gpadvisor.pipeline.inputs import has_timeline
from gpadvisor.pipeline.request import Request, trace_digest
from gpadvisor.sandbox.children import call

_READER: Final = "gpadvisor.pipeline.timeline:answer"
_SECONDS: Final = 550.0
_MEMORY_BYTES: Final = 4 << 30
_OUTPUT_BYTES: Final = 256 << 20
_MOST_NS: Final = 1 << 62


def with_own_timeline(path: Path, request: Request) -> Request:
    """A request with the timeline that the snapshot itself has, unless the user asks for another one."""
    asked = request.timeline is not None and request.timeline_needed
    return (
        request if asked or not has_timeline(path) else request._replace(timeline=path, timeline_needed=False)
    )


def idle_of(path: Path) -> RunIdleness:
    """The idle time of each device of a trace, and what host code it is due to.

    Raises:
        ProfileFormatError: it is none, or damaged, or too large for the child.
    """
    try:
        reply = _asked(path, "idleness")
        return RunIdleness(devices=tuple(map(_device, reply["devices"])), findings=_findings(reply))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _failed(path, error) from error


def run_times_of(path: Path, cache: Cache | None = None) -> RunTimes:
    """What the kernels of a traced run take of it; the same trace is read once, as far as there is a cache.

    Raises:
        NoTimelineError: it is no trace.
        ProfileFormatError: it is damaged, or too large for the child.
    """
    try:
        reply = _asked(path, "kernels") if cache is None else _cached(path, cache)
        span, busy = _span(reply)
        return RunTimes(
            span_ns=span,
            busy_ns=busy,
            kernels=tuple(map(_kernel, reply["kernels"])),
            findings=_findings(reply),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _failed(path, error) from error


def _cached(path: Path, cache: Cache) -> Mapping[str, Any]:
    try:
        parts: dict[str, object] = {"trace": trace_digest(path), "made_by": installation_digest()}
    except OSError as error:
        raise ProfileFormatError(f"{path} cannot be read: {error.strerror or error}") from error
    key = cache.key("run", parts)
    stored = cache.get(key)
    if stored is not None:
        return dict(json.loads(stored))
    said = _asked(path, "kernels")
    cache.put(key, json.dumps(said).encode())
    return said


def strip_of(path: Path) -> RunStrip:
    """A run along the clock.

    Raises:
        ProfileFormatError: it is no trace, or damaged, or too large for the child.
    """
    from gpadvisor.sandbox.codec import from_json  # noqa: PLC0415 takes long to import; most advice has no timeline

    try:
        strip = from_json(dict(_asked(path, "strip")), RunStrip)
        for lane in strip.lanes:
            base64.b64decode(lane.data, validate=True)
    except (ValueError, TypeError, AttributeError) as error:
        raise _failed(path, error) from error
    return strip


def in_timeline(
    kernels: Sequence[KernelAdvice], path: Path, cache: Cache | None = None
) -> tuple[tuple[KernelAdvice, ...], tuple[RunFinding, ...]]:
    """Advice with what it is worth for a traced run, and what the run's host code leaves idle.

    Raises:
        ProfileFormatError: the trace cannot be read.
        ProfileMismatchError: it has none of the kernels.
    """
    times = run_times_of(path, cache)
    advised = tuple(in_run(kernel, part_of(kernel, times, path.name)) for kernel in kernels)
    if untold(advised):
        raise ProfileMismatchError(
            f"{path} has no launch of {advised[0].name} or of another kernel of the report: it is of another"
            " program or of another build"
        )
    return advised, times.findings


def answer(request: bytes) -> bytes:
    """Read the trace at a ``path`` for ``what`` is asked (JSON); an error is its ``message``."""
    from gpadvisor.advice.idleness import idleness  # noqa: PLC0415 of the child
    from gpadvisor.advice.in_run import run_times  # noqa: PLC0415 of the child
    from gpadvisor.advice.run_findings import run_findings  # noqa: PLC0415 of the child
    from gpadvisor.advice.strip import run_strip  # noqa: PLC0415 of the child
    from gpadvisor.store.timeline import read_timeline  # noqa: PLC0415 of the child

    parameters = json.loads(request)
    path = Path(parameters["path"])
    reply: dict[str, Any]
    try:
        timeline = read_timeline(path)
        if parameters["what"] == "kernels":
            reply = asdict(replace(run_times(timeline), findings=run_findings(timeline)))
        elif parameters["what"] == "strip":
            reply = asdict(run_strip(timeline))
        elif not len(timeline.calls.start_ns) and not timeline.launched_by:
            reply = {"message": f"{path} has no calls of CUDA: nsys profile --trace cuda records them"}
        else:
            reply = asdict(RunIdleness(devices=idleness(timeline), findings=run_findings(timeline)))
    except GpadvisorError as error:
        reply = {"message": str(error), "is_other": isinstance(error, NoTimelineError)}
    except MemoryError:
        reply = {"message": f"{path} needs too much memory; trace a part of the run"}
    return json.dumps(reply).encode()


def _asked(path: Path, question: str) -> Mapping[str, Any]:
    try:
        data = call(
            _READER,
            json.dumps({"path": str(path.absolute()), "what": question}).encode(),
            timeout_seconds=_SECONDS,
            memory_bytes=_MEMORY_BYTES,
            output_bytes=_OUTPUT_BYTES,
        )
    except ToolError as error:
        raise _failed(path, error) from error
    reply: Any = json.loads(data)
    if "message" in reply:
        raise (NoTimelineError if reply.get("is_other") is True else ProfileFormatError)(
            str(reply["message"])
        )
    return dict(reply)


def _failed(path: Path, error: Exception) -> ProfileFormatError:
    return ProfileFormatError(
        f"the process that read {path} failed ({error}); it is damaged or too large: trace a part of the run"
    )


def _span(document: Mapping[str, Any]) -> tuple[int, int]:
    span, busy = int(document["span_ns"]), int(document["busy_ns"])
    if not 0 <= busy <= span < _MOST_NS:
        raise ValueError("times that no run has")
    return span, busy


def _device(document: Mapping[str, Any]) -> DeviceIdleness:
    span, busy = _span(document)
    return DeviceIdleness(
        device=int(document["device"]),
        span_ns=span,
        busy_ns=busy,
        gaps=int(document["gaps"]),
        by_call=tuple(map(_share, document["by_call"])),
        by_end=tuple(map(_share, document["by_end"])),
    )


def _findings(document: Mapping[str, Any]) -> tuple[RunFinding, ...]:
    from gpadvisor.sandbox.codec import from_json  # noqa: PLC0415 as in strip_of

    return tuple(from_json(finding, RunFinding) for finding in document["findings"])


def _share(document: Mapping[str, Any]) -> IdleShare:
    return IdleShare(
        name=str(document["name"]), idle_ns=float(document["idle_ns"]), gaps=int(document["gaps"])
    )


def _kernel(document: Mapping[str, Any]) -> KernelTime:
    name, shape = document["name"], document["shape"]
    return KernelTime(
        name=KernelName(mangled=str(name["mangled"]), demangled=str(name["demangled"])),
        shape=None if shape is None else tuple(map(int, shape)),
        launches=int(document["launches"]),
        alone_ns=int(document["alone_ns"]),
        shared_ns=float(document["shared_ns"]),
        union_ns=int(document["union_ns"]),
    )
