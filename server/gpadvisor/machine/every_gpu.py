# SPDX-License-Identifier: Apache-2.0
"""What is taken for granted about every GPU, whatever its architecture."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources

from gpadvisor.errors import MachineModelError
from gpadvisor.machine.schema import STATUSES


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryGpu:
    """Bounds and rates that no table of an architecture has."""

    launch_ns: float  # what a launch takes, whatever the kernel does
    launch_gap_ns: float  # of a launch's duration, in which no SM holds a warp
    l1_sectors_per_cycle: float  # that an SM's L1 takes from L2 at its peak
    least_dram_bytes_per_ns: float  # any GPU's DRAM moves more
    blocks_per_cycle: float  # of an SM, that all SMs together are handed at most


@cache
def every_gpu() -> EveryGpu:
    """The table; each of its values names its source."""
    file = resources.files("gpadvisor.machine").joinpath("data", "every_gpu.toml")
    return read_every_gpu(file.read_text(encoding="utf-8"))


def read_every_gpu(text: str) -> EveryGpu:
    """Parse the table.

    Raises:
        MachineModelError: a value is missing, unknown or without its source.
    """
    document = tomllib.loads(text)
    for key, source in document["sources"].items():
        if source["status"] not in STATUSES:
            raise MachineModelError(
                f"every_gpu.toml: sources.{key} has the unknown status {source['status']!r}"
            )
    rows = document["values"]
    if odd := {field.name for field in fields(EveryGpu)} ^ rows.keys():
        raise MachineModelError(f"every_gpu.toml: {min(odd)} is missing or not known")
    for key, row in rows.items():
        if row["source"] not in document["sources"]:
            raise MachineModelError(
                f"every_gpu.toml: {key} names the source {row['source']!r}, which is not known"
            )
    return EveryGpu(**{key: float(row["value"]) for key, row in rows.items()})
