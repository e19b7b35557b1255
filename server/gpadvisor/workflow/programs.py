# SPDX-License-Identifier: Apache-2.0
"""From a cubin to the analysed program of one kernel: disassemble, decode, build, with the listing cached."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from gpadvisor.cubin import Cubin, line_table_damage, read_cubin
from gpadvisor.errors import SassError
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.program import Program
from gpadvisor.sass.listing import Listing, dump_listing, load_listing
from gpadvisor.toolchain import disassemble
from gpadvisor.workflow.cache import Cache, installation_digest
from gpadvisor.workflow.request import Progress


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Disassembled:
    """A cubin with the listing of the sections that were asked for."""

    cubin: Cubin
    listing: Listing
    problems: tuple[Problem, ...]


def open_cubin(
    data: bytes,
    sections: Collection[str] | None,
    *,
    stored: bytes | None,
    timeout_seconds: float,
    cache: Cache,
    progress: Progress = lambda _: None,
    cancelled: Callable[[], bool] | None = None,
) -> Disassembled:
    """Read a cubin and get its listing: from the profile, from the cache, or from the disassembler.

    ``sections`` are the ones asked for, None for all. Sections without a kernel come with them: device
    functions of separate compilation, which only the code itself tells who calls.

    Raises:
        CubinError: the bytes are no cubin.
        ToolError: no disassembler could read it.
    """
    cubin = read_cubin(data)
    if stored is not None:
        return Disassembled(cubin=cubin, listing=load_listing(stored), problems=cubin.problems)
    wanted = None
    if sections is not None:
        kernels = set(kernel_sections(cubin).values())
        wanted = sorted(s.name for s in cubin.sections if s.name in sections or s.name not in kernels)
    key = cache.key(
        "listing", {"cubin": cubin.sha256, "sections": wanted, "installation": installation_digest()}
    )
    known = cache.get(key)
    if known is not None:
        with contextlib.suppress(SassError):  # of another shape
            return Disassembled(cubin=cubin, listing=load_listing(known), problems=cubin.problems)
    progress(f"disassembling {len(data) // 1024} KiB for {cubin.arch}")
    result = disassemble(data, sections=wanted, timeout_seconds=timeout_seconds, cancelled=cancelled)
    if cache.is_on and not result.problems:  # a fallback is told each time
        cache.put(key, dump_listing(result.listing))
    return Disassembled(cubin=cubin, listing=result.listing, problems=(*cubin.problems, *result.problems))


def kernel_sections(cubin: Cubin) -> Mapping[str, str]:
    """The section of each kernel, by mangled name."""
    return {
        symbol.name: section.name
        for section in cubin.sections
        for symbol in section.symbols
        if symbol.is_entry
    }


def kernel_program(source: Disassembled, sections: Collection[str]) -> Program:
    """The program of the given sections and of every section that they call."""
    from gpadvisor.analyzer import build_program  # noqa: PLC0415 imported while the disassembler runs

    wanted = {name for name in sections if source.cubin.section(name) is not None}
    by_symbol = {symbol.name: section.name for section in source.cubin.sections for symbol in section.symbols}
    while True:
        program = build_program(source.cubin, source.listing, wanted)
        called = {
            by_symbol[call.symbol]
            for function in program.functions
            for call in function.calls
            if call.callee is None and call.symbol in by_symbol
        }
        if called <= wanted:
            return _with_line_damage(program, source.cubin)
        wanted |= called


def _with_line_damage(program: Program, cubin: Cubin) -> Program:
    damage = line_table_damage(cubin)
    if damage is None:
        return program
    return replace(program, problems=(*program.problems, Problem(ProblemCode.DAMAGED_CUBIN, damage)))
