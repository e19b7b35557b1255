# SPDX-License-Identifier: Apache-2.0
"""All kernels on all architectures: compiled, analysed, simulated, blamed, and what that costs.

Run as ``python -m tests.validation.architectures [--arch sm_80 ...]``. Each kernel is compiled by NVRTC; its
planted pattern is looked for, one wave of it is simulated, and its blame must add up. The time of the wave
stands beside that of compiling and disassembling the kernel in the same run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

from tests.kernels import KERNELS, Kernel, Which, compile_kernel
from tests.simulations import fixture_config
from tests.validation.finished import finished
from tests.validation.volta import MISSING, compile_kernel_for_volta, library_path

from gpadvisor import machine
from gpadvisor.analyzer import build_program
from gpadvisor.blamer import blame
from gpadvisor.cubin import read_cubin
from gpadvisor.errors import GpadvisorError
from gpadvisor.model.problem import ProblemCode
from gpadvisor.model.program import Program
from gpadvisor.simulator import simulate
from gpadvisor.toolchain.disassembly import disassemble

ARCHITECTURES: Final = tuple(
    f"sm_{number}" for number in (70, 75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)
)
_WITHOUT_ASYNC_COPIES: Final = ("sm_70", "sm_75")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One kernel on one architecture; ``failure`` is empty where everything held."""

    name: str
    arch: str
    failure: str
    signs_missing: str
    prepared_seconds: float  # compiling and disassembling
    wave_seconds: float  # simulating one wave, with the inner loop already compiled
    wave_instructions: int
    ended: bool
    unknown: int  # instructions with an unknown opcode


def outcome(name: str, arch: str) -> Outcome:
    """Compile, analyse, simulate and blame one kernel, and look for its signs in both versions."""
    kernel = KERNELS[name]
    failure, prepared, wave, instructions, ended, unknown, missing = "", 0.0, 0.0, 0, False, 0, ""
    try:
        started = time.perf_counter()
        cubin = _compile(kernel, "before", arch)
        listing = disassemble(cubin).listing
        prepared = time.perf_counter() - started
        program = build_program(read_cubin(cubin), listing)
        table = machine.load(arch)
        started = time.perf_counter()
        simulation = simulate(program, kernel.entry, table, fixture_config(name, waves=1))
        wave = time.perf_counter() - started
        instructions, ended = simulation.instructions, simulation.cycles is not None
        profile = simulation.profile
        unknown = sum(
            one.code is ProblemCode.UNKNOWN_OPCODE for one in (*profile.problems, *program.problems)
        )
        blamed = blame(program, profile, table)
        if (blamed.total_samples, blamed.latency_samples) != (profile.total_samples, profile.latency_samples):
            failure = "the blame does not add up"
        after = _compile(kernel, "after", arch)
        missing = _missing(kernel, program, build_program(read_cubin(after), disassemble(after).listing))
    except (GpadvisorError, RuntimeError, AssertionError) as error:
        failure = str(error).splitlines()[0]
    return Outcome(
        name=name, arch=arch, failure=failure, signs_missing=missing, prepared_seconds=prepared,
        wave_seconds=wave, wave_instructions=instructions, ended=ended, unknown=unknown,
    )  # fmt: skip


def _compile(kernel: Kernel, which: Which, arch: str) -> bytes:
    if arch == "sm_70":
        return compile_kernel_for_volta(kernel, which)
    return compile_kernel(kernel.name, which, arch)


def _missing(kernel: Kernel, before: Program, after: Program) -> str:
    lines = [
        [
            (".".join((one.opcode, *one.modifiers)), one.operands)
            for function in program.functions
            for one in function.instructions
        ]
        for program in (before, after)
    ]
    for sign in kernel.signs:
        for text, found, least, most in (
            ("before", sign.count(lines[0]), sign.before_min, sign.before_max),
            ("after", sign.count(lines[1]), sign.after_min, sign.after_max),
        ):
            if (least is not None and found < least) or (most is not None and found > most):
                return f"{sign.what}: {found} {text}"
    return ""


def wanted(arch: str, names: Sequence[str]) -> list[str]:
    """Kernels that an architecture can run; newer ones than the default list run what sm_80 runs."""
    return [
        name
        for name in names
        if arch in KERNELS[name].architectures
        or not (arch in _WITHOUT_ASYNC_COPIES and "sm_75" not in KERNELS[name].architectures)
    ]


def outcomes(arch: str, names: Sequence[str]) -> list[Outcome]:
    """All kernels of one architecture, with a line of progress each."""
    found = []
    for at, name in enumerate(names, 1):
        sys.stderr.write(f"architectures: {arch}, {at} of {len(names)}, {name}\n")
        make: Callable[[], dict[str, Any]] = partial(_row, name, arch)
        found.append(Outcome(**finished("architecture", (name, arch), name, make)))
    return found


def _row(name: str, arch: str) -> dict[str, Any]:
    return asdict(outcome(name, arch))


def table(rows: Sequence[Outcome]) -> list[str]:
    """Time of one wave beside that of compiling and disassembling, worst first."""
    heads = f"{'compile, disassemble':>20} {'one wave':>9} {'ratio':>6} {'instructions':>13}"
    return [
        f"{'kernel':18} {heads}",
        *(
            f"{row.name:18} {row.prepared_seconds:19.2f}s {row.wave_seconds:8.2f}s {_ratio(row):6.2f} "
            f"{row.wave_instructions:13,}"
            for row in sorted(rows, key=lambda row: -_ratio(row))
        ),
    ]


def _ratio(row: Outcome) -> float:
    return row.wave_seconds / row.prepared_seconds if row.prepared_seconds else 0.0


def summary(arch: str, rows: Sequence[Outcome]) -> str:
    """One line about an architecture."""
    good = [row for row in rows if not row.failure]
    ratios = [_ratio(row) for row in good]
    median = f"{statistics.median(ratios):.2f}" if ratios else "-"
    return (
        f"{arch:7} {len(rows):3} kernels, {len(good):3} simulated, "
        f"{sum(row.ended for row in good):3} to their end, "
        f"{sum(not row.signs_missing for row in good):3} with their pattern, "
        f"{sum(row.unknown for row in good):3} unknown opcodes; one wave / (compile + disassemble): "
        f"median {median}, at most 1 for {sum(one <= 1 for one in ratios)} of {len(ratios)}"
    )


def main() -> None:
    """Print a line per architecture, what failed, and the times of the first one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", nargs="+", default=list(ARCHITECTURES))
    parser.add_argument("--kernel", nargs="+", default=list(KERNELS))
    options = parser.parse_args()
    warm = fixture_config("grid_path")
    program = build_program(
        read_cubin(compile_kernel("grid_path")), disassemble(compile_kernel("grid_path")).listing
    )
    simulate(program, KERNELS["grid_path"].entry, machine.load("sm_80"), warm)
    for arch in options.arch:
        if arch == "sm_70" and library_path() is None:
            sys.stdout.write(f"{arch:7} not run: {MISSING}\n")
            continue
        rows = outcomes(arch, wanted(arch, options.kernel))
        sys.stdout.write(summary(arch, rows) + "\n")
        for row in rows:
            said = row.failure or (row.signs_missing and f"pattern not found: {row.signs_missing}")
            if said:
                sys.stdout.write(f"        {row.name}: {said}\n")
        if arch == "sm_80":
            sys.stdout.write("\n".join(["", *table(rows), "", ""]))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
