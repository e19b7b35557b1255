# SPDX-License-Identifier: Apache-2.0
"""A collection of the cupti collector as a ``Profile``, like any other.

In continuous mode samples belong to a kernel and not to a launch, so that all launches of a kernel are one
entry, with the configuration that took most of the time; how many configurations there were is in its
metrics.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.cubin import Cubin, demangle, read_cubin
from gpadvisor.errors import CubinError
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import (
    CONFIGURATION_SHARE,
    CONFIGURATIONS,
    LAUNCHES,
    Device,
    Evidence,
    KernelProfile,
    MetricValue,
    Profile,
    Sampling,
)
from gpadvisor.store.collection import files
from gpadvisor.store.collection.executions import SERIALIZED, ExecutionGroup, Grouping, GroupKey, group
from gpadvisor.store.collection.kernel_launch import configuration_problems, launch_of
from gpadvisor.store.collection.notes import check_sampled, why_no_samples
from gpadvisor.store.collection.picks import Picker, Picks, read_picks
from gpadvisor.store.collection.process import Process, SampleTotals, read_process
from gpadvisor.store.collection.samples import (
    CUPTI_COUNT,
    Placed,
    Rows,
    SamplePlace,
    own_reasons,
    place_samples,
    sampled_places,
)
from gpadvisor.store.collection.stacks import HostLines, call_stack, launch_paths
from gpadvisor.store.collection.unfinished import RERUN, collection_problems

_OUTER_NAMES: Final = 3


def read_collection(path: Path) -> Profile:
    """Read a collection directory, or one process's file of it.

    Raises:
        ProfileFormatError: it is nothing of the cupti collector, of another version, or a timeline.
    """
    digest = hashlib.sha256()
    processes: list[Process] = []
    for entry in files.process_files(path):
        data = files.read_bounded(entry)
        digest.update(hashlib.sha256(data).digest())
        processes.append(read_process(data))
    check_sampled(processes)
    binaries = dict(files.stored_cubins(path))
    digest.update(bytes.fromhex("".join(binaries)))
    picks = read_picks(path)
    if picks is not None:
        digest.update(repr((sorted(picks.kernels), picks.skip, picks.count)).encode())
    lines = files.host_lines(path)
    return build_profile(tuple(processes), binaries, digest.hexdigest(), lines, picks)


def build_profile(
    processes: Sequence[Process],
    binaries: Mapping[str, bytes],
    digest: str,
    lines: HostLines = MappingProxyType({}),
    picks: Picks | None = None,
) -> Profile:
    """The profile of all processes together."""
    problems: list[Problem] = []
    _inherit(processes)
    used = {module.sha256 for process in processes for module in process.modules}
    cubins: dict[str, Cubin] = {}
    for name in sorted(used & binaries.keys()):
        try:
            cubins[name] = read_cubin(binaries[name])
        except CubinError as error:
            problems.append(
                Problem(ProblemCode.NO_BINARY, f"a cubin of the collection cannot be read: {error}")
            )
    kernels: list[KernelProfile] = []
    executed: list[ExecutionGroup] = []
    picker = Picker(picks)
    for process in processes:
        builder = _Builder(process, cubins, lines, picker, len(kernels))
        kernels += builder.kernels()
        problems += builder.problems
        executed += builder.executed
    # Images of kernels that never ran are many in a library, and say nothing.
    needed = {kernel.binary for kernel in kernels}
    problems += collection_problems(processes, kernels)
    root = _root(processes)
    return Profile(
        sha256=digest,
        collector="cupti",
        collector_version=_version(root),
        command=root.command or None,
        host=root.host or None,
        created=_created(root.header.started_ns),
        kernels=tuple(kernels),
        binaries={name: data for name, data in binaries.items() if name in needed},
        problems=tuple(dict.fromkeys(problems)),
        launch_paths=tuple(launch_paths(executed, lines)),
    )


def _inherit(processes: Sequence[Process]) -> None:
    """What the child of a fork knows from before it: the modules, contexts and devices of its parent."""
    by_id = {process.header.process: process for process in processes}
    for process in processes:
        parent = by_id.get(process.header.parent)
        if process.forked and parent is not None and parent is not process:
            process.modules[:0] = parent.modules
            process.contexts = parent.contexts | process.contexts
            process.devices = parent.devices | process.devices


@dataclass(slots=True)
class _Builder:
    """Builds the kernels of one process."""

    process: Process
    cubins: Mapping[str, Cubin]
    lines: HostLines
    picker: Picker
    first_index: int
    problems: list[Problem] = field(default_factory=list)
    executed: list[ExecutionGroup] = field(default_factory=list)  # that were asked for

    def kernels(self) -> list[KernelProfile]:
        places = tuple(sampled_places(self.process))
        sampled = frozenset((place.binary, place.function) for place, _ in places if place.binary is not None)
        grouping = group(self.process, self.cubins, sampled, self.picker)
        rows = {key: Rows() for key in grouping.groups}
        self._assign(places, grouping, rows)
        self.executed += [executed for executed in grouping.groups.values() if executed.picked]
        picked = {(executed.key.kernel, executed.key.binary) for executed in self.executed}
        return [
            self._kernel(self.first_index + number, executed, rows[key])
            if executed.picked
            else self._not_picked(self.first_index + number, executed, picked)
            for number, (key, executed) in enumerate(grouping.groups.items())
        ]

    def _not_picked(
        self, index: int, executed: ExecutionGroup, picked: Collection[tuple[str, str | None]]
    ) -> KernelProfile:
        """A kernel, or launches of one, that nobody asked for: what it took, so that shares stay true."""
        bare = self._kernel(index, executed, Rows())
        same = (executed.key.kernel, executed.key.binary) in picked
        name = bare.launch.demangled
        problem = Problem(
            ProblemCode.NOT_PICKED,
            f"{executed.launches} launches of {name} were not asked for: only their time is kept",
        )
        return replace(bare, binary=executed.key.binary if same else None, call_stack=(), problems=(problem,))

    def _assign(
        self,
        places: Sequence[tuple[SamplePlace, NDArray[np.void]]],
        grouping: Grouping,
        rows: Mapping[GroupKey, Rows],
    ) -> None:
        """Give each slice of samples to the group it belongs to."""
        homeless: dict[str, int] = {}
        for place, part in places:
            owner = self._owner(place, grouping)
            if owner is not None and not owner.picked:
                continue
            if owner is None:
                name = place.function or "a function without a name"
                homeless[name] = homeless.get(name, 0) + int(
                    part["samples"][self._samples(place, part)].sum()
                )
            else:
                rows[owner.key].add(place, part)
        if homeless:
            names = ", ".join(demangle(name) for name in list(homeless)[:_OUTER_NAMES])
            self.problems.append(
                Problem(
                    ProblemCode.EXTERNAL_SAMPLES,
                    f"{sum(homeless.values())} samples belong to no launch that was seen or to a function"
                    f" that several kernels share ({names}), and are left out;"
                    " serialized mode tells them apart",
                )
            )

    def _samples(self, place: SamplePlace, rows: NDArray[np.void]) -> NDArray[np.bool_]:
        """Which rows count samples, and not those of them in which nothing was issued."""
        reasons = own_reasons(self.process)[1].get(place.context, {})
        counts = [index for index, (_, waiting) in reasons.items() if waiting]
        counts += [index for index, (number, _) in reasons.items() if number == CUPTI_COUNT]
        return np.isin(rows["reason"], counts, invert=True)

    def _owner(self, place: SamplePlace, grouping: Grouping) -> ExecutionGroup | None:
        if self.process.mode == SERIALIZED:
            entries = grouping.by_correlation.get(place.correlation, [])
            same = [entry for entry in entries if entry.key.kernel == place.function]
            return same[0] if same else entries[0] if len(entries) == 1 else None
        context = self.process.contexts.get(place.context)
        device = 0 if context is None else context.device
        for binary in (place.binary, None):
            result = grouping.by_kernel.get((device, place.function, binary))
            if result is not None:
                return result
        # A function that a kernel calls: the kernel is known where it is the only one of its image that ran.
        callers = [
            entry
            for (where, _, binary), entry in grouping.by_kernel.items()
            if where == device and binary is not None and binary == place.binary
        ]
        return callers[0] if len(callers) == 1 else None

    def _kernel(self, index: int, executed: ExecutionGroup, rows: Rows) -> KernelProfile:
        kernel, binary = executed.key.kernel, executed.key.binary
        cubin = None if binary is None else self.cubins.get(binary)
        reasons, meaning = own_reasons(self.process)
        placed = place_samples(kernel, rows, cubin, meaning)
        evidence = Evidence.MEASURED if len(placed.samples.total) else Evidence.STATIC
        totals = self.process.totals.get(executed.context, SampleTotals())
        _, share = executed.main_configuration()
        metrics: dict[str, MetricValue] = {
            LAUNCHES: executed.launches,
            CONFIGURATIONS: len(executed.configurations),
            CONFIGURATION_SHARE: share,
        }
        return KernelProfile(
            launch=launch_of(index, executed, cubin),
            device=self._device(executed.key.device, cubin),
            evidence=evidence,
            binary=binary,
            sections=placed.sections,
            reasons=reasons,
            samples=placed.samples,
            counts=None,
            pc_metrics={},
            metrics=metrics,
            sampling=self._sampling(executed.context, totals),
            rules=(),
            call_stack=call_stack(self.process, executed.main_path(), self.lines),
            problems=(
                *self._problems(executed, placed, evidence, totals),
                *configuration_problems(executed, share),
            ),
        )

    def _device(self, index: int, cubin: Cubin | None) -> Device:
        row = self.process.devices.get(index)
        text = cubin.arch if cubin is not None else None
        if row is None:
            return Device(
                name=None,
                arch=text or "sm_0",
                sms=None,
                clock_hz=None,
                max_warps_per_sm=None,
                schedulers_per_sm=None,
                registers_per_sm=None,
                shared_bytes_per_sm=None,
                l2_bytes=None,
            )
        warp = row.warp_size or 32
        return Device(
            name=row.name or None,
            arch=f"sm_{row.major}{row.minor}" if row.major else text or "sm_0",
            sms=row.sms or None,
            clock_hz=row.clock_khz * 1e3 or None,
            max_warps_per_sm=row.max_threads_per_sm // warp or None,
            schedulers_per_sm=None,
            registers_per_sm=row.registers_per_sm or None,
            shared_bytes_per_sm=row.shared_bytes_per_sm or None,
            l2_bytes=row.l2_bytes or None,
        )

    def _sampling(self, context: int, totals: SampleTotals) -> Sampling:
        row = self.process.contexts.get(context)
        period = row.period if row is not None else 0
        alone = len(self.process.contexts) == 1
        full = f"the hardware buffer was found full {totals.full} times" if totals.full else None
        return Sampling(
            interval_cycles=1 << period if 0 < period < 32 else None,
            buffer_bytes=row.buffer_bytes or None if row is not None else None,
            dropped_samples=totals.dropped if alone or totals.dropped == 0 else None,
            truncated=full is not None,
            truncation_evidence=full,
            expected_samples=None,
        )

    def _problems(
        self, executed: ExecutionGroup, placed: Placed, evidence: Evidence, totals: SampleTotals
    ) -> tuple[Problem, ...]:
        name = demangle(executed.key.kernel)
        problems: list[Problem] = []
        if evidence is Evidence.STATIC:
            why = why_no_samples(self.process) or (
                "CUPTI delivered none: it ran too briefly for the period, or the process ended at once"
            )
            problems.append(
                Problem(ProblemCode.NO_SAMPLES, f"the collection has no PC samples of {name}: {why}")
            )
        if executed.key.binary is None:
            problems.append(Problem(ProblemCode.NO_BINARY, self._no_binary(name)))
        if totals.dropped:
            problems.append(
                Problem(
                    ProblemCode.DROPPED_SAMPLES,
                    f"the GPU dropped {totals.dropped} samples of all kernels of this context together",
                )
            )
        if totals.full:
            problems.append(
                Problem(
                    ProblemCode.TRUNCATED_SAMPLES,
                    "the samples cover only a part of the run: the hardware buffer was full"
                    f" {totals.full} times; {RERUN} with a larger buffer or a longer period",
                )
            )
        if placed.lost or placed.beyond:
            problems.append(
                Problem(
                    ProblemCode.INCONSISTENT_REPORT,
                    f"{placed.lost} samples of {name} have a reason or function that nobody named, and"
                    f" {placed.beyond} latency samples have no sample; they are not counted",
                )
            )
        return tuple(problems)

    def _no_binary(self, name: str) -> str:
        if self.process.late:
            return (
                f"the machine code of {name} was loaded before the collection began and is unseen;"
                " begin before CUDA is used"
            )
        return f"the collection holds no machine code of {name}; {RERUN}"


def _root(processes: Sequence[Process]) -> Process:
    """The process that the others come from: the oldest whose parent is none of them."""
    pids = {process.header.process for process in processes}
    return next((process for process in processes if process.header.parent not in pids), processes[0])


def _version(process: Process) -> str | None:
    version = process.cupti_version
    if not version:
        return None
    if version < 100_000:
        return f"CUPTI API {version}"
    return f"CUPTI {version // 10_000}.{version // 100 % 100}.{version % 100}"


def _created(nanoseconds: int) -> str | None:
    seconds = nanoseconds // 1_000_000_000
    if not 0 < seconds < 1 << 34:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat()
