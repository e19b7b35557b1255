# SPDX-License-Identifier: Apache-2.0
"""GPA402 and GPA403: notes about units, without a number."""

from __future__ import annotations

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.advice.evaluate import evaluate
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.rules import tensor_cores, unit_at_limit

PRODUCT = """
    fill| STS [R20], R2 // 7
    again:
    left| LDS R8, [R21] // 9
    right| LDS R9, [R22] // 9
    use| {opcode} R10, R8, R9, R10 // 9
    {more}
    @P0 BRA again // 8
    store| STG.E [R6.64], R10 // 11
    EXIT
"""


def _product(opcode: str, arch: str, more: str = "", times: int = 16) -> KernelContext:
    passes = 1000 * times
    return context_of(
        listing(PRODUCT.format(opcode=opcode, more=more), arch),
        [Row("mio_throttle", "left", 600, 500), Row("selected", "use", 400)],
        counts={"fill": (2000, 64000), **dict.fromkeys(("left", "right", "use"), (passes, 32 * passes))},
    )


@pytest.mark.parametrize(
    ("opcode", "arch", "said"),
    [
        ("FFMA", "sm_80", "TF32"),
        ("FFMA", "sm_75", None),
        ("HFMA2", "sm_75", "half precision"),
        ("FFMA", "sm_100", "packed"),
    ],
)
def test_what_the_tensor_cores_of_a_gpu_take(opcode: str, arch: str, said: str | None) -> None:
    found = tensor_cores.OPTIMIZER.match(_product(opcode, arch))
    assert isinstance(found, Match) is (said is not None)
    if isinstance(found, Match):
        assert said is not None
        assert said in found.advice


def test_a_kernel_with_tensor_instructions_knows_them() -> None:
    found = tensor_cores.OPTIMIZER.match(_product("FFMA", "sm_80", "HMMA.16816.F32 R24, R12, R16, R24"))
    assert isinstance(found, Rejection)
    assert "uses the tensor cores" in found.reason


def test_a_product_of_vectors_is_none_of_matrices() -> None:
    assert isinstance(tensor_cores.OPTIMIZER.match(_product("FFMA", "sm_80", times=1)), Rejection)


UNPACKED = """
    fill| STS [R20], R2 // 7
    again:
    load| LDG.E R12, [R4.64] // 9
    left| LDS R8, [R21] // 9
    LOP3.LUT R13, R12, 0x7, RZ, 0xc0, !PT // 9
    right| I2FP.F32.U32 R9, R13 // 9
    use| FFMA R10, R8, R9, R10 // 9
    @P0 BRA again // 8
    store| STG.E [R6.64], R10 // 11
    EXIT
"""


@pytest.mark.parametrize("filled", [False, True])
def test_a_matrix_of_which_each_thread_unpacks_its_own_column_meets_a_vector(filled: bool) -> None:
    """As in HeCBench's quant3MatMul; where the loop fills a tile with what it loads, threads may share it."""
    text = (
        UNPACKED.replace("// 9\n    @P0", "// 9\n    kept| STS [R22], R12 // 9\n    @P0")
        if filled
        else UNPACKED
    )
    passes = (16000, 512000)
    context = context_of(
        listing(text, "sm_80"),
        [Row("mio_throttle", "left", 600, 500), Row("selected", "use", 400)],
        counts={
            **dict.fromkeys(("fill", *(("kept",) if filled else ())), (1000, 32000)),
            **dict.fromkeys(("load", "left", "right", "use"), passes),
        },
    )
    found = tensor_cores.OPTIMIZER.match(context)
    assert isinstance(found, Match) is filled
    if isinstance(found, Rejection):
        assert "a matrix times a vector" in found.reason


def test_notes_have_no_estimate() -> None:
    findings, _ = evaluate(_product("FFMA", "sm_80"), [tensor_cores.OPTIMIZER])
    assert [one.estimate for one in findings] == [None]


UNITS = """
    load| LDG.E R2, [R8.64] // 5
    mul| FMUL R3, R2, R4 // 6
    add| IADD3 R5, R6, R7, RZ // 7
    tile| LDS R9, [R10] // 8
    root| MUFU.RSQ R11, R3 // 9
    EXIT
"""


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("gpu__dram_throughput", "LDG kernel.cu:5 has 100.0 %"),
        ("l1tex__data_pipe_lsu_wavefronts", "LDS kernel.cu:8 has 80.0 %"),
        ("l1tex__lsuin_requests", "LDG kernel.cu:5 has 50.0 %"),
        ("sm__inst_executed_pipe_xu", "MUFU kernel.cu:9 has 100.0 %"),
        ("sm__issue_active", "has 20.0 %"),
    ],
)
def test_what_loads_each_unit(metric: str, said: str) -> None:
    tags = ("load", "mul", "add", "tile", "root")
    context = context_of(
        listing(UNITS),
        [Row("selected", tag, 100) for tag in tags],
        counts=dict.fromkeys(tags, (1000, 32000)),
        pc_metrics={
            "memory_l2_theoretical_sectors_global": {"load": 4000},
            "memory_l1_tag_requests_global": {"load": 1000},
            "memory_l1_wavefronts_shared": {"tile": 4000},
        },
        metrics={f"{metric}.avg.pct_of_peak_sustained_elapsed": 91.0},
    )
    found = unit_at_limit.OPTIMIZER.match(context)
    assert isinstance(found, Match), found
    assert "at 91 % of its peak" in found.advice
    assert said in found.advice
