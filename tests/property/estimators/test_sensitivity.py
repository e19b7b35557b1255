# SPDX-License-Identifier: Apache-2.0
"""Advice on real reports does not hang on latencies that nobody measured: all of them halved and doubled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpadvisor import machine
from gpadvisor.advice.kernel import advise_kernel
from gpadvisor.advice.launches import chosen_launches
from gpadvisor.advice.standing import NO_THRESHOLDS
from gpadvisor.analyzer import build_program
from gpadvisor.analyzer.occupancy import kernel_occupancy
from gpadvisor.blamer import blame
from gpadvisor.cubin import read_cubin
from gpadvisor.errors import ToolError, UnknownArchitectureError
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import KernelAdvice
from gpadvisor.model.machine import MachineModel
from gpadvisor.model.profile import Evidence, KernelProfile
from gpadvisor.model.program import Program
from gpadvisor.rules import OPTIMIZERS
from gpadvisor.store.load import load_profile
from gpadvisor.toolchain.disassembly import disassemble

pytestmark = [pytest.mark.reports, pytest.mark.nvdisasm]

FOLDER = os.environ.get("GPADVISOR_REPORTS", "")
REPORTS = sorted(Path(FOLDER).glob("*.ncu-rep"), key=lambda path: path.stat().st_size)[:6] if FOLDER else []


def advised(program: Program, profile: KernelProfile, model: MachineModel) -> KernelAdvice:
    kernel = profile.launch.kernel
    context = KernelContext(
        kernel=kernel,
        program=program,
        machine=model,
        occupancy=kernel_occupancy(model, program.facts.get(kernel), profile),
        evidence=profile.evidence,
        profile=profile,
        blame=blame(program, profile, model),
    )
    return advise_kernel(context, OPTIMIZERS, limits=NO_THRESHOLDS)


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_halved_and_doubled_latencies(path: Path) -> None:
    profile = load_profile(path)
    chosen = [one.profile for one in chosen_launches(profile) if one.profile.evidence is Evidence.MEASURED]
    for kernel in [one for one in chosen if one.binary in profile.binaries][:1]:
        assert kernel.binary is not None
        try:
            model = machine.load(kernel.device.arch)
            listing = disassemble(profile.binaries[kernel.binary]).listing
        except (UnknownArchitectureError, ToolError) as error:
            pytest.skip(str(error))
        program = build_program(read_cubin(profile.binaries[kernel.binary]), listing)
        plain = advised(program, kernel, model)
        for factor in (0.5, 2.0):
            other = advised(program, kernel, machine.scaled(model, factor))
            assert other.samples.total == plain.samples.total
            moved = abs(other.samples.blamed - plain.samples.blamed)
            assert moved <= 0.2 * plain.samples.total, "a fifth of all samples hangs on latencies"
            for one in plain.suggestions[:1]:
                if one.speedup is not None:
                    same = next(
                        (entry.speedup for entry in other.suggestions if entry.code == one.code), None
                    )
                    assert same is not None, one.code
                    assert same.expected == pytest.approx(one.speedup.expected, rel=0.2), one.code
