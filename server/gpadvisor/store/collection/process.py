# SPDX-License-Identifier: Apache-2.0
"""What one process recorded, gathered from the records of its file."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from gpadvisor.errors import ProfileFormatError
from gpadvisor.store.collection import layout
from gpadvisor.store.collection.bulk import KernelRows, PlainRows, SampleRows
from gpadvisor.store.collection.layout import RecordKind, Stage
from gpadvisor.store.collection.records import Damage, FileHeader, read_header, records
from gpadvisor.store.parts import MAX_SAMPLES

_MAX_FRAMES: Final = 4096
TOO_MANY: Final = "the collection counts more samples than any run has; collect again"


class Note(NamedTuple):
    """Something the library wants known."""

    stage: int
    code: int
    context: int
    text: str


class DeviceRow(NamedTuple):
    """A GPU; numbers are 0 where the driver did not tell."""

    major: int
    minor: int
    sms: int
    clock_khz: int
    max_threads_per_sm: int
    registers_per_sm: int
    shared_bytes_per_sm: int
    l2_bytes: int
    warp_size: int
    name: str


class ContextRow(NamedTuple):
    """A CUDA context and how it was sampled."""

    device: int
    mode: int  # 1 continuous, 2 serialized
    period: int  # exponent
    buffer_bytes: int
    sampling: int  # CUptiResult of enabling
    times: int  # kind of activity that kernel times come from; 0: none, or a collection of before


class ModuleRow(NamedTuple):
    """A loaded image."""

    context: int
    crc: int
    size: int
    sha256: str


class LaunchRow(NamedTuple):
    """One launching call."""

    correlation: int
    outer: int
    context: int
    kind: int  # 3: a graph
    time_ns: int
    stream: int
    thread: int
    name: int
    path: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int


class Symbol(NamedTuple):
    """What a native address is."""

    module: int
    function: int
    offset: int


@dataclass(slots=True)
class SampleTotals:
    """What CUPTI counted for a context beside the rows."""

    total: int = 0
    dropped: int = 0
    non_user: int = 0
    full: int = 0  # reads that found the hardware buffer full


@dataclass(slots=True)
class Process:
    """One process of a collection."""

    header: FileHeader
    command: str = ""
    host: str = ""
    executable: str = ""
    cupti_version: int = 0
    driver_version: int = 0
    mode: int = 1  # 3: a timeline and no samples
    forked: bool = False
    late: bool = False
    notes: list[Note] = field(default_factory=list)
    devices: dict[int, DeviceRow] = field(default_factory=dict)
    contexts: dict[int, ContextRow] = field(default_factory=dict)
    reasons: dict[int, dict[int, str]] = field(default_factory=dict)  # by context and CUPTI's index there
    modules: list[ModuleRow] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    launches: list[LaunchRow] = field(default_factory=list)
    failed: dict[int, int] = field(default_factory=dict)
    kernels: KernelRows = field(default_factory=KernelRows)
    paths: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    frames: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # file, function, line
    symbols: dict[int, Symbol] = field(default_factory=dict)
    samples: SampleRows = field(default_factory=SampleRows)
    copies: PlainRows = field(default_factory=lambda: PlainRows(layout.COPY.size))
    calls: PlainRows = field(default_factory=lambda: PlainRows(layout.CALL.itemsize))
    callers: PlainRows = field(default_factory=lambda: PlainRows(layout.CALLER.itemsize))
    totals: dict[int, SampleTotals] = field(default_factory=dict)
    damage: Damage = field(default_factory=Damage)
    unknown_records: int = 0

    def name(self, identifier: int) -> str | None:
        """The text of a name; None for 0 or one whose record is lost."""
        return self.names.get(identifier)


def read_process(data: bytes) -> Process:
    """Gather one file.

    Raises:
        ProfileFormatError: it is no collection file; damage inside is no error but counted.
    """
    process = Process(header=read_header(data))
    for kind, payload in records(memoryview(data), process.damage):
        reader = _READERS.get(kind)
        if reader is None:
            process.unknown_records += 1
            continue
        try:
            reader(process, payload)
        except (struct.error, ValueError, IndexError) as error:
            # Its checksum is right, so that it was written so: another program wrote it.
            raise ProfileFormatError(
                f"the collection has a record of kind {kind} that holds too little ({error}); collect again"
            ) from error
    return process


def _text(payload: memoryview, index: int, size: int | None = None) -> str:
    end = len(payload) if size is None else index + size
    return bytes(payload[index:end]).decode("utf-8", "replace")


def _process(process: Process, payload: memoryview) -> None:
    *_, cupti, driver, mode, forked, late, command, host, executable = layout.PROCESS.unpack_from(payload)
    process.cupti_version, process.driver_version, process.mode = cupti, driver, mode
    process.forked, process.late = forked == 1, late == 1
    index = layout.PROCESS.size
    texts = []
    for size in (command, host, executable):
        texts.append(_text(payload, index, size))
        index += size
    process.command, process.host, process.executable = texts


def _note(process: Process, payload: memoryview) -> None:
    stage, code, context, size = layout.NOTE.unpack_from(payload)
    process.notes.append(Note(stage, code, context, _text(payload, layout.NOTE.size, size)))


def _device(process: Process, payload: memoryview) -> None:
    device, *numbers, size, _ = layout.DEVICE.unpack_from(payload)
    process.devices[device] = DeviceRow._make((*numbers, _text(payload, layout.DEVICE.size, size)))


def _context(process: Process, payload: memoryview) -> None:
    context, *row = layout.CONTEXT.unpack_from(payload)
    process.contexts[context] = ContextRow(*row)


def _reasons(process: Process, payload: memoryview) -> None:
    context, count = layout.REASONS.unpack_from(payload)
    reasons = process.reasons.setdefault(context, {})
    position = layout.REASONS.size
    for _ in range(count):
        index, size = layout.REASONS.unpack_from(payload, position)
        reasons[index] = _text(payload, position + layout.REASONS.size, size)
        position += layout.REASONS.size + size


def _module(process: Process, payload: memoryview) -> None:
    context, _, crc, size, digest = layout.MODULE.unpack_from(payload)
    process.modules.append(ModuleRow(context, crc, size, digest.hex()))


def _name(process: Process, payload: memoryview) -> None:
    (identifier,) = layout.NAME.unpack_from(payload)
    process.names[identifier] = _text(payload, layout.NAME.size)


def _launch(process: Process, payload: memoryview) -> None:
    *call, x, y, z, block_x, block_y, block_z, shared, _ = layout.LAUNCH.unpack_from(payload)
    process.launches.append(LaunchRow._make((*call, (x, y, z), (block_x, block_y, block_z), shared)))


def _failed(process: Process, payload: memoryview) -> None:
    correlation, code = layout.FAILED.unpack_from(payload)
    process.failed[correlation] = code


def _kernel(process: Process, payload: memoryview) -> None:
    process.kernels.add(payload)


def _path(process: Process, payload: memoryview) -> None:
    identifier, python, native = layout.PATH.unpack_from(payload)
    if python + native > _MAX_FRAMES:
        raise ValueError(f"a call stack of {python + native} frames")
    frames = struct.unpack_from(f"<{python + native}Q", payload, layout.PATH.size)
    process.paths[identifier] = frames[:python], frames[python:]


def _frame(process: Process, payload: memoryview) -> None:
    identifier, file, function, line, _ = layout.FRAME.unpack_from(payload)
    process.frames[identifier] = file, function, line


def _symbol(process: Process, payload: memoryview) -> None:
    address, *fields = layout.SYMBOL.unpack_from(payload)
    process.symbols[address] = Symbol(*fields)


def _samples(process: Process, payload: memoryview) -> None:
    context, count, _, total, dropped, non_user, full, _ = layout.SAMPLES.unpack_from(payload)
    totals = process.totals.setdefault(context, SampleTotals())
    totals.total += total
    totals.dropped += dropped
    totals.non_user += non_user
    totals.full += full != 0
    if max(totals.total, totals.dropped, totals.non_user) > MAX_SAMPLES:
        raise ProfileFormatError(TOO_MANY)
    if count:
        process.samples.add(context, np.frombuffer(payload, layout.SAMPLE, count, layout.SAMPLES.size))


def _copy(process: Process, payload: memoryview) -> None:
    process.copies.add(payload)


def _call(process: Process, payload: memoryview) -> None:
    process.calls.add(payload)


def _caller(process: Process, payload: memoryview) -> None:
    process.callers.add(payload)


_READERS: Final[Mapping[int, Callable[[Process, memoryview], None]]] = {
    RecordKind.PROCESS: _process,
    RecordKind.NOTE: _note,
    RecordKind.DEVICE: _device,
    RecordKind.CONTEXT: _context,
    RecordKind.REASONS: _reasons,
    RecordKind.MODULE: _module,
    RecordKind.NAME: _name,
    RecordKind.LAUNCH: _launch,
    RecordKind.FAILED: _failed,
    RecordKind.KERNEL: _kernel,
    RecordKind.PATH: _path,
    RecordKind.FRAME: _frame,
    RecordKind.SYMBOL: _symbol,
    RecordKind.SAMPLES: _samples,
    RecordKind.CALLER: _caller,
    RecordKind.COPY: _copy,
    RecordKind.CALL: _call,
}

__all__ = ["Process", "Stage", "read_process"]
