# SPDX-License-Identifier: Apache-2.0
"""``trace.db`` of an HPCToolkit database: what each stream and each thread did from when on."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

from gpadvisor.errors import ProfileFormatError
from gpadvisor.model.timeline import HostPlace, KernelName, Operation, Timeline
from gpadvisor.store.hpctoolkit.layout import DatabaseFile, fields
from gpadvisor.store.hpctoolkit.meta import Context, Meta, read_meta
from gpadvisor.store.hpctoolkit.values import read_profiles
from gpadvisor.store.timeline.columns import NO_SHAPE, Numbers, call_rows, timeline, work_rows

_TRACE: Final = fields(("profile", "<u4", 0), ("start", "<u8", 8), ("end", "<u8", 16))
_POINT: Final = fields(("time", "<u8", 0), ("context", "<u4", 8))
_GPU: Final = ("GPUDEVICE", "GPUCONTEXT")
_WHERE: Final = ("NODE", "RANK")
_NO_WORK: Final = frozenset({"<gpu sync>", "<gpu alloc>", "<gpu delete>"})
_OPERATION: Final = "<gpu "
_OPERATIONS: Final = {
    "<gpu copyin>": Operation.TO_DEVICE,
    "<gpu copyout>": Operation.TO_HOST,
    "<gpu memset>": Operation.SET,
}
_NOT_OURS: Final = ("[", "/tmp/", "/usr/")  # noqa: S108 nothing is made there: nvcc's own files


def read_trace(folder: Path) -> Timeline:
    """Read the trace of a database.

    Raises:
        ProfileFormatError: there is none, it is damaged, or has no work of a GPU.
    """
    if not (folder / "trace.db").is_file():
        raise ProfileFormatError(f"{folder} has no trace.db: hpcrun --trace records one")
    meta = read_meta(DatabaseFile(folder, "meta.db"))
    identifiers = read_profiles(DatabaseFile(folder, "profile.db")).identifiers
    file = DatabaseFile(folder, "trace.db")
    try:
        return _Trace(file, meta, identifiers).read()
    except ValueError as error:
        raise ProfileFormatError(f"{file.path} cannot be read as a trace: {error}") from error


class _Trace:
    def __init__(self, file: DatabaseFile, meta: Meta, identifiers: Mapping[int, Mapping[int, int]]) -> None:
        self._file, self._meta, self._identifiers = file, meta, identifiers
        self._kinds = {name: number for number, name in enumerate(meta.identifiers)}
        self._kernels, self._names = Numbers[str](), Numbers[str]()
        self._places = Numbers[HostPlace]()
        self._launched: dict[int, int] = {}
        self._launched_at: dict[int, int] = {}
        self._work, self._calls = work_rows(), call_rows()

    def read(self) -> Timeline:
        file = self._file
        place, count, size = file.numbers("<QIB", file.section(0))
        devices, remaining_bytes = Numbers[tuple[int, ...]](), len(file)
        for profile, start, end in file.rows(place, count, _TRACE, size).tolist():
            points, remainder = divmod(max(0, end - start), _POINT.itemsize)
            remaining_bytes -= points * _POINT.itemsize
            if remainder or remaining_bytes < 0:
                raise file.damaged(f"the trace of profile {profile} ends within an element, or overlaps")
            rows = file.rows(start, points, _POINT).tolist()
            of = self._identifiers.get(profile, {})
            device = next((of[kind] for name in _GPU if (kind := self._kinds.get(name, -1)) in of), None)
            if device is None:
                self._add_calls(profile, rows)
            else:
                where = tuple(of.get(self._kinds.get(name, -1), -1) for name in _WHERE)
                self._add_work(devices.of((*where, device)), profile, rows)
        names = [KernelName(mangled=name, demangled=name) for name in self._kernels.found]
        return timeline(
            self._work,
            self._calls,
            names,
            list(self._names.found),
            places=list(self._places.found),
            launched_by=self._launched,
            launched_at=self._launched_at,
        )

    def _add_work(self, device: int, stream: int, points: list[tuple[int, int]]) -> None:
        for (time, number), (until, _) in pairwise(points):
            operation = self._operation(number)
            if operation is None:
                continue
            kind, kernel, launch = operation
            which = None if kernel is None else self._kernels.of(kernel)
            if number not in self._launched:
                name, place = self._function(launch)
                self._launched[number] = self._names.of(name)
                if place is not None:
                    self._launched_at[number] = self._places.of(place)
            self._work.add(time, until, device, number, which, stream, kind.value, None, *NO_SHAPE)

    def _add_calls(self, thread: int, points: list[tuple[int, int]]) -> None:
        for (time, number), (until, _) in pairwise(points):
            if number:
                name, place = self._function(self._context(number))
                which = None if place is None else self._places.of(place)
                self._calls.add(time, until, thread, None, self._names.of(name), which)

    def _context(self, number: int) -> Context:
        context = self._meta.contexts.get(number)
        if context is None:
            raise ValueError(f"it has context {number}, which meta.db does not")
        return context

    def _operation(self, number: int) -> tuple[Operation, str | None, Context | None] | None:
        """What a context does, its kernel (None: no kernel) and what launched it; None of no work."""
        context: Context | None = self._context(number) if number else None
        kernel = None
        while context is not None:
            name = context.function.name if context.function is not None else ""
            if name.startswith(_OPERATION):
                kind = _OPERATIONS.get(name, Operation.OTHER_COPY if kernel is None else Operation.KERNEL)
                return None if name in _NO_WORK else (kind, kernel, self._above(context))
            module = posixpath.basename(context.module)
            kernel = name or f"{module}+{context.offset:#x}"
            context = self._above(context)
        return None

    def _function(self, context: Context | None) -> tuple[str, HostPlace | None]:
        """The innermost function around with the nearest line of the application, and that line's place."""
        name = line = file = ""
        place = None
        while context is not None:
            function = "" if context.function is None else context.function.name
            if not name and function:
                name = function
            elif not name and context.module:
                name = f"{posixpath.basename(context.module)}+{context.offset:#x}"
            if not line and context.line and context.file and not context.file.startswith(_NOT_OURS):
                file, number = context.file, context.line
                line = f"{posixpath.basename(file)}:{number}"
                place = HostPlace(function="", file=file, line=number)
            elif place is not None and not place.function and function:
                place = HostPlace(function=function, file=file, line=place.line)
            context = self._above(context)
        return f"{name or 'unknown'} at {line}" if line else name or "unknown", place

    def _above(self, context: Context) -> Context | None:
        return None if context.parent is None else self._meta.contexts[context.parent]
