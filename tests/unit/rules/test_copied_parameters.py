# SPDX-License-Identifier: Apache-2.0
"""GPA101: structs passed by value that each thread copies to local memory, because it indexes them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.evidence.accesses import is_local
from gpadvisor.model.advice import Match
from gpadvisor.model.blame import DependencyClass
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.program import KernelFacts, LineEntry
from gpadvisor.model.remedy import Remedy
from gpadvisor.rules.register_reuse import OPTIMIZER

FACTS = KernelFacts(40, 0, 88, None, None, None, None)
LOOP = "again:\nfill| LDL R5, [R12]\nuse| FFMA R8, R5, R9, R8\n@P0 BRA again\nEXIT"
BYTES = (  # the compiler copies what stands behind a struct's last member, too
    "LDC.U8 R6, c[0x0][0x1b4]\nLDC.U8 R7, c[0x0][0x1b5]\nPRMT R6, R7, 0x7604, R6\n"
    "MOV R4, c[0x0][0x168]\nIMAD.MOV.U32 R5, RZ, RZ, c[0x0][0x16c]\nSTL [R1+0x10], R6\nSTL.64 [R1], R4\n"
)
LOADED = "LDC.64 R4, c[0x0][0x210]\nSTL.64 [R1], R4\n"


@pytest.mark.parametrize(("copy", "arch"), [(BYTES, "sm_86"), (LOADED, "sm_90")])
def test_a_parameter_that_is_indexed_is_read_where_it_is_passed(copy: str, arch: str) -> None:
    code = listing(copy + LOOP, arch, facts=FACTS)
    for rows in (None, [Row("long_scoreboard", "use", 100, 90, "fill", DependencyClass.LOCAL_MEMORY)]):
        found = OPTIMIZER.match(context_of(code, rows))
        assert isinstance(found, Match)
        assert found.title == "kernel parameter copied to local memory"
        assert found.cure.startswith(
            "Declare the parameter that is indexed at run time const __grid_constant__"
        )
        assert "copies 88 bytes" in found.cure
        assert found.remedies == (Remedy.GRID_CONSTANT,)


@pytest.mark.parametrize(
    "changed",
    [
        "STL [R1+0x8], RZ\n",
        "MOV R7, 0x3f800000\nSTL [R1+0x8], R7\n",
        "LDG.E R7, [R2.64]\nSTL [R1+0x8], R7\n",
        "S2R R7, SR_TID.X\nSTL [R1+0x8], R7\n",
        "LDC R6, c[0x0][0x160]\nIADD3 R7, R6, R30, RZ\nSTL [R1+0x8], R7\n",
    ],
    ids=["zero", "a number", "data", "the thread", "an unknown register"],
)
def test_what_the_thread_writes_itself_is_an_array_of_its_own(changed: str) -> None:
    found = OPTIMIZER.match(context_of(listing(BYTES + changed + LOOP, facts=FACTS)))
    assert isinstance(found, Match)
    assert found.title == "local array indexed at run time"
    assert "__grid_constant__" not in found.cure


COUNTED = """
    LDG.E R20, [R2.64]
    {first}
    again:
    IADD3 R12, R12, 0x4, RZ
    STL [R12], R21
    IADD3 R22, R22, 0x1, RZ
    ISETP.GE.AND P0, PT, R22, R20, PT
    @P0 BRA again
    EXIT
"""


@pytest.mark.parametrize(
    ("first", "title"),
    [
        (
            "LOP3.LUT R14, R20, 0xfffffffc, RZ, 0xc0, !PT\nIMAD R12, R14, 0x4, R1",
            "local array indexed at run time",
        ),
        ("LDG.E R14, [R4.64]\nIMAD R12, R14, 0x4, R1", "local array indexed by data"),
    ],
    ids=["the rest of an unrolled loop", "an index that was loaded"],
)
def test_the_number_of_passes_is_no_index(first: str, title: str) -> None:
    """After a list of neighbours whose length was loaded: its last passes begin at a multiple of four."""
    found = OPTIMIZER.match(context_of(listing(COUNTED.format(first=first), facts=FACTS)))
    assert isinstance(found, Match)
    assert found.title == title


@pytest.mark.parametrize(("header", "told"), [("curand_kernel.h", False), ("array.h", True)])
def test_a_state_of_quasi_random_numbers_is_the_librarys_array(header: str, *, told: bool) -> None:
    """Its direction numbers are indexed by a counter's lowest bit; an array class holds the caller's."""
    context = context_of(listing(f"store| STL [R1], R20\n{LOOP}", facts=FACTS))
    (function,) = context.program.functions
    inside = SourceLocation(f"/usr/local/cuda/include/{header}", 240)
    lines = tuple(
        LineEntry(SourceLocation("kernel.cu", 9), library=(inside,) if is_local(instruction) else ())
        for instruction in function.instructions
    )
    program = replace(context.program, functions=(replace(function, lines=lines),))
    assert isinstance(OPTIMIZER.match(replace(context, program=program)), Match) == told


@pytest.mark.parametrize(("argument", "told"), [("curandStateXORWOW*", False), ("float*", True)])
def test_without_lines_arrays_beside_states_are_the_librarys(argument: str, *, told: bool) -> None:
    context = context_of(listing(f"store| STL [R1], R20\n{LOOP}", facts=FACTS))
    (function,) = context.program.functions
    bare = replace(
        function, lines=(None,) * len(function.lines), demangled=f"void prepare({argument}, unsigned long)"
    )
    program = replace(context.program, functions=(bare,))
    assert isinstance(OPTIMIZER.match(replace(context, program=program)), Match) == told


@pytest.mark.parametrize(("stack", "told"), [(400, True), (401, False)])
def test_frames_of_eight_warps_fit_in_shared_memory_or_nothing_is_said(stack: int, *, told: bool) -> None:
    """100 KiB of an SM of compute capability 8.6 are 400 bytes for each of 256 threads."""
    text = f"store| STL [R1], R20\nLDG.E R11, [R2.64]\nIMAD R12, R11, 0x4, R1\n{LOOP}"
    found = OPTIMIZER.match(context_of(listing(text, facts=replace(FACTS, stack_bytes=stack))))
    assert isinstance(found, Match) == told
    if isinstance(found, Match):
        assert found.cure.endswith(": its index is data.")


def test_an_array_that_fits_nowhere_else_gets_a_whole_sentence_and_no_blank() -> None:
    """As in HeCBench's libor: what shows the array is told, and there is no cure to follow it."""
    text = f"store| STL [R1], R20\nLDG.E R11, [R2.64]\nIMAD R12, R11, 0x4, R1\n{LOOP}"
    context = context_of(
        listing(text, facts=replace(FACTS, stack_bytes=4000)), [Row("long_scoreboard", "store", 100)]
    )
    found = OPTIMIZER.match(context)
    assert isinstance(found, Match)
    assert found.advice.endswith("registers of it.")
