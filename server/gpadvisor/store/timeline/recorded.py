# SPDX-License-Identifier: Apache-2.0
"""What the cupti collector records of a run on the clock, as a timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.cubin import demangle
from gpadvisor.errors import ProfileFormatError
from gpadvisor.model.profile import CallFrame
from gpadvisor.model.timeline import HostPlace, KernelName, Operation, Timeline
from gpadvisor.store.collection import files, layout
from gpadvisor.store.collection.notes import TIMELINE, sentences
from gpadvisor.store.collection.process import Process, read_process
from gpadvisor.store.collection.stacks import HostLines, call_stack
from gpadvisor.store.collection.unfinished import unfinished
from gpadvisor.store.timeline.columns import NO_SHAPE, Numbers, TraceRows, call_rows, timeline, work_rows
from gpadvisor.store.timeline.frames import is_library_of_python
from gpadvisor.store.timeline.nsys import is_application, plain_call

_COPIES: Final = {1: Operation.TO_DEVICE, 2: Operation.TO_HOST, 3: Operation.TO_DEVICE, 4: Operation.TO_HOST}
"""Of CUPTI's kinds: to and from arrays of the device, too."""
_PAGEABLE: Final = 1  # of CUPTI's kinds of memory
_APART: Final = 32  # bits that a correlation and a thread have in their process


def read_recorded(path: Path) -> Timeline:
    """Read a collection that was recorded for its timeline.

    Raises:
        ProfileFormatError: it has samples and no timeline, is damaged, or without work of a GPU.
    """
    processes = [read_process(files.read_bounded(entry)) for entry in files.process_files(path)]
    traced = [process for process in processes if process.mode == TIMELINE]
    if not traced:
        raise ProfileFormatError(
            f"{path} has samples and no timeline; gpadvisor profile --timeline records one"
        )
    try:
        return _timeline(traced, files.host_lines(path))
    except ValueError as error:
        raise ProfileFormatError(
            f"{path} holds no timeline that is understood ({error}); record it again"
        ) from error


def recorded_notes(path: Path) -> tuple[str, ...]:
    """What a recorded timeline lacks, a sentence each."""
    processes = [read_process(files.read_bounded(entry)) for entry in files.process_files(path)]
    forked = any(process.forked and len(process.callers) for process in processes)
    text = "the timeline lacks what a child did that was forked after its parent had begun to use CUDA"
    return (
        *sentences(processes),
        *(problem.message for problem in unfinished(processes)),
        *([text] if forked else []),
    )


def _timeline(processes: Sequence[Process], lines: HostLines) -> Timeline:
    work, calls = work_rows(), call_rows()
    kernels, called, places = Numbers[str](), Numbers[str](), Numbers[HostPlace]()
    for number, process in enumerate(processes):
        high = number << _APART
        rows, outer = _own_calls(process.calls.columns(layout.CALL))
        _add_work(process, high, outer, work, kernels)
        names, name = np.unique(rows["name"], return_inverse=True)
        texts = [plain_call(process.name(int(name)) or "a call without a name") for name in names]
        columns = [rows["start_ns"], rows["end_ns"], high + rows["thread"].astype(np.int64)]
        columns += [high + rows["correlation"].astype(np.int64)]
        columns += [np.array([called.of(text) for text in texts], np.int64)[name.reshape(-1)]]
        columns += [_places(process, rows["correlation"], lines, places)]
        calls.take(np.column_stack([column.astype(np.int64) for column in columns]))
    return timeline(
        work,
        calls,
        [KernelName(mangled=name, demangled=demangle(name)) for name in kernels.found],
        list(called.found),
        places=list(places.found),
    )


def _own_calls(calls: NDArray[np.void]) -> tuple[NDArray[np.void], dict[int, int]]:
    """The calls that the application makes, and theirs by the correlation of those of the driver inside."""
    order = np.lexsort((-calls["end_ns"].astype(np.int64), calls["start_ns"], calls["thread"]))
    calls = calls[order]
    positions = np.arange(len(calls))
    last_runtime = (
        np.maximum.accumulate(np.where(calls["driver"] == 0, positions, -1)) if len(calls) else positions
    )
    around = calls[np.maximum(last_runtime, 0)]
    inside = (calls["driver"] != 0) & (last_runtime >= 0) & (calls["thread"] == around["thread"])
    inside &= calls["end_ns"] <= around["end_ns"]
    pairs = zip(calls["correlation"][inside].tolist(), around["correlation"][inside].tolist(), strict=True)
    return calls[~inside], dict(pairs)


def _places(
    process: Process, correlation: NDArray[np.uint32], lines: HostLines, places: Numbers[HostPlace]
) -> NDArray[np.int64]:
    """By call the number of the application's place, each path looked at once; -1 where it is not known."""
    callers = process.callers.columns(layout.CALLER)
    if not len(callers):
        return np.full(len(correlation), -1, np.int64)
    callers = callers[np.argsort(callers["correlation"], kind="stable")]
    paths, path = np.unique(callers["path"], return_inverse=True)
    numbers = np.full(len(paths), -1, np.int64)
    for index, identifier in enumerate(paths.tolist()):
        frames = call_stack(process, identifier, lines)
        place = next((candidate for frame in frames if (candidate := _place(frame)) is not None), None)
        if place is not None:
            numbers[index] = places.of(place)
    row = np.minimum(np.searchsorted(callers["correlation"], correlation), len(callers) - 1)
    is_known = callers["correlation"][row] == correlation
    return np.where(is_known, numbers[path.reshape(-1)[row]], -1)


def _add_work(
    process: Process, high: int, outer: Mapping[int, int], work: TraceRows, kernels: Numbers[str]
) -> None:
    """Kernels, copies and memsets, each with the call of the application that launched it."""
    for kernel in process.kernels:
        name = kernels.of(process.name(kernel.name) or "a kernel without a name")
        call = high + outer.get(kernel.correlation, kernel.correlation)
        times = kernel.start_ns, kernel.end_ns, kernel.device, call
        work.add(*times, name, kernel.stream, Operation.KERNEL.value, None, *kernel.grid, *kernel.block)
    for (
        correlation,
        device,
        _,
        stream,
        start,
        end,
        _,
        is_set,
        kind,
        origin,
        target,
    ) in process.copies.values(layout.COPY):
        operation = Operation.SET if is_set else _COPIES.get(kind, Operation.OTHER_COPY)
        host = {Operation.TO_DEVICE: origin, Operation.TO_HOST: target}.get(operation)
        pageable = None if host is None else int(host == _PAGEABLE)
        call = high + outer.get(correlation, correlation)
        work.add(start, end, device, call, None, stream, operation.value, pageable, *NO_SHAPE)


def _place(frame: CallFrame) -> HostPlace | None:
    """A frame of the application, which is neither of CUDA's nor of another library."""
    function, file, module = frame.function or "", frame.file or "", frame.module or ""
    if module == "python":
        is_known = bool(file) and not is_library_of_python(file)
        return HostPlace(function=function, file=file, line=frame.line or 0) if is_known else None
    if not module or not is_application(function, module):
        return None
    if file and frame.line:
        return HostPlace(function=function, file=file, line=frame.line)
    return HostPlace(function=function, module=module, address=frame.address or 0) if function else None
