# SPDX-License-Identifier: Apache-2.0
"""A database as a Profile: samples by instruction, the host's way to each kernel, its launches' numbers.

Values are sums of samples times their period; one sample is the period, or what all values are multiples of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from gpadvisor.cubin import demangle
from gpadvisor.errors import ProfileFormatError
from gpadvisor.model.figures import percent
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import (
    CONFIGURATION_SHARE,
    CONFIGURATIONS,
    EXTERNAL,
    LAUNCHES,
    Device,
    Evidence,
    KernelProfile,
    Launch,
    MetricValue,
    PcSamples,
    Profile,
    Sampling,
)
from gpadvisor.model.stalls import StallReason
from gpadvisor.store.hpctoolkit.binaries import GpuBinary, is_gpu_module, read_binaries
from gpadvisor.store.hpctoolkit.database import EXECUTION, POINT, Database, read_database
from gpadvisor.store.hpctoolkit.kernels import (
    KernelContexts,
    LaunchNumbers,
    call_stack,
    kernel_contexts,
    launch_numbers,
)
from gpadvisor.store.hpctoolkit.reasons import COUNTERS, NOT_RECORDED, reason_of
from gpadvisor.store.parts import MAX_SAMPLES
from gpadvisor.store.paths import DATABASE_FILES

_PERIODS: Final = "GSAMP:PER (cyc)"
_DROPPED: Final = "GSAMP:DRP"
_RANK: Final = "RANK"
_TIME: Final = ("GKER (sec)", "GKER (s)")
_PART: Final = 1e-3
"""Of a sample: parts of it that were divided among callers add up to this."""


def read_profile(folder: Path, gpubins: Path) -> Profile:
    """The kernels of a database.

    Args:
        folder: the database.
        gpubins: folder of the GPU binaries, or of the measurements.

    Raises:
        ProfileFormatError: the database is damaged, or its binaries are not there.
    """
    database = read_database(folder)
    modules = dict.fromkeys(filter(is_gpu_module, _modules(database)))
    binaries, unused = read_binaries(gpubins, modules) if modules else ({}, {})

    def section_of(module: str, offset: int) -> str | None:
        place = binaries[module].place(offset) if module in binaries else None
        return None if place is None else place[0]

    kernels = kernel_contexts(database, section_of)
    usable = [kernel for kernel in kernels if kernel.module not in unused]
    counter = _Counter.of(database, usable)
    profiles = tuple(
        _kernel(index, kernel, database, binaries.get(kernel.module), counter)
        for index, kernel in enumerate(usable)
    )
    return Profile(
        sha256=_digest(folder),
        collector="hpctoolkit",
        collector_version=None,
        command=database.meta.title or None,
        host=None,
        created=None,
        kernels=profiles,
        binaries={binary.cubin.sha256: binary.data for binary in binaries.values()},
        problems=(
            *_left_out(kernels, unused),
            *([] if unused else _homeless(database, profiles, counter)),
            *_ranks(database),
        ),
    )


def _modules(database: Database) -> Iterator[str]:
    for context in database.meta.contexts.values():
        yield context.module
        if context.function is not None:
            yield context.function.module


@dataclass(frozen=True, slots=True)
class _Counter:
    """The metrics that count samples."""

    total: str
    reasons: Mapping[str, StallReason]  # by metric
    period: int

    @classmethod
    def of(cls, database: Database, kernels: Sequence[KernelContexts]) -> _Counter | None:
        """None where nothing was sampled."""
        for total, prefix in COUNTERS:
            reasons = {
                name: reason
                for name in sorted(database.metric_names)
                if (reason := reason_of(name, prefix)) is not None
            }
            if total in database.metric_names and reasons:
                return cls(total, reasons, _period(database, kernels, (total, *reasons)))
        return None


def _period(database: Database, kernels: Sequence[KernelContexts], metrics: Sequence[str]) -> int:
    """What one sample counts as: the period that was recorded, if all values are multiples of it."""
    by_metric = [database.by_context(name, POINT) for name in metrics]
    sums = [kernel.by_instruction(values).values() for kernel in kernels for values in by_metric]
    values = np.array([value for some in sums for value in some], np.float64)
    if (values > MAX_SAMPLES).any() or (np.abs(values - np.rint(values)) > _PART).any():
        raise ProfileFormatError(f"{database.path} has numbers of samples that are none")
    rounded = np.rint(values).astype(np.int64)
    recorded = database.least(_PERIODS, POINT) or 0.0
    if 1 <= recorded <= MAX_SAMPLES and recorded == int(recorded) and not (rounded % int(recorded)).any():
        return int(recorded)
    return int(np.gcd.reduce(rounded)) or 1 if len(rounded) else 1


def _kernel(
    index: int,
    contexts: KernelContexts,
    database: Database,
    binary: GpuBinary | None,
    counter: _Counter | None,
) -> KernelProfile:
    place = binary.place(contexts.offset) if binary is not None else None
    name = place[0] if place is not None else contexts.name or f"{contexts.module}+{contexts.offset:#x}"
    sections = {name: 0} if place is not None else {}
    numbers = launch_numbers(database, contexts)
    reasons, samples = _samples(contexts, database, binary, counter, sections)
    evidence = Evidence.MEASURED if len(samples.total) else Evidence.STATIC
    metrics: dict[str, MetricValue] = {
        LAUNCHES: max(1, numbers.launches),
        CONFIGURATIONS: 2 if numbers.varied else 1,
        CONFIGURATION_SHARE: 0.0 if numbers.varied else 1.0,
    }
    return KernelProfile(
        launch=_launch(index, name, numbers),
        device=_device(binary),
        evidence=evidence,
        binary=None if binary is None else binary.cubin.sha256,
        sections=tuple(sections),
        reasons=reasons,
        samples=samples,
        counts=None,
        pc_metrics={},
        metrics=metrics,
        sampling=_sampling(contexts, database, counter),
        rules=(),
        call_stack=call_stack(database, contexts, database.first(_TIME)),
        problems=_problems(demangle(name), contexts, database, counter, numbers, samples),
    )


def _samples(
    contexts: KernelContexts,
    database: Database,
    binary: GpuBinary | None,
    counter: _Counter | None,
    sections: dict[str, int],
) -> tuple[tuple[StallReason, ...], PcSamples]:
    """Latency samples by place and reason, and the others under no reason."""
    rows: dict[tuple[int, int, int], int] = {}
    reasons: tuple[StallReason, ...] = ()
    if counter is not None:
        reasons = (*counter.reasons.values(), NOT_RECORDED)
        by_reason = [
            contexts.by_instruction(database.by_context(metric, POINT)) for metric in counter.reasons
        ]
        totals = contexts.by_instruction(database.by_context(counter.total, POINT))
        for (module, offset), total in totals.items():
            place = binary.place(offset) if binary and module == contexts.module else None
            section = EXTERNAL if place is None else sections.setdefault(place[0], len(sections))
            pc = offset if place is None else place[1]
            remaining = round(total / counter.period)
            for reason, latency in enumerate(by_reason):
                count = min(remaining, round(latency.get((module, offset), 0.0) / counter.period))
                remaining -= count
                _add(rows, (section, pc, reason), count)
            _add(rows, (section, pc, len(by_reason)), remaining)
    table = np.array([(*key, rows[key]) for key in sorted(rows)], np.uint64).reshape(-1, 4)
    recorded = table[:, 2] < np.uint64(max(0, len(reasons) - 1))
    return reasons, PcSamples(
        section=table[:, 0].astype(np.uint16),
        pc=table[:, 1].copy(),
        reason=table[:, 2].astype(np.uint8),
        total=table[:, 3].copy(),
        latency=np.where(recorded, table[:, 3], np.uint64(0)),
    )


def _add(rows: dict[tuple[int, int, int], int], key: tuple[int, int, int], count: int) -> None:
    if count:
        rows[key] = rows.get(key, 0) + count


def _launch(index: int, kernel: str, numbers: LaunchNumbers) -> Launch:
    return Launch(
        index=index,
        kernel=kernel,
        demangled=demangle(kernel),
        grid=(numbers.blocks or 1, 1, 1),
        block=(numbers.threads or 1, 1, 1),
        cluster=None,
        registers_per_thread=numbers.registers,
        static_shared_bytes=numbers.static_shared,
        dynamic_shared_bytes=numbers.dynamic_shared,
        driver_shared_bytes=None,
        carveout_shared_bytes=None,
        duration_ns=numbers.duration_ns,
        context=None,
        stream=None,
        failed=False,
    )


def _device(binary: GpuBinary | None) -> Device:
    return Device(
        name=None,
        arch="sm_0" if binary is None else binary.cubin.arch,
        sms=None,
        clock_hz=None,
        max_warps_per_sm=None,
        schedulers_per_sm=None,
        registers_per_sm=None,
        shared_bytes_per_sm=None,
        l2_bytes=None,
    )


def _sampling(contexts: KernelContexts, database: Database, counter: _Counter | None) -> Sampling:
    dropped = database.by_context(_DROPPED, EXECUTION)
    parents = {context.parent for context in contexts.launches}
    lost = round(sum(dropped.get(parent or 0, 0.0) for parent in parents)) if dropped else None
    return Sampling(
        interval_cycles=None if counter is None else counter.period,
        buffer_bytes=None,
        dropped_samples=lost,
        truncated=False,
        truncation_evidence=None,
        expected_samples=None,
    )


def _problems(
    name: str,
    contexts: KernelContexts,
    database: Database,
    counter: _Counter | None,
    numbers: LaunchNumbers,
    samples: PcSamples,
) -> tuple[Problem, ...]:
    problems: list[Problem] = []
    total = contexts.sum(database.by_context(counter.total, EXECUTION)) if counter is not None else 0.0
    by_line, held = round(total / counter.period) if counter is not None else 0, int(samples.total.sum())
    if not held:
        why = (
            f"it has {by_line:,} of them by line and not by instruction, as older versions of hpcprof wrote"
            " them: run a newer one, or give it no structure files"
            if by_line
            else "measure with hpcrun -e gpu=nvidia,pc"
        )
        problems.append(Problem(ProblemCode.NO_SAMPLES, f"the database has no PC samples of {name}: {why}"))
    if held:
        share = 1 - int(samples.latency.sum()) / held
        problems.append(
            Problem(
                ProblemCode.COLLECTION_LIMITED,
                f"{percent(share, 0)} of the samples, taken while the scheduler issued, have no stall reason"
                " in HPCToolkit's databases: what a change gains is estimated low",
            )
        )
    outside = int(samples.total[samples.section == EXTERNAL].sum())
    if outside:
        problems.append(
            Problem(ProblemCode.EXTERNAL_SAMPLES, f"{outside} samples of {name} lie in code of no binary")
        )
    if numbers.blocks is None or numbers.threads is None:
        problems.append(
            Problem(
                ProblemCode.COLLECTION_LIMITED,
                f"the database has no blocks and threads of {name}: nothing is right that depends on them",
            )
        )
    else:
        problems.append(
            Problem(
                ProblemCode.MIXED_CONFIGURATIONS if numbers.varied else ProblemCode.COLLECTION_LIMITED,
                f"the database has how many blocks and threads launches of {name} have"
                f"{' on average' if numbers.varied else ''}, and not the shape of grid and block",
            )
        )
    return tuple(problems)


def _left_out(kernels: Sequence[KernelContexts], unused: Mapping[str, str]) -> list[Problem]:
    """Why kernels are not in the profile, or that there are none."""
    if not kernels:
        message = "the database has no kernel of a GPU; 'gpadvisor tree DATABASE' shows its contexts"
        return [Problem(ProblemCode.NO_SAMPLES, message)]
    problems: list[Problem] = []
    for module, why in unused.items():
        names = dict.fromkeys(demangle(kernel.name) for kernel in kernels if kernel.module == module)
        message = (
            f"{', '.join(list(names)[:3])}{' and others' if len(names) > 3 else ''} left out: {why};"
            " 'gpadvisor tree DATABASE' shows times and contexts"
        )
        problems.append(Problem(ProblemCode.NO_BINARY, message))
    return problems


def _homeless(
    database: Database, kernels: Sequence[KernelProfile], counter: _Counter | None
) -> list[Problem]:
    """Samples that are counted and belong to no instruction of a kernel."""
    if counter is None or not any(kernel.total_samples for kernel in kernels):
        return []
    counted = round(sum(database.by_context(counter.total, POINT).values()) / counter.period)
    lost = counted - sum(kernel.total_samples for kernel in kernels)
    message = f"{lost:,} of {counted:,} samples belong to no kernel that the database names, and are left out"
    return [Problem(ProblemCode.EXTERNAL_SAMPLES, message)] if lost > 0 else []


def _ranks(database: Database) -> list[Problem]:
    if _RANK not in database.meta.identifiers:
        return []
    kind = database.meta.identifiers.index(_RANK)
    ranks = {number[kind] for number in database.profiles.identifiers.values() if kind in number}
    message = f"times and samples are the sum over {len(ranks)} ranks"
    return [Problem(ProblemCode.SUM_OVER_RANKS, message)] if len(ranks) > 1 else []


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in DATABASE_FILES:
        digest.update(hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()
