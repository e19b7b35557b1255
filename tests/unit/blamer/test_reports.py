# SPDX-License-Identifier: Apache-2.0
"""Real reports: nothing is lost, scoreboard stalls sit on instructions that wait, and find their sources."""

from __future__ import annotations

import os
from functools import lru_cache
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
from gpadvisor.model.program import Function, Program
from gpadvisor.store.load import load_profile
from gpadvisor.toolchain.disassembly import disassemble

FOLDER = os.environ.get("GPADVISOR_REPORTS")
_STRAY = 3
"""Samples that a sampler may put on an instruction nearby."""
_FEW = 100
"""Samples of a launch below which a single one is more than a percent."""

REPORTS = sorted(Path(FOLDER).glob("*.ncu-rep*")) if FOLDER else []

pytestmark = [
    pytest.mark.reports,
    pytest.mark.nvdisasm,
    pytest.mark.parametrize("report", REPORTS or [None], ids=lambda path: path.name if path else "none"),
]


@lru_cache(maxsize=4)  # as many as the checks run on
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


@lru_cache(maxsize=4)
def blamed(report: Path) -> list[tuple[KernelProfile, Program, Blame]]:
    """The same, with what is blamed by default."""
    return [
        (kernel, program, blame(program, kernel, table(program), DEFAULT_RULES))
        for kernel, program in kernels(report)
    ]


def test_nothing_is_lost(report: Path) -> None:
    for kernel, program, result in blamed(report):
        assert_conserved(program, kernel, result)
        for rules in (PAPER, GPA2021):
            assert_conserved(program, kernel, blame(program, kernel, table(program), rules))


def test_a_scoreboard_stall_sits_on_an_instruction_that_waits(report: Path) -> None:
    for _, program, result in blamed(report):
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
                if _waits(program.functions[int(result.rows.function[row])], int(result.rows.use_index[row]))
            )
            assert waiting >= int(result.rows.samples[mine].sum()) - _STRAY, name


def _waits(function: Function, index: int) -> bool:
    """Whether an instruction waits for a scoreboard, or stands behind a DEPBAR that does."""
    before = function.instructions[max(index - 1, 0)]
    return waits_for(function.instructions[index]) or (before.opcode == "DEPBAR" and waits_for(before))


def test_little_stays_unattributed(report: Path) -> None:
    for kernel, _, result in blamed(report):
        rows = result.rows
        lost = int(rows.samples[rows.role == Role.UNATTRIBUTED.value].sum())
        assert lost <= 0.01 * kernel.total_samples or kernel.total_samples < _FEW, kernel.launch.demangled


def test_scoreboard_stalls_find_their_sources(report: Path) -> None:
    for _, _, result in blamed(report):
        for reason in ("long_scoreboard", "short_scoreboard"):
            names = [one.name for one in result.reasons]
            mine = (result.rows.reason == names.index(reason)) if reason in names else False
            lost = mine & (result.rows.use_index != NO_INDEX) & (result.rows.role != Role.BLAMED.value)
            most = max(_STRAY, 0.01 * int((result.rows.samples * mine).sum()))
            assert int((result.rows.samples * lost).sum()) <= most, reason


def test_pruning_raises_the_single_dependency_coverage(report: Path) -> None:
    for _, _, result in blamed(report):
        coverage = result.coverage
        assert coverage.before is not None
        assert coverage.after is not None
        assert coverage.after >= coverage.before
