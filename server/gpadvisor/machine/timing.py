# SPDX-License-Identifier: Apache-2.0
"""Typical latencies, rates and queue depths of an architecture, and the device that stands for it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any, Final

from gpadvisor.errors import MachineModelError, UnknownArchitectureError
from gpadvisor.machine.tables import base_architecture

CycleRange = tuple[int, int]
"""Typical and high value in cycles; draws lie between them, most of them near the first."""

STATUSES: Final = frozenset(
    {"measured", "measured by others", "read", "model parameter", "recalled", "assumption"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedDevice:
    """The GPU that a simulation stands for."""

    name: str
    sms: int
    clock_hz: float
    dram_bytes_per_second: float
    l2_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Numbers of one architecture that only the simulator needs; intervals are per scheduler, in cycles."""

    l1_cycles: CycleRange
    l2_cycles: CycleRange
    dram_cycles: CycleRange
    shared_cycles: CycleRange
    shared_atomic_cycles: CycleRange
    constant_cycles: CycleRange
    texture_cycles: CycleRange
    special_register_cycles: CycleRange
    shuffle_cycles: CycleRange
    xu_cycles: CycleRange
    fp64_cycles: CycleRange  # where FP64 sets a scoreboard
    other_cycles: CycleRange  # of a variable latency that no other row covers
    alu_interval: int
    ffma_interval: int
    imad_interval: int
    fp16_interval: int
    fp64_interval: int
    xu_interval: int
    tensor_interval: int
    uniform_interval: int
    shuffle_interval: int
    wavefront_cycles: (
        int  # that the SM's load/store unit takes for any request; a line or wavefront takes one
    )
    lg_queue: int  # entries per scheduler
    mio_queue: int
    tex_queue: int
    operand_read_cycles: int  # until a memory instruction has read its registers
    branch_cycles: int  # until the next instruction of a taken branch may issue
    barrier_cycles: int
    fence_block_cycles: int
    fence_gpu_cycles: int
    fence_system_cycles: int
    fetch_l1_cycles: int  # L0 miss that hits the SM's instruction cache
    fetch_l2_cycles: int
    prefetched_lines: int
    block_launch_cycles: int
    l2_bytes_per_cycle: float  # an SM's share
    l2_packets_per_cycle: float  # an SM's share of what the slices take in: a request, a sector to be written
    atomic_cycles: float  # that L2 takes for each lane's operation on the same line
    float_atomic_cycles: float
    data_cache_bytes: int  # of an SM: shared memory is cut from it, the rest is L1


_RANGES: Final = frozenset(name for name in Timing.__slots__ if name in {
    "l1_cycles", "l2_cycles", "dram_cycles", "shared_cycles", "shared_atomic_cycles", "constant_cycles",
    "texture_cycles", "special_register_cycles", "shuffle_cycles", "xu_cycles", "fp64_cycles", "other_cycles",
})  # fmt: skip
_DEVICE: Final = frozenset({"sms", "clock_hz", "dram_bytes_per_second", "l2_bytes"})


@cache
def timing_of(arch: str) -> tuple[Timing, SimulatedDevice]:
    """The table of an architecture; ``sm_90a`` is served by ``sm_90``.

    Raises:
        UnknownArchitectureError: the simulator has no table for it.
    """
    document = _document()
    name = base_architecture(arch)
    if name is None or name not in document:
        names = ", ".join(key for key in document if key.startswith("sm_"))
        raise UnknownArchitectureError(f"the simulator has no timing table for {arch!r}; it has {names}")
    rows: dict[str, Any] = {**document["default"], **document[name]}
    title = rows.pop("name")
    values = {
        key: _checked(key, row, document["sources"], f"timing.toml: {name}.{key}")
        for key, row in rows.items()
    }
    device = {key: values.pop(key) for key in _DEVICE}
    return Timing(**values), SimulatedDevice(name=title, **device)


SLOW_DOUBLES: Final = 16
"""Times as slow as floats from where doubles count as slow; fast ones have a half or a quarter."""


def times_as_slow(arch: str) -> int:
    """How many times as long as a float's an operation on doubles takes its pipe; 1 where it is not known."""
    try:
        timing, _ = timing_of(arch)
    except UnknownArchitectureError:
        return 1
    return timing.fp64_interval // timing.ffma_interval


@cache
def _document() -> dict[str, Any]:
    data = resources.files("gpadvisor.machine").joinpath("data", "timing.toml").read_text(encoding="utf-8")
    document = tomllib.loads(data)
    for key, row in document["sources"].items():
        if row["status"] not in STATUSES:
            raise MachineModelError(f"timing.toml: sources.{key} has the unknown status {row['status']!r}")
    return document


def _checked(key: str, row: Any, sources: Mapping[str, Any], where: str) -> Any:
    if key not in _DEVICE and key not in {field.name for field in fields(Timing)}:
        raise MachineModelError(f"{where}: unknown key")
    source_names = [row["source"]] if isinstance(row["source"], str) else row["source"]
    for source in source_names:
        if source not in sources:
            raise MachineModelError(f"{where}: names the source {source!r}, which is not in [sources]")
    value = row["value"]
    if key in _RANGES:
        low, high = value
        if not 0 < low <= high:
            raise MachineModelError(f"{where}: {value} is not a range of cycles")
        return (low, high)
    return value
