# SPDX-License-Identifier: Apache-2.0
"""From a cubin to the analysed program of one kernel: disassemble, decode, build, with the listing cached."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from gpadvisor.cubin import Cubin, Lines, read_cubin
from gpadvisor.errors import SassError
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.program import Program
from gpadvisor.pipeline.cache import Cache, installation_digest
from gpadvisor.pipeline.line_tables import read_lines
from gpadvisor.pipeline.request import Progress
from gpadvisor.sass.listing import Listing, dump_listing, load_listing
from gpadvisor.toolchain.disassembly import disassemble


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Disassembled:
    """A cubin with listing and lines of the sections that were asked for."""

    cubin: Cubin
    listing: Listing
    lines: Lines
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
    """Read a cubin and get its listing, from the profile, the cache or the disassembler, and its lines.

    ``sections`` are the ones asked for, None for all. Sections without a kernel come with them: device
    functions of separate compilation, which only the code itself tells who calls.

    Raises:
        CubinError: the bytes are no cubin.
        ToolError: no disassembler could read it.
    """
    cubin = read_cubin(data)
    section_names = None
    if sections is not None:
        kernels = set(kernel_sections(cubin).values())
        section_names = sorted(s.name for s in cubin.sections if s.name in sections or s.name not in kernels)
    key_parts = {"cubin": cubin.sha256, "sections": section_names, "installation": installation_digest()}
    stopped = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(
            read_lines,
            cubin,
            data,
            key_parts,
            timeout_seconds=timeout_seconds,
            cache=cache,
            cancelled=lambda: stopped.is_set() or (cancelled is not None and cancelled()),
        )
        try:
            key = cache.key("listing", key_parts)
            listing, problems = (
                (load_listing(stored), ())
                if stored is not None
                else _listing(
                    cubin, data, section_names, key, timeout_seconds, cache, progress, cancelled=cancelled
                )
            )
            lines, unread = reading.result()
            return Disassembled(
                cubin=cubin,
                listing=listing,
                lines=lines,
                problems=(*cubin.problems, *problems, *unread),
            )
        finally:
            stopped.set()


def _listing(
    cubin: Cubin,
    data: bytes,
    section_names: Collection[str] | None,
    key: str,
    timeout_seconds: float,
    cache: Cache,
    progress: Progress,
    *,
    cancelled: Callable[[], bool] | None,
) -> tuple[Listing, tuple[Problem, ...]]:
    """From the cache or the disassembler."""
    stored = cache.get(key)
    if stored is not None:
        with contextlib.suppress(SassError):  # of another shape
            return load_listing(stored), ()
    progress(f"disassembling {len(data) // 1024} KiB for {cubin.arch}")
    result = disassemble(data, sections=section_names, timeout_seconds=timeout_seconds, cancelled=cancelled)
    if cache.is_on and not result.problems:  # a fallback is told each time
        cache.put(key, dump_listing(result.listing))
    return result.listing, result.problems


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

    included = {name for name in sections if source.cubin.section(name) is not None}
    by_symbol = {symbol.name: section.name for section in source.cubin.sections for symbol in section.symbols}
    while True:
        program = build_program(source.cubin, source.listing, included, source.lines)
        called = {
            by_symbol[call.symbol]
            for function in program.functions
            for call in function.calls
            if call.callee is None and call.symbol in by_symbol
        }
        if called <= included:
            return _with_line_damage(program, source.lines.damage)
        included |= called


def _with_line_damage(program: Program, damage: str | None) -> Program:
    if damage is None:
        return program
    return replace(program, problems=(*program.problems, Problem(ProblemCode.DAMAGED_CUBIN, damage)))
