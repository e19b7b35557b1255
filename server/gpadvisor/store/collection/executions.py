# SPDX-License-Identifier: Apache-2.0
"""Executions of kernels: activity records joined with the calls that launched them, then grouped by kernel.

In serialized mode a group is one launch, since samples carry its correlation id. In continuous mode it is a
kernel, since they do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from gpadvisor.cubin import Cubin
from gpadvisor.store.collection.bulk import KernelRow
from gpadvisor.store.collection.layout import Stage
from gpadvisor.store.collection.picks import Picker
from gpadvisor.store.collection.process import LaunchRow, Process

GRAPH: Final = 3
_NOT_PICKED: Final = "not picked"
_TIMES: Final = frozenset({Stage.TIMES, Stage.DROPPED})  # reports of executions are not complete
SERIALIZED: Final = 2
MAX_LAUNCHES: Final = 4000
"""Beyond these, launches of one configuration from one place are added up."""


class Configuration(NamedTuple):
    """What a launch asks for."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] | None
    registers: int | None
    static_shared: int | None
    dynamic_shared: int
    shared_executed: int | None


class Execution(NamedTuple):
    """One kernel that ran, or was launched and never reported as done."""

    name: int  # id
    device: int
    context: int
    stream: int | None
    configuration: Configuration
    duration_ns: float | None
    path: int
    correlations: tuple[int, ...]
    from_graph: bool


class GroupKey(NamedTuple):
    """What makes executions one group."""

    device: int
    kernel: str
    binary: str | None
    rest: tuple[object, ...]  # what tells launches of one kernel apart in serialized mode


@dataclass(slots=True, eq=False)
class ExecutionGroup:
    """Executions that share their samples."""

    process: Process
    key: GroupKey
    launches: int = 0
    timed: int = 0
    total_ns: float = 0.0
    configurations: dict[Configuration, list[float]] = field(default_factory=dict)  # launches, time
    paths: dict[int, list[float]] = field(default_factory=dict)  # launches, time
    context: int = 0
    stream: int | None = None
    graphs: int = 0
    ambiguous: bool = False  # several loaded images have a kernel of this name
    picked: bool = True  # False: not asked for

    @property
    def duration_ns(self) -> float | None:
        """Time of all executions together; None unless all of them were timed."""
        return self.total_ns if self.timed == self.launches else None

    def main_path(self) -> int:
        """The path of most launches."""
        return max(self.paths, key=lambda path: self.paths[path][0])

    def main_configuration(self) -> tuple[Configuration, float]:
        """The configuration with the most time, else the most launches, and its share."""
        index = 1 if self.total_ns > 0 and self.timed == self.launches else 0
        best = max(self.configurations, key=lambda configuration: self.configurations[configuration][index])
        total = sum(weights[index] for weights in self.configurations.values())
        return best, self.configurations[best][index] / total if total else 1.0


def executions(process: Process) -> Iterator[Execution]:
    """What ran in a process, in the order of reporting; failed launches are no executions."""
    launches: dict[int, LaunchRow] = {}
    for launch in process.launches:
        launches[launch.correlation] = launch
        if launch.outer:
            launches.setdefault(launch.outer, launch)
    reported: set[int] = set()
    for kernel in process.kernels:
        launched_by = launches.get(kernel.correlation)
        if launched_by is not None:
            reported.add(launched_by.correlation)
        yield _reported(kernel, launched_by)
    unreported_since = _unreported_since(process, reported)
    for launch in process.launches:
        if launch.correlation in reported or launch.correlation in process.failed:
            continue
        if launch.kind != GRAPH and launch.name and launch.time_ns >= unreported_since:
            context = process.contexts.get(launch.context)
            yield _launched(launch, 0 if context is None else context.device)


def _unreported_since(process: Process, reported: set[int]) -> float:
    """When the reports of executions end, on the clock of the launches.

    A launch before that without a report did not run: it was captured into a graph.
    """
    if not process.kernels or any(note.stage in _TIMES for note in process.notes):
        return 0.0
    if process.header.finished:
        return math.inf
    return max((row.time_ns for row in process.launches if row.correlation in reported), default=0.0)


def _reported(kernel: KernelRow, launch: LaunchRow | None) -> Execution:
    cluster = kernel.cluster if all(kernel.cluster) else None
    time = kernel.end_ns - kernel.start_ns
    correlations: tuple[int, ...] = (kernel.correlation,)
    if launch is not None:
        correlations = tuple(
            dict.fromkeys((kernel.correlation, launch.correlation, launch.outer or launch.correlation))
        )
    return Execution(
        name=kernel.name,
        device=kernel.device,
        context=kernel.context,
        stream=kernel.stream,
        configuration=Configuration(
            grid=kernel.grid,
            block=kernel.block,
            cluster=cluster,
            registers=kernel.registers or None,
            static_shared=kernel.static_shared,
            dynamic_shared=kernel.dynamic_shared,
            shared_executed=kernel.shared_executed or None,
        ),
        # Times of zero say that CUPTI could not take them.
        duration_ns=float(time) if kernel.start_ns and time > 0 else None,
        path=0 if launch is None else launch.path,
        correlations=correlations,
        from_graph=kernel.graph != 0,
    )


def _launched(launch: LaunchRow, device: int) -> Execution:
    return Execution(
        name=launch.name,
        device=device,
        context=launch.context,
        stream=None,
        configuration=Configuration(launch.grid, launch.block, None, None, None, launch.shared_bytes, None),
        duration_ns=None,
        path=launch.path,
        correlations=(launch.correlation, launch.outer) if launch.outer else (launch.correlation,),
        from_graph=False,
    )


@dataclass(slots=True)
class Grouping:
    """The groups of one process, and where samples find theirs."""

    groups: dict[GroupKey, ExecutionGroup] = field(default_factory=dict)
    by_correlation: dict[int, list[ExecutionGroup]] = field(default_factory=dict)  # serialized mode only
    by_kernel: dict[tuple[int, str, str | None], ExecutionGroup] = field(
        default_factory=dict
    )  # continuous mode only


def group(
    process: Process,
    cubins: Mapping[str, Cubin],
    sampled: frozenset[tuple[str, str]],
    picker: Picker | None = None,
) -> Grouping:
    """Group what ran in a process; of each kernel what was not asked for is one group.

    Args:
        process: the process.
        cubins: the images that could be read, by sha256.
        sampled: pairs of image and function that have samples: they decide between images of one name.
        picker: tells what was asked for; None: everything.
    """
    result = Grouping()
    picker = picker or Picker(None)
    picks: bytes | None = None  # known before only where their number matters; executions are not kept
    if process.mode == SERIALIZED:
        picks = bytes(picker.takes(kernel) for _, kernel in _named(process, by_launch=picker.by_launch))
    single = picks is not None and sum(picks) <= MAX_LAUNCHES
    images = _Images(process, cubins, sampled)
    for number, (execution, kernel) in enumerate(_named(process, by_launch=picker.by_launch)):
        picked = picker.takes(kernel) if picks is None else picks[number] == 1
        binary, ambiguous = images.of(kernel, execution.context)
        extra: tuple[object, ...] = ()
        if not picked:
            extra = (_NOT_PICKED,)
        elif process.mode == SERIALIZED:
            # The nodes of a graph share the correlation id of its launch.
            launches = execution.correlations if execution.from_graph else (number,)
            extra = launches if single else (execution.configuration, execution.path)
        key = GroupKey(execution.device, kernel, binary, extra)
        entry = result.groups.get(key)
        if entry is None:
            entry = result.groups[key] = ExecutionGroup(process, key, picked=picked)
        _add(entry, execution, ambiguous=ambiguous)
        if process.mode == SERIALIZED:
            for correlation in execution.correlations:
                entries = result.by_correlation.setdefault(correlation, [])
                if entry not in entries:
                    entries.append(entry)
        else:
            result.by_kernel.setdefault((execution.device, kernel, binary), entry)
    return result


def _named(process: Process, *, by_launch: bool) -> Iterator[tuple[Execution, str]]:
    """Executions with their kernel."""
    ran = executions(process)
    # Reports come as kernels end; the ids of calls grow with time.
    for execution in sorted(ran, key=lambda execution: min(execution.correlations)) if by_launch else ran:
        kernel = process.name(execution.name)
        if kernel is not None and all(execution.configuration.grid + execution.configuration.block):
            yield execution, kernel


def _add(to: ExecutionGroup, execution: Execution, *, ambiguous: bool) -> None:
    to.launches += 1
    to.timed += execution.duration_ns is not None
    to.total_ns += execution.duration_ns or 0.0
    for weights in (
        to.configurations.setdefault(execution.configuration, [0.0, 0.0]),
        to.paths.setdefault(execution.path, [0.0, 0.0]),
    ):
        weights[0] += 1
        weights[1] += execution.duration_ns or 0.0
    to.context, to.stream = execution.context, execution.stream
    to.graphs += execution.from_graph
    to.ambiguous = to.ambiguous or ambiguous


class _Images:
    """Which image a kernel of some name was in."""

    def __init__(
        self, process: Process, cubins: Mapping[str, Cubin], sampled: frozenset[tuple[str, str]]
    ) -> None:
        self._sampled = sampled
        self._known: dict[tuple[str, int], tuple[str | None, bool]] = {}
        self._contexts: dict[str, dict[str, set[int]]] = {}  # kernel -> image -> contexts
        for module in process.modules:
            cubin = cubins.get(module.sha256)
            for section in cubin.sections if cubin is not None else ():
                contexts = self._contexts.setdefault(section.name, {}).setdefault(module.sha256, set())
                contexts.add(module.context)

    def of(self, kernel: str, context: int) -> tuple[str | None, bool]:
        """The image, and whether there was a choice between several."""
        key = kernel, context
        if key not in self._known:
            self._known[key] = self._choose(kernel, context)
        return self._known[key]

    def _choose(self, kernel: str, context: int) -> tuple[str | None, bool]:
        images = self._contexts.get(kernel, {})
        candidates = [image for image, contexts in images.items() if context in contexts] or list(images)
        if len(candidates) > 1:
            with_samples = [image for image in candidates if (image, kernel) in self._sampled]
            if len(with_samples) == 1:
                return with_samples[0], False
            return (with_samples or candidates)[0], True
        return (candidates[0], False) if candidates else (None, False)
