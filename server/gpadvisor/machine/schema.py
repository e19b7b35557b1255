# SPDX-License-Identifier: Apache-2.0
"""The shape of a machine table, checked strictly: every number has a source, every key is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeGuard

from gpadvisor.errors import MachineModelError
from gpadvisor.files import parse_toml
from gpadvisor.model.instruction import MemorySpace
from gpadvisor.model.machine import Latency, SmLimits, Sourced

SCHEMA: Final = 1
MAX_BYTES: Final = 1 << 20
"""A table of a megabyte is not one; the largest shipped has a few kilobytes."""
MAX_VALUE: Final = 1 << 40

STATUSES: Final = frozenset(
    {"measured", "measured by others", "read", "model parameter", "recalled", "recommended", "assumption"}
)
"""How a source knows its numbers."""

_TOP_KEYS: Final = frozenset(
    {"schema", "arch", "inherits", "sources", "sm", "memory_latency_bound_cycles", "latency"}
)
_LATENCY_KEYS: Final = frozenset({"opcode", "opcodes", "min_cycles", "max_cycles", "source"})
_SM_FIELDS: Final = {row.name for row in fields(SmLimits)}
_LIST_FIELDS: Final = frozenset({"shared_carveouts_bytes", "operands_read_cycles", "unknown_latency_cycles"})
_ZERO_ALLOWED: Final = frozenset({"reserved_shared_bytes_per_block"})
_SPACES: Final = frozenset(space.value for space in MemorySpace)

SmValue = Sourced[int] | Sourced[tuple[int, ...]]


@dataclass(slots=True)
class Table:
    """One file as written, before its parent's rows are added."""

    name: str  # what messages call it
    arch: str
    inherits: str | None
    sources: dict[str, str] = field(default_factory=dict)
    sm: dict[str, SmValue] = field(default_factory=dict)
    bounds: dict[str, Sourced[int]] = field(default_factory=dict)
    latencies: dict[str, Latency] = field(default_factory=dict)


def read_table(data: bytes | str, name: str) -> Table:
    """Parse one table; sources of its parent are not known here, so references are checked by the caller."""
    document = _parse(data, name)
    _known(document, _TOP_KEYS, f"{name}")
    if document.get("schema") != SCHEMA:
        raise MachineModelError(f"{name}: schema is {document.get('schema')!r}, expected {SCHEMA}")
    arch = document.get("arch")
    if not isinstance(arch, str) or not arch.startswith("sm_") or not arch[3:].isdecimal():
        raise MachineModelError(f'{name}: arch is {arch!r}, expected a name such as "sm_86"')
    inherits = document.get("inherits")
    if inherits is not None and not isinstance(inherits, str):
        raise MachineModelError(f'{name}: inherits is {inherits!r}, expected an architecture such as "sm_86"')
    table = Table(name=name, arch=arch, inherits=inherits)
    for key, row in _section(document, "sources", name).items():
        table.sources[key] = _source_text(row, f"{name}: sources.{key}")
    for key, row in _section(document, "sm", name).items():
        table.sm[key] = _sm_value(key, row, f"{name}: sm.{key}")
    for key, row in _section(document, "memory_latency_bound_cycles", name).items():
        if key not in _SPACES:
            raise MachineModelError(
                f"{name}: memory_latency_bound_cycles.{key} is not one of {', '.join(sorted(_SPACES))}"
            )
        table.bounds[key] = _sourced_int(row, f"{name}: memory_latency_bound_cycles.{key}")
    rows = document.get("latency", [])
    if not isinstance(rows, list):
        raise MachineModelError(f"{name}: latency is not a list of [[latency]] rows")
    for position, row in enumerate(rows, start=1):
        for latency in _latency_rows(row, f"{name}: latency row {position}"):
            if latency.pattern in table.latencies:
                raise MachineModelError(f"{name}: latency row {position}: {latency.pattern} stands twice")
            table.latencies[latency.pattern] = latency
    return table


def _parse(data: bytes | str, name: str) -> dict[str, Any]:
    if len(data) > MAX_BYTES:
        raise MachineModelError(
            f"{name}: {len(data)} bytes are too many for a machine table (at most {MAX_BYTES})"
        )
    try:
        return parse_toml(data.encode() if isinstance(data, str) else data)
    except ValueError as error:
        raise MachineModelError(f"{name}: not a TOML machine table: {error}") from error


def _section(document: Mapping[str, Any], key: str, name: str) -> Mapping[str, Any]:
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise MachineModelError(f"{name}: {key} is not a table")
    return value


def _known(row: Mapping[str, Any], keys: frozenset[str], where: str) -> None:
    for key in row:
        if key not in keys:
            raise MachineModelError(
                f"{where}: unknown key {key!r}, expected one of {', '.join(sorted(keys))}"
            )


def _source_text(row: Any, where: str) -> str:
    if not isinstance(row, dict):
        raise MachineModelError(f"{where}: expected a status and a text")
    _known(row, frozenset({"status", "text"}), where)
    status, text = row.get("status"), row.get("text")
    if status not in STATUSES:
        raise MachineModelError(
            f"{where}: status is {status!r}, expected one of {', '.join(sorted(STATUSES))}"
        )
    if not isinstance(text, str) or not text:
        raise MachineModelError(f"{where}: text is missing; say where the numbers come from")
    return f"{status}: {text}"


def _sm_value(key: str, row: Any, where: str) -> SmValue:
    if key not in _SM_FIELDS:
        raise MachineModelError(f"{where}: unknown key, expected one of {', '.join(sorted(_SM_FIELDS))}")
    if key not in _LIST_FIELDS:
        return _sourced_int(row, where, lowest=0 if key in _ZERO_ALLOWED else 1)
    value, source = _value_and_source(row, where)
    if not isinstance(value, list) or not value or not all(_is_count(item, 0) for item in value):
        raise MachineModelError(f"{where}: value is {value!r}, expected a list of counts")
    if value != sorted(set(value)):
        raise MachineModelError(f"{where}: values are not in ascending order")
    return Sourced(tuple(value), source)


def _sourced_int(row: Any, where: str, lowest: int = 1) -> Sourced[int]:
    value, source = _value_and_source(row, where)
    if not _is_count(value, lowest):
        raise MachineModelError(f"{where}: value is {value!r}, expected a whole number of at least {lowest}")
    return Sourced(value, source)


def _is_count(value: Any, lowest: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= MAX_VALUE


def _value_and_source(row: Any, where: str) -> tuple[Any, str]:
    if not isinstance(row, dict):
        raise MachineModelError(f"{where}: expected {{ value = ..., source = ... }}")
    _known(row, frozenset({"value", "source"}), where)
    if "value" not in row:
        raise MachineModelError(f"{where}: value is missing")
    return row["value"], _source_keys(row, where)


def _source_keys(row: Mapping[str, Any], where: str) -> str:
    source = row.get("source")
    keys = [source] if isinstance(source, str) else source
    if not isinstance(keys, list) or not keys or not all(isinstance(key, str) and key for key in keys):
        raise MachineModelError(f"{where}: source is missing; name a key of [sources]")
    return ", ".join(keys)


def _latency_rows(row: Any, where: str) -> list[Latency]:
    if not isinstance(row, dict):
        raise MachineModelError(f"{where}: not a table")
    _known(row, _LATENCY_KEYS, where)
    if ("opcode" in row) == ("opcodes" in row):
        raise MachineModelError(f"{where}: give either opcode or opcodes")
    patterns = [row["opcode"]] if "opcode" in row else row["opcodes"]
    if not isinstance(patterns, list) or not all(isinstance(item, str) and item for item in patterns):
        raise MachineModelError(f"{where}: opcodes is {patterns!r}, expected a list of names")
    source = _source_keys(row, where)
    low, high = row.get("min_cycles"), row.get("max_cycles")
    if not _is_count(low, 1) or not _is_count(high, 1):
        raise MachineModelError(
            f"{where}: min_cycles and max_cycles must both be whole numbers of at least 1"
        )
    if low > high:
        raise MachineModelError(f"{where}: min_cycles {low} is larger than max_cycles {high}")
    return [Latency(pattern, low, high, source) for pattern in patterns]
