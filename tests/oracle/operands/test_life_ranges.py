# SPDX-License-Identifier: Apache-2.0
"""The operand model against nvdisasm's life ranges, on code compiled here."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.oracle.operands import life_ranges
from tests.oracle.operands.compare import Score, everything, kernels_and_cub, score_all
from tests.oracle.operands.corpus import FURTHER, cub_sources, fixture_sources, own_sources, tool

from gpadvisor.model.instruction import RegisterFile, register

EXACT = 0.9998
FULL_SIZE = 100_000
CONTRADICTED_FORMS = {
    "LDGSTS.E.64.ZFILL M,M,P",
    "TEX R,R,R,U,X",
    "TEX.LL R,R,R,R,U,X",
    "TLD.LZ R,R,R,U,X",
    "TXD R,R,R,R,U,X",
}
"""Seen ten times or more, and wrong in the table by its own later rows: strictly they are weak."""
PROLOGUE_OF_SM_87 = {"ISETP.NE.U32.AND P,P,R,U,P", "UMOV U,I"}
"""The table leaves the uniform register of these two unmarked; they open every kernel."""
SMALL = ("integer", "memory", "matrix", "cub_unique")

pytestmark = [
    pytest.mark.toolkit,
    pytest.mark.nvdisasm,
    pytest.mark.skipif(
        tool("nvcc") is None or tool("nvdisasm") is None, reason="nvcc and nvdisasm are not installed"
    ),
]


def meets_the_bar(score: Score) -> None:
    sys.stdout.write(score.table() + "\n")
    assert not score.problems, score.table()
    assert score.share >= EXACT, score.table()
    forms_agree(score)


def forms_agree(score: Score) -> None:
    weak = score.weak_forms(strict=False)
    assert not weak, f"{weak}\n{score.table()}"
    assert set(score.weak_forms()) <= CONTRADICTED_FORMS, score.table()


TABLE = """
\t.section\t.text.k,"ax",@progbits
                                     // +----------+---------+------------+
                                     // |  GPR     |  PRED   |   UGPR     |
                                     // |          |         |            |
                                     // |       11 |         |            |
                                     // |  # 01901 | # 01    |  # 04      |
                                     // +----------+---------+------------+
        /*0000*/  MOV R1, R11 ;      // |  2  ^: v |         |            |
        /*0010*/  NOP ;
        /*0020*/  @P1 LEA R9, R9 ;   // |  2   x:  | 1  v    |  1  v      |
"""


def test_reading_a_table() -> None:
    gpr, predicate, uniform = RegisterFile.GPR, RegisterFile.PREDICATE, RegisterFile.UNIFORM
    rows = list(life_ranges.read(TABLE))
    assert [(section, offset) for section, offset, _ in rows] == [("k", 0), ("k", 0x20)]
    assert rows[0][2].defs == {register(gpr, 1)}
    assert rows[0][2].uses == {register(gpr, 11)}
    assert rows[1][2].defs == {register(gpr, 9)}
    assert rows[1][2].uses == {register(gpr, 9), register(predicate, 1), register(uniform, 4)}


def test_a_wrong_model_is_noticed() -> None:
    score = Score(compared=1000, exact=999)
    score.seen["LDG.E R,M"], score.missed["LDG.E R,M"] = 12, 1
    assert score.share < EXACT
    assert score.weak_forms() == ["LDG.E R,M"]
    score.contradicted["LDG.E R,M", "of two minds"] = 1
    assert score.share < EXACT
    assert score.weak_forms() == ["LDG.E R,M"]
    assert score.share_where_consistent == 1
    assert not score.weak_forms(strict=False)


def test_selection(tmp_path: Path) -> None:
    """A few files on an architecture with hidden descriptors and on the newest."""
    sources = [source for source in (*own_sources(), *cub_sources()) if source.stem in SMALL]
    score = score_all([(source, arch) for arch in ("sm_86", "sm_120a") for source in sources], tmp_path)
    assert len(sources) == len(SMALL)
    assert score.compared > 10_000
    meets_the_bar(score)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(
    os.environ.get("GPADVISOR_VALIDATE") != "1",
    reason="set GPADVISOR_VALIDATE=1 to compile and compare the whole corpus",
)
def test_everything(tmp_path: Path) -> None:
    """The kernels and CUB strictly, form by form; then with the files that reach for rare forms."""
    assert fixture_sources()
    shipped = kernels_and_cub(tmp_path)
    assert shipped.compared >= FULL_SIZE
    assert set(shipped.by_arch) >= {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}
    meets_the_bar(shipped)
    assert not shipped.weak_forms(), shipped.table()
    meets_the_bar(everything(tmp_path))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(
    os.environ.get("GPADVISOR_VALIDATE") != "1",
    reason="set GPADVISOR_VALIDATE=1 to compile and compare the whole corpus",
)
@pytest.mark.parametrize("arch", FURTHER)
def test_further_architectures(arch: str, tmp_path: Path) -> None:
    score = everything(tmp_path, (arch,))
    sys.stdout.write(score.table() + "\n")
    assert not score.problems, score.table()
    if arch == "sm_87":
        missed = {name for name in score.missed if score.missed[name] > 10}
        assert missed <= PROLOGUE_OF_SM_87, score.table()
        return
    assert score.share_where_consistent >= EXACT, score.table()
    forms_agree(score)
