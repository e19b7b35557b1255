# SPDX-License-Identifier: Apache-2.0
"""From a file to one ``KernelContext`` per kernel: what advice, blame tables and comparisons start from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from gpadvisor.advice.launches import ChosenLaunch, chosen_launches, launch_summaries
from gpadvisor.analyzer.occupancy import kernel_occupancy
from gpadvisor.blamer import DEFAULT_RULES, BlameRules, blame
from gpadvisor.cubin import demangle
from gpadvisor.errors import CubinError, ProfileMismatchError, SassError, ToolError, UsageError
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.utilisation import utilisations
from gpadvisor.evidence.barriers import asks_others
from gpadvisor.machine import code_form
from gpadvisor.model.advice import LaunchSummary
from gpadvisor.model.machine import MachineModel
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import EXTERNAL, Evidence, KernelProfile, Launch, Profile
from gpadvisor.model.program import Program
from gpadvisor.pipeline.cache import Cache, file_digest
from gpadvisor.pipeline.code import Code, open_code
from gpadvisor.pipeline.inputs import InputKind, input_kind
from gpadvisor.pipeline.launches import no_launch
from gpadvisor.pipeline.line_recovery import LineRecovery, SourceLines
from gpadvisor.pipeline.machines import machine_model
from gpadvisor.pipeline.opening import no_launch_in
from gpadvisor.pipeline.prefetch import Opened, asked_about, prefetched
from gpadvisor.pipeline.programs import Disassembled, kernel_program, kernel_sections, open_cubin
from gpadvisor.pipeline.request import Progress, Request

if TYPE_CHECKING:
    from gpadvisor.pipeline.sources.launches import SourceLaunch
    from gpadvisor.simulator import SimulationConfig

_MAX_WHOLE_BYTES: Final = 8 << 20
"""Of cubins that are read as a whole for one line; disassembling so much takes seconds."""
_NOT_FOUND: Final = "no launch of it was found"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnalysedKernel:
    """One kernel, ready for the optimizers."""

    context: KernelContext
    demangled: str
    chosen: ChosenLaunch | None  # None for a bare cubin or source
    problems: tuple[Problem, ...]
    modelled: SimulationConfig | None = None  # what was simulated, where the profile is modelled


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Analysis:
    """A whole file."""

    path: Path
    sha256: str
    profile: Profile | None
    kernels: tuple[AnalysedKernel, ...]  # by share of GPU time
    launches: tuple[LaunchSummary, ...]
    problems: tuple[Problem, ...]
    source_lines: SourceLines = field(default_factory=SourceLines)  # of kernels without a line table


def analyse_file(
    path: Path,
    request: Request,
    progress: Progress,
    cache: Cache,
    rules: BlameRules = DEFAULT_RULES,
    opened: Opened | None = None,
) -> Analysis:
    """Everything up to the blame of each kernel that was asked for.

    Args:
        path: the input.
        request: what is asked of it.
        progress: told the stages.
        cache: of disassembly.
        rules: which variant of the blamer.
        opened: the profile, where it is being read already.

    Raises:
        GpadvisorError: the input, a tool or a setting is at fault, or no kernel matches.
    """
    if input_kind(path) is InputKind.PROFILE:
        if request.model:
            raise UsageError(f"{path} is a profile; --model is for a cubin or a .cu file, which have none")
        progress(f"reading {path.name}")
        with prefetched(path, request, cache) if opened is None else nullcontext(opened) as reading:
            recovery = LineRecovery(path, reading.profile(), request, progress, cache)
            return _ProfileAnalysis(path, reading, request, progress, rules, recovery, cache).run()
    return _analyse_code(path, request, progress, cache, rules)


class _ProfileAnalysis:
    """One profile; cubins are read once however many kernels they hold."""

    def __init__(
        self,
        path: Path,
        opened: Opened,
        request: Request,
        progress: Progress,
        rules: BlameRules,
        recovery: LineRecovery,
        cache: Cache,
    ) -> None:
        self._path, self._opened, self._profile = path, opened, opened.profile()
        self._recovery, self._cache = recovery, cache
        self._request, self._progress, self._rules = request, progress, rules

    def run(self) -> Analysis:
        indices = {kernel.launch.index for kernel in asked_about(self._profile, self._request)}
        chosen = chosen_launches(
            self._profile,
            wants=lambda launch: launch.index in indices,
            launch=None if self._request.prefer_launch else self._request.launch,
            prefer=self._request.launch,
            merge=self._request.merge,
        )
        if not chosen:
            raise ProfileMismatchError(_no_kernel(self._profile, self._request, self._path))
        kernels = tuple(self._kernel(selected) for selected in chosen)
        programs = [kernel.context.program for kernel in kernels]
        kernels = tuple(_beside_others(kernel, partial(self._others, programs)) for kernel in kernels)
        return Analysis(
            path=self._path,
            sha256=self._profile.sha256,
            profile=self._profile,
            kernels=kernels,
            launches=launch_summaries(self._profile, chosen),
            problems=self._profile.problems,
            source_lines=self._recovery.known,
        )

    def _kernel(self, chosen: ChosenLaunch) -> AnalysedKernel:
        profile, launch = chosen.profile, chosen.profile.launch
        self._progress(f"analysing {launch.demangled[:50]}")
        program, problems = self._program(profile)
        model = machine_model(profile.device.arch, self._request)
        kernel_blame = None
        if program.functions and profile.total_samples:
            kernel_blame = blame(program, profile, model, self._rules)
        context = KernelContext(
            kernel=launch.kernel,
            program=program,
            machine=model,
            occupancy=kernel_occupancy(model, program.facts.get(launch.kernel), profile),
            evidence=_evidence(profile, has_code=bool(program.functions)),
            profile=profile,
            blame=kernel_blame,
            collector=self._profile.collector,
        )
        return AnalysedKernel(
            context=context,
            demangled=launch.demangled or demangle(launch.kernel),
            chosen=chosen,
            problems=(*profile.problems, *problems),
        )

    def _others(self, analysed: list[Program], context: KernelContext) -> tuple[Program, ...] | None:
        """The analysed kernels and all code of a kernel's cubin; None where that cannot be had."""
        profile = context.profile
        data = None if profile is None else self._profile.binaries.get(profile.binary or "")
        if data is None or len(data) > _MAX_WHOLE_BYTES:
            return None
        try:
            disassembled = open_cubin(
                data,
                None,
                stored=None,
                timeout_seconds=self._request.settings.tool_timeout_seconds,
                cache=self._cache,
            )
            return (*analysed, kernel_program(disassembled, kernel_sections(disassembled.cubin).values()))
        except (CubinError, SassError, ToolError):
            return None

    def _program(self, profile: KernelProfile) -> tuple[Program, list[Problem]]:
        """The program of a launch; an empty one, with the reason, where its code cannot be had."""
        arch = profile.device.arch
        empty = Program(
            arch=arch, functions=(), facts={}, has_line_info=False, problems=(), form=code_form(arch)
        )
        if profile.binary is None or profile.binary not in self._profile.binaries:
            if any(problem.code is ProblemCode.NO_BINARY for problem in profile.problems):
                return empty, []
            message = "the report carries no machine code of this kernel: samples have no place to go"
            return empty, [Problem(ProblemCode.NO_BINARY, message)]
        try:
            source = self._opened.cubin(profile.binary)
            program = kernel_program(source, used_sections(profile, source))
        except (CubinError, SassError, ToolError) as error:
            return empty, [Problem(ProblemCode.NO_DISASSEMBLY, f"its machine code cannot be read: {error}")]
        return self._recovery.lines(program, profile), list(source.problems)


def _beside_others(
    kernel: AnalysedKernel, other_programs: Callable[[KernelContext], tuple[Program, ...] | None]
) -> AnalysedKernel:
    """With the code beside it, where what is said of a line depends on that."""
    if not asks_others(kernel.context.program):
        return kernel
    return replace(kernel, context=replace(kernel.context, others=other_programs(kernel.context)))


def used_sections(profile: KernelProfile, source: Disassembled) -> frozenset[str]:
    """Sections with samples or counts, and the kernel's own."""
    columns = [profile.samples.section]
    if profile.counts is not None:
        columns.append(profile.counts.section)
    used = {int(index) for column in columns for index in set(column.tolist())} - {EXTERNAL}
    kernel_section = kernel_sections(source.cubin).get(profile.launch.kernel)
    return frozenset(
        {profile.sections[index] for index in used}
        | ({kernel_section} if kernel_section is not None else set())
    )


def _analyse_code(
    path: Path, request: Request, progress: Progress, cache: Cache, rules: BlameRules
) -> Analysis:
    code = open_code(path, request, progress, cache)
    model = machine_model(code.source.cubin.arch, request)
    kernel_of = partial(_kernel_of_code, code=code, model=model, request=request, rules=rules)
    if request.model:
        # The simulator's compiler takes long to import, and most analyses need no simulator.
        from gpadvisor.pipeline.modelled import written_launches

        progress(f"reading the launches in {path.name}")
        kernel_of = partial(kernel_of, launches=written_launches(path, request))
    kernels = tuple(
        kernel_of(name, kernel_program(code.source, {section}), progress=progress)
        for name, section in code.kernels.items()
    )
    kernels_sections = kernel_sections(code.source.cubin).values()
    kernels = tuple(
        _beside_others(kernel, lambda _: (kernel_program(code.source, kernels_sections),))
        for kernel in kernels
    )
    if request.model and not any(kernel.context.profile for kernel in kernels):
        notes = [problem for kernel in kernels for problem in kernel.problems]
        if request.model_needed:
            failed = (note.message for note in notes if note.code is ProblemCode.FAILED_LAUNCH)
            raise UsageError(
                next(failed, no_launch(path, [note.message for note in notes if note.message != _NOT_FOUND]))
            )
        kernels = tuple(replace(kernel, problems=()) for kernel in kernels)  # of launches, all of them
    return Analysis(
        path=path,
        sha256=file_digest(path),
        profile=None,
        kernels=kernels,
        launches=(),
        problems=(*code.problems, *code.source.problems),
    )


def _kernel_of_code(
    name: str,
    program: Program,
    *,
    code: Code,
    model: MachineModel,
    request: Request,
    rules: BlameRules,
    progress: Progress,
    launches: Mapping[str, SourceLaunch] = MappingProxyType({}),
) -> AnalysedKernel:
    """One kernel without a measured profile: modelled where that was asked for and is possible."""
    modelled, config = None, None
    problems: tuple[Problem, ...] = ()
    if request.model:
        from gpadvisor.pipeline.modelled import configuration, model_kernel
        from gpadvisor.pipeline.sources.launches import launch_of

        written, digest = launch_of(name, launches), code.source.cubin.sha256
        problems = () if written is None else (Problem(ProblemCode.COMPILE_ASSUMPTION, written.note),)
        try:
            config = configuration(name, request, written)
            if config is None:
                why = _NOT_FOUND if written is None else written.origin
                problems = (Problem(ProblemCode.LAUNCH_NOT_KNOWN, why),)
            else:
                modelled = model_kernel(program, name, model, config, digest, progress=progress)
        except UsageError as error:  # the other kernels of the file have launches of their own
            problems = (Problem(ProblemCode.FAILED_LAUNCH, f"{demangle(name).partition('(')[0]}: {error}"),)
    profile = None if modelled is None else modelled.profile
    context = KernelContext(
        kernel=name,
        program=program,
        machine=model,
        occupancy=kernel_occupancy(model, program.facts.get(name), profile),
        evidence=Evidence.STATIC if profile is None else profile.evidence,
        profile=profile,
        blame=None if profile is None else blame(program, profile, model, rules),
    )
    return AnalysedKernel(
        context=context,
        demangled=demangle(name),
        chosen=None,
        problems=problems if profile is None else (*problems, *profile.problems),
        modelled=config if modelled is not None else None,
    )


def _evidence(profile: KernelProfile, *, has_code: bool) -> Evidence:
    """What is said of a launch rests on its samples where they have a place, else on its counters."""
    if profile.evidence is not Evidence.STATIC and has_code:
        return profile.evidence
    return Evidence.COUNTED if utilisations(profile) else Evidence.STATIC


def _no_kernel(profile: Profile, request: Request, path: Path) -> str:
    if not profile.kernels:
        return no_launch_in(profile, path)
    if request.launch is not None:
        highest = max(entry.launch.index for entry in profile.kernels)
        return f"{path} has no launch {request.launch} of a wanted kernel; its launches are 0 to {highest}"
    names = sorted({_name(entry.launch) for entry in profile.kernels})
    return (
        f"no kernel of {path} matches '{request.kernel and request.kernel.pattern}'; it has: "
        + ", ".join(names[:5])
        + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    )


def _name(launch: Launch) -> str:
    return (launch.demangled or launch.kernel).partition("(")[0]
