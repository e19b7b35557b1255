# SPDX-License-Identifier: Apache-2.0
"""What-ifs: the change that a suggestion names, simulated beside the kernel as it is.

Differs from GPA: where a kernel is modelled and the change is known to the last word, the pair of simulations
is the estimate, beside the paper's equation. That is so for another launch, for waiting at barriers, and for
what a compiler flag or a quick fix's edit does once it is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gpadvisor.advice.evaluate import EstimatedMatch, Evaluated
from gpadvisor.errors import GpadvisorError
from gpadvisor.estimators import constants
from gpadvisor.estimators.context import WhatIf
from gpadvisor.estimators.ranges import factors
from gpadvisor.machine import code_form
from gpadvisor.model.advice import Estimate, KernelAdvice, ParallelTarget, Suggestion
from gpadvisor.model.figures import percent
from gpadvisor.model.fix import Fix, apply_edits, moved_line
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.program import Program
from gpadvisor.model.remedy import Remedy
from gpadvisor.model.sentence import sentences, uncapitalised
from gpadvisor.pipeline.analyse import AnalysedKernel
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.fixes.find import edit_facts_of
from gpadvisor.pipeline.fixes.launches import kernel_launch
from gpadvisor.pipeline.fixes.offered import fixes_for, flag_of
from gpadvisor.pipeline.fixes.placed import as_finding, suggestion_lines
from gpadvisor.pipeline.inputs import InputKind, input_kind
from gpadvisor.pipeline.opening import compile_settings
from gpadvisor.pipeline.programs import kernel_program, kernel_sections, open_cubin
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.pipeline.same_work import same_work
from gpadvisor.pipeline.sources.local import read_source
from gpadvisor.rules import BY_CODE
from gpadvisor.simulator import SimulationConfig, simulate
from gpadvisor.source.barriers import without_barriers
from gpadvisor.source.edits import SiteKind
from gpadvisor.toolchain.compile import compile_source

_MEASURED: Final = "seven in ten of 97 measured changes"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One modelled kernel, and what its changes are made with."""

    path: Path
    kernel: AnalysedKernel
    config: SimulationConfig
    advice: KernelAdvice  # with everything shown
    request: Request
    progress: Progress
    cache: Cache

    @property
    def before_ns(self) -> float | None:
        """The simulated duration of the kernel as it is; None where it was cut off."""
        profile = self.kernel.context.profile
        return None if profile is None else profile.launch.duration_ns

    def source(self) -> str | None:
        """The text of the source; None where it cannot be read or is unreasonably large."""
        data = read_source(self.path)
        return None if data is None else data.decode("utf-8", "replace")

    def speedup(self, program: Program, config: SimulationConfig, text: str) -> float | None:
        """Time now over the time of a changed program or launch; None where that does not run to its end."""
        context = self.kernel.context
        self.progress(f"simulating {text}")
        try:
            after = simulate(program, context.kernel, context.machine, config)
        except GpadvisorError:
            return None  # such a launch is not possible
        profile = context.profile
        if profile is None or self.before_ns is None or not after.duration_seconds:
            return None
        if program is not context.program and not same_work(
            (context.program, profile), (program, after.profile)
        ):
            return None
        return self.before_ns / (after.duration_seconds * 1e9)


def with_what_ifs(
    path: Path,
    kernel: AnalysedKernel,
    evaluated: Evaluated,
    advice: KernelAdvice,
    *,
    request: Request,
    progress: Progress,
    cache: Cache,
) -> Evaluated:
    """Findings of a modelled kernel, estimated by simulating their change where that is possible.

    Args:
        path: the source or cubin.
        kernel: one of its kernels.
        evaluated: what the optimizers answered.
        advice: made of it, with everything shown: its places are where edits are looked for.
        request: settings of the compile step.
        progress: told what is simulated.
        cache: of listings.
    """
    if kernel.modelled is None or kernel.context.profile is None:
        return evaluated
    case = _Case(
        path=path,
        kernel=kernel,
        config=kernel.modelled,
        advice=advice,
        request=request,
        progress=progress,
        cache=cache,
    )
    findings, rejections = evaluated
    if case.before_ns is None:
        return evaluated
    return tuple(_finding(case, finding) for finding in findings), rejections


def _finding(case: _Case, finding: EstimatedMatch) -> EstimatedMatch:
    estimate = finding.estimate
    if estimate is None:
        return finding
    how = BY_CODE[finding.code].what_if
    if finding.match.parallel is not None:
        changed = _launch(case, finding.code, finding.match.parallel, estimate)
    elif how is WhatIf.NO_BARRIERS:
        changed = _removed_barriers(case, finding, estimate) or _barriers(case, finding, estimate)
    elif how is WhatIf.EDITED and (finding.match.actionable or finding.match.cure):
        changed = _edited(case, finding.code, estimate)
    elif how is WhatIf.ITS_EDIT:
        kinds = [kind for remedy, kind in _EDITS.items() if remedy in finding.match.remedies]
        changed = _edited(case, finding.code, estimate, kinds[0]) if kinds else None
    else:
        changed = None
    return finding if changed is None else replace(finding, estimate=changed)


_EDITS: Final = {Remedy.KEEP_ELEMENT: SiteKind.KEEP_ELEMENT, Remedy.BOTH_SIDES: SiteKind.BOTH_SIDES}
"""Of remedies that are simulated, where a rule has others as well."""


def _estimate(estimate: Estimate, speedup: float, text: str, *, launch: bool = False) -> Estimate:
    """The pair of simulations as an estimate, as far off as such pairs were."""
    highest = constants.SIMULATED_LAUNCH if launch else constants.SIMULATED_MOST
    gained = f"{constants.SIMULATED_LEAST:g} to {constants.SIMULATED_MOST:g} times"
    launches = f", launches up to {highest:g} times" if launch else ""
    return replace(
        estimate,
        low=speedup * constants.SIMULATED_LEAST,
        expected=speedup,
        high=speedup * highest,
        reasons=sentences(
            f"simulated, {text}: {speedup:.3f}x",
            f"{_MEASURED} gained {gained} what such a pair gives{launches}",
        ),
    )


# ---- another launch ----


def _launch(case: _Case, code: str, target: ParallelTarget, estimate: Estimate) -> Estimate | None:
    """Another launch of the same code, where that asks for the block's size; else of the constant's edit."""
    config, program = launch_as(case.config, target), case.kernel.context.program
    if config is None:
        return None
    if config.block != case.config.block and not reads_block_size(program, case.config.block):
        changed = _changed(case, code)
        if changed is None or any(fix.change != SiteKind.BLOCK_SIZE.value for fix in changed.fixes):
            return None
        program = changed.program
        config = replace(config, loop_trips=changed.loops(config))
    shape = " x ".join(str(size) for size in config.block if size > 1) or "1"
    text = f"{config.blocks} blocks of {shape} threads"
    speedup = case.speedup(program, config, text)
    return None if speedup is None else _estimate(estimate, speedup, text, launch=True)


def reads_block_size(program: Program, block: tuple[int, int, int]) -> bool:
    """Whether the code asks how large a block is, in each dimension, instead of taking it for granted."""
    texts = [instruction.operands for function in program.functions for instruction in function.instructions]
    first = code_form(program.arch).block_size_at
    return all(
        any(f"c[0x0][{first + 4 * axis:#x}]" in text or f"SR_NTID.{'XYZ'[axis]}" in text for text in texts)
        for axis in range(3)
        if block[axis] > 1
    )


def launch_as(config: SimulationConfig, target: ParallelTarget) -> SimulationConfig | None:
    """The proposed launch, in the shape of the one there is where none is proposed; None where it has none.

    A block of one dimension gets the new size. One of several grows in its smallest dimension by twos, or
    shrinks in its largest; the grid covers as much as before. Dynamic shared memory goes with the threads.
    """
    block = list(config.block)
    if math.prod(block) != target.threads_now:
        return None
    if target.threads_new == target.threads_now:  # more blocks, of threads that loop over the grid
        more = target.blocks_new > target.blocks_now and config.grid[1:] == (1, 1)
        return replace(config, grid=(target.blocks_new, 1, 1)) if more else None
    if target.block_new is not None:
        block = list(target.block_new)
    elif block[1] == block[2] == 1:
        block[0] = target.threads_new
    else:
        used = [axis for axis in range(3) if block[axis] > 1]
        while math.prod(block) * 2 <= target.threads_new:
            block[min(used, key=lambda axis: block[axis])] *= 2
        while math.prod(block) > target.threads_new and all(block[axis] % 2 == 0 for axis in used):
            block[max(used, key=lambda axis: block[axis])] //= 2
        if math.prod(block) != target.threads_new:
            return None
    covered = [blocks * threads for blocks, threads in zip(config.grid, config.block, strict=True)]
    x, y, z = (-(-whole // threads) for whole, threads in zip(covered, block, strict=True))
    shared = config.dynamic_shared_bytes * target.threads_new // target.threads_now
    try:
        return replace(
            config, grid=(x, y, z), block=(block[0], block[1], block[2]), dynamic_shared_bytes=shared
        )
    except GpadvisorError:
        return None


# ---- barriers ----


def _barriers(case: _Case, finding: EstimatedMatch, estimate: Estimate) -> Estimate | None:
    """What waiting at the block's barriers costs in all, of which a change saves a part.

    Differs from GPA: a warp that does not wait at a barrier waits elsewhere, which Eq. 2 leaves out.
    """
    program = case.kernel.context.program
    pcs = frozenset(
        int(instruction.pc)
        for function in program.functions
        for instruction in function.instructions
        if instruction.info.opclass is OpcodeClass.BARRIER
    )
    whole = case.speedup(program, replace(case.config, passed_barriers=pcs), "it without barriers")
    if whole is None:
        return None
    factor = factors(finding.match.adjustments)
    low, expected, high = (1 + (whole - 1) * part for part in (factor.low, factor.expected, factor.high))
    changed = _estimate(estimate, expected, "no waiting at barriers")
    reasons = [f"simulated, no waiting at barriers: {whole:.3f}x"]
    reasons += [
        f"{adjustment.reason} (expected {percent(adjustment.expected, 0)} of that gain)"
        for adjustment in finding.match.adjustments
    ]
    waiting = replace(
        changed,
        low=min(low, high) * constants.SIMULATED_LEAST,
        high=max(low, high) * constants.SIMULATED_MOST,
        reasons=sentences(*reasons),
    )
    return _with_levels(waiting, estimate) if finding.match.reduced_loads else waiting


def _removed_barriers(case: _Case, finding: EstimatedMatch, estimate: Estimate) -> Estimate | None:
    """The source compiled without the barriers that the suggestion names; None where it names none."""
    if Remedy.NO_BARRIER not in finding.match.remedies or input_kind(case.path) is not InputKind.SOURCE:
        return None
    functions, names = case.kernel.context.program.functions, {str(case.path), str(case.path.resolve())}
    entries = [functions[site.function].lines[site.index] for site in finding.match.static_sites]
    lines = [entry.location.line for entry in entries if entry is not None and entry.location.file in names]
    if len(lines) < len(entries):
        return None  # in a header, which is not edited
    source = case.source()
    text = None if source is None else without_barriers(source, lines)
    try:
        program = None if text is None else _compiled(case, text, None)
    except GpadvisorError:
        return None
    what = "compiled without the barriers that are named"
    speedup = None if program is None else case.speedup(program, case.config, what)
    return None if speedup is None else _estimate(estimate, speedup, what)


def _with_levels(waiting: Estimate, levels: Estimate) -> Estimate:
    """Of a tree, between its barriers alone and the levels that go with them by the equation.

    Two measured changes lie there: 2.2x between 1.15x and 2.1x, 1.07x between 1.02x and 1.8x.
    """
    expected = math.sqrt(waiting.expected * levels.expected)
    return replace(
        waiting,
        low=min(waiting.low, levels.low),
        expected=expected,
        high=max(waiting.high, levels.high),
        reasons=(
            *waiting.reasons,
            *sentences(
                f"by the equation the levels that go give {levels.expected:.3f}x;"
                " expected is the geometric mean"
            ),
        ),
    )


# ---- an edit or a flag ----


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changed:
    """A kernel compiled with what answers a suggestion."""

    program: Program
    fixes: tuple[Fix, ...]  # none where it is a flag
    what: str

    def loops(self, config: SimulationConfig) -> Mapping[int, int]:
        """Told loops by their lines behind the edits."""
        edits = [edit for fix in self.fixes for edit in fix.edits]
        return {moved_line(line, edits): trips for line, trips in config.loop_trips.items()}


def _edited(case: _Case, code: str, estimate: Estimate, kind: SiteKind | None = None) -> Estimate | None:
    """What a flag or a quick fix gives; where a kind is named, no other fix."""
    changed = _changed(case, code, kind)
    if changed is None:
        return None
    config = replace(case.config, loop_trips=changed.loops(case.config))
    speedup = case.speedup(changed.program, config, changed.what)
    return None if speedup is None else _estimate(estimate, speedup, changed.what)


def _changed(case: _Case, code: str, kind: SiteKind | None = None) -> _Changed | None:
    """The kernel compiled with the quick fix of a rule, or with its flag; None where there is none."""
    told = (*case.advice.suggestions, *case.advice.notes)
    suggestion = next((candidate for candidate in told if candidate.code == code), None)
    if suggestion is None or input_kind(case.path) is not InputKind.SOURCE:
        return None
    text, flag = case.source(), flag_of(code)
    if text is None:
        return None
    fixes = () if flag is not None else tuple(_fixes(case, suggestion, text, kind))
    if flag is None and not fixes:
        return None
    try:
        edited = apply_edits(text, [edit for fix in fixes for edit in fix.edits])
        program = _compiled(case, edited, flag)
    except (GpadvisorError, ValueError):
        return None  # it does not compile so
    sentence = (
        f"compiled with {flag}"
        if flag
        else " and ".join(dict.fromkeys(uncapitalised(fix.words) for fix in fixes))
    )
    return None if program is None else _Changed(program=program, fixes=fixes, what=sentence)


def _compiled(case: _Case, text: str, flag: str | None) -> Program | None:
    settings = compile_settings(case.request)
    if flag is not None:
        settings = replace(settings, extra_flags=(*settings.extra_flags, flag))
    case.progress(f"compiling {case.path.name} with the change")
    arch = case.kernel.context.program.arch
    built = compile_source(case.path, arch=arch, settings=settings, text=text)
    seconds = case.request.settings.tool_timeout_seconds
    source = open_cubin(built.cubin, None, stored=None, timeout_seconds=seconds, cache=case.cache)
    section = kernel_sections(source.cubin).get(case.kernel.context.kernel)
    return None if section is None else kernel_program(source, {section})


def _fixes(case: _Case, suggestion: Suggestion, text: str, kind: SiteKind | None) -> list[Fix]:
    """The first fix that each place of a suggestion is offered, of one kind and where they fit together."""
    facts, launch = edit_facts_of(case.path, text), kernel_launch(case.kernel.context)
    fixes: dict[str, Fix] = {}
    names = {str(case.path), str(case.path.resolve())}
    for line in suggestion_lines(suggestion, names):
        placed = as_finding(suggestion, case.kernel.context.kernel, line)
        offered = fixes_for(placed, facts, path=str(case.path), launch=launch)
        for fix in [one for one in offered if kind is None or one.change == kind.value][:1]:
            if all(fix.change == other.change and not _meet(fix, other) for other in fixes.values()):
                fixes.setdefault(fix.id, fix)
    return list(fixes.values())


def _meet(one: Fix, other: Fix) -> bool:
    """Whether two fixes edit lines in common."""
    lines = [
        {line for edit in fix.edits for line in range(edit.start_line, edit.end_line + 1)}
        for fix in (one, other)
    ]
    return one.id != other.id and bool(lines[0] & lines[1])
