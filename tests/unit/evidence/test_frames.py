# SPDX-License-Identifier: Apache-2.0
"""Arrays of a thread: which of several is told, arrays of constants, and indices that a table has."""

from __future__ import annotations

import pytest
from tests.optimizer_values import context_of, listing

from gpadvisor.evidence.frames import largest_array
from gpadvisor.model.advice import Match
from gpadvisor.model.program import KernelFacts
from gpadvisor.rules.register_reuse import OPTIMIZER

FACTS = KernelFacts(40, 0, 4128, None, None, None, None)
TWO = """VIADD R1, R1, 0xffffefe0
IADD3 R3, R1, {start}, RZ
fill:
LDG.E R4, [R6.64]
IMAD.IADD R8, R3, 0x1, R9
large| STL [R8], R4
read| LDL R5, [R8]
@P0 BRA fill
again:
inner:
IMAD.IADD R10, R1, 0x1, R11
small| LDL R12, [R10]
IADD3 R11, R11, 0x4, RZ
@P1 BRA inner
@P0 BRA again
EXIT"""


@pytest.mark.parametrize(("start", "told"), [("0x20", "large"), ("0x1000", "small")])
def test_of_several_arrays_the_largest_is_told_with_its_bytes(start: str, told: str) -> None:
    """As an array of 4 KB beside one of 32 bytes, at whose line it was told."""
    code = listing(TWO.format(start=start), facts=FACTS)
    (function,) = code.program.functions
    accesses = [code.tags[tag][1] for tag in ("large", "read", "small")]
    found = largest_array(function, accesses, 4128)
    assert found is not None
    assert code.tags[told][1] in found[0]
    assert found[1] == 4096
    assert largest_array(function, [code.tags[tag][1] for tag in ("large", "small")], 4128) is None
    match = OPTIMIZER.match(context_of(code))
    assert isinstance(match, Match)
    assert match.place == code.tags[told]
    assert "4096 bytes" in match.cure


def test_of_one_array_the_frame_tells_its_bytes() -> None:
    code = listing(TWO.format(start="0x20").replace("R3, 0x1, R9", "R1, 0x1, R9"), facts=FACTS)
    (function,) = code.program.functions
    assert largest_array(function, [code.tags[tag][1] for tag in ("large", "small")], 4128) is None


NUMBERS = """MOV R4, 0x3ff00000
CS2R R6, SRZ
HFMA2.MMA R5, -RZ, RZ, 1.984375, 0
{changed}STL.128 [R1], R4
IMAD.IADD R10, R1, 0x1, R11
LDL R12, [R10]
FADD R13, R12, R12
EXIT"""


@pytest.mark.parametrize(
    ("changed", "constant"),
    [
        ("", True),
        ("IADD3 R5, R5, c[0x0][0x160], RZ\n", False),
        ("LDG.E R5, [R8.64]\n", False),
        ("S2R R5, SR_TID.X\n", False),
        ("FADD R5, R5, R20\n", False),
    ],
)
def test_an_array_of_constants_is_declared_as_one(changed: str, constant: bool) -> None:
    """As the four phases of a gate, of which no loop was there to be unrolled."""
    found = OPTIMIZER.match(context_of(listing(NUMBERS.format(changed=changed), facts=FACTS)))
    assert isinstance(found, Match)
    assert found.cure.startswith("Declare the array of constants __constant__") is constant
    assert (found.title == "array of constants in local memory") is constant


@pytest.mark.parametrize(
    ("number", "differs"), [("SR_TID.X", True), ("SR_LANEID", True), ("SR_CTAID.X", False)]
)
def test_constants_that_differ_between_the_threads_of_a_warp_are_not_for_constant_memory(
    number: str, differs: bool
) -> None:
    text = f"S2R R11, {number}\n{NUMBERS.format(changed='')}"
    found = OPTIMIZER.match(context_of(listing(text, facts=FACTS)))
    assert isinstance(found, Match)
    assert ("static __device__ const" in found.cure and "one after the other" in found.cure) is differs
    assert ("__constant__" in found.cure) is not differs


BY_TABLE = "".join(
    f"LDC.U8 R4, c[0x3][0x{place:x}]\nIMAD.IADD R10, R1, 0x1, R4\nLDL R12, [R10]\n" for place in range(1, 6)
)


@pytest.mark.parametrize(("place", "table"), [("c[0x3][", True), ("c[0x0][", False)])
def test_indices_from_a_constant_table_are_made_known_to_the_compiler(place: str, table: bool) -> None:
    """As the permutations of a BLAKE2b with unrolled rounds: static __device__ const leaves no stack."""
    text = f"{BY_TABLE.replace('c[0x3][', place)}EXIT"
    found = OPTIMIZER.match(context_of(listing(text, facts=FACTS)))
    assert isinstance(found, Match)
    assert found.cure.startswith("Let the compiler know the indices") is table


def test_one_constant_variable_is_no_table() -> None:
    text = "LDC R4, c[0x3][0x8]\nIMAD.IADD R10, R1, 0x1, R4\nLDL R12, [R10]\nEXIT"
    found = OPTIMIZER.match(context_of(listing(text, facts=FACTS)))
    assert isinstance(found, Match)
    assert "Let the compiler know" not in found.cure
