# SPDX-License-Identifier: Apache-2.0
"""PC samples of a launch: stall reasons as the report has them, latency samples, and what is missing.

``_not_issued`` metrics are GPA's latency samples: the scheduler issued nothing in that cycle (GPA
section II-A).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.figures import percentage
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import Sampling
from gpadvisor.model.stalls import KNOWN_REASONS, StallReason, stall_reason
from gpadvisor.store.ncu.metrics import Instances, Metric, decode_together

PREFIXES: Final = ("smsp__pcsamp_warps_issue_stalled_", "smsp__pcsamp_warp_stall_")
NOT_ISSUED: Final = "_not_issued"
SAMPLING_PREFIX: Final = "smsp__pcsamp_"

# The device writes records of 64 bytes with 7 samples each: of 32 MiB, full buffers held 3,669,964 to
# 3,670,008 samples where 3,670,016 fit.
_SAMPLES_PER_RECORD, _RECORD_BYTES = 7, 64
_DEFAULT_CAPACITY: Final = (32 << 20) // _RECORD_BYTES * _SAMPLES_PER_RECORD
_FULL: Final = 0.997
_FAR_BELOW: Final = 0.5
_ENOUGH_EXPECTED: Final = 1000
_MAX_COUNT: Final = 1 << 53
_MAX_REASONS: Final = 255
# The largest buffer holds 2^26; more than this is no measurement, and sums of it would overflow.
_MAX_SAMPLES: Final = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class RawSamples:
    """Samples by absolute address; one row per address and reason, no row without samples."""

    reasons: tuple[StallReason, ...]
    address: NDArray[np.uint64]
    reason: NDArray[np.uint8]
    total: NDArray[np.uint64]
    latency: NDArray[np.uint64]
    problems: tuple[Problem, ...]


def whole_numbers(
    values: NDArray[np.float64] | NDArray[np.uint64],
) -> tuple[NDArray[np.uint64], int]:
    """Counts as integers, which older reports store as floats, and how many of them are none (set to 0)."""
    if values.dtype == np.uint64:
        if not len(values) or int(values.max()) <= _MAX_COUNT:
            return values.astype(np.uint64), 0
        bad = values > np.uint64(_MAX_COUNT)
        return np.where(bad, np.uint64(0), values).astype(np.uint64), int(bad.sum())
    good = np.isfinite(values) & (values >= 0) & (values <= _MAX_COUNT)
    clean = np.where(good, values, 0.0)
    return np.rint(clean).astype(np.uint64), int((~good).sum())


def addressed(metric: Metric | None) -> tuple[NDArray[np.uint64], Instances] | None:
    """Addresses and instances of a metric whose instances are numbers by address; None for any other."""
    return _by_address(None if metric is None else metric.instances())


def _by_address(instances: Instances | None) -> tuple[NDArray[np.uint64], Instances] | None:
    if instances is None or isinstance(instances.ids, tuple) or isinstance(instances.values, tuple):
        return None
    return instances.ids, instances


def reason_metrics(metrics: Mapping[str, Metric]) -> dict[str, str]:
    """Stall reason -> metric of all its samples, in the order of the report."""
    result: dict[str, str] = {}
    for prefix in PREFIXES:
        for name, metric in metrics.items():
            if (
                name.startswith(prefix)
                and not name.endswith(NOT_ISSUED)
                and not isinstance(metric.value, str)
            ):
                result.setdefault(name.removeprefix(prefix), name)
    return result


def read_samples(metrics: Mapping[str, Metric]) -> RawSamples:
    """Gather the samples of all reasons and check what must hold between them."""
    by_reason = reason_metrics(metrics)
    problems: list[Problem] = []
    if len(by_reason) > _MAX_REASONS:
        problems.append(
            _inconsistent(f"{len(by_reason)} stall reasons, of which the first {_MAX_REASONS} are read")
        )
        by_reason = dict(list(by_reason.items())[:_MAX_REASONS])
    unknown = [name for name in by_reason if name not in KNOWN_REASONS]
    if unknown:
        problems.append(
            Problem(
                ProblemCode.UNKNOWN_STALL_REASON,
                f"stall reasons not known here are kept under their own names: {', '.join(unknown)}",
            )
        )
    columns: _Columns = []
    names = [name for total in by_reason.values() for name in (total, total + NOT_ISSUED)]
    instances = _instances([metrics[name] for name in names if name in metrics])
    for index, name in enumerate(by_reason.values()):
        total = _counted(metrics, instances, name, problems)
        latency = _counted(metrics, instances, name + NOT_ISSUED, problems)
        zeros = np.zeros(len(total[0]), np.uint64)
        behind = np.zeros(len(latency[0]), np.uint64)
        address = np.concatenate([total[0], latency[0]])
        columns.append(
            (
                address,
                np.full(len(address), index, np.uint8),
                np.concatenate([total[1], behind]),
                np.concatenate([zeros, latency[1]]),
            )
        )
    rows = _merge(_believable(columns, problems))
    reasons = tuple(stall_reason(name) for name in by_reason)
    latency_column = _check(rows, reasons, metrics, problems)
    return RawSamples(reasons, rows[0], rows[1], rows[2], latency_column, tuple(problems))


_Columns = list[tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.uint64], NDArray[np.uint64]]]


def _believable(columns: _Columns, problems: list[Problem]) -> _Columns:
    """The columns, or none of them where they add up to more samples than there can be."""
    if sum(float(part.sum(dtype=np.float64)) for column in columns for part in column[2:]) <= _MAX_SAMPLES:
        return columns
    problems.append(_inconsistent("its samples are more than any buffer holds, and all are left out"))
    return []


def _instances(metrics: Sequence[Metric]) -> dict[str, Instances]:
    """The instances of metrics that have any, by name."""
    encoded = {metric.name: metric.encoded for metric in metrics if metric.has_instances}
    return dict(zip(encoded, decode_together([*encoded.values()]), strict=True))


def _counted(
    metrics: Mapping[str, Metric], instances: Mapping[str, Instances], name: str, problems: list[Problem]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    metric = metrics.get(name)
    per_address = _by_address(instances.get(name))
    stated = None if metric is None or isinstance(metric.value, str) else metric.value
    if per_address is None:
        if metric is not None and metric.has_instances:
            problems.append(_inconsistent(f"{name} is not counted by address, so its samples are left out"))
        elif stated:
            problems.append(_inconsistent(f"{name} is {stated:.0f} but no address has any of them"))
        return np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    address, counted = per_address
    values, bad = whole_numbers(np.asarray(counted.values))
    if bad:
        problems.append(_inconsistent(f"{bad} values of {name} are no counts and were left out"))
    held = int(values.sum())
    if stated is not None and abs(held - stated) > 0.5:
        problems.append(_inconsistent(f"{name} is {stated:.0f} but its addresses add up to {held}"))
    return address, values


def _merge(
    columns: _Columns,
) -> tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.uint64], NDArray[np.uint64]]:
    """One row per address and reason, sorted by both, without empty rows."""
    if not columns:
        empty = np.zeros(0, np.uint64)
        return empty, np.zeros(0, np.uint8), empty.copy(), empty.copy()
    address = np.concatenate([column[0] for column in columns])
    reason = np.concatenate([column[1] for column in columns])
    total = np.concatenate([column[2] for column in columns])
    latency = np.concatenate([column[3] for column in columns])
    filled = (total > 0) | (latency > 0)
    address, reason, total, latency = address[filled], reason[filled], total[filled], latency[filled]
    order = np.lexsort((reason, address))
    address, reason, total, latency = address[order], reason[order], total[order], latency[order]
    if len(address) == 0:
        return address, reason, total, latency
    fresh = np.concatenate([[True], (address[1:] != address[:-1]) | (reason[1:] != reason[:-1])])
    indices = np.flatnonzero(fresh)
    return (
        address[indices],
        reason[indices],
        np.add.reduceat(total, indices),
        np.add.reduceat(latency, indices),
    )


def _check(
    rows: tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.uint64], NDArray[np.uint64]],
    reasons: tuple[StallReason, ...],
    metrics: Mapping[str, Metric],
    problems: list[Problem],
) -> NDArray[np.uint64]:
    """Latency samples, none of them beyond the samples they are part of; what was cut is said."""
    _, reason, total, latency = rows
    beyond = latency > total
    if beyond.any():
        surplus = int((latency[beyond] - total[beyond]).sum())
        names = sorted({reasons[int(index)].name for index in np.unique(reason[beyond])})
        problems.append(
            _inconsistent(
                f"{int(beyond.sum())} addresses have more latency samples than samples ({', '.join(names)});"
                f" {surplus} latency samples without a sample are not counted"
            )
        )
    count = metrics.get("smsp__pcsamp_sample_count")
    stated = None if count is None or isinstance(count.value, str) else count.value
    held = int(total.sum())
    if stated is not None and abs(held - stated) > 0.5:
        problems.append(
            _inconsistent(f"smsp__pcsamp_sample_count is {stated:.0f} but the stall reasons add up to {held}")
        )
    return np.minimum(latency, total)


def _inconsistent(message: str) -> Problem:
    return Problem(ProblemCode.INCONSISTENT_REPORT, f"the report contradicts itself: {message}")


def _number(metrics: Mapping[str, Metric], name: str) -> float | None:
    metric = metrics.get(name)
    value = None if metric is None else metric.value
    usable = value is not None and not isinstance(value, str) and 0 <= value <= _MAX_COUNT
    return float(value) if usable and value is not None else None


def read_sampling(
    metrics: Mapping[str, Metric], total: int, sms: int | None, buffer_bytes: int | None
) -> tuple[Sampling, tuple[Problem, ...]]:
    """How the samples were taken, and whether the buffer was too small for all of them."""
    interval = _interval_cycles(metrics)
    buffer = _number(metrics, "smsp__pcsamp_buffer_size_bytes") or buffer_bytes
    active = _number(metrics, "sm__cycles_active.avg")
    expected = sms * active / interval if sms and active and interval else None
    evidence = _truncation(metrics, total, buffer, expected)
    dropped = _dropped(metrics)
    sampling = Sampling(
        interval_cycles=interval,
        buffer_bytes=None if buffer is None else int(buffer),
        dropped_samples=dropped,
        truncated=evidence is not None,
        truncation_evidence=evidence,
        expected_samples=expected,
    )
    problems: list[Problem] = []
    if evidence is not None:
        problems.append(
            Problem(
                ProblemCode.TRUNCATED_SAMPLES,
                f"the samples cover only a part of the run: {evidence}; collect again with a larger"
                " --sampling-buffer-size or a longer --sampling-interval (--warp-sampling-... in newer ncu)",
            )
        )
    if dropped:
        problems.append(
            Problem(
                ProblemCode.DROPPED_SAMPLES, f"the profiler dropped about {dropped} samples of this launch"
            )
        )
    return sampling, tuple(problems)


def _interval_cycles(metrics: Mapping[str, Metric]) -> int | None:
    cycles = _number(metrics, "smsp__pcsamp_interval_cycles")
    if cycles is not None and cycles >= 1:
        return int(cycles)
    exponent = _number(metrics, "smsp__pcsamp_interval")
    return 32 << int(exponent) if exponent is not None and 0 <= exponent <= 31 else None


def _dropped(metrics: Mapping[str, Metric]) -> int | None:
    samples = _number(metrics, "smsp__pcsamp_samples_data_dropped")
    if samples is not None:
        return int(samples)
    bytes_dropped = _number(metrics, "smsp__pcsamp_dropped_bytes")
    return None if bytes_dropped is None else int(bytes_dropped * _SAMPLES_PER_RECORD // _RECORD_BYTES)


def _truncation(
    metrics: Mapping[str, Metric], total: int, buffer: float | None, expected: float | None
) -> str | None:
    if total == 0:
        return None
    signs: list[str] = []
    overflow = _number(metrics, "smsp__pcsamp_buffer_overflow")
    if overflow:
        signs.append("the report says that the buffer overflowed")
    capacity = 0.0 if buffer is None else buffer * _SAMPLES_PER_RECORD / _RECORD_BYTES
    if not capacity and _FULL * _DEFAULT_CAPACITY <= total <= _DEFAULT_CAPACITY:
        signs.append(f"{total} samples are what the default buffer of 32 MiB holds")
    if capacity and total >= _FULL * capacity:
        signs.append(f"{total} samples fill the buffer of {buffer:.0f} bytes, which holds {capacity:.0f}")
    if expected is not None and expected > _ENOUGH_EXPECTED and total < _FAR_BELOW * expected:
        share = 100 * total / expected
        signs.append(
            f"{total} samples are {percentage(share)} of the {expected:.0f} that one per SM and interval "
            "gives"
        )
    return "; ".join(signs) or None
