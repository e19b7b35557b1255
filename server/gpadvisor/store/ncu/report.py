# SPDX-License-Identifier: Apache-2.0
"""An Nsight Compute report as it stands in the file: session, sources and launches, before interpretation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gpadvisor.model.profile import CallFrame, MetricValue
from gpadvisor.store.ncu import container, rules, wire
from gpadvisor.store.ncu.metrics import Metric, decode_metric, decode_value

_METRICS: Final = 13  # field of a launch; nearly all of its bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFunction:
    """A row of the relocation data: where a symbol of the cubin was loaded."""

    name: str
    address: int
    symbol_index: int | None  # in the ELF symbol table; names repeat, this does not


@dataclass(slots=True, eq=False)
class ReportSource:
    """One module of the profiled program; later blocks may add to it."""

    reference: int
    sm: tuple[int, int] | None = None
    cubin: bytes | None = None
    files: dict[str, str] = field(default_factory=dict)  # path -> embedded text
    functions: dict[LoadedFunction, None] = field(default_factory=dict)  # in file order, each once


@dataclass(frozen=True, slots=True, eq=False)
class _Loaded:
    """A module, and the number of the block in which it is first named."""

    block: int
    source: ReportSource


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result:
    """One launch."""

    mangled: str
    function: str
    demangled: str
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    context: int | None
    stream: int | None
    source: ReportSource | None
    metrics: Mapping[str, Metric]
    rules: tuple[rules.ReportRule, ...]
    call_stack: tuple[CallFrame, ...]


@dataclass(slots=True, eq=False)
class ReportSession:
    """Facts about the whole report, gathered over its blocks."""

    created: int | None = None  # seconds since 1970
    host: str | None = None
    target: str | None = None
    command: str | None = None
    executable: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    sampling_buffer_bytes: int | None = None
    devices: dict[int, dict[str, MetricValue]] = field(default_factory=dict)  # attributes by device id


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Report:
    """Everything read from one report file."""

    session: ReportSession
    sources: tuple[ReportSource, ...]
    results: tuple[Result, ...]
    others: Mapping[str, int]  # results that belong to no single kernel, by what was measured as a whole
    unnamed_metrics: int  # metrics whose name is not in the report
    left_over: int  # modules behind the last launch that no launch refers to


def parse_report(data: bytes) -> Report:
    """Read an uncompressed report; raise ProfileFormatError or WireError where its bytes are damaged."""
    return _Parser().read(data)


class _Parser:
    """What the blocks of a report add up to; names and modules may stand behind the launches with them."""

    def __init__(self) -> None:
        self.session = ReportSession()
        self.strings: list[str] = []
        self.sources: list[_Loaded] = []
        self.handles: dict[tuple[int | None, int], list[_Loaded]] = {}  # by process and reference
        self.launches: list[tuple[int, int | None, memoryview]] = []  # block, process, message
        self.others: Counter[str] = Counter()
        self.unnamed = 0

    def read(self, data: bytes) -> Report:
        for index, block in enumerate(container.blocks(data)):
            self.block(index, block)
        results = tuple(self.result(*launch) for launch in self.launches)
        used = {id(result.source) for result in results}
        final_block = self.launches[-1][0] if self.launches else -1
        return Report(
            session=self.session,
            sources=tuple(entry.source for entry in self.sources),
            results=results,
            others=self.others,
            unnamed_metrics=self.unnamed,
            left_over=sum(
                entry.block > final_block and entry.source.cubin is not None and id(entry.source) not in used
                for entry in self.sources
            ),
        )

    def block(self, index: int, block: container.ReportBlock) -> None:
        header = block.header
        for encoded in wire.blobs(header, 4):
            strings = wire.blobs(wire.parse(encoded), 1)
            self.strings += [text.decode("utf-8", "replace") for text in strings]
        for encoded in wire.blobs(header, 3):
            _add_session(self.session, encoded)
        owner = wire.parse(wire.blob(header, 6) or b"")
        self.session.executable = self.session.executable or wire.text(owner, 3)
        for number, kind in container.OTHER_RESULTS.items():
            self.others[kind] += wire.integer(header, number) or 0
        process = wire.integer(owner, 1)
        for message in block.sources:
            self.source(index, process, bytes(message))
        self.launches += [(index, process, encoded) for encoded in block.results]

    def source(self, index: int, process: int | None, encoded: bytes) -> None:
        fields = wire.parse(encoded)
        reference = wire.integer(fields, 1) or 0
        cubin = wire.blob(fields, 4) or None
        loadeds = self.handles.setdefault((process, reference), [])
        if not loadeds or (cubin is not None and loadeds[-1].source.cubin not in {None, cubin}):
            # A reference is a handle of the process: after unloading a module it may name another one.
            loadeds.append(_Loaded(index, ReportSource(reference)))
            self.sources.append(loadeds[-1])
        module = loadeds[-1].source
        module.cubin = cubin or module.cubin
        revision = wire.integer(fields, 6)
        if revision is not None:
            module.sm = (revision >> 16 & 0xFFFF, revision & 0xFFFF)
        for collection in wire.blobs(fields, 8):
            module.files.update(_source_files(collection))
        for table in wire.blobs(fields, 9):
            module.functions.update(dict.fromkeys(_functions(table)))

    def result(self, index: int, process: int | None, encoded: memoryview) -> Result:
        views = wire.parse(encoded)
        metrics = [view for view in views.pop(_METRICS, ()) if not isinstance(view, int)]
        fields: wire.Fields = {
            number: [value if isinstance(value, int) else bytes(value) for value in values]
            for number, values in views.items()
        }
        function = wire.text(fields, 6) or ""
        mangled = wire.text(fields, 5) or function
        return Result(
            mangled=mangled,
            function=function or mangled,
            demangled=wire.text(fields, 7) or function or mangled,
            grid=_triple(wire.blob(fields, 10)),
            block=_triple(wire.blob(fields, 11)),
            context=wire.integer(fields, 22),
            stream=wire.integer(fields, 23),
            source=self.source_of(index, process, wire.blob(fields, 15)),
            metrics=self.metrics(metrics),
            rules=tuple(rules.parse_rule(rule) for rule in wire.blobs(fields, 19)),
            call_stack=_call_stack(wire.blob(fields, 28)),
        )

    def source_of(self, index: int, process: int | None, encoded: bytes | None) -> ReportSource | None:
        """The module that a handle named when the launch was written, else the next one that it names."""
        reference = None if encoded is None else wire.integer(wire.parse(encoded), 1)
        if reference is None:
            return None
        loadeds = self.handles.get((process, reference), [])
        before = [entry.source for entry in loadeds if entry.block <= index]
        after = [entry.source for entry in loadeds if entry.block > index]
        return before[-1] if before else after[0] if after else None

    def metrics(self, encoded: list[memoryview]) -> dict[str, Metric]:
        result: dict[str, Metric] = {}
        for message in encoded:
            index, value, has_instances = decode_metric(bytes(message))
            if index is None or index >= len(self.strings):
                self.unnamed += 1
                continue
            name = self.strings[index]
            result[name] = Metric(name, value, message if has_instances else b"", has_instances)
        return result


def _add_session(session: ReportSession, encoded: bytes) -> None:
    fields = wire.parse(encoded)
    session.created = wire.integer(fields, 2) or session.created
    session.host = _host_name(fields, 3) or session.host
    session.target = _host_name(fields, 4) or session.target
    session.command = wire.text(fields, 11) or session.command
    for version in wire.blobs(fields, 8):
        entry = wire.parse(version)
        session.versions[wire.text(entry, 1) or ""] = wire.text(entry, 2) or ""
    for settings in wire.blobs(fields, 10):
        for options in wire.blobs(wire.parse(settings), 9):
            session.sampling_buffer_bytes = wire.integer(wire.parse(options), 4)
    for device in wire.blobs(fields, 6):
        entry = wire.parse(device)
        session.devices[wire.integer(entry, 1) or 0] = _device_attributes(entry)


def _device_attributes(entry: wire.Fields) -> dict[str, MetricValue]:
    attributes: dict[str, MetricValue] = {}
    for attribute in wire.blobs(entry, 3):
        fields = wire.parse(attribute)
        value = decode_value(wire.blob(fields, 2) or b"")
        if value is not None:
            attributes[wire.text(fields, 1) or ""] = value
    name = wire.text(entry, 2)
    return attributes | ({"device__attribute_display_name": name} if name else {})


def _host_name(fields: wire.Fields, number: int) -> str | None:
    encoded = wire.blob(fields, number)
    return None if encoded is None else wire.text(wire.parse(encoded), 5) or None


def _source_files(encoded: bytes) -> dict[str, str]:
    files: dict[str, str] = {}
    for entry in wire.blobs(wire.parse(encoded), 1):
        fields = wire.parse(entry)
        name = wire.text(fields, 1)
        if name:
            files[name] = wire.text(fields, 2) or ""
    return files


def _functions(encoded: bytes) -> list[LoadedFunction]:
    functions: list[LoadedFunction] = []
    for entry in wire.blobs(wire.parse(encoded), 1):
        fields = wire.parse(entry)
        name, address = wire.text(fields, 1), wire.integer(fields, 2)
        if name is not None and address:
            functions.append(LoadedFunction(name=name, address=address, symbol_index=wire.integer(fields, 3)))
    return functions


def _triple(encoded: bytes | None) -> tuple[int, int, int] | None:
    if encoded is None:
        return None
    fields = wire.parse(encoded)
    x, y, z = (wire.integer(fields, number) for number in (1, 2, 3))
    return (x or 1, y or 1, z or 1) if x or y or z else None


def _call_stack(encoded: bytes | None) -> tuple[CallFrame, ...]:
    if encoded is None:
        return ()
    frames: list[CallFrame] = []
    for entry in wire.blobs(wire.parse(encoded), 1):
        fields = wire.parse(entry)
        frames.append(
            CallFrame(
                module=wire.text(fields, 1) or None,
                address=wire.integer(fields, 2),
                function=wire.text(fields, 4) or None,
                file=wire.text(fields, 3) or None,
                line=wire.integer(fields, 5),
            )
        )
    return tuple(frames)
