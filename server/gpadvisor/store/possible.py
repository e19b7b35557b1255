# SPDX-License-Identifier: Apache-2.0
"""Numbers of a foreign profile that no run can have: they are named and not used.

What divides or multiplies them later would overflow, or ask for as much memory as they say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, TypeVar

import numpy as np

from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import Device, KernelProfile, Launch, MetricValue, PcMetric, Sampling

_REAL: Final = (1e-20, 1e20)
"""Of a counter, a rate, a ratio; more than 64 bits hold, less than one in as many."""
_COUNT: Final = (1, 1 << 16)
_SIZE: Final = (0, 1 << 40)
_INDEX: Final = (0, (1 << 64) - 1)
T = TypeVar("T", Launch, Device, Sampling)
_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "sms": _COUNT,
    "max_warps_per_sm": _COUNT,
    "schedulers_per_sm": _COUNT,
    "registers_per_sm": (1, 1 << 40),
    "shared_bytes_per_sm": _SIZE,
    "l2_bytes": _SIZE,
    "clock_hz": (1e3, 1e12),
    "registers_per_thread": (0, 1 << 10),
    "static_shared_bytes": _SIZE,
    "dynamic_shared_bytes": _SIZE,
    "driver_shared_bytes": _SIZE,
    "carveout_shared_bytes": _SIZE,
    "duration_ns": (0, 1e18),  # 30 years
    "context": _INDEX,
    "stream": _INDEX,
    "interval_cycles": (1, 1 << 40),
    "buffer_bytes": _INDEX,
    "dropped_samples": _INDEX,
    "expected_samples": _REAL,
}
_GRID: Final = (1 << 31) - 1  # blocks in a direction (CUDA's guide, table of compute capabilities)
_BLOCK: Final = 1 << 10  # threads
_ONE: Final = (1, 1, 1)
_NAMED: Final = 3


def possible(kernel: KernelProfile) -> KernelProfile:
    """The kernel without such numbers, and with a problem that names them.

    A number that may be absent is; a scalar metric becomes NaN, one of an instruction 0, a grid one block.
    """
    counters: list[str] = []
    impossible: list[str] = []
    metrics = _scalars(kernel.metrics, counters)
    by_instruction = {name: _column(metric, counters) for name, metric in kernel.pc_metrics.items()}
    launch = _dimensions(_known(kernel.launch, impossible), impossible)
    device, sampling = _known(kernel.device, impossible), _known(kernel.sampling, impossible)
    problems = kernel.problems + _told(impossible, ProblemCode.INCONSISTENT_REPORT)
    problems += _told(counters, ProblemCode.IMPOSSIBLE_COUNTER)
    return replace(
        kernel,
        metrics=metrics,
        pc_metrics=by_instruction,
        launch=launch,
        device=device,
        sampling=sampling,
        problems=problems,
    )


def _told(impossible: Sequence[str], code: ProblemCode) -> tuple[Problem, ...]:
    if not impossible:
        return ()
    more = f" and {len(impossible) - _NAMED} more" if len(impossible) > _NAMED else ""
    message = f"numbers that no run can have are not used: {', '.join(impossible[:_NAMED])}{more}"
    return (Problem(code, message),)


def _scalars(metrics: Mapping[str, MetricValue], impossible: list[str]) -> Mapping[str, MetricValue]:
    """A quotient by zero is infinite, and not measured like what tools write as NaN."""
    wrong = {
        name: value
        for name, value in metrics.items()
        if not isinstance(value, str) and value and not _inside(value, *_REAL)
    }
    impossible += [name for name, value in wrong.items() if abs(value) < math.inf]
    return {**metrics, **dict.fromkeys(wrong, math.nan)}


def _column(metric: PcMetric, impossible: list[str]) -> PcMetric:
    value = metric.value
    wrong = ~np.isnan(value) & (value != 0) & ~((value >= _REAL[0]) & (value <= _REAL[1]))
    if not wrong.any():
        return metric
    impossible.append(metric.name)
    return replace(metric, value=np.where(wrong, 0.0, value))


def _known(value: T, impossible: list[str]) -> T:
    wrong = [
        item.name
        for item in fields(value)
        if item.name in _RANGES and not _inside(getattr(value, item.name), *_RANGES[item.name])
    ]
    impossible += wrong
    nothing: dict[str, Any] = dict.fromkeys(wrong)
    return replace(value, **nothing) if wrong else value


def _inside(value: float | None, low: float, high: float) -> bool:
    return value is None or low <= value <= high


def _dimensions(launch: Launch, impossible: list[str]) -> Launch:
    result: dict[str, Any] = {}
    if not all(1 <= size <= _GRID for size in launch.grid):
        result["grid"] = _ONE
    if not all(size >= 1 for size in launch.block) or launch.threads_per_block > _BLOCK:
        result["block"] = _ONE
    if launch.cluster is not None and not all(0 <= size <= _COUNT[1] for size in launch.cluster):
        result["cluster"] = None
    impossible += result
    return replace(launch, **result) if result else launch
