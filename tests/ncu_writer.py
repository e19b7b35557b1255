# SPDX-License-Identifier: Apache-2.0
"""Write Nsight Compute reports with stated content, so that tests need no GPU and no foreign report.

::

    launch = LaunchSpec(
        kernel="_Z4axpyPf",
        cubin=cubin,
        samples={("_Z4axpyPf", 0x90, "long_scoreboard"): (800, 750)},
        counts={("_Z4axpyPf", 0x90): (4096, 131072)},
    )
    path.write_bytes(write_report([launch], layout="relocation"))

Positions are (section name without ``.text.``, byte offset). Everything not stated has a value that is
consistent with the rest: sums, sample count, active cycles (one sample per SM and interval), device.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

import zstandard

Layout = Literal["relocation", "loaded", "function_pcs", "nowhere"]
Numbers = Literal["int", "float"]
Family = Literal["warps_issue_stalled", "warp_stall"]
Value = int | float | str
Position = tuple[str, int]

REASONS_18 = (
    *("barrier", "branch_resolving", "dispatch_stall", "drain", "imc_miss", "lg_throttle", "long_scoreboard"),
    *("math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instructions", "not_selected", "selected"),
    *("short_scoreboard", "sleeping", "tex_throttle", "wait"),
)


@dataclass(frozen=True, kw_only=True)
class RuleSpec:
    """One rule of NVIDIA's with one message (or none, if ``message`` is empty)."""

    identifier: str
    name: str = ""
    section: str = "SpeedOfLight"
    kind: int = 4  # 1 ok, 2 warning, 3 error, 4 optimization
    message: str = ""
    speedup_percent: float | None = None
    speedup_global: bool = True


@dataclass(frozen=True, kw_only=True)
class FrameSpec:
    """One frame of the host's call stack."""

    module: str
    address: int
    function: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class DeviceSpec:
    """The GPU; the architecture comes from the cubin unless stated."""

    name: str = "NVIDIA Test GPU"
    capability: tuple[int, int] | None = None
    sms: int = 10
    clock_hz: float = 1.5e9
    warps_per_sm: int = 48
    schedulers: int = 4
    registers_per_sm: int = 65536
    shared_bytes_per_sm: int = 102400
    l2_bytes: int = 6 << 20


@dataclass(frozen=True, kw_only=True)
class LaunchSpec:
    """One launch. ``metrics`` overrides or adds scalars; a value of None removes one."""

    kernel: str  # mangled
    cubin: bytes | None
    samples: Mapping[tuple[str, int, str], tuple[int, int]] = field(default_factory=dict)  # total, latency
    external: Mapping[tuple[int, str], tuple[int, int]] = field(default_factory=dict)  # by absolute address
    counts: Mapping[Position, tuple[int, int]] = field(default_factory=dict)  # warps, threads
    pc_metrics: Mapping[str, Mapping[Position, float]] = field(default_factory=dict)
    named_metrics: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by opcode and such
    nameless_metrics: int = 0  # whose name is in no string table
    metrics: Mapping[str, Value | None] = field(default_factory=dict)
    reasons: Sequence[str] = REASONS_18  # present even without samples
    demangled: str = ""
    grid: tuple[int, int, int] = (100, 1, 1)
    block: tuple[int, int, int] = (256, 1, 1)
    registers: int = 32
    static_shared: int = 0
    dynamic_shared: int = 0
    duration_ns: float = 1e6
    interval_cycles: int = 1024
    sources: Mapping[str, str] = field(default_factory=dict)  # path -> text
    rules: Sequence[RuleSpec] = ()
    call_stack: Sequence[FrameSpec] = ()
    failed: bool = False


def write_report(
    launches: Sequence[LaunchSpec],
    *,
    layout: Layout = "relocation",
    numbers: Numbers = "int",
    family: Family = "warps_issue_stalled",
    sample_count: bool = True,
    device: DeviceSpec | None = None,
    version: str = "2025.1.0.0 (build 1) (public-release)",
    command: str | None = "ncu --set full -o report ./app",
    host: str = "testhost",
    executable: str = "/home/someone/app",
    created: int = 1_700_000_000,
    compress: bool = False,
    late: bool = False,
    others: Mapping[int, int] | None = None,
) -> bytes:
    """The bytes of a report with these launches, in order.

    ``late`` puts names, and then modules, into blocks behind the launches that refer to them. ``others`` are
    results that are no launches, by the field of the block's header that counts them.
    """
    writer = _Writer(layout, numbers, family, sample_count, device or DeviceSpec(), executable)
    session = _sub(8, _string(1, "Nsight Compute Target") + _string(2, version)) + _varint_field(2, created)
    session += _sub(4, _string(1, "Linux") + _string(5, host))
    if command is not None:
        session += _string(11, command)
    out = bytearray(b"NVR\0" + _sized(_varint_field(1, 7)) + writer.block(session=session))
    for launch in launches:
        out += writer.launch(launch, late=late)
    if others:
        out += writer.block(others=others)
    return zstandard.ZstdCompressor().compress(out) if compress else bytes(out)


def sections_of(cubin: bytes) -> dict[str, tuple[int, int]]:
    """Section name without ``.text.`` -> (ELF section index, size in bytes)."""
    return {
        section.name.removeprefix(".text."): (index, section.size)
        for index, section in enumerate(_elf_sections(cubin))
        if section.name.startswith(".text.")
    }


def as_loaded(cubin: bytes, addresses: Mapping[str, int]) -> bytes:
    """The cubin with the device address of each kernel in its symbol table, as older reports store it."""
    patched = bytearray(cubin)
    sections = _elf_sections(cubin)
    for symbol in _elf_symbols(cubin):
        name = sections[symbol.section].name if symbol.section < len(sections) else ""
        entry = name == ".text." + symbol.name
        if entry and symbol.name in addresses:
            struct.pack_into("<Q", patched, symbol.at + 8, addresses[symbol.name])
    return bytes(patched)


@dataclass(frozen=True)
class _ElfSection:
    name: str
    kind: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True)
class _ElfSymbol:
    name: str
    at: int  # file offset of the entry
    section: int
    value: int
    index: int


def _elf_sections(cubin: bytes) -> list[_ElfSection]:
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    rows = [struct.unpack_from("<IIQQQQII", cubin, table + index * size) for index in range(count)]
    base = rows[names][4]
    return [_ElfSection(_c_string(cubin, base + row[0]), row[1], row[4], row[5], row[6]) for row in rows]


def _elf_symbols(cubin: bytes) -> list[_ElfSymbol]:
    sections = _elf_sections(cubin)
    table = next(section for section in sections if section.kind == 2)
    strings = sections[table.link].offset
    found = []
    for index in range(table.size // 24):
        at = table.offset + 24 * index
        name, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", cubin, at)
        if info & 15 == 2:
            found.append(_ElfSymbol(_c_string(cubin, strings + name), at, section, value, index))
    return found


def _c_string(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def _capability(cubin: bytes | None) -> tuple[int, int]:
    if cubin is None:
        return 8, 6
    (flags,) = struct.unpack_from("<I", cubin, 48)
    sm = flags & 0xFF if cubin[8] == 7 else flags >> 8 & 0xFF
    return divmod(sm, 10)


class _Writer:
    def __init__(
        self,
        layout: Layout,
        numbers: Numbers,
        family: Family,
        sample_count: bool,
        device: DeviceSpec,
        executable: str,
    ) -> None:
        self.layout, self.numbers, self.family, self.sample_count = layout, numbers, family, sample_count
        self.device, self.executable = device, executable
        self.strings: dict[str, int] = {}
        self.fresh: list[str] = []
        self.modules: dict[bytes, tuple[int, dict[str, int]]] = {}  # cubin -> reference, section addresses
        self.next_address = 0x7F3A_0000_0000

    def block(
        self,
        *,
        session: bytes = b"",
        sources: Sequence[bytes] = (),
        results: Sequence[bytes] = (),
        others: Mapping[int, int] | None = None,
        names: bool = True,
    ) -> bytes:
        others = others or {}
        # Thread, call, metrics of none: what such a result must have.
        more = [_varint_field(1, 1) + _varint_field(2, 1)] * sum(others.values())
        payload = b"".join(_sized(message) for message in (*sources, *results, *more))
        header = _varint_field(1, len(sources)) + _varint_field(2, len(results))
        if session:
            header += _sub(3, session)
        if names:
            header += _sub(4, b"".join(_string(1, text) for text in self.fresh))
            self.fresh = []
        header += _varint_field(5, len(payload))
        header += _sub(6, _varint_field(1, 4711) + _string(2, "127.0.0.1") + _string(3, self.executable))
        header += b"".join(_varint_field(number, count) for number, count in sorted(others.items()))
        return _sized(header) + payload

    def name(self, text: str) -> int:
        if text not in self.strings:
            self.strings[text] = len(self.strings)
            self.fresh.append(text)
        return self.strings[text]

    def launch(self, spec: LaunchSpec, *, late: bool = False) -> bytes:
        module = b""
        reference, starts = 0, {}
        if spec.cubin is not None:
            if spec.cubin not in self.modules:
                module = self.source(spec)
            reference, starts = self.modules[spec.cubin]
        result = self.result(spec, reference, starts)
        if late:
            return self.block(results=[result], names=False) + self.block() + module
        # The strings of a launch stand in the header of its own block; the tables of all blocks add up.
        return module + self.block(results=[result])

    def source(self, spec: LaunchSpec) -> bytes:
        cubin = spec.cubin
        assert cubin is not None
        starts = {}
        for name, (_, size) in sections_of(cubin).items():
            starts[name] = self.next_address
            self.next_address += (size + 0xFFF) & ~0xFFF
        reference = 81604378625 + len(self.modules)
        self.modules[cubin] = (reference, starts)
        stored = as_loaded(cubin, starts) if self.layout == "loaded" else cubin
        major, minor = _capability(cubin)
        message = _varint_field(1, reference) + _sub(4, stored) + _varint_field(5, 8)
        message += _varint_field(6, major << 16 | minor) + _varint_field(7, 0)
        files = b"".join(_sub(1, _string(1, path) + _string(2, text)) for path, text in spec.sources.items())
        if files:
            message += _sub(8, files)
        out = self.block(sources=[message])
        if self.layout == "relocation":
            # Addresses come in a later message with the same reference and no binary, as lazy loading does.
            table = self.relocation(cubin, starts)
            out += self.block(sources=[_varint_field(1, reference) + _varint_field(5, 8) + _sub(9, table)])
        return out

    def relocation(self, cubin: bytes, starts: Mapping[str, int]) -> bytes:
        sections = _elf_sections(cubin)
        rows = b""
        for symbol in _elf_symbols(cubin):
            section = sections[symbol.section].name.removeprefix(".text.")
            if section in starts:
                row = _string(1, symbol.name) + _varint_field(2, starts[section] + symbol.value)
                rows += _sub(1, row + _varint_field(3, symbol.index))
        return rows

    def result(self, spec: LaunchSpec, reference: int, starts: Mapping[str, int]) -> bytes:
        plain = spec.demangled.split("(")[0].split(" ")[-1] or spec.kernel
        # The first number is the thread's, which is the process's in its first thread alone.
        message = _varint_field(1, 4712) + _varint_field(2, 1) + _varint_field(3, 99) + _varint_field(4, 98)
        message += _varint_field(8, len(spec.grid)) + _sub(9, _triple((0, 0, 0)))
        message += _string(5, spec.kernel) + _string(6, plain) + _string(7, spec.demangled or spec.kernel)
        message += _sub(10, _triple(spec.grid)) + _sub(11, _triple(spec.block))
        for name, (value, instances) in self.metrics(spec, starts).items():
            message += _sub(13, self.metric(name, value, instances))
        for name, by_key in spec.named_metrics.items():
            rows = b"".join(
                _sub(3, _sub(1, _string(1, key)) + _sub(2, self.value(number)))
                for key, number in by_key.items()
            )
            message += _sub(13, _varint_field(1, self.name(name)) + _sub(2, self.value(len(by_key))) + rows)
        for at in range(spec.nameless_metrics):
            message += _sub(13, _varint_field(1, 1 << 30 | at) + _sub(2, self.value(1)))
        if reference:
            message += _sub(15, _varint_field(1, reference))
        for rule in spec.rules:
            message += _sub(19, _rule(rule))
        message += _varint_field(22, 1) + _varint_field(23, 7)
        if spec.call_stack:
            message += _sub(28, b"".join(_sub(1, _frame(frame)) for frame in spec.call_stack))
        return message

    def metric(self, name: str, value: Value | None, instances: Sequence[tuple[int, float]] | None) -> bytes:
        message = bytearray(_varint_field(1, self.name(name)))
        if value is not None:
            message += _sub(2, self.value(value))
        for identifier, number in instances or ():
            message += _sub(3, _sub(1, _varint_field(5, identifier)) + _sub(2, self.value(number)))
        return bytes(message)

    def value(self, value: Value) -> bytes:
        if isinstance(value, str):
            return _string(1, value)
        if isinstance(value, float) or self.numbers == "float":
            return b"\x19" + struct.pack("<d", value)
        return _varint_field(5, value)

    def metrics(
        self, spec: LaunchSpec, starts: Mapping[str, int]
    ) -> dict[str, tuple[Value | None, Sequence[tuple[int, float]] | None]]:
        found: dict[str, tuple[Value | None, Sequence[tuple[int, float]] | None]] = {}
        for name, value in self.device_metrics(spec).items():
            found[name] = (value, None)
        if not spec.failed:
            for name, value in _launch_metrics(spec, self.device).items():
                found[name] = (value, None)
            address = starts.get(spec.kernel)
            if address is not None and self.layout != "nowhere":
                found["launch__function_pcs"] = (1, [(0, address)])
            found.update(self.sampled(spec, starts))
            found.update(_counted(spec, starts))
        else:
            found["gpu__time_duration.sum"] = (float("nan"), None)
        for name, value in spec.metrics.items():
            if value is None:
                found.pop(name, None)
            else:
                found[name] = (value, found.get(name, (None, None))[1])
        return found

    def device_metrics(self, spec: LaunchSpec) -> dict[str, Value]:
        device = self.device
        major, minor = device.capability or _capability(spec.cubin)
        attributes: dict[str, Value] = {
            "display_name": device.name,
            "compute_capability_major": major,
            "compute_capability_minor": minor,
            "multiprocessor_count": device.sms,
            "clock_rate": round(device.clock_hz / 1000),
            "max_warps_per_multiprocessor": device.warps_per_sm,
            "num_schedulers_per_multiprocessor": device.schedulers,
            "max_registers_per_multiprocessor": device.registers_per_sm,
            "max_shared_memory_per_multiprocessor": device.shared_bytes_per_sm,
            "l2_cache_size": device.l2_bytes,
        }
        return {f"device__attribute_{name}": value for name, value in attributes.items()}

    def sampled(
        self, spec: LaunchSpec, starts: Mapping[str, int]
    ) -> dict[str, tuple[Value | None, Sequence[tuple[int, float]] | None]]:
        rows = {(starts[section] + pc, reason): pair for (section, pc, reason), pair in spec.samples.items()}
        rows.update(spec.external)
        if not rows:
            return {}
        addresses = sorted({address for address, _ in rows})
        names = list(dict.fromkeys([*spec.reasons, *(reason for _, reason in rows)]))
        found: dict[str, tuple[Value | None, Sequence[tuple[int, float]] | None]] = {}
        for reason in names:
            for part, suffix in ((0, ""), (1, "_not_issued")):
                column = [(address, rows.get((address, reason), (0, 0))[part]) for address in addresses]
                total = sum(count for _, count in column)
                found[f"smsp__pcsamp_{self.family}_{reason}{suffix}"] = (total, column)
        found["group:smsp__pcsamp_warp_stall_reasons"] = (",".join(found), None)
        total = sum(pair[0] for pair in rows.values())
        if self.sample_count:
            by_address = [(at, sum(rows.get((at, name), (0, 0))[0] for name in names)) for at in addresses]
            found["smsp__pcsamp_sample_count"] = (total, by_address)
        found["smsp__pcsamp_interval_cycles"] = (spec.interval_cycles, None)
        found["smsp__pcsamp_interval"] = (spec.interval_cycles.bit_length() - 6, None)
        found["smsp__pcsamp_buffer_size_bytes"] = (32 << 20, None)
        found["smsp__pcsamp_dropped_bytes"] = (0, None)
        found["sm__cycles_active.avg"] = (total * spec.interval_cycles / self.device.sms, None)
        return found


def _launch_metrics(spec: LaunchSpec, device: DeviceSpec) -> dict[str, Value]:
    values: dict[str, Value] = {"gpu__time_duration.sum": spec.duration_ns}
    for axis, grid, block in zip("xyz", spec.grid, spec.block, strict=True):
        values[f"launch__grid_dim_{axis}"] = grid
        values[f"launch__block_dim_{axis}"] = block
    values["launch__grid_size"] = spec.grid[0] * spec.grid[1] * spec.grid[2]
    values["launch__block_size"] = spec.block[0] * spec.block[1] * spec.block[2]
    values["launch__registers_per_thread"] = spec.registers
    values["launch__shared_mem_per_block_static"] = spec.static_shared
    values["launch__shared_mem_per_block_dynamic"] = spec.dynamic_shared
    values["launch__shared_mem_per_block_driver"] = 1024
    values["launch__shared_mem_per_block"] = spec.static_shared + spec.dynamic_shared + 1024
    values["launch__shared_mem_config_size"] = device.shared_bytes_per_sm
    values["sm__cycles_elapsed.avg.per_second"] = device.clock_hz
    return values


def _counted(
    spec: LaunchSpec, starts: Mapping[str, int]
) -> dict[str, tuple[Value | None, Sequence[tuple[int, float]] | None]]:
    found: dict[str, tuple[Value | None, Sequence[tuple[int, float]] | None]] = {}
    if spec.counts:
        for part, name in enumerate(("inst_executed", "thread_inst_executed")):
            column = [(starts[section] + pc, pair[part]) for (section, pc), pair in spec.counts.items()]
            found[name] = (sum(count for _, count in column), column)
    for name, values in spec.pc_metrics.items():
        column = [(starts[section] + pc, value) for (section, pc), value in values.items()]
        found[name] = (sum(value for _, value in column), column)
    return found


def _rule(rule: RuleSpec) -> bytes:
    message = _string(1, rule.identifier) + _string(2, rule.name or rule.identifier)
    if rule.message:
        text = _string(1, rule.message) + _varint_field(2, rule.kind) + _varint_field(3, 1)
        item = _sub(1, text)
        if rule.speedup_percent is not None:
            kind = 2 if rule.speedup_global else 1
            item += _sub(10, _varint_field(1, kind) + b"\x11" + struct.pack("<d", rule.speedup_percent))
        message += _sub(3, _sub(1, item))
    return message + _string(4, rule.section)


def _frame(frame: FrameSpec) -> bytes:
    message = _string(1, frame.module) + _varint_field(2, frame.address)
    if frame.file:
        message += _string(3, frame.file)
    message += _string(4, frame.function)
    return message + (_varint_field(5, frame.line) if frame.line else b"")


@lru_cache(maxsize=1 << 16)
def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _varint_field(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _sub(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _string(number: int, text: str) -> bytes:
    return _sub(number, text.encode())


def _sized(message: bytes) -> bytes:
    return struct.pack("<I", len(message)) + message


def _triple(values: Iterable[int]) -> bytes:
    return b"".join(_varint_field(number, value) for number, value in enumerate(values, 1))


def without_samples(launch: LaunchSpec) -> LaunchSpec:
    """The same launch as a report without PC sampling has it: counted only."""
    return replace(launch, samples={}, external={})
