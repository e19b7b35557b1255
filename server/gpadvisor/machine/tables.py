# SPDX-License-Identifier: Apache-2.0
"""Machine tables by architecture: shipped ones, a user's own, and a scaled one for sensitivity checks."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from importlib import resources
from types import MappingProxyType
from typing import Any, Final, cast

from gpadvisor.errors import MachineModelError, UnknownArchitectureError
from gpadvisor.machine.schema import SmValue, Table, read_table
from gpadvisor.model.machine import Latency, MachineModel, SmLimits, Sourced

_OLDEST: Final = 70
_ARCH: Final = re.compile(r"(?:sm_|compute_)?(\d{2,3})([af])?\Z")
_OPTIONAL_SM: Final = frozenset({"block_barriers"})
_MAX_DEPTH: Final = 16


@functools.cache
def architectures() -> tuple[str, ...]:
    """The architectures with a table, oldest first."""
    names = (entry.name for entry in _folder().iterdir())
    numbers = (int(name[3:-5]) for name in names if name.startswith("sm_") and name.endswith(".toml"))
    return tuple(f"sm_{number}" for number in sorted(numbers))


@functools.cache
def load(arch: str) -> MachineModel:
    """The table of an architecture; ``sm_90a`` and ``sm_100f`` are served by their base.

    Raises:
        UnknownArchitectureError: no table; the message names the nearest, which is never used silently.
    """
    name = base_architecture(arch)
    if name is not None and int(name.removeprefix("sm_")) < _OLDEST:
        raise UnknownArchitectureError(
            f"{arch} is a GPU before Volta, with another machine code; sm_{_OLDEST} and newer are known"
        )
    if name not in architectures():
        raise UnknownArchitectureError(
            f"no machine table for {arch!r}; the nearest is {_nearest(name)}: if it fits, give --machine "
            f'a file with schema = 1, arch = "{name or "sm_NN"}" and inherits = "{_nearest(name)}"'
        )
    return _assemble(_shipped(name))


def load_file(data: bytes | str, name: str = "machine file") -> MachineModel:
    """A user's own table; it may inherit a shipped one.

    Raises:
        MachineModelError: malformed; the message names the file and the row.
    """
    return _assemble(read_table(data, name))


def base_architecture(arch: str) -> str | None:
    """``sm_90`` for ``sm_90a`` or ``compute_90``; None where the text names no architecture."""
    match = _ARCH.match(arch)
    return f"sm_{match.group(1)}" if match else None


def scaled(machine: MachineModel, factor: float) -> MachineModel:
    """The same machine with every latency multiplied, at least one cycle each.

    Advice should not hang on single latencies: a check runs it with factors 0.5 and 2 and compares.
    """

    def cycles(value: int) -> int:
        return max(1, round(value * factor))

    rows = tuple(
        replace(row, min_cycles=cycles(row.min_cycles), max_cycles=cycles(row.max_cycles))
        for row in machine.latencies
    )
    bounds = {
        space: Sourced(cycles(bound.value), bound.source)
        for space, bound in machine.memory_latency_bound_cycles.items()
    }
    return replace(machine, latencies=rows, memory_latency_bound_cycles=MappingProxyType(bounds))


def _folder() -> Any:
    return resources.files("gpadvisor.machine") / "data"


def _shipped(arch: str) -> Table:
    name = f"{arch}.toml"
    return read_table((_folder() / name).read_bytes(), name)


def _nearest(arch: str | None) -> str:
    """The known architecture with the nearest number, the older of two equally near."""
    number = int(arch[3:]) if arch else 0
    return min(
        architectures(), key=lambda architecture: (abs(int(architecture[3:]) - number), int(architecture[3:]))
    )


def _assemble(table: Table) -> MachineModel:
    """Put a table on top of the ones it inherits, parents first."""
    sources: dict[str, str] = {}
    sm: dict[str, SmValue] = {}
    bounds: dict[str, Sourced[int]] = {}
    latencies: dict[str, Latency] = {}
    for part in reversed(_ancestry(table)):
        sources.update(_new_sources(part, sources))
        sm.update(part.sm)
        bounds.update(part.bounds)
        latencies.update(part.latencies)
        _check_sources(part, sources)
    missing = sorted({row.name for row in fields(SmLimits)} - _OPTIONAL_SM - set(sm))
    if missing:
        raise MachineModelError(f"{table.name}: sm.{missing[0]} is missing, here and in what it inherits")
    return MachineModel(
        arch=table.arch,
        sm=SmLimits(**cast("dict[str, Any]", sm)),
        latencies=tuple(latencies.values()),
        memory_latency_bound_cycles=MappingProxyType(bounds),
        sources=MappingProxyType(sources),
    )


def _ancestry(table: Table) -> list[Table]:
    chain = [table]
    while chain[-1].inherits is not None:
        parent = chain[-1].inherits
        if parent not in architectures():
            raise MachineModelError(
                f"{chain[-1].name}: inherits {parent!r}, which has no table; "
                f"expected one of {', '.join(architectures())}"
            )
        chain.append(_shipped(parent))
        if len(chain) > _MAX_DEPTH:
            raise MachineModelError(f"{table.name}: inherits in a circle through {parent}")
    return chain


def _new_sources(part: Table, sources: Mapping[str, str]) -> Mapping[str, str]:
    for key, text in part.sources.items():
        if sources.get(key, text) != text:
            raise MachineModelError(
                f"{part.name}: sources.{key} says something else than in the table it inherits"
            )
    return part.sources


def _check_sources(part: Table, sources: Mapping[str, str]) -> None:
    used = [(f"sm.{key}", sm.source) for key, sm in part.sm.items()]
    used += [(f"memory_latency_bound_cycles.{key}", bound.source) for key, bound in part.bounds.items()]
    used += [(f"latency of {key}", row.source) for key, row in part.latencies.items()]
    for where, keys in used:
        for key in keys.split(", "):
            if key not in sources:
                raise MachineModelError(
                    f"{part.name}: {where} names the source {key!r}, which is not in [sources]"
                )
