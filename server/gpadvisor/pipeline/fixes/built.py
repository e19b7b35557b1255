# SPDX-License-Identifier: Apache-2.0
"""One build of a translation unit, with what a fix is judged by: code, resources, the rule's places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpadvisor.analyzer.occupancy import kernel_occupancy
from gpadvisor.cubin import demangle
from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.accesses import is_local
from gpadvisor.model.advice import Match
from gpadvisor.model.profile import Evidence
from gpadvisor.model.program import Function, KernelFacts, Program
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.machines import machine_model
from gpadvisor.pipeline.programs import kernel_program, kernel_sections, open_cubin
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.rules import OPTIMIZERS
from gpadvisor.toolchain.compile_job import Compiled
from gpadvisor.toolchain.stand_ins import Overlay

FileLine = tuple[str, int]
"""File and line."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BuiltKernel:
    """One kernel with all that it calls."""

    name: str  # mangled
    demangled: str
    program: Program
    facts: KernelFacts | None
    code: bytes
    sites: tuple[frozenset[FileLine], ...]  # of the rule: each with the lines that it belongs to

    def opcodes(self, selects: Callable[[FileLine], bool] | None, *, full: bool) -> Counter[str]:
        """How often each opcode stands on some lines, or anywhere; with or without modifiers."""
        counts: Counter[str] = Counter()
        for function in self.program.functions:
            for index, instruction in enumerate(function.instructions):
                if selects is None or any(map(selects, places(function, index))):
                    parts = (instruction.opcode, *instruction.modifiers) if full else (instruction.opcode,)
                    counts[".".join(parts)] += 1
        return counts

    @property
    def instructions(self) -> int:
        """All instructions, those of called functions included."""
        return sum(len(function.instructions) for function in self.program.functions)

    @property
    def local_accesses(self) -> int:
        """Instructions that load or store local memory."""
        return sum(
            is_local(instruction)
            for function in self.program.functions
            for instruction in function.instructions
        )

    @property
    def calls(self) -> int:
        """Call instructions."""
        return sum(len(function.calls) for function in self.program.functions)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Built:
    """A translation unit, compiled and disassembled."""

    arch: str
    compiler: str
    kernels: Mapping[str, BuiltKernel]  # by mangled name


def paired(before: Built, after: Built) -> list[tuple[BuiltKernel, BuiltKernel]]:
    """The kernels of two builds that are one and the same, by name; a new const changes what is mangled."""
    result = [(before.kernels[name], after.kernels[name]) for name in before.kernels if name in after.kernels]
    old = _by_head(before, after)
    new = _by_head(after, before)
    result += [
        (old[head][0], new[head][0]) for head in old if len(old[head]) == 1 and len(new.get(head, ())) == 1
    ]
    return result


def _by_head(built: Built, counterpart: Built) -> dict[str, list[BuiltKernel]]:
    """Kernels that the other build has no namesake of, by name without parameters."""
    result: dict[str, list[BuiltKernel]] = {}
    for name, kernel in built.kernels.items():
        if name not in counterpart.kernels:
            result.setdefault(kernel.demangled.partition("(")[0], []).append(kernel)
    return result


def places(function: Function, index: int) -> list[FileLine]:
    """The line of an instruction, and those that it was inlined at."""
    entry = function.lines[index]
    if entry is None:
        return []
    locations = [entry.location, *(frame.call_site for frame in entry.inline)]
    return [(location.file, location.line) for location in locations]


def read_build(
    compiled: Compiled,
    code: str,
    request: Request,
    progress: Progress,
    cache: Cache,
    cancelled: Callable[[], bool] | None,
) -> Built:
    """Disassemble a build and ask one rule about each kernel of it.

    Raises:
        GpadvisorError: no disassembler can read it.
    """
    source = open_cubin(
        compiled.cubin,
        None,
        stored=None,
        timeout_seconds=request.settings.tool_timeout_seconds,
        cache=cache,
        progress=progress,
        cancelled=cancelled,
    )
    kernels = {}
    for name, section in kernel_sections(source.cubin).items():
        program = kernel_program(source, {section})
        used = {function.section for function in program.functions}
        kernels[name] = BuiltKernel(
            name=name,
            demangled=demangle(name),
            program=program,
            facts=program.facts.get(name),
            code=b"".join(
                code_section.code for code_section in source.cubin.sections if code_section.name in used
            ),
            sites=_sites(name, program, code, request),
        )
    return Built(arch=compiled.arch, compiler=compiled.compiler, kernels=kernels)


def _sites(kernel: str, program: Program, code: str, request: Request) -> tuple[frozenset[FileLine], ...]:
    """Where a rule finds its pattern in the machine code of a kernel."""
    optimizer = next((candidate for candidate in OPTIMIZERS if candidate.code == code), None)
    if optimizer is None:
        return ()
    machine = machine_model(program.arch, request)
    context = KernelContext(
        kernel=kernel,
        program=program,
        machine=machine,
        occupancy=kernel_occupancy(machine, program.facts.get(kernel), None),
        evidence=Evidence.STATIC,
        profile=None,
        blame=None,
    )
    answer = optimizer.match(context)
    if not isinstance(answer, Match):
        return ()
    return tuple(
        frozenset(_around(program.functions[site.function], site.index)) for site in answer.static_sites
    )


def _around(function: Function, index: int) -> list[FileLine]:
    """The lines of a place in the code, and the heads of the loops around it."""
    result = places(function, index)
    for loop in function.enclosing_loops(index):
        location = function.loops[loop].location
        if location is not None:
            result.append((location.file, location.line))
    return result


def same_file(path: Path, overlay: Overlay | None) -> Callable[[str], bool]:
    """Whether a file of a line table is a given one, links resolved."""
    is_same: dict[str, bool] = {}
    resolved = path.resolve()

    def is_it(file: str) -> bool:
        if file not in is_same:
            real_name = file if overlay is None else overlay.named(file)
            is_same[file] = Path(real_name).name == resolved.name and Path(real_name).resolve() == resolved
        return is_same[file]

    return is_it
