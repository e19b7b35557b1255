# SPDX-License-Identifier: Apache-2.0
"""Recovered lines against line tables: how many samples get the right line where the table is hidden.

Run as ``python -m tests.validation.lines [--reports DIR] [--sources DIR]``. Our own kernels, simulated: as
NVRTC builds them without lines, and as each other NVRTC that is here does (``PYTHONPATH=build/cuda-12``),
with the lines that the newest one gives. Of reports with a line table that is hidden, and their sources,
embedded or below ``--sources``, are compiled by the compiler that is here; a source counts where it can be
the one that was profiled: it has code on each line that the table names.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.kernels import KERNELS, Kernel, compile_kernel
from tests.simulations import fixture_config, program_of

from gpadvisor import machine
from gpadvisor.analyzer.line_recovery import recover_lines
from gpadvisor.cubin import demangle, read_cubin
from gpadvisor.errors import GpadvisorError
from gpadvisor.model.profile import KernelProfile, Profile
from gpadvisor.model.program import Program
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.programs import kernel_program, kernel_sections, open_cubin
from gpadvisor.pipeline.sources.kernels import KernelSources
from gpadvisor.report.names import base_name
from gpadvisor.simulator import simulate
from gpadvisor.store.load import load_profile
from gpadvisor.toolchain.compile import compile_source
from gpadvisor.toolchain.nvrtc import Nvrtc, compile_by_nvrtc, find_nvrtc

ARCH: Final = "sm_80"
SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Of the samples with a line in the hidden table: how many got it back, or another one."""

    name: str
    right: float
    near: float  # another line of the same statement: compilers differ in which one they name
    wrong: float  # any other
    samples: int
    same: bool  # the code is the same, instruction by instruction


def hidden(program: Program) -> Program:
    """The program without its lines."""
    functions = tuple(replace(one, lines=(None,) * len(one.lines)) for one in program.functions)
    return replace(program, functions=functions, has_line_info=False)


def statements(source: Path) -> list[int]:
    """The number of the statement that each line is of; one ends with a line that ends with a mark."""
    found = [0]
    for line in source.read_text(encoding="utf-8", errors="replace").split("\n"):
        ends = line.split("//")[0].rstrip().endswith((";", "{", "}", ":"))
        found.append(found[-1] + ends)
    return found


def share(
    name: str, built: Program, program: Program, compiled: Program, profile: KernelProfile, source: Path
) -> Share | None:
    """What recovery gives for one kernel; None where no sample has a line to compare.

    Args:
        name: of the row.
        built: without lines.
        program: the same code with those that are right.
        compiled: whose lines are taken.
        profile: of the code.
        source: of the kernel.
    """
    recovery = recover_lines(built, compiled)
    known = right = near = wrong = 0
    statement = statements(source)
    columns = profile.samples
    for section, pc, count in zip(
        columns.section.tolist(), columns.pc.tolist(), columns.total.tolist(), strict=True
    ):
        at = program.at(profile.sections[section], pc) if section < len(profile.sections) else None
        line = None if at is None else at[0].lines[at[1]]
        if at is None or line is None:
            continue
        known += count
        found = recovery.program.functions[at[0].id].lines[at[1]]
        if found is None:
            continue
        here, there = found.location, line.location
        if _name(here.file) != _name(there.file):
            wrong += count
        elif here.line == there.line:
            right += count
        elif statement[min(here.line, len(statement)) - 1] == statement[min(there.line, len(statement)) - 1]:
            near += count
        else:
            wrong += count
    if not known:
        return None
    same = profile.launch.kernel in recovery.same
    return Share(
        name=name, right=right / known, near=near / known, wrong=wrong / known, samples=known, same=same
    )


def _name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def own_kernels(other: Nvrtc | None) -> Iterator[Share]:
    """Our kernels, with the lines of NVRTC's newest build: built without lines, or by another NVRTC."""
    for kernel in KERNELS.values():
        try:
            compiled = program_of(compile_kernel(kernel.name, arch=ARCH))
            known = compiled if other is None else program_of(_by(other, kernel))
            built = hidden(known)
            if other is None:
                built = program_of(compile_kernel(kernel.name, arch=ARCH, lines=False))
            config = fixture_config(kernel.name, waves=1)
            profile = simulate(built, kernel.entry, machine.load(ARCH), config).profile
        except (GpadvisorError, RuntimeError) as error:
            sys.stdout.write(f"skipped: {kernel.name}: {str(error)[:120]}\n")
            continue
        found = share(kernel.name, built, known, compiled, profile, kernel.source())
        if found is not None:
            yield found


def _by(copy: Nvrtc, kernel: Kernel) -> bytes:
    with TemporaryDirectory() as folder:
        result = compile_by_nvrtc(
            copy,
            kernel.source(),
            ARCH,
            ("--std=c++17",),
            directory=kernel.source().parent,
            folder=Path(folder),
            timeout_seconds=SECONDS,
            memory_bytes=4 << 30,
            cancelled=None,
        )
    if not result.cubin:
        raise RuntimeError(result.log)
    return result.cubin


def reports(folder: Path, sources: Path | None) -> Iterator[Share]:
    """Kernels of reports with samples and a line table, whose source is at hand and compiles."""
    for path in sorted(folder.glob("*.ncu-rep")):
        try:
            profile = load_profile(path)
        except GpadvisorError:
            continue
        seen: set[str] = set()
        for kernel in profile.kernels:
            if (
                kernel.total_samples
                and kernel.binary in profile.binaries
                and kernel.launch.kernel not in seen
            ):
                seen.add(kernel.launch.kernel)
                yield from _of_report(path, profile, kernel, sources)


def _of_report(path: Path, profile: Profile, kernel: KernelProfile, folder: Path | None) -> Iterator[Share]:
    name = base_name(kernel.launch.demangled)
    label = f"{path.stem[-40:]} {name[:24]}"
    try:
        program = _program(profile.binaries[kernel.binary or ""], name)
    except GpadvisorError:
        return
    named = {
        (_name(line.location.file), line.location.line)
        for one in program.functions
        for line in one.lines
        if line is not None
    }
    if program.debug_build or not named:
        return
    with TemporaryDirectory() as scratch:
        found: list[Path] = []
        for source in profile.sources.values():
            if source.text is not None and _name(source.path).endswith(".cu") and name in source.text:
                found.append(Path(scratch, _name(source.path)))
                found[-1].write_text(source.text, encoding="utf-8")
        if not found and folder is not None:
            found += [one.path for one in _sources(folder).definitions(name, kernel.launch.demangled)]
        found = [one for one in found if _may_be(one, named)]
        if not found:
            sys.stdout.write(f"skipped: {label}: no source that can be the one that was profiled\n")
            return
        try:
            compiled = _program(compile_source(found[0], arch=program.arch).cubin, name)
        except GpadvisorError as error:
            sys.stdout.write(f"skipped: {label}: {str(error)[:120]}\n")
            return
        result = share(label, hidden(program), program, compiled, kernel, found[0])
        if result is not None:
            yield result


@cache
def _sources(folder: Path) -> KernelSources:
    return KernelSources(folder, folder / "none")


def _may_be(source: Path, named: set[tuple[str, int]]) -> bool:
    """Whether a source has code on each line that a table names of it."""
    lines = source.read_text(encoding="utf-8", errors="replace").split("\n")
    own = [line for file, line in named if file == source.name]
    code = [line for line in own if line <= len(lines) and lines[line - 1].split("//")[0].strip()]
    return bool(own) and len(code) == len(own)


def _program(cubin: bytes, name: str) -> Program:
    kernels = kernel_sections(read_cubin(cubin))
    wanted = {section for symbol, section in kernels.items() if base_name(demangle(symbol)) == name}
    opened = open_cubin(cubin, wanted, stored=None, timeout_seconds=SECONDS, cache=Cache(None))
    return kernel_program(opened, wanted)


def show(title: str, shares: Iterator[Share]) -> None:
    """Every kernel that is not all right, and the means."""
    found: list[Share] = []
    for one in shares:
        found.append(one)
        if one.right < 1:
            sys.stdout.write(
                f"  {one.name:<66} {one.right:6.1%} right {one.near:6.1%} near {one.wrong:6.1%} wrong "
                f"{one.samples:>9} samples\n"
            )
            sys.stdout.flush()
    if found:
        sys.stdout.write(
            f"{title}: {len(found)} kernels, {sum(one.same for one in found)} of the same code; right "
            f"{statistics.mean(one.right for one in found):.1%} in the mean, "
            f"{min(one.right for one in found):.1%} at least; on the same statement "
            f"{statistics.mean(one.near for one in found):.1%}; wrong "
            f"{statistics.mean(one.wrong for one in found):.1%}\n"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--reports", type=Path, default=os.environ.get("GPADVISOR_REPORTS"))
    parser.add_argument("--sources", type=Path, help="folder with the sources of reports that embed none")
    options = parser.parse_args(arguments)
    show("the same compiler", own_kernels(None))
    others = find_nvrtc()[1:]
    for copy in others:
        show(f"built by NVRTC {copy.major}", own_kernels(copy))
    if not others:
        sys.stdout.write("skipped: another compiler, as no other NVRTC is here (PYTHONPATH=build/cuda-12)\n")
    if options.reports is None:
        sys.stdout.write("skipped: reports, as neither --reports nor GPADVISOR_REPORTS names them\n")
    else:
        show("reports", reports(Path(options.reports), options.sources))
    return 0


if __name__ == "__main__":
    sys.exit(main())
