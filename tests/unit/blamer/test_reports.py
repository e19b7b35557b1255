# SPDX-License-Identifier: Apache-2.0
"""Real reports: nothing is lost, scoreboard stalls sit on instructions that wait, and find their sources."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from tests.blame_rows import assert_conserved

from gpadvisor import machine
from gpadvisor.analyzer import build_program
from gpadvisor.analyzer.scoreboards import waits_for
from gpadvisor.blamer import DEFAULT_RULES, GPA2021, PAPER, blame
from gpadvisor.cubin import read_cubin
from gpadvisor.errors import UnknownArchitectureError
from gpadvisor.model.blame import NO_INDEX, Blame, Role
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Program
from gpadvisor.store import load_profile
from gpadvisor.toolchain import disassemble

FOLDER = os.environ.get("GPADVISOR_REPORTS")
REPORTS = sorted(Path(FOLDER).glob("*.ncu-rep*")) if FOLDER else []

pytestmark = [
    pytest.mark.reports,
    pytest.mark.nvdisasm,
    pytest.mark.parametrize("report", REPORTS or [None], ids=lambda path: path.name if path else "none"),
]


def kernels(report: Path) -> list[tuple[KernelProfile, Program]]:
    """Every launch that has samples and code, with the program of what was sampled."""
    profile = load_profile(report)
    found = []
    for kernel in profile.kernels:
        if kernel.total_samples and kernel.binary in profile.binaries:
            data = profile.binaries[kernel.binary]
            cubin = read_cubin(data)
            wanted = [name for name in kernel.sections if cubin.section(name) is not None]
            listing = disassemble(data, sections=wanted).listing
            found.append((kernel, build_program(cubin, listing, wanted)))
    return found


def table(program: Program) -> machine.MachineModel:
    """The machine table, where there is one."""
    try:
        return machine.load(program.arch.rstrip("af"))
    except UnknownArchitectureError as error:
        pytest.skip(str(error))


def share(result: Blame, reason: str, role: Role) -> float | None:
    """Share of a reason's samples, inside functions, that have a role."""
    names = [one.name for one in result.reasons]
    if reason not in names:
        return None
    mine = (result.rows.reason == names.index(reason)) & (result.rows.use_index != NO_INDEX)
    total = int(result.rows.samples[mine].sum())
    return int(result.rows.samples[mine & (result.rows.role == role.value)].sum()) / total if total else None


def test_nothing_is_lost(report: Path) -> None:
    for kernel, program in kernels(report):
        for rules in (DEFAULT_RULES, PAPER, GPA2021):
            assert_conserved(program, kernel, blame(program, kernel, table(program), rules))


def test_a_scoreboard_stall_sits_on_an_instruction_that_waits(report: Path) -> None:
    for kernel, program in kernels(report):
        result = blame(program, kernel, table(program))
        names = [one.name for one in result.reasons]
        for name in ("long_scoreboard", "short_scoreboard"):
            if name not in names:
                continue
            mine = np.flatnonzero(
                (result.rows.reason == names.index(name)) & (result.rows.use_index != NO_INDEX)
            )
            waiting = sum(
                int(result.rows.samples[row])
                for row in mine.tolist()
                if waits_for(
                    program.functions[int(result.rows.function[row])].instructions[
                        int(result.rows.use_index[row])
                    ]
                )
            )
            assert waiting == int(result.rows.samples[mine].sum()), name


def test_scoreboard_stalls_find_their_sources(report: Path) -> None:
    for kernel, program in kernels(report):
        result = blame(program, kernel, table(program))
        for reason in ("long_scoreboard", "short_scoreboard"):
            attributed = share(result, reason, Role.BLAMED)
            assert attributed is None or attributed > 0.99


def test_pruning_raises_the_single_dependency_coverage(report: Path) -> None:
    for kernel, program in kernels(report):
        coverage = blame(program, kernel, table(program)).coverage
        assert coverage.before is not None
        assert coverage.after is not None
        assert coverage.after >= coverage.before
