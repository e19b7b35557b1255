# SPDX-License-Identifier: Apache-2.0
"""Timelines of runs: read in a child process with limits, and joined with advice."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

from gpadvisor.advice.in_run import in_run, part_of, untold
from gpadvisor.errors import (
    GpadvisorError,
    NoTimelineError,
    ProfileFormatError,
    ProfileMismatchError,
    ToolError,
)
from gpadvisor.model.advice import KernelAdvice
from gpadvisor.model.timeline import DeviceIdleness, RunFinding, RunIdleness, RunStrip, RunTimes, Timeline
from gpadvisor.pipeline.cache import Cache, installation_digest
from gpadvisor.pipeline.request import Request, trace_digest
from gpadvisor.sandbox.children import call
from gpadvisor.sandbox.codec import Failure, failure, from_answer, from_bytes, to_bytes
from gpadvisor.store.paths import has_timeline

T = TypeVar("T")
_READER: Final = "gpadvisor.pipeline.timeline:answer"
_SECONDS: Final = 550.0
_MEMORY_BYTES: Final = 4 << 30
_OUTPUT_BYTES: Final = 256 << 20
_MOST_NS: Final = 1 << 62


class Question(Enum):
    """What is asked of a trace."""

    KERNELS = "kernels"
    STRIP = "strip"
    IDLENESS = "idleness"


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
    return _asked(path, Question.IDLENESS, RunIdleness)


def run_times_of(path: Path, cache: Cache | None = None) -> RunTimes:
    """What the kernels of a traced run take of it; the same trace is read once, as far as there is a cache.

    Raises:
        NoTimelineError: it is no trace.
        ProfileFormatError: it is damaged, or too large for the child.
    """
    if cache is None:
        return _asked(path, Question.KERNELS, RunTimes)
    try:
        parts: dict[str, object] = {"trace": trace_digest(path), "made_by": installation_digest()}
    except OSError as error:
        raise ProfileFormatError(f"{path} cannot be read: {error.strerror or error}") from error
    key = cache.key("run", parts)
    stored = cache.get(key)
    if stored is not None:
        return _answered(path, stored, RunTimes)
    times = _asked(path, Question.KERNELS, RunTimes)
    cache.put(key, to_bytes(times))
    return times


def strip_of(path: Path) -> RunStrip:
    """A run along the clock.

    Raises:
        ProfileFormatError: it is no trace, or damaged, or too large for the child.
    """
    strip = _asked(path, Question.STRIP, RunStrip)
    try:
        for lane in strip.lanes:
            base64.b64decode(lane.data, validate=True)
    except ValueError as error:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest:
    """What the child is asked."""

    path: str
    question: Question


def answer(request: bytes) -> bytes:
    """What a trace says to a ``TraceRequest``, or a ``Failure``."""
    from gpadvisor.store.timeline import read_timeline  # noqa: PLC0415 of the child

    trace = from_bytes(request, TraceRequest)
    try:
        return to_bytes(_made_of(read_timeline(Path(trace.path)), trace))
    except GpadvisorError as error:
        return to_bytes(failure(error))
    except MemoryError:
        told = f"{trace.path} needs too much memory; trace a part of the run"
        return to_bytes(failure(ProfileFormatError(told)))


def _made_of(timeline: Timeline, trace: TraceRequest) -> RunTimes | RunStrip | RunIdleness:
    from gpadvisor.advice.idleness import idleness  # noqa: PLC0415 of the child
    from gpadvisor.advice.in_run import run_times  # noqa: PLC0415 of the child
    from gpadvisor.advice.run_findings import run_findings  # noqa: PLC0415 of the child
    from gpadvisor.advice.strip import run_strip  # noqa: PLC0415 of the child

    if trace.question is Question.KERNELS:
        return replace(run_times(timeline), findings=run_findings(timeline))
    if trace.question is Question.STRIP:
        return run_strip(timeline)
    if not len(timeline.calls.start_ns) and not timeline.launched_by:
        raise ProfileFormatError(f"{trace.path} has no calls of CUDA: nsys profile --trace cuda records them")
    return RunIdleness(devices=idleness(timeline), findings=run_findings(timeline))


def _asked(path: Path, question: Question, kind: type[T]) -> T:
    try:
        data = call(
            _READER,
            to_bytes(TraceRequest(path=str(path.absolute()), question=question)),
            timeout_seconds=_SECONDS,
            memory_bytes=_MEMORY_BYTES,
            output_bytes=_OUTPUT_BYTES,
        )
    except ToolError as error:
        raise _failed(path, error) from error
    return _answered(path, data, kind)


def _answered(path: Path, data: bytes, kind: type[T]) -> T:
    try:
        answered = from_answer(data, kind)
        if isinstance(answered, RunTimes):
            _check(answered)
        elif isinstance(answered, RunIdleness | RunStrip):
            for device in answered.devices:
                _check(device)
    except ValueError as error:
        raise _failed(path, error) from error
    if isinstance(answered, Failure):
        no_timeline = answered.error == NoTimelineError.__name__
        raise (NoTimelineError if no_timeline else ProfileFormatError)(answered.message)
    return answered


def _check(times: RunTimes | DeviceIdleness) -> None:
    if not 0 <= times.busy_ns <= times.span_ns < _MOST_NS:
        raise ValueError("times that no run has")


def _failed(path: Path, error: Exception) -> ProfileFormatError:
    return ProfileFormatError(
        f"the process that read {path} failed ({error}); it is damaged or too large: trace a part of the run"
    )
