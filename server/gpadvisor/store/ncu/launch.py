# SPDX-License-Identifier: Apache-2.0
"""Device and launch configuration from the metrics of a launch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import Device, Launch, MetricValue
from gpadvisor.store.ncu.report import Result

_ATTRIBUTE: Final = "device__attribute_"
_CLOCKS: Final = (
    "sm__cycles_elapsed.avg.per_second",
    "smsp__cycles_elapsed.avg.per_second",
    "gpc__cycles_elapsed.avg.per_second",
    "gpc__cycles_elapsed.max.per_second",
)
MAX_WHOLE: Final = 1 << 53  # counts and sizes beyond it are no measurements
_DURATIONS: Final = (
    "gpu__time_duration.sum",
    "gpu__time_duration.avg",
    "gpu__time_duration_measured_user.sum",
)


def number(metrics: Mapping[str, MetricValue], name: str) -> float | None:
    """A finite scalar, or None; reports store integers as floats or as integers, by version."""
    value = metrics.get(name)
    if value is None or isinstance(value, str):
        return None
    return float(value) if math.isfinite(value) else None


def integer(metrics: Mapping[str, MetricValue], name: str) -> int | None:
    """A scalar that counts something."""
    value = number(metrics, name)
    return round(value) if value is not None and 0 <= value <= MAX_WHOLE else None


def read_device(
    metrics: Mapping[str, MetricValue],
    devices: Mapping[int, Mapping[str, MetricValue]],
    sm: tuple[int, int] | None,
) -> Device:
    """The GPU of a launch: from its own metrics, else from the session's devices, else from its module."""
    clock = next((value for key in _CLOCKS if (value := number(metrics, key))), None)
    session = devices.get(integer(metrics, "launch__device_id") or 0, {})
    metrics = {**session, **metrics}
    major = integer(metrics, _ATTRIBUTE + "compute_capability_major")
    minor = integer(metrics, _ATTRIBUTE + "compute_capability_minor")
    if major is None or minor is None:
        major, minor = sm or (0, 0)
    name = metrics.get(_ATTRIBUTE + "display_name")
    attribute_khz = number(metrics, _ATTRIBUTE + "clock_rate")
    if clock is None and attribute_khz:
        clock = attribute_khz * 1000

    def attribute(key: str) -> int | None:
        return integer(metrics, _ATTRIBUTE + key)

    return Device(
        name=name if isinstance(name, str) else None,
        arch=f"sm_{major}{minor}",
        sms=attribute("multiprocessor_count"),
        clock_hz=clock,
        max_warps_per_sm=attribute("max_warps_per_multiprocessor"),
        schedulers_per_sm=attribute("num_schedulers_per_multiprocessor"),
        registers_per_sm=attribute("max_registers_per_multiprocessor"),
        shared_bytes_per_sm=attribute("max_shared_memory_per_multiprocessor"),
        l2_bytes=attribute("l2_cache_size"),
    )


_UNNAMED: Final = "(unnamed)"
"""A range of launches or a graph that was profiled as one has no function."""


def _dimensions(metrics: Mapping[str, MetricValue], prefix: str) -> tuple[int, int, int] | None:
    x, y, z = (integer(metrics, f"{prefix}_{axis}") for axis in "xyz")
    return (x, y or 1, z or 1) if x else None


def _blocks(
    grid: tuple[int, int, int] | None, block: tuple[int, int, int] | None, metrics: Mapping[str, MetricValue]
) -> tuple[int, int, int] | None:
    """The grid in blocks; some older reports state it in threads beside a counter that has the blocks."""
    size = integer(metrics, "launch__grid_size")
    if not size or (grid is not None and math.prod(grid) == size):
        return grid
    if grid is not None and block is not None and all(block):
        x, y, z = (-(-many // threads) for many, threads in zip(grid, block, strict=True))
        if x * y * z == size:
            return (x, y, z)
    return (size, 1, 1)


def read_launch(
    index: int, result: Result, metrics: Mapping[str, MetricValue]
) -> tuple[Launch, tuple[Problem, ...]]:
    """Launch configuration, and a problem where a launch that was measured states no grid."""
    problems: list[Problem] = []
    block = result.block or _dimensions(metrics, "launch__block_dim")
    grid = _blocks(result.grid or _dimensions(metrics, "launch__grid_dim"), block, metrics)
    duration_metric = next((key for key in _DURATIONS if key in metrics), None)
    duration = None if duration_metric is None else number(metrics, duration_metric)
    measured = any(not name.startswith("device__") for name in metrics)
    failed = not measured or (duration_metric is not None and duration is None)
    if not failed and (grid is None or block is None):
        problems.append(
            Problem(
                ProblemCode.INCONSISTENT_REPORT,
                f"the report states no grid for launch {index} of {result.function}; one thread is assumed",
            )
        )
    launch = Launch(
        index=index,
        kernel=result.mangled,
        demangled=result.demangled or _UNNAMED,
        grid=grid or (1, 1, 1),
        block=block or (1, 1, 1),
        cluster=_dimensions(metrics, "launch__cluster_dim"),
        registers_per_thread=integer(metrics, "launch__registers_per_thread"),
        static_shared_bytes=integer(metrics, "launch__shared_mem_per_block_static"),
        dynamic_shared_bytes=integer(metrics, "launch__shared_mem_per_block_dynamic"),
        driver_shared_bytes=integer(metrics, "launch__shared_mem_per_block_driver"),
        carveout_shared_bytes=integer(metrics, "launch__shared_mem_config_size"),
        duration_ns=duration,
        context=result.context if result.context is not None else integer(metrics, "launch__context_id"),
        stream=result.stream if result.stream is not None else integer(metrics, "launch__stream_id"),
        failed=failed,
    )
    return launch, tuple(problems)
