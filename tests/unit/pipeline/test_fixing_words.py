# SPDX-License-Identifier: Apache-2.0
"""The sentence and the table that say what a fix does to the machine code."""

from __future__ import annotations

from typing import Any

import pytest

from gpadvisor.model.fix import Change, Fix, FixKind, KernelChange, PatternState
from gpadvisor.pipeline.fixes.words import markdown, sentence

FIX = Fix(
    id="1",
    code="GPA102",
    title="Use float literal 0.5f [GPA102]",
    kind=FixKind.QUICKFIX,
    file="a.cu",
    edits=(),
    needs_confirmation=True,
    reason=None,
    preferred=False,
    change="float_literals",
    line=5,
    first_line=5,
    last_line=5,
)


def change(**more: Any) -> KernelChange:
    same = Change(before=0, after=0)
    values: dict[str, Any] = {
        "kernel": "k",
        "name": "k(float*)",
        "instructions": Change(before=7, after=4),
        "registers": Change(before=12, after=12),
        "local_bytes": same,
        "local_accesses": same,
        "shared_bytes": same,
        "gone": (("F2F", 2), ("DFMA", 1)),
        "added": (("FFMA", 1),),
        "unchanged": False,
        **more,
    }
    return KernelChange(**values)


@pytest.mark.parametrize(
    ("kernels", "pattern", "wanted"),
    [
        (
            [change()],
            PatternState.GONE,
            "F2F x2 and DFMA gone on line 5, FFMA added, registers 12 (unchanged); the pattern is gone",
        ),
        (
            [change(local_bytes=Change(before=0, after=16), registers=Change(before=12, after=10))],
            PatternState.FEWER,
            (
                "F2F x2 and DFMA gone on line 5, FFMA added, registers 12 to 10, bytes of local memory 0 "
                "to 16; the pattern stands in fewer places"
            ),
        ),
        (
            [change(gone=(), added=(), registers=Change(before=None, after=None)), change(), change()],
            PatternState.STAYS,
            (
                "the same instructions on line 5 in another order; 2 more kernels changed; "
                "the pattern is still there"
            ),
        ),
        (
            [change(unchanged=True)],
            PatternState.UNKNOWN,
            "the machine code is the same; whether the stalls go only a new profile tells",
        ),
        (
            [change(gone=tuple((f"OP{i}", 9 - i) for i in range(9)), added=())],
            PatternState.GONE,
            (
                "instructions 7 to 4, OP0 x9, OP1 x8, OP2 x7, OP3 x6 and 5 more gone on line 5, "
                "registers 12 (unchanged); the pattern is gone"
            ),
        ),
    ],
)
def test_one_sentence(kernels: list[KernelChange], pattern: PatternState, wanted: str) -> None:
    text = sentence(FIX, "sm_80", kernels, pattern, "on line 5")
    assert text == f"GPA102: recompiled for sm_80: {wanted}"


def test_a_table_for_each_kernel_that_changed() -> None:
    kernels = [change(), change(name="other", unchanged=True)]
    text = markdown(FIX, "a.cu", "nvcc 13.0", "sm_80", kernels, PatternState.GONE, "on line 5")
    assert "| instructions | 7 | 4 |" in text
    assert "`F2F` -2, `DFMA` -1, `FFMA` +1" in text
    assert "other" not in text
    assert text.endswith("The pattern is gone. Nothing was measured: profile again to confirm.")
    many = markdown(FIX, "a.cu", "nvcc", "sm_80", [change()] * 10, PatternState.STAYS, "")
    assert "2 more kernels changed." in many
