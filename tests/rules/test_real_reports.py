# SPDX-License-Identifier: Apache-2.0
"""Rules on a real report with a measured before and after: matrix multiplication, then coalesced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpadvisor import machine
from gpadvisor.analyzer import build_program
from gpadvisor.analyzer.occupancy import kernel_occupancy
from gpadvisor.blamer import blame
from gpadvisor.cubin import read_cubin
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.rules import OPTIMIZERS, memory_transaction_reduction
from gpadvisor.store.load import load_profile
from gpadvisor.toolchain.disassembly import disassemble

pytestmark = [pytest.mark.reports, pytest.mark.nvdisasm]


def _contexts(name: str) -> list[KernelContext]:
    profile = load_profile(Path(os.environ["GPADVISOR_REPORTS"]) / name)
    found = []
    for kernel in profile.kernels:
        assert kernel.binary is not None
        data = profile.binaries[kernel.binary]
        program = build_program(read_cubin(data), disassemble(data).listing)
        model = machine.load(program.arch)
        found.append(
            KernelContext(
                kernel=kernel.launch.kernel,
                program=program,
                machine=model,
                occupancy=kernel_occupancy(model, program.facts.get(kernel.launch.kernel), kernel),
                evidence=kernel.evidence,
                profile=kernel,
                blame=blame(program, kernel, model),
            )
        )
    return found


def test_the_uncoalesced_kernel_and_the_coalesced_one() -> None:
    before, after = _contexts("rtx3090_gemm_naive.ncu-rep")
    found = memory_transaction_reduction.OPTIMIZER.match(before)
    assert isinstance(found, Match)
    estimate = memory_transaction_reduction.OPTIMIZER.estimate(before, found)
    assert estimate.paper == pytest.approx(4.56, abs=0.01)
    achieved = 9846176 / 1201696  # durations of the two kernels, 8.19x
    assert estimate.low <= achieved <= estimate.high * 1.01  # the next unit at its peak is 8.17x
    assert estimate.expected == pytest.approx(achieved, rel=0.25)
    others = [
        one.estimate(before, match).expected
        for one in OPTIMIZERS
        if isinstance(match := one.match(before), Match)
    ]
    assert max(others) == estimate.expected
    refused = memory_transaction_reduction.OPTIMIZER.match(after)
    assert isinstance(refused, Rejection)
    assert "nothing to coalesce" in refused.reason
    assert "L1 throughput, at 98 % of its peak" in refused.reason
