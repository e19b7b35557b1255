# SPDX-License-Identifier: Apache-2.0
"""An Nsight Compute report as a Profile: what GPA's profiler delivers (GPA section III), from a file."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.cubin import Cubin, read_cubin, unescaped_path
from gpadvisor.errors import CubinError, ProfileFormatError
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import (
    EXTERNAL,
    Evidence,
    KernelProfile,
    MetricValue,
    PcMetric,
    PcSamples,
    Profile,
    SourceText,
)
from gpadvisor.store.ncu import container, launch, rules, sampling, wire
from gpadvisor.store.ncu.kernel_samples import THREADS, WARPS, KernelSections, kernel_counts, kernel_samples
from gpadvisor.store.ncu.metrics import Metric
from gpadvisor.store.ncu.placement import NOWHERE, Placement, SectionCandidates, candidates_of, place
from gpadvisor.store.ncu.report import Report, ReportSession, ReportSource, Result, parse_report
from gpadvisor.store.ncu.report_problems import COLLECT_COMMAND, COLLECT_SECTIONS, report_problems

# Values under these prefixes are lists of metric names or series over time, not values of the launch.
_NO_SCALARS: Final = ("group:", "breakdown:")
_TIMELINES: Final = ("warpsampling:", "pmsampling:", "timeline:")
_INTERMEDIATE: Final = "derived_tempMetric"  # of the tool's own formulas: their results have names
_BY_NAME: Final = "sass__"
_QUOTIENTS: Final = (".pct", ".ratio")  # no number where nothing was counted that they divide by
_NAMED: Final = 3
_OLD_NAMES: Final = {
    "memory_ideal_l2_transactions_global": "memory_l2_theoretical_sectors_global_ideal",
    "memory_ideal_shared_transactions": "memory_l1_wavefronts_shared_ideal",
    "memory_l1_transactions_global": "memory_l1_tag_requests_global",
    "memory_l2_transactions_global": "memory_l2_theoretical_sectors_global",
    "memory_shared_transactions": "memory_l1_wavefronts_shared",
}
"""Of Nsight Compute 2020.2 and before, for the same counts by instruction."""


@dataclass(slots=True, eq=False)
class _Modules:
    """Cubins of a report, each parsed once."""

    cubins: dict[str, Cubin] = field(default_factory=dict)
    digests: dict[int, str] = field(default_factory=dict)  # id of a source -> sha256
    binaries: dict[str, bytes] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    placements: dict[int, tuple[SectionCandidates, Placement | None]] = field(default_factory=dict)

    def digest(self, source: ReportSource | None) -> str | None:
        if source is None or source.cubin is None:
            return None
        text = self.digests.get(id(source))
        if text is None:
            text = hashlib.sha256(source.cubin).hexdigest()
            self.digests[id(source)] = text
            self.binaries[text] = source.cubin
            try:
                self.cubins[text] = read_cubin(source.cubin)
            except CubinError as error:
                self.problems.append(
                    Problem(ProblemCode.NO_BINARY, f"a cubin of the report cannot be read: {error}")
                )
        return text

    def placement(self, source: ReportSource, cubin: Cubin) -> tuple[SectionCandidates, Placement | None]:
        """What is known of a module's addresses, and its placement where that leaves no choice."""
        if id(source) not in self.placements:
            candidates = candidates_of(cubin, source.functions)
            self.placements[id(source)] = (candidates, candidates.settled())
        return self.placements[id(source)]


def read_report(data: bytes) -> Profile:
    """Read a report (``.ncu-rep``, ``.ncu-repz``, ``.nsight-cuprof-report``) with all its launches."""
    digest = hashlib.sha256(data).hexdigest()
    if container.is_compressed(data):
        data = container.decompress(data)
    try:
        return _profile(digest, parse_report(data))
    except (wire.WireError, ProfileFormatError) as error:
        version = container.format_version(data)
        if version is not None and version > container.KNOWN_VERSION:
            raise ProfileFormatError(
                f"the report has version {version} of the file format, and up to {container.KNOWN_VERSION} is"
                " known here; upgrade gpadvisor, or collect with an older ncu"
            ) from error
        if isinstance(error, ProfileFormatError):
            raise
        # Instances are decoded only where they are needed, so that damage may come to light late.
        raise container.damaged(str(error)) from error


def _profile(digest: str, report: Report) -> Profile:
    modules = _Modules()
    kernels = tuple(
        _kernel(index, result, report.session, modules) for index, result in enumerate(report.results)
    )
    return Profile(
        sha256=digest,
        collector="ncu",
        collector_version=_version(report.session),
        command=report.session.command or report.session.executable,
        host=report.session.target or report.session.host,
        created=_created(report.session.created),
        kernels=kernels,
        binaries=modules.binaries,
        sources=_sources(report),
        problems=(*modules.problems, *_failed(kernels, report.results), *report_problems(report)),
    )


def _kernel(index: int, result: Result, session: ReportSession, modules: _Modules) -> KernelProfile:
    scalars = {
        name: metric.value
        for name, metric in result.metrics.items()
        if metric.value is not None and not name.startswith(_NO_SCALARS)
    }
    scalars |= _by_opcode(result.metrics)
    digest = modules.digest(result.source)
    cubin = None if digest is None else modules.cubins.get(digest)
    device = launch.read_device(scalars, session.devices, _module_sm(result.source, cubin))
    configuration, problems = launch.read_launch(index, result, scalars)
    raw = sampling.read_samples(result.metrics)
    how, sampling_problems = sampling.read_sampling(
        result.metrics, int(raw.total.sum()), device.sms, session.sampling_buffer_bytes
    )
    placement = _placement(result, cubin, raw.address, modules)
    sections = KernelSections(result.mangled, placement)
    samples = kernel_samples(raw, sections)
    counts, count_problems = kernel_counts(result.metrics, sections)
    evidence = (
        Evidence.MEASURED
        if len(samples.total)
        else Evidence.COUNTED
        if counts is not None
        else Evidence.STATIC
    )
    return KernelProfile(
        launch=configuration,
        device=device,
        evidence=evidence,
        binary=digest,
        reasons=raw.reasons,
        samples=samples,
        counts=counts,
        pc_metrics=_pc_metrics(result.metrics, sections),
        sections=sections.names,
        metrics=scalars,
        sampling=how,
        rules=tuple(item for rule in result.rules for item in rules.rule_results(rule)),
        call_stack=result.call_stack,
        problems=(
            *problems,
            *(() if configuration.failed else _not_measured(scalars)),
            *raw.problems,
            *sampling_problems,
            *count_problems,
            *_evidence_problems(configuration.demangled, evidence, digest, samples, sections, cubin),
        ),
    )


def _by_opcode(metrics: Mapping[str, Metric]) -> dict[str, MetricValue]:
    """Counts by opcode and the like, one as ``sass__inst_executed_per_opcode[FFMA]``."""
    result: dict[str, MetricValue] = {}
    for name, metric in metrics.items():
        instances = metric.instances() if name.startswith(_BY_NAME) else None
        if instances is None or isinstance(instances.values, tuple):
            continue
        if isinstance(instances.ids, tuple):
            rows = zip(instances.ids, instances.values, strict=True)
            result |= {f"{name}[{key}]": float(count) for key, count in rows if isinstance(key, str)}
    return result


def _not_measured(scalars: Mapping[str, MetricValue]) -> tuple[Problem, ...]:
    """The counters that the tool wrote as not a number, which are as good as absent."""
    names = [
        name
        for name, value in scalars.items()
        if isinstance(value, float)
        and not math.isfinite(value)
        and not name.startswith((*_TIMELINES, _INTERMEDIATE))
        and not name.endswith(_QUOTIENTS)
    ]
    if not names:
        return ()
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    message = f"counters that could not be measured (NaN) are not used: {', '.join(names[:_NAMED])}{more}"
    return (Problem(ProblemCode.COLLECTION_LIMITED, message),)


def _module_sm(source: ReportSource | None, cubin: Cubin | None) -> tuple[int, int] | None:
    if source is not None and source.sm is not None:
        return source.sm
    if cubin is None:
        return None
    return divmod(int(cubin.arch.removeprefix("sm_").rstrip("af")), 10)


def _placement(
    result: Result, cubin: Cubin | None, sampled: NDArray[np.uint64], modules: _Modules
) -> Placement:
    if cubin is None or result.source is None:
        return NOWHERE
    candidates, settled = modules.placement(result.source, cubin)
    if settled is not None and result.mangled in settled.names:
        return settled
    addresses: list[int] = []
    functions = sampling.addressed(result.metrics.get("launch__function_pcs"))
    if functions is not None:
        addresses = [int(value) for value in sampling.whole_numbers(np.asarray(functions[1].values))[0]]
    counted = sampling.addressed(result.metrics.get(WARPS))
    addressed = sampled if counted is None else np.concatenate([sampled, counted[0]])
    return place(candidates, addresses, result.mangled, np.unique(addressed))


def _pc_metrics(metrics: Mapping[str, Metric], sections: KernelSections) -> dict[str, PcMetric]:
    """Metrics with one number per instruction: those whose instances name addresses of the code."""
    pc_metrics: dict[str, PcMetric] = {}
    # Metrics of one kind of instruction share their addresses.
    located: dict[bytes, tuple[NDArray[np.uint16], NDArray[np.uint64], NDArray[np.intp]] | None] = {}
    for name, metric in metrics.items():
        if name in {WARPS, THREADS} or name.startswith((sampling.SAMPLING_PREFIX, *_NO_SCALARS, *_TIMELINES)):
            continue
        instances = sampling.addressed(metric) if metric.has_instances else None
        if instances is None or len(instances[0]) == 0:
            continue
        key = instances[0].tobytes()
        if key not in located:
            located[key] = _instructions(instances[0], sections)
        place_and_order = located[key]
        if place_and_order is not None:
            section, pc, order = place_and_order
            value = np.asarray(instances[1].values).astype(np.float64)
            today = _OLD_NAMES.get(name, name)
            pc_metrics[today] = PcMetric(name=today, section=section, pc=pc, value=value[order])
    return pc_metrics


def _instructions(
    addresses: NDArray[np.uint64], sections: KernelSections
) -> tuple[NDArray[np.uint16], NDArray[np.uint64], NDArray[np.intp]] | None:
    """Sorted sections and offsets with the order that sorts them; None where no address is of the code."""
    row, _ = sections.placement.locate(addresses)
    if not (row >= 0).any():
        return None
    section, pc = sections.locate(addresses)
    order = np.lexsort((pc, section))
    return section[order], pc[order], order


def _evidence_problems(
    kernel: str,
    evidence: Evidence,
    digest: str | None,
    samples: PcSamples,
    sections: KernelSections,
    cubin: Cubin | None,
) -> tuple[Problem, ...]:
    problems: list[Problem] = []
    if evidence is not Evidence.MEASURED:
        problems.append(
            Problem(
                ProblemCode.NO_SAMPLES,
                f"the report has no PC samples of {kernel}; collect them with '{COLLECT_COMMAND}'"
                f" (at least {COLLECT_SECTIONS})",
            )
        )
    if evidence is Evidence.STATIC:
        problems.append(Problem(ProblemCode.NO_COUNTS, f"the report has no executed counts of {kernel}"))
    if digest is None:
        problems.append(
            Problem(ProblemCode.NO_BINARY, f"the report holds no machine code of {kernel}; collect it again")
        )
    outside = samples.total[samples.section == EXTERNAL]
    if len(outside):
        problems.append(
            Problem(
                ProblemCode.EXTERNAL_SAMPLES,
                _where(int(outside.sum()), kernel, sections, cubin),
            )
        )
    return tuple(problems)


def _where(outside: int, kernel: str, sections: KernelSections, cubin: Cubin | None) -> str:
    if cubin is None:
        return f"{outside} samples of {kernel} have no machine code to be placed in"
    if sections.placement.names:
        return f"{outside} samples of {kernel} lie in code outside its cubin, such as the driver's"
    return (
        f"{outside} samples of {kernel} cannot be placed, since the report does not tell where its code was"
        " loaded; collect it again with a newer ncu"
    )


def _failed(kernels: Sequence[KernelProfile], results: Sequence[Result]) -> tuple[Problem, ...]:
    """One problem for all launches that failed."""
    failed = [
        f"{result.function} (launch {kernel.launch.index})"
        for kernel, result in zip(kernels, results, strict=True)
        if kernel.launch.failed
    ]
    names = ", ".join(failed[:_NAMED]) + (" and others" if len(failed) > _NAMED else "")
    many = f"{len(failed)} of {len(kernels)} launches" if len(kernels) > 1 else "the report's only launch"
    message = f"{many} failed or could not be measured: {names}"
    return (Problem(ProblemCode.FAILED_LAUNCH, message),) if failed else ()


def _sources(report: Report) -> dict[str, SourceText]:
    texts: dict[str, SourceText] = {}
    for source in report.sources:
        for written, text in source.files.items():
            path = unescaped_path(written)
            if text or path not in texts:
                digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() if text else None
                texts[path] = SourceText(path=path, sha256=digest, text=text or None)
    return texts


def _version(session: ReportSession) -> str | None:
    for provider, version in session.versions.items():
        if "Nsight Compute" in provider and version:
            return version.split()[0]
    return None


def _created(seconds: int | None) -> str | None:
    if seconds is None or not 0 < seconds < 1 << 34:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat()


__all__ = ["COLLECT_COMMAND", "read_report"]
