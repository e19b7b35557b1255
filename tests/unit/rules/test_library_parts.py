# SPDX-License-Identifier: Apache-2.0
"""Library math as a whole: the polynomial of a sine, and what leads around a path for rare arguments."""

from __future__ import annotations

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.evidence.patterns import math_sequences
from gpadvisor.model.advice import Match
from gpadvisor.rules.fast_math import OPTIMIZER

REDUCTION = (
    "FMUL R3, R0, 0.63661974668502807617\nF2I.NTZ R3, R3\nI2FP.F32.S32 R7, R3\n"
    "FFMA R6, R7, -1.5707962512969970703, R0\nFFMA R6, R7, -7.5497894158615963534e-08, R6\n"
    "reduced| FFMA R8, R7, -5.3903029534742383927e-15, R6\n"
)
POLYNOMIAL = (
    "square| FMUL R4, R8, R8\nodd| LOP3.LUT P1, RZ, R3, 0x1, RZ, 0xc0, !PT\n"
    "other| IADD3 R30, R30, 0x1, RZ\nhalf| LOP3.LUT P0, RZ, R3, 0x2, RZ, 0xc0, !PT\n"
    "third| FSEL R5, R20, 0.041666727513074874878, !P1\nfirst| FSEL R9, R8, 1, !P1\n"
    "second| FSEL R7, -R21, -0.4999999701976776123, !P1\nlast| FFMA R2, R4, R22, R5\n"
    "times| FFMA R10, R9, R4, RZ\nstep| FFMA R2, R4, R2, R7\nvalue| FFMA R2, R2, R10, R9\n"
    "{sign}own| FFMA R31, R2, R16, R31\nEXIT"
)
ALL = {"square", "odd", "half", "third", "first", "second", "last", "times", "step", "value", "sign"}


@pytest.mark.parametrize(
    ("arch", "sign"),
    [("sm_90", "sign| @P0 FFMA R2, R2, -1, RZ\n"), ("sm_120", "sign| @P0 FADD R2, RZ, -R2\n")],
)
def test_the_polynomial_of_a_sine_is_part_of_it(arch: str, sign: str) -> None:
    code = listing(REDUCTION + POLYNOMIAL.format(sign=sign), arch)
    (found,) = math_sequences(code.program.functions[0])
    named = {tag for tag, (_, index) in code.tags.items() if index in found.whole}
    assert named == ALL | {"reduced"}  # neither the program's own sums


def test_both_polynomials_of_sincosf_are_part_of_it() -> None:
    code = listing(
        REDUCTION + "square| FMUL R4, R8, R8\nodd| LOP3.LUT R9, R3, 0x1, RZ, 0xc0, !PT\n"
        "isodd| ISETP.NE.U32.AND P0, PT, R9, 0x1, PT\nc1| FFMA R6, R4, R20, 0.041666727513074874878\n"
        "s1| FFMA R7, R4, R21, -0.16666662693023681641\nc2| FFMA R6, R4, R6, -0.4999999701976776123\n"
        "cube| FFMA R10, R4, R8, RZ\nc3| FFMA R6, R4, R6, 1\ns2| FFMA R7, R10, R7, R8\n"
        "half| LOP3.LUT P1, RZ, R3, 0x2, RZ, 0xc0, !PT\nother| IADD3 R30, R30, 0x1, RZ\n"
        "next| IADD3 R11, R3, 0x1, RZ\nhalf2| LOP3.LUT P2, RZ, R11, 0x2, RZ, 0xc0, !PT\n"
        "sine| FSEL R12, R6, R7, !P0\ncosine| FSEL R13, R7, R6, !P0\n"
        "signed| FSEL R12, R12, -R12, !P1\nsigned2| FSEL R13, R13, -R13, !P2\n"
        "own| FFMA R31, R12, R13, R31\nEXIT"
    )
    (found,) = math_sequences(code.program.functions[0])
    named = {tag for tag, (_, index) in code.tags.items() if index in found.whole}
    assert named == code.tags.keys() - {"other", "own"}


def test_a_polynomial_of_the_programs_own_is_none_of_a_sine() -> None:
    text = POLYNOMIAL.format(sign="sign| @P0 FFMA R2, R2, -1, RZ\n")
    assert not math_sequences(listing(text).program.functions[0])


def test_the_way_around_a_rare_path_goes_with_it() -> None:
    code = listing(
        "begin| BSSY B0, over\nown| FADD R9, R9, R0\ntest| IADD3 R4, R0, -0xd000000, RZ\n"
        "root| MUFU.RSQ R5, R0\ncheck| ISETP.GT.U32.AND P0, PT, R4, 0x727fffff, PT\n"
        "branch| @!P0 BRA fast\nCALL.REL.NOINC slow\nBRA over\nfast:\nFMUL.FTZ R3, R0, R5\n"
        "FFMA R5, R3, R5, R3\nover:\nend| BSYNC B0\nEXIT"
    )
    (found,) = math_sequences(code.program.functions[0])
    for tag in ("begin", "test", "root", "check", "branch", "end"):
        assert code.tags[tag][1] in found.whole, tag
    assert code.tags["own"][1] not in found.whole


def test_fast_forms_stand_on_the_same_special_functions() -> None:
    text = (
        "FFMA.SAT R0, R2, R5, 0.5\nFFMA.RM R0, R0, R7, 12582913\nFADD R5, R0, -12583039\n"
        "FFMA R6, R2, 1.925963033500011079e-08, R5\nspecial| MUFU.EX2 R7, R6\nuse| FADD R8, R7, R9\nEXIT"
    )
    rows = [Row("wait", "use", 100, 90, "special"), *(Row("selected", tag, 10) for tag in ("special", "use"))]
    found = OPTIMIZER.match(context_of(listing(text), rows, counts={"special": (10, 320), "use": (10, 320)}))
    assert isinstance(found, Match)
    assert "XU pipe" not in {one.resource for one in found.reduced_loads}
