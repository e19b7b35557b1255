# SPDX-License-Identifier: Apache-2.0
"""What is said about local memory: a cure for each kind of value, with the numbers of this kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests import hand_made as made

from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.local_memory import LocalKind
from gpadvisor.estimators.local_memory_words import local_advice, local_cure
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.program import CallSite, FunctionKind, KernelFacts


def _context(*, launched: bool = True, stack: int = 64, device: bool = False, **facts: int) -> KernelContext:
    named: dict[str, int | None] = {
        **dict.fromkeys(("max_threads_per_block", "min_blocks_per_sm", "register_limit")),
        **facts,
    }
    known = KernelFacts(
        registers_per_thread=facts.get("registers_per_thread", 32), static_shared_bytes=0, stack_bytes=stack,
        max_threads_per_block=named["max_threads_per_block"], required_block=None,
        min_blocks_per_sm=named["min_blocks_per_sm"], uses_barriers=None,
        register_limit=named["register_limit"],
    )  # fmt: skip
    called = made.function(number=1, name="_Z6helperv", kind=FunctionKind.DEVICE)
    caller = replace(made.function(), calls=(CallSite(5, called.id, called.name),))
    functions = (caller, called) if device else (made.function(),)
    launch = made.launch(registers_per_thread=known.registers_per_thread)
    context = made.context(
        of=made.program(*functions, facts=known), measured=made.profile(of=launch) if launched else None
    )
    return replace(context, occupancy=replace(context.occupancy, blocks_per_sm=4, warps_per_sm=32))


def _said(kind: LocalKind, context: KernelContext) -> tuple[str, str]:
    places = {(FunctionId(0), 3): kind}
    return local_advice(context, places), local_cure(context, places)


@pytest.mark.parametrize(
    ("kind", "advice", "cure"),
    [
        (LocalKind.SPILL, "Keep fewer values live at once", "Keep fewer values live at once"),
        (LocalKind.ARRAY, "known only at run time", "Unroll the loops over the index"),
        (LocalKind.BY_DATA, "no unrolling makes registers", "Keep the thread's array in shared memory"),
        (LocalKind.PARAMETER, "passed by value is indexed", "each thread copies 64 bytes"),
        (LocalKind.CALL, "keep registers of their caller", "Inline the functions that are called"),
        (LocalKind.PASSED, "arguments of printf", "Call printf less often"),
    ],
)
def test_each_kind_of_value_has_its_cure(kind: LocalKind, advice: str, cure: str) -> None:
    shown, told = _said(kind, _context())
    assert advice in shown
    assert cure in told


def test_an_array_goes_to_shared_memory_if_it_fits_where_no_launch_says_that_it_does() -> None:
    _, known = _said(LocalKind.BY_DATA, _context())
    assert known == "Keep the thread's array in shared memory: conditions move its index."
    _, unknown = _said(LocalKind.BY_DATA, _context(launched=False))
    size = "if it fits, 64 bytes for each thread of a block"
    assert unknown == f"Keep the thread's array in shared memory {size}: conditions move its index."
    _, nothing = _said(LocalKind.BY_DATA, _context(launched=False, stack=0))
    assert nothing == "Keep the thread's array in shared memory if it fits: conditions move its index."


def test_an_array_that_fits_nowhere_is_made_smaller() -> None:
    _, cure = _said(LocalKind.ARRAY, _context(stack=4096))
    assert cure.startswith("Make the array smaller")
    assert "4096 bytes of each thread fit neither" in cure
    both = {(FunctionId(0), 3): LocalKind.ARRAY, (FunctionId(0), 5): LocalKind.CALL}
    assert local_cure(_context(stack=4096), both) == cure  # no inlining makes registers of it
    assert "Inline the functions" in local_cure(_context(), both)


def test_a_function_that_may_get_the_address_of_an_array_is_named() -> None:
    assert (
        "passed by address to a function that is called (helperv)"
        in _said(LocalKind.ARRAY, _context(device=True))[0]
    )
    assert "passed by address" not in _said(LocalKind.ARRAY, _context())[0]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, "up to 64 keep the 32 warps per SM of today"),
        ({"registers_per_thread": 64}, "more would cost some of the 32 warps per SM"),
        ({"registers_per_thread": 255}, "All 255 registers of a thread are in use"),
        ({"registers_per_thread": 32, "register_limit": 255}, "stopped at 32 of 255 registers, of itself"),
        ({"registers_per_thread": 32, "register_limit": 32}, "held there by -maxrregcount or maxnreg"),
        (
            {"registers_per_thread": 32, "register_limit": 32, "max_threads_per_block": 1024},
            "held there by the second number of __launch_bounds__, -maxrregcount or maxnreg",
        ),
        ({"registers_per_thread": 62, "max_threads_per_block": 1024}, "__launch_bounds__(1024)"),
        (
            {"registers_per_thread": 62, "max_threads_per_block": 256, "min_blocks_per_sm": 4},
            "__launch_bounds__(256, 4)",
        ),
    ],
)
def test_spills_are_due_to_a_limit_that_is_named(facts: dict[str, int], words: str) -> None:
    assert words in _said(LocalKind.SPILL, _context(**facts))[0]


def test_without_a_launch_it_is_not_known_what_more_registers_cost() -> None:
    context = _context(launched=False)
    assert "held there by" in local_advice(context, {(FunctionId(0), 3): LocalKind.SPILL})
    assert "or, for the limit of 32 registers" in _said(LocalKind.SPILL, context)[1]
    unlimited = _said(LocalKind.SPILL, _context(launched=False, register_limit=255))[1]
    assert unlimited == "Keep fewer values live at once, so that none is spilled."
