# SPDX-License-Identifier: Apache-2.0
"""Which launches of a profile are analysed, each kernel's share of GPU time, and adding launches up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.advice.same_work import faster_launch
from gpadvisor.errors import ProfileMismatchError
from gpadvisor.model.advice import LaunchSummary
from gpadvisor.model.problem import Problem
from gpadvisor.model.profile import (
    EXTERNAL,
    Evidence,
    KernelProfile,
    Launch,
    MetricValue,
    PcCounts,
    PcMetric,
    PcSamples,
    Profile,
    Sampling,
    adds_up,
)
from gpadvisor.model.stalls import StallReason

_EVIDENCE_RANK: Final = {
    Evidence.MEASURED: 3,
    Evidence.MODELLED: 2,
    Evidence.COUNTED: 1,
    Evidence.STATIC: 0,
}
_MAX_REASONS: Final = 255  # what the reason column of the samples can number
KernelKey = tuple[str, str | None]
"""What makes launches belong to one kernel: mangled name and binary."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChosenLaunch:
    """One kernel's launch to analyse, or several of one configuration added up."""

    profile: KernelProfile
    merged_launches: int  # 1 for a single launch
    indices: tuple[int, ...]  # Launch.index of each
    time_share: float | None  # of its kernel, over all launches of the profile
    faster: Launch | None = None  # another that does the same work in less time


def chosen_launches(
    profile: Profile,
    *,
    wants: Callable[[Launch], bool] | None = None,
    launch: int | None = None,
    prefer: int | None = None,
    merge: bool = False,
) -> tuple[ChosenLaunch, ...]:
    """The launches to analyse: the longest of each kernel, kernels by their share of GPU time.

    A launch that failed, or has no samples where others of its kernel have some, comes after those. A kernel
    of which every launch failed is left out, unless nothing else is there or the launch is asked for.

    Args:
        profile: the whole report.
        wants: whether a launch's kernel was asked for; None for every kernel.
        launch: analyse this launch index and no other.
        prefer: of its kernel, analyse this launch index; of the other kernels their longest launch as ever.
        merge: add up all launches that have the configuration of the one chosen.
    """
    profiles = [entry for entry in profile.kernels if wants is None or wants(entry.launch)]
    if launch is not None:
        profiles = [entry for entry in profiles if entry.launch.index == launch]
    shares = time_shares(profile)
    groups: dict[KernelKey, list[KernelProfile]] = {}
    for entry in profiles:
        groups.setdefault(kernel_key(entry), []).append(entry)
    chosen = [
        _choose(_preferred(group, prefer), shares.get(key), merge=merge) for key, group in groups.items()
    ]
    measured = [entry for entry in chosen if not entry.profile.launch.failed or prefer in entry.indices]
    chosen = measured or chosen
    return tuple(sorted(chosen, key=lambda entry: (-(entry.time_share or 0.0), entry.indices)))


def launch_summaries(profile: Profile, chosen: Iterable[ChosenLaunch]) -> tuple[LaunchSummary, ...]:
    """Every launch of the profile, and whether it is part of what is analysed."""
    analysed = {index for entry in chosen for index in entry.indices}
    return tuple(
        LaunchSummary(launch=entry.launch, analysed=entry.launch.index in analysed)
        for entry in profile.kernels
    )


def kernel_key(entry: KernelProfile) -> KernelKey:
    """The kernel a launch belongs to."""
    return entry.launch.kernel, entry.binary


def time_shares(profile: Profile) -> Mapping[KernelKey, float]:
    """Each kernel's share of all kernel time; kernels without a duration are not in it."""
    times: dict[KernelKey, float] = {}
    for entry in profile.kernels:
        duration = entry.launch.duration_ns
        if duration is not None and duration > 0 and not entry.launch.failed:
            key = kernel_key(entry)
            times[key] = times.get(key, 0.0) + duration
    total = sum(times.values())
    return MappingProxyType({key: time / total for key, time in times.items()} if total else {})


def configuration(entry: KernelProfile) -> tuple[object, ...]:
    """What must be equal for two launches to be added up."""
    launch = entry.launch
    return (
        kernel_key(entry),
        launch.grid,
        launch.block,
        launch.cluster,
        launch.registers_per_thread,
        launch.static_shared_bytes,
        launch.dynamic_shared_bytes,
        entry.device.name,
        entry.device.arch,
        entry.sampling.interval_cycles,
        entry.evidence,
    )


def merge_launches(profiles: Sequence[KernelProfile]) -> KernelProfile:
    """Launches of one configuration as if they were one: samples, counts and times added.

    Percentages and rates become means weighted by time; everything about the launch is the longest one's.

    Raises:
        ProfileMismatchError: they have more stall reasons between them than one table holds.
    """
    if not profiles:
        raise ValueError("no launch to merge")
    if len({configuration(entry) for entry in profiles}) > 1:
        raise ValueError("launches of different configurations cannot be added up")
    longest = max(profiles, key=_rank)
    if len(profiles) == 1:
        return longest
    sections = tuple(dict.fromkeys(name for entry in profiles for name in entry.sections))
    reasons = tuple({reason.name: reason for entry in profiles for reason in entry.reasons}.values())
    if len(reasons) > _MAX_REASONS:
        raise ProfileMismatchError(
            f"launches of {longest.launch.demangled[:99]} have {len(reasons)} stall reasons between them and"
            f" up to {_MAX_REASONS} can be added up; look at one launch at a time, without --merge"
        )
    times = [entry.launch.duration_ns for entry in profiles]
    durations = [time for time in times if time is not None]
    return replace(
        longest,
        launch=replace(longest.launch, duration_ns=sum(durations) if len(durations) == len(times) else None),
        sections=sections,
        reasons=reasons,
        samples=_merged_samples(profiles, sections, reasons),
        counts=_merged_counts(profiles, sections),
        pc_metrics=_merged_pc_metrics(profiles, sections),
        metrics=_merged_metrics(profiles, longest),
        sampling=_merged_sampling(profiles),
        problems=_unique(problem for entry in profiles for problem in entry.problems),
    )


def _preferred(group: Sequence[KernelProfile], launch: int | None) -> Sequence[KernelProfile]:
    """The group with nothing but the launch preferred, where it is one of them."""
    return [entry for entry in group if entry.launch.index == launch] or group


def _choose(group: Sequence[KernelProfile], share: float | None, *, merge: bool) -> ChosenLaunch:
    if not merge:
        best = max(group, key=_rank)
        return ChosenLaunch(
            profile=best,
            merged_launches=1,
            indices=(best.launch.index,),
            time_share=share,
            faster=faster_launch(best, group),
        )
    alike: dict[tuple[object, ...], list[KernelProfile]] = {}
    for entry in group:
        alike.setdefault(configuration(entry), []).append(entry)
    heaviest = max(
        alike.values(),
        key=lambda members: (
            _rank(members[0])[:2],
            sum(member.launch.duration_ns or 0.0 for member in members),
        ),
    )
    return ChosenLaunch(
        profile=merge_launches(heaviest),
        merged_launches=len(heaviest),
        indices=tuple(entry.launch.index for entry in heaviest),
        time_share=share,
    )


def _rank(entry: KernelProfile) -> tuple[bool, int, float, int]:
    """Larger is better to analyse; the first of equals."""
    launch = entry.launch
    return not launch.failed, _EVIDENCE_RANK[entry.evidence], launch.duration_ns or 0.0, -launch.index


def _unique(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(dict.fromkeys(problems))


def _section_map(entry: KernelProfile, sections: Sequence[str]) -> NDArray[np.uint16]:
    """From this launch's section indices to the common ones; EXTERNAL stays itself."""
    table = np.full(EXTERNAL + 1, EXTERNAL, dtype=np.uint16)
    for index, name in enumerate(entry.sections):
        table[index] = sections.index(name)
    return table


def _sum_by_key(
    keys: tuple[NDArray[np.uint64], ...], values: tuple[NDArray[np.generic], ...]
) -> tuple[tuple[NDArray[np.uint64], ...], tuple[NDArray[np.generic], ...]]:
    """Rows with equal keys added up, in the order of their keys."""
    if not len(keys[0]):
        return keys, values
    order = np.lexsort(keys[::-1])
    sorted_keys = tuple(key[order] for key in keys)
    starts = np.flatnonzero(
        np.concatenate([[True], np.any([key[1:] != key[:-1] for key in sorted_keys], axis=0)])
    )
    return (
        tuple(key[starts] for key in sorted_keys),
        tuple(np.add.reduceat(value[order], starts) for value in values),
    )


def _merged_samples(
    profiles: Sequence[KernelProfile], sections: Sequence[str], reasons: Sequence[StallReason]
) -> PcSamples:
    position = {reason.name: index for index, reason in enumerate(reasons)}
    places, pcs, whys = [], [], []
    for entry in profiles:
        places.append(_section_map(entry, sections)[entry.samples.section])
        pcs.append(entry.samples.pc)
        renamed = np.array([position[reason.name] for reason in entry.reasons] or [0], dtype=np.uint8)
        whys.append(renamed[entry.samples.reason])
    keys = tuple(
        np.concatenate([part.astype(np.uint64) for part in column]) for column in (places, pcs, whys)
    )
    values = (
        np.concatenate([entry.samples.total for entry in profiles]),
        np.concatenate([entry.samples.latency for entry in profiles]),
    )
    (place, pc, why), (total, latency) = _sum_by_key(keys, values)
    return PcSamples(
        section=place.astype(np.uint16),
        pc=pc,
        reason=why.astype(np.uint8),
        total=total.astype(np.uint64),
        latency=latency.astype(np.uint64),
    )


def _merged_counts(profiles: Sequence[KernelProfile], sections: Sequence[str]) -> PcCounts | None:
    counts = [(entry, entry.counts) for entry in profiles if entry.counts is not None]
    if len(counts) < len(profiles):
        return None
    keys = (
        np.concatenate(
            [_section_map(entry, sections)[pc_counts.section] for entry, pc_counts in counts]
        ).astype(np.uint64),
        np.concatenate([column.pc for _, column in counts]),
    )
    values = (
        np.concatenate([column.warps for _, column in counts]),
        np.concatenate([column.threads for _, column in counts]),
    )
    (place, pc), (warps, threads) = _sum_by_key(keys, values)
    return PcCounts(
        section=place.astype(np.uint16),
        pc=pc,
        warps=warps.astype(np.uint64),
        threads=threads.astype(np.uint64),
    )


def _merged_pc_metrics(profiles: Sequence[KernelProfile], sections: Sequence[str]) -> Mapping[str, PcMetric]:
    merged: dict[str, PcMetric] = {}
    for name in dict.fromkeys(name for entry in profiles for name in entry.pc_metrics):
        with_metric = [(entry, entry.pc_metrics[name]) for entry in profiles if name in entry.pc_metrics]
        if len(with_metric) < len(profiles) or not adds_up(name):
            entry, metric = with_metric[0]
            place = _section_map(entry, sections)[metric.section]
            merged[name] = PcMetric(name=name, section=place, pc=metric.pc.copy(), value=metric.value.copy())
            continue
        keys = (
            np.concatenate(
                [_section_map(entry, sections)[pc_metric.section] for entry, pc_metric in with_metric]
            ).astype(np.uint64),
            np.concatenate([column.pc for _, column in with_metric]),
        )
        (place64, pc), (value,) = _sum_by_key(
            keys, (np.concatenate([column.value for _, column in with_metric]),)
        )
        merged[name] = PcMetric(
            name=name, section=place64.astype(np.uint16), pc=pc, value=value.astype(np.float64)
        )
    return MappingProxyType(merged)


def _merged_metrics(profiles: Sequence[KernelProfile], longest: KernelProfile) -> Mapping[str, MetricValue]:
    weights = [entry.launch.duration_ns or 0.0 for entry in profiles]
    if not sum(weights):
        weights = [1.0] * len(profiles)
    merged = dict(longest.metrics)
    for name in longest.metrics:
        if name.startswith(("launch__", "device__", "breakdown:", "group:")):
            continue
        values = [entry.metric(name) for entry in profiles]
        present = [value for value in values if value is not None]
        if len(present) < len(profiles):
            continue
        if name.endswith((".sum", "]")) or ("." not in name and adds_up(name)):
            merged[name] = sum(present)
        else:
            merged[name] = sum(v * w for v, w in zip(present, weights, strict=True)) / sum(weights)
    return MappingProxyType(merged)


def _merged_sampling(profiles: Sequence[KernelProfile]) -> Sampling:
    first = profiles[0].sampling
    dropped = [entry.sampling.dropped_samples for entry in profiles]
    expected = [entry.sampling.expected_samples for entry in profiles]
    truncated = [entry for entry in profiles if entry.sampling.truncated]
    return replace(
        first,
        dropped_samples=None if None in dropped else sum(value for value in dropped if value is not None),
        expected_samples=None if None in expected else sum(value for value in expected if value is not None),
        truncated=bool(truncated),
        truncation_evidence=truncated[0].sampling.truncation_evidence if truncated else None,
    )
