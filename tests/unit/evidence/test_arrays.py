# SPDX-License-Identifier: Apache-2.0
"""What moves the index of an array, and where its pointer comes from."""

from __future__ import annotations

import pytest
from tests.optimizer_values import listing

from gpadvisor.evidence.arrays import is_moved_by_conditions, is_pointer_from_memory

COUNTED = "again:\nLEA R3, R2, R1, 0x2\nSTL [R3], R4\nIADD3 R2, R2, 0x1, RZ\n@P0 BRA again\nEXIT"
GUARDED = "again:\nLEA R3, R2, R1, 0x2\nSTL [R3], R4\n@P1 IADD3 R2, R2, 0x1, RZ\n@P0 BRA again\nEXIT"
# One value is taken off a stack, and where a branch goes that way two are put back.
STACK = """\
again:
IADD3 R5, R2, -0x1, RZ
LEA R3, R5, R1, 0x2
LDL R4, [R3]
@P1 BRA less
IADD3 R2, R5, 0x2, RZ
BRA next
less:
IMAD.MOV.U32 R2, RZ, RZ, R5
next:
@P0 BRA again
EXIT"""


@pytest.mark.parametrize(("text", "moved"), [(COUNTED, False), (GUARDED, True), (STACK, True)])
def test_a_stack_is_moved_by_conditions_and_a_counter_is_not(text: str, moved: bool) -> None:
    (function,) = listing(text).program.functions
    (access,) = [i for i, one in enumerate(function.instructions) if one.opcode in {"LDL", "STL"}]
    assert is_moved_by_conditions(function, access) is moved


@pytest.mark.parametrize(
    ("arch", "block_size", "parameter"), [("sm_80", 0x0, 0x168), ("sm_100", 0x360, 0x388)]
)
def test_a_size_of_the_launch_in_an_offset_is_no_parameter(
    arch: str, block_size: int, parameter: int
) -> None:
    for at, loaded in ((block_size, True), (parameter, False)):
        text = f"LDG.E.64 R2, [R6.64]\nIMAD.WIDE R4, R0, c[0x0][{at:#x}], R2\nLDG.E R8, [R4.64]\nEXIT"
        program = listing(text, arch).program
        assert is_pointer_from_memory(program.functions[0], 2, program.form) is loaded
