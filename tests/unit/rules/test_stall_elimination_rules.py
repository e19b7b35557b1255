# SPDX-License-Identifier: Apache-2.0
"""Legality and evidence of GPA101 to GPA106 beyond their fixtures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor import machine
from gpadvisor.advice.evaluate import evaluate
from gpadvisor.advice.kernel import advise_kernel
from gpadvisor.advice.standing import NO_THRESHOLDS
from gpadvisor.estimators.constants import RUN_TO_RUN
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import Match, Rejection, ScopeKind
from gpadvisor.model.blame import DependencyClass
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.program import InlineFrame, KernelFacts, LineEntry
from gpadvisor.report.entries import primary
from gpadvisor.rules import (
    fast_math,
    function_split,
    memory_transaction_reduction,
    register_reuse,
    strength_reduction,
    warp_balance,
)

LOCAL = DependencyClass.LOCAL_MEMORY
GLOBAL = DependencyClass.GLOBAL_MEMORY
ARITHMETIC = DependencyClass.ARITHMETIC
SYNC = DependencyClass.SYNCHRONIZATION


def _match(rule: object, context: KernelContext) -> Match:
    found = rule.OPTIMIZER.match(context)  # type: ignore[attr-defined]  # a module
    assert isinstance(found, Match), found
    return found


def _reason(rule: object, context: KernelContext) -> str:
    found = rule.OPTIMIZER.match(context)  # type: ignore[attr-defined]  # a module
    assert isinstance(found, Rejection), found
    return found.reason


def _facts(registers: int, threads: int | None = None, blocks: int | None = None) -> KernelFacts:
    return KernelFacts(registers, 0, 64, threads, None, blocks, None)


SPILL = "spill| STL [R1+0x10], R20\nfill| LDL R5, [R1+0x10]\nuse| FFMA R8, R5, R9, R8\nEXIT"
ARRAY = "store| STL [R1+0x10], R20\nfill| LDL R5, [R12]\nuse| FFMA R8, R5, R9, R8\nEXIT"


def test_an_indexed_array_is_no_spill() -> None:
    rows = [Row("long_scoreboard", "use", 100, 90, "fill", LOCAL), Row("selected", "use", 100)]
    found = _match(register_reuse, context_of(listing(ARRAY, facts=_facts(26)), rows, registers=26))
    assert found.title == "local array indexed at run time"
    assert "so that the array is in registers" in found.cure
    assert "spilled" not in found.advice
    assert found.adjustments[0].expected == 1.0  # in registers nothing of it is left


def test_what_is_spilled_the_cubin_says_where_it_does() -> None:
    """Else full registers tell, which a kernel may have that spills nothing; and one with room may spill."""
    both = f"store| STL [R1+0x10], R20\nindexed| LDL R5, [R12]\n{SPILL}"
    rows = [Row("long_scoreboard", "use", 100, 90, "fill", LOCAL), Row("selected", "use", 100)]

    def told(spills: frozenset[int] | None, registers: int) -> str:
        code = listing(both, facts=replace(_facts(registers), spills=spills))
        return _match(register_reuse, context_of(code, rows, registers=registers)).advice

    assert "spilled" in told(None, 255)
    assert "spilled" not in told(frozenset(), 255)
    assert "spilled" not in told(None, 26)
    assert "spilled" in told(frozenset({0x20, 0x30}), 26)


def test_the_place_of_an_array_without_samples_is_in_the_innermost_loop() -> None:
    """After a counter kept in an array that each outer pass sets, beside one that inner passes fill."""
    text = "outer:\nSTL [R12], RZ // 4\nagain:\nfill| STL [R13], R20 // 7\n@P0 BRA again\n@P1 BRA outer\nEXIT"
    code = listing(text, facts=_facts(26))
    found = _match(register_reuse, context_of(code))
    assert len(found.static_sites) == 2
    assert found.place == code.tags["fill"]


@pytest.mark.parametrize(
    ("stack", "block", "words"),
    [
        (64, 32, "so that the array is in registers, or keep it in shared memory"),
        (64, 256, "so that the array is in registers."),  # 16 KiB more for each block leave fewer on an SM
        (1024, 256, "fit neither in its registers nor there"),
        (1024, 32, "fit neither in its registers nor there"),
    ],
)
def test_an_array_goes_where_it_fits(stack: int, block: int, words: str) -> None:
    rows = [Row("long_scoreboard", "use", 100, 90, "fill", LOCAL), Row("selected", "use", 100)]
    code = listing(ARRAY, facts=replace(_facts(40), stack_bytes=stack))
    assert words in _match(register_reuse, context_of(code, rows, registers=40, block=block)).cure


@pytest.mark.parametrize(
    ("block", "cure"), [(32, "Keep the thread's array in shared memory"), (1, ""), (256, "")]
)
def test_an_array_that_data_index_is_not_to_be_unrolled(block: int, cure: str) -> None:
    text = f"LDG.E R11, [R2.64]\nIMAD R12, R11, 0x4, R1\n{ARRAY}"
    rows = [Row("long_scoreboard", "use", 100, 90, "fill", LOCAL), Row("selected", "use", 100)]
    code = listing(text, facts=replace(_facts(40), stack_bytes=128 if block == 32 else 1024))
    found = _match(register_reuse, context_of(code, rows, registers=40, block=block))
    assert found.title == "local array indexed by data"
    assert "nroll" not in found.cure
    assert found.cure.startswith(cure)
    assert found.actionable is bool(cure)


def test_what_local_memory_puts_on_the_units_goes_with_the_array() -> None:
    rows = [Row("long_scoreboard", "use", 100, 90, "fill", LOCAL), Row("selected", "use", 100)]
    metrics = {"memory_l2_theoretical_sectors_local": {"fill": 900.0}, SECTORS: {"store": 100.0}}
    code = listing(ARRAY, facts=_facts(26))
    found = _match(register_reuse, context_of(code, rows, registers=26, pc_metrics=metrics))
    left = {one.resource: one.remaining for one in found.reduced_loads}
    assert [left[name] for name in ("DRAM", "L2", "L1 to L2")] == pytest.approx([0.1] * 3)


def test_at_the_hardware_cap_no_limit_can_be_raised() -> None:
    rows = [Row("long_scoreboard", "use", 100, 90, "fill", LOCAL), Row("selected", "use", 100)]
    found = _match(register_reuse, context_of(listing(SPILL, facts=_facts(255)), rows, registers=255))
    assert "no limit to raise" in found.advice


def test_registers_that_keep_the_occupancy_are_named() -> None:
    rows = [Row("long_scoreboard", "use", 100, 90, "fill", LOCAL), Row("selected", "use", 100)]
    code = listing(SPILL, facts=_facts(32, 1024))
    found = _match(register_reuse, context_of(code, rows, registers=32, block=1024))
    # One block of 1024 threads fits at 32 registers and still at 64; the threads limit it to one.
    assert "up to 64 keep the 32 warps per SM" in found.advice


def test_what_may_hold_the_registers_down_is_named() -> None:
    found = _match(register_reuse, context_of(listing(SPILL, facts=_facts(48, 128))))
    assert "the second number of __launch_bounds__, -maxrregcount or maxnreg" in found.advice
    # Two blocks of 1024 threads leave 32 registers each: the number of threads is not what holds them down.
    two = _match(register_reuse, context_of(listing(SPILL, facts=_facts(32, 1024, 2)), registers=32))
    assert "held there by __launch_bounds__(1024, 2): lower the second number" in two.advice
    unbounded = _match(register_reuse, context_of(listing(SPILL, facts=_facts(48))))
    assert "held there by -maxrregcount or maxnreg" in unbounded.advice


def test_stores_that_fill_the_queue_count_and_issued_samples_do_not() -> None:
    rows = [Row("lg_throttle", "spill", 40, 30), Row("selected", "spill", 60), Row("not_selected", "fill", 9)]
    found = _match(register_reuse, context_of(listing(SPILL), rows))
    assert [region.rows.tolist() for region in found.regions] == [[0]]


def test_registers_kept_across_calls_are_told() -> None:
    body = SPILL.replace("EXIT", "RET.REL.NODEC R20 0x0")
    text = f".function kernel\nCALL.REL.NOINC deep\nEXIT\n.function deep device\n{body}"
    found = _match(register_reuse, context_of(listing(text)))
    assert found.title == "registers kept on the stack across calls"
    assert "__forceinline__" in found.advice
    assert found.cure == "Inline the functions that are called (__forceinline__)."


@pytest.mark.parametrize("called_in_loop", [False, True])
def test_registers_kept_once_for_all_passes_of_a_loop_are_not_told(called_in_loop: bool) -> None:
    """As of a kernel that leaves all of its work to one function, which saves its caller's registers."""
    kernel, body = "CALL.REL.NOINC deep", SPILL.replace("EXIT", "RET.REL.NODEC R20 0x0")
    loop = "again:\n{}\n@P0 BRA again"
    if called_in_loop:
        kernel = loop.format(kernel)
    else:
        body = f"{loop.format('IADD3 R0, R0, 0x1, RZ')}\n{body}"
    code = listing(f".function kernel\n{kernel}\nEXIT\n.function deep device\n{body}")
    assert isinstance(register_reuse.OPTIMIZER.match(context_of(code)), Match) is called_in_loop


def test_callers_are_looked_at_once_however_many_ways_lead_to_a_function() -> None:
    """Of 2 ** 40 ways."""
    call, back = "CALL.REL.NOINC f{}", "RET.REL.NODEC R20 0x0"
    kernel = f"again:\nIADD3 R0, R0, 0x1, RZ\n@P0 BRA again\n{call.format(0)}\nEXIT"
    levels = [f".function f{n} device\n" + f"{call.format(n + 1)}\n" * 2 + back for n in range(40)]
    last = f".function f40 device\n{SPILL.replace('EXIT', back)}"
    code = listing("\n".join([f".function kernel\n{kernel}", *levels, last]))
    assert not isinstance(register_reuse.OPTIMIZER.match(context_of(code)), Match)


def test_what_is_passed_by_address_is_no_spill() -> None:
    printf = "IADD3 R6, P1, R1, c[0x0][0x20], RZ\nargument| STL.64 [R1+0x8], R8\nCALL.ABS.NOINC R10\nEXIT"
    rows = [Row("lg_throttle", "argument", 100, 90), Row("selected", "argument", 100)]
    found = _match(register_reuse, context_of(listing(printf, facts=_facts(26)), rows, registers=26))
    assert found.title == "values passed on through local memory"
    assert "spilled" not in found.advice
    assert "printf" in found.advice
    assert "none of them in a loop" in _reason(register_reuse, context_of(listing(printf, facts=_facts(26))))
    helper = ".function root math_helper\nRET.REL.NODEC R20 0x0"
    beside = f"{printf.replace('EXIT', 'CALL.REL.NOINC root')}\nEXIT\n{helper}"
    found = register_reuse.OPTIMIZER.match(context_of(listing(beside, facts=_facts(26))))
    assert isinstance(found, Rejection)


def test_a_variable_whose_address_is_passed_on_is_no_spill() -> None:
    facts = _facts(26)
    context = context_of(listing(f"MOV R4, R1\n{SPILL}", facts=facts))
    assert "spilled" not in _reason(register_reuse, context)
    assert _match(register_reuse, context_of(listing(SPILL, facts=facts))).title.startswith(
        "registers spilled"
    )


def test_recursion_cannot_be_inlined() -> None:
    body = SPILL.replace("EXIT", "CALL.REL.NOINC deep\nRET.REL.NODEC R20 0x0")
    text = f".function kernel\nCALL.REL.NOINC deep\nEXIT\n.function deep device\n{body}"
    found = _match(register_reuse, context_of(listing(text)))
    assert "deep calls itself" in found.advice
    assert "__forceinline__" not in found.advice
    assert found.cure == "Write deep, which calls itself, as a loop."


_ACCIDENT = """
    near| F2F.F64.F32 R6, R34 // 68
    DSETP.GEU.AND P1, PT, R6, c[0x2][0x0], PT // 93
    @P1 EXIT // 68
    again:
    F2F.F64.F32 R2, R28 // 74
    half| DMUL R2, R2, 0.5 // 74
    F2F.F32.F64 R28, R2 // 74
    @P0 BRA again // 74
    CALL.REL.NOINC power // 80
    EXIT
    .function power math_helper
    DFMA R4, R4, R4, R4
    RET.REL.NODEC R20 0x0
"""


_SUMMED = """
    again:
    LDG.E R4, [R2.64] // 22
    F2F.F64.F32 R6, R4 // 22
    DADD R8, R8, R6 // 22
    @P0 BRA again // 22
    EXIT
"""


@pytest.mark.parametrize(
    ("text", "busy", "words"),
    [
        (
            _ACCIDENT,
            43.0,
            ["busy for 43 %", "add the suffix f to the literals at kernel.cu:74, kernel.cu:68"],
        ),
        (
            _ACCIDENT.replace("power", "__internal_accurate_pow"),
            43.0,
            ["write pow() at kernel.cu:80 as a product"],
        ),
        (
            _SUMMED,  # without a literal or a function: a sum that began as a double, as in Python
            86.0,
            ["most of it at kernel.cu:22: keep sums, variables and constants in float"],
        ),
        (
            _SUMMED.replace("EXIT", "CALL.REL.NOINC __cuda_sm20_div_f64 // 24\nEXIT\n")
            + ".function __cuda_sm20_div_f64 math_helper\nDFMA R4, R4, R4, R4\nRET.REL.NODEC R20 0x0",
            86.0,
            ["keep sums, variables and constants in float"],  # a division has no form to call
        ),
        (_ACCIDENT, 12.0, ["1 line converts float to double and back"]),  # costs little: as before
        (
            _ACCIDENT.replace(
                "CALL.REL",
                "F2F.F64.F32 R2, R30 // 76\nDMUL R2, R2, 0.5 // 76\nF2F.F32.F64 R30, R2 // 76\nCALL.REL",
            ),
            12.0,
            ["2 lines convert float to double and back"],
        ),
    ],
)
def test_what_loads_a_slow_pipe_of_double_precision_is_named(
    text: str, busy: float, words: list[str]
) -> None:
    """After a ray tracer in floats: `< 0.01` and `0.5 * x` alone kept that pipe busy for 41 % of the time."""
    pipe = "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active"
    context = context_of(listing(text), [], metrics={pipe: busy})
    context = replace(context, blame=None)
    found = strength_reduction.OPTIMIZER.match(context)
    assert isinstance(found, Match)
    assert all(one in found.advice for one in words)


def _divided(divisor: str, line: int) -> str:
    """A double division as the compiler expands it."""
    return (
        f"MUFU.RCP64H R3, {divisor} // {line}\nDFMA R8, -R4, R2, 1 // {line}\nDFMA R8, R8, R8, R8 // {line}\n"
        f"@P1 BRA over{line}\nCALL.REL.NOINC slow\nover{line}:\n"
    )


@pytest.mark.parametrize(("busy", "codes"), [(85.0, ["GPA102"]), (2.0, ["GPA104"])])
def test_doubles_that_become_floats_need_no_other_change(busy: float, codes: list[str]) -> None:
    """After a series in floats whose one line was told both to be in float and to divide by less."""
    divided = _divided("R15", 26)
    series = f"F2F.F64.F32 R6, R4 // 26\nDADD R8, R8, R6 // 26\n{divided}F2F.F32.F64 R4, R8 // 26\n"
    text = f"LDG.E R15, [R20.64] // 24\nagain:\n{series}"
    pipe = "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active"
    context = context_of(listing(f"{text}@P0 BRA again\nEXIT", "sm_75"), [], metrics={pipe: busy})
    context = replace(context, blame=None)
    found = advise_kernel(context, [fast_math.OPTIMIZER, strength_reduction.OPTIMIZER])
    assert sorted(one.code for one in found.suggestions) == codes


def test_the_place_of_math_without_samples_is_what_is_to_be_changed() -> None:
    """After a division by a variable, with one by 10.0 behind it, whose reciprocal was told."""
    text = f"again:\n{_divided('R5', 4)}{_divided('12', 9)}@P0 BRA again\nEXIT"
    (told,) = advise_kernel(context_of(listing(text)), [fast_math.OPTIMIZER]).suggestions
    assert told.cure.startswith("Multiply by the reciprocal of the constant at kernel.cu:9")
    place = primary(told)
    assert place is not None
    assert place.line == 9


def test_a_program_in_double_precision_is_no_accident() -> None:
    pipe = "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active"
    context = context_of(
        listing("again:\nDFMA R2, R2, R4, R6 // 3\n@P0 BRA again\nEXIT"), [], metrics={pipe: 80.0}
    )
    assert isinstance(strength_reduction.OPTIMIZER.match(replace(context, blame=None)), Rejection)


def test_floats_that_a_loop_adds_up_in_a_double_are_named_as_that() -> None:
    text = (
        "MOV R8, RZ // 2\nMOV R9, RZ // 2\nagain:\nLDG.E R4, [R20.64] // 3\nwiden| F2F.F64.F32 R6, R4 // 4\n"
        "sum| DADD R8, R8, R6 // 4\n@P0 BRA again // 3\nnarrow| F2F.F32.F64 R5, R8 // 6\nEXIT"
    )
    rows = [Row("wait", "sum", 300, 300, "widen", ARITHMETIC), Row("selected", "sum", 100)]
    found = _match(strength_reduction, context_of(listing(text), rows))
    assert found.advice.startswith("Floats are added up in a double (at kernel.cu:4): add them up in a float")


@pytest.mark.parametrize(("divided", "told"), [(100, True), (95, False)])
def test_slow_arithmetic_is_a_suggestion_where_a_tenth_of_it_has_a_cheaper_form(
    divided: int, told: bool
) -> None:
    division = (
        "I2F.U32.RP R8, R9 // 4\nMUFU.RCP R8, R8 // 4\nIADD3 R8, R8, 0xffffffe, RZ // 4\n"
        "whole| F2I.FTZ.U32.TRUNC.NTZ R8, R8 // 4\nIMAD.MOV R10, RZ, RZ, -R8 // 4\n"
        "IMAD R11, R10, R9, RZ // 4\nIMAD.HI.U32 R8, R8, R11, R8 // 4\nIMAD.HI.U32 R8, R8, R12, RZ // 4\n"
    )
    text = f"{division}root| MUFU.RSQ R20, R21 // 9\nuse| FADD R22, R20, R23 // 9\nEXIT"
    rows = [
        Row("wait", "use", 1000 - divided, 1000 - divided, "root", ARITHMETIC),
        Row("wait", "whole", divided, divided, "whole", ARITHMETIC),
    ]
    context = context_of(listing(text), rows)
    assert any("division" in site.detail for site in _match(strength_reduction, context).static_sites)
    assert _match(strength_reduction, context).actionable is told


def test_doubles_by_accident_lead_where_they_weigh_most() -> None:
    text = (
        "widen| F2F.F64.F32 R4, R2\nsum| DFMA R4, R4, 0.5, R8\nnarrow| F2F.F32.F64 R5, R4\n"
        "other| MUFU.EX2 R9, R5\nuse| FADD R1, R9, R9\nEXIT"
    )
    rows = [
        Row("short_scoreboard", "sum", 100, 90, "widen", ARITHMETIC),
        Row("short_scoreboard", "narrow", 50, 40, "sum", ARITHMETIC),
        Row("math_pipe_throttle", "sum", 30, 20),
        Row("short_scoreboard", "use", 20, 20, "other", ARITHMETIC),
        Row("selected", "use", 300),
    ]
    found = _match(strength_reduction, context_of(listing(text), rows))
    assert found.title == "single precision computed in double precision"
    assert "suffix f" in found.advice
    assert sum(len(region.rows) for region in found.regions) == 4
    assert found.adjustments[-1].expected == pytest.approx(0.9)  # a tenth has no known cheaper form
    assert found.adjustments[-1].high == 1.0
    rows[3] = Row("short_scoreboard", "use", 120, 20, "other", ARITHMETIC)
    code = listing(text)
    found = _match(strength_reduction, context_of(code, rows))
    assert found.place == code.tags["widen"]  # what the words are about, not the heaviest of all
    # What is part of the doubles is named with them, and not again.
    assert "use fewer of the slow instructions (MUFU)" in found.advice.replace("Use", "use")


def test_ordinary_arithmetic_and_memory_are_not_slow() -> None:
    text = "load| LDG.E R2, [R4.64]\nadd| FADD R3, R2, R2\nuse| FADD R5, R3, R3\nEXIT"
    rows = [
        Row("long_scoreboard", "add", 100, 90, "load", GLOBAL),
        Row("wait", "use", 50, 40, "add", ARITHMETIC),
        Row("math_pipe_throttle", "use", 50, 40),
    ]
    assert "no stall on arithmetic" in _reason(strength_reduction, context_of(listing(text), rows))


def test_fetch_stalls_are_grouped_by_inlined_function() -> None:
    text = (
        "again:\na| FADD R1, R1, R2 // 9 in step\nb| FADD R2, R1, R2 // 9 in move\n"
        "c| FADD R3, R1, R2 // 4\n@P0 BRA again // 3\nEXIT"
    )
    rows = [Row("no_instructions", tag, count, count) for tag, count in (("a", 30), ("b", 20), ("c", 10))]
    found = _match(function_split, context_of(listing(text), [*rows, Row("selected", "a", 100)]))
    assert [(region.scope.kind, region.scope.name) for region in found.regions] == [
        (ScopeKind.INLINED, "step"),
        (ScopeKind.INLINED, "move"),
        (ScopeKind.LOOP, "kernel"),
    ]


@pytest.mark.parametrize(("busy", "told"), [(99.0, False), (40.0, True)])
def test_fetching_is_not_told_without_samples_where_a_unit_is_busy(busy: float, told: bool) -> None:
    """As a kernel with L1 at 100 % whose loop is larger than the cache: its instructions issue in 7 %."""
    body = "\n".join(f"FFMA R{8 + i % 40}, R{8 + i % 40}, R60, R61" for i in range(3000))
    text = f"again:\nhot| FADD R1, R1, R2\n{body}\n@P0 BRA again\nEXIT"
    metrics = {"l1tex__throughput.avg.pct_of_peak_sustained_elapsed": busy}
    context = replace(context_of(listing(text), [], metrics=metrics), blame=None)
    assert isinstance(function_split.OPTIMIZER.match(context), Match) == told


def test_fetching_is_not_told_without_samples_of_a_product_or_where_nothing_was_counted() -> None:
    """As the main loops of matrix products, which stand 64 multiply-adds a step in the code on purpose."""
    step = "LDS.128 R8, [R2]\nLDS.128 R12, [R3]\n" + "\n".join(
        f"FFMA R{64 + i}, R{8 + i % 4}, R{12 + i // 4}, R{64 + i}" for i in range(16)
    )
    product = listing("again:\n" + "\n".join([step] * 200) + "\n@P0 BRA again\nEXIT")
    reason = _reason(function_split, replace(context_of(product), profile=None, blame=None))
    assert "needs samples: the loop of 56 KiB at 0x0 does not fit, and is a product" in reason
    # With half of it addresses and copies, and in tensor cores.
    addresses = "\n".join(f"LOP3.LUT R{30 + i % 4}, R{30 + i % 4}, R5, RZ, 0x3c, !PT" for i in range(22))
    fragment = f"LDS.128 R8, [R2]\nHMMA.16816.F32 R64, R8, R12, R64\n{addresses}"
    for one_pass in (f"{step}\n{addresses}", fragment):
        mixed = listing("again:\n" + "\n".join([one_pass] * 150) + "\n@P0 BRA again\nEXIT")
        assert "is a product" in _reason(function_split, replace(context_of(mixed), profile=None, blame=None))
    body = "\n".join(f"FFMA R{8 + i % 40}, R{8 + i % 40}, R60, R61" for i in range(3000))
    chain = context_of(listing(f"again:\n{body}\n@P0 BRA again\nEXIT"), [])
    assert "no unit is counted" in _reason(function_split, replace(chain, blame=None))
    # An array that the counter of a loop indexes leaves its registers with the unrolling.
    reason = _reason(function_split, replace(chain, profile=None, blame=None))
    assert "no function alone makes it large" in reason


def test_a_loop_larger_than_the_cache_is_expected_to_gain() -> None:
    body = "\n".join(f"FFMA R{8 + i % 40}, R{8 + i % 40}, R60, R61" for i in range(3000))
    text = f"again:\nhot| FADD R1, R1, R2\n{body}\n@P0 BRA again\nEXIT"
    context = context_of(
        listing(text), [Row("no_instructions", "hot", 100, 100), Row("selected", "hot", 100)]
    )
    found = _match(function_split, context)
    assert found.adjustments[0].expected == 0.5
    assert "the hot loop has 46.9 KiB of code (caches hold 32 KiB per scheduler" in found.advice
    small = context_of(
        listing("again:\nhot| FADD R1, R1, R2\n@P0 BRA again\nEXIT"),
        [Row("no_instructions", "hot", 9, 9), Row("selected", "hot", 9)],
    )
    assert _match(function_split, small).adjustments[0].expected < 0.5
    assert [site.detail for site in found.static_sites] == ["loop of 46 KiB"]


HELPER = (
    ".function kernel\ncall| CALL.REL.NOINC __cuda_sm20_div_rn_f64_full // 7\nEXIT\n"
    ".function __cuda_sm20_div_rn_f64_full math_helper\nin| DFMA R2, R4, R6, R8\n"
    "RET.REL.NODEC R20 0x0"
)


def test_a_large_loop_around_small_ones_runs_from_the_cache() -> None:
    inner = "again:\n" + "FADD R1, R2, R3\n" * 2100 + "@P1 BRA again\n"
    outer = f"outer:\nout| FADD R4, R5, R6\n{inner}@P0 BRA outer\nEXIT"
    found = _match(function_split, context_of(listing(outer), [Row("no_instructions", "out", 9, 9)]))
    assert [site.index for site in found.static_sites] == [1]  # the inner one only


def test_the_reciprocal_of_an_integer_division_is_no_fast_math() -> None:
    division = "I2F.U32.RP R8, R9\nMUFU.RCP R8, R8\nIADD3 R8, R8, 0xffffffe, RZ\nF2I.U32.TRUNC.NTZ R8, R8\n"
    assert "no library math" in _reason(fast_math, context_of(listing(f"{division}EXIT")))
    reason = _reason(fast_math, context_of(listing(f"{division}MUFU.EX2 R4, R5\nEXIT")))
    assert reason.startswith("the 1 special-function instruction")


@pytest.mark.parametrize(("again", "told"), [("again:", True), ("", False)])
def test_without_samples_only_routines_that_a_loop_calls_are_told(again: str, told: bool) -> None:
    routine = "__cuda_sm3x_div_rn_noftz_f32_slowpath"
    jump = "@P0 BRA again // 8\n" if again else ""
    text = (
        f".function kernel\nMOV R1, R2 // 5\n{again}\ncall| CALL.REL.NOINC {routine} // 7\n{jump}EXIT\n"
        f".function other device\nMOV R1, R2 // 20\nRET.REL.NODEC R20 0x0\n"
        f".function {routine} math_helper\nFFMA R2, R4, R6, R8\nRET.REL.NODEC R20 0x0"
    )
    code = listing(text)
    found = fast_math.OPTIMIZER.match(context_of(code))
    assert isinstance(found, Match) is told
    if isinstance(found, Match):
        assert [(site.function, site.index) for site in found.static_sites] == [code.tags["call"]]


@pytest.mark.parametrize(("arch", "told"), [("sm_75", True), ("sm_70", False)])
def test_a_tanh_has_a_fast_form_where_there_is_an_instruction_for_it(arch: str, told: bool) -> None:
    tanh = (
        "again:\nFMUL R4, |R2|, 2.8853900432586669922 // 5\nMUFU.EX2 R5, R4 // 5\nFADD R6, R5, 1 // 5\n"
        "MUFU.RCP R7, R6 // 5\nFFMA R8, R7, -2, R9 // 5\n@P0 BRA again // 4\nEXIT"
    )
    found = fast_math.OPTIMIZER.match(context_of(listing(tanh, arch)))
    assert isinstance(found, Match) is told


def test_out_of_line_routines_and_their_calls() -> None:
    rows = [
        Row("wait", "in", 100, 90),
        Row("selected", "in", 50),
        Row("wait", "call", 20, 10),
        Row("selected", "call", 30),
    ]
    found = _match(fast_math, context_of(listing(HELPER), rows))
    assert sum(len(region.rows) for region in found.regions) == 4
    assert found.adjustments[0].expected == 0  # floats save what conversions to them cost
    assert (
        "To try: use single precision where the result bears it (doubles have no fast forms)" in found.advice
    )


@pytest.mark.parametrize(("divisor", "left"), [("12", 0.0), ("R9", 1.0)])
def test_what_a_double_division_calls_goes_with_it(divisor: str, left: float) -> None:
    # Numerators of zero take the routine for rare arguments, which may have most of the double operations.
    code = f"""
        loads| MUFU.RCP64H R3, {divisor}
        DFMA R8, -R4, R2, 1
        DFMA R8, R8, R8, R8
        @P0 BRA over
        calls| CALL.REL.NOINC $kernel$__cuda_sm20_div_f64_slowpath_v2
        over:
        EXIT
        .function $kernel$__cuda_sm20_div_f64_slowpath_v2 math_helper
        rare| DMUL R4, R4, R5
        RET.REL.NODEC R2 0x0
    """
    counts = {"loads": (10, 320), "calls": (1000, 32000), "rare": (1000, 32000)}
    context = context_of(listing(code), [Row("wait", "rare", 50)], counts=counts)
    reduced = {one.resource: one.remaining for one in _match(fast_math, context).reduced_loads}
    assert reduced["FP64 pipe"] == pytest.approx(left, abs=0.1)


def test_no_fast_math_where_code_is_too_large_already() -> None:
    rows = [Row("wait", "in", 60, 60), Row("no_instructions", "in", 40, 40)]
    assert "40.0 % of latency samples wait for instruction fetch" in _reason(
        fast_math, context_of(listing(HELPER), rows)
    )


def _fetched(body: str) -> KernelContext:
    """A loop of 48 KiB, more than any scheduler's cache, in which warps wait for instructions."""
    text = f"again:\n{body}\ndeep| FADD R8, R8, R9 // 9\n@P0 BRA again // 5\nEXIT"
    return context_of(listing(text), [Row("no_instructions", "deep", 300, 280), Row("selected", "deep", 400)])


def test_a_loop_that_is_too_large_is_split_or_what_repeats_in_it_is_not_inlined() -> None:
    plain = "\n".join(f"FFMA R{index % 8}, R8, R30, R31 // {index}" for index in range(3000))
    found = _match(function_split, _fetched(plain))
    assert found.advice.startswith("Split the loop into several that fit")
    assert found.actionable
    steps = f"LDG.E R8, [R40.64]\n{plain}\nSTG.E [R40.64], R8"  # of a simulation: each needs the last
    found = _match(function_split, _fetched(steps))
    assert not found.actionable
    assert "plit" not in found.advice
    assert isinstance(
        function_split.OPTIMIZER.match(context_of(listing(f"again:\n{steps}\n@P0 BRA again\nEXIT"))),
        Rejection,
    )


@pytest.mark.parametrize(
    ("copies", "step", "words"),
    [
        (2, "step", "Mark step __noinline__, which is inlined 2 times"),
        (2, "step(float const&)", "Mark step(float const&) __noinline__, which is inlined 2 times"),
        (300, "step", "Split the loop into several that fit"),
        (2, "step(float (&) [20])", "Split the loop into several that fit"),  # an array in registers
    ],
)
def test_what_repeats_in_a_large_loop_is_called_unless_that_costs_as_much(
    copies: int, step: str, words: str
) -> None:
    body = "\n".join(f"FFMA R{index % 8}, R8, R30, R31 // {index} in step" for index in range(3000))
    context = _fetched(body)
    (function,) = context.program.functions
    lines = tuple(
        None
        if entry is None
        else replace(entry, inline=(InlineFrame(step, SourceLocation("kernel.cu", 40 + at % copies)),))
        for at, entry in enumerate(function.lines)
    )
    program = replace(context.program, functions=(replace(function, lines=lines),))
    assert _match(function_split, replace(context, program=program)).advice.startswith(words)
    # Without samples a function is told that repeats, unless a loop is unrolled: its arrays may hang on that.
    static = function_split.OPTIMIZER.match(replace(context, program=program, profile=None, blame=None))
    assert isinstance(static, Match) == words.startswith("Mark")


def test_without_samples_an_unrolled_loop_stays_unrolled() -> None:
    """As a loop over a row's pixels whose array is in registers by that alone."""
    copy = "LDG.E R8, [R40.64] // 3\nLDS R9, [R41] // 3\n" + "FFMA R9, R8, R30, R31 // 4 in step\n" * 70
    context = _fetched(copy * 40)
    (function,) = context.program.functions
    lines = tuple(
        replace(entry, inline=(InlineFrame("step", SourceLocation("kernel.cu", at // 100)),))
        if entry is not None and entry.inline
        else entry
        for at, entry in enumerate(function.lines)
    )
    program = replace(context.program, functions=(replace(function, lines=lines),))
    assert _match(function_split, replace(context, program=program)).advice.startswith("Lower the unroll")
    static = replace(context, program=program, profile=None, blame=None)
    assert isinstance(function_split.OPTIMIZER.match(static), Rejection)


def test_a_loop_that_library_math_makes_too_large_is_fast_maths() -> None:
    """After a Fortran loop of 16 KiB, of which expanded divisions were the most."""
    division = (
        "MUFU.RCP R6, R3 // 3\nFCHK P1, R0, R3 // 3\nFFMA R7, -R3, R6, 1 // 3\nFFMA R7, R6, R7, R6 // 3\n"
        "CALL.REL.NOINC slow // 3\n"
    )
    reason = _reason(function_split, _fetched(division * 600))
    assert "the subject of Fast Math (GPA104)" in reason


def test_a_loop_that_library_math_makes_too_large_is_no_large_loop_without_samples() -> None:
    division = (
        "MUFU.RCP R6, R3 // 3\nFCHK P1, R0, R3 // 3\nFFMA R7, -R3, R6, 1 // 3\nFFMA R7, R6, R7, R6 // 3\n"
        "CALL.REL.NOINC slow // 3\n"
    )
    bare = replace(_fetched(division * 600), profile=None, blame=None)
    assert "no loop is larger than the 32 KiB instruction cache" in _reason(function_split, bare)


def test_small_code_that_is_fetched_late_is_a_note() -> None:
    found = _match(function_split, _fetched("FMUL R1, R2, R3 // 2"))
    assert not found.actionable
    assert "The hot code is small (0.0 KiB in loops, 0.1 KiB in all" in found.advice


BARRIERS = (
    "STS [R9], R0 // 5\none| BAR.SYNC 0x0 // 6\nFADD R1, R1, R2 // 7\ntwo| BAR.SYNC 0x0 // 8\n"
    "next| LDS R4, [R9] // 9\nEXIT"
)


def test_a_barrier_that_protects_nothing_is_named() -> None:
    rows = [Row("barrier", "next", 100, 100, "two", SYNC), Row("selected", "next", 100)]
    found = _match(warp_balance, context_of(listing(BARRIERS), rows))
    assert "Remove the barrier at kernel.cu:8: no access of one thread needs it" in found.cure
    static = _match(warp_balance, context_of(listing(BARRIERS)))
    assert [site.index for site in static.static_sites] == [3]


def test_nothing_is_said_of_lines_that_are_a_librarys() -> None:
    context = context_of(listing(BARRIERS))
    (kernel,) = context.program.functions
    header = "/usr/local/cuda-13.0/include/cub/agent/agent_reduce.cuh"
    lines = tuple(LineEntry(SourceLocation(header, line)) for line, _ in enumerate(kernel.lines, 1))
    program = replace(context.program, functions=(replace(kernel, lines=lines),))
    found, rejected = evaluate(replace(context, program=program), [warp_balance.OPTIMIZER])
    assert not found
    assert "a library's" in rejected[0].reason


def test_a_memory_access_between_barriers_makes_them_needed() -> None:
    needed = BARRIERS.replace("FADD R1, R1, R2", "LDS R1, [R10] // 7\nSTS [R10], R2")
    assert "(2 barrier instructions in the code)" in _reason(warp_balance, context_of(listing(needed)))


def test_waiting_for_memory_before_a_barrier_is_not_imbalance() -> None:
    text = (
        "load| LDG.E R2, [R4.64] // 3\nSTS [R9], R2 // 3\nBAR.SYNC 0x0 // 4\nafter| LDS R4, [R9] // 5\nEXIT"
    )
    rows = [Row("barrier", "after", 100, 100, "load", SYNC), Row("selected", "after", 100)]
    reason = _reason(warp_balance, context_of(listing(text), rows))
    assert "(50.0 % of samples) wait alike for LDG at kernel.cu:3" in reason
    # Few of the warps at the barrier load, or few threads of each.
    for few in (text.replace("load| LDG", "@P0 BRA join\nload| LDG").replace("STS", "join:\nSTS"),
                text.replace("load| LDG", "load| @P0 LDG")):  # fmt: skip
        found = _match(warp_balance, context_of(listing(few), rows))
        assert "held up by LDG at kernel.cu:3" in found.advice
        assert found.adjustments[0].expected == 0.22


@pytest.mark.parametrize(("bound", "told"), [(32, True), (64, False)])
def test_without_samples_a_bound_of_one_warp_needs_no_block_barrier(bound: int, told: bool) -> None:
    text = "STS [R9], R0 // 5\nBAR.SYNC 0x0 // 6\nLDS R4, [R9+0x4] // 7\nSTG.E [R2.64], R4 // 8\nEXIT"
    context = replace(context_of(listing(text, facts=_facts(26, bound))), profile=None, blame=None)
    found = warp_balance.OPTIMIZER.match(context)
    assert isinstance(found, Match) is told
    if isinstance(found, Match):
        assert found.title == "barriers in a block of one warp"
        assert "(kernel.cu:6)." in found.advice


def test_a_block_of_one_warp_needs_no_block_barrier() -> None:
    text = "STS [R9], R2\nBAR.SYNC 0x0\nafter| LDS R4, [R9]\nEXIT"
    rows = [Row("barrier", "after", 100, 100, "after", SYNC), Row("selected", "after", 100)]
    assert (
        "Replace __syncthreads() by __syncwarp()"
        in _match(warp_balance, context_of(listing(text), rows, block=32)).advice
    )


SECTORS = "memory_l2_theoretical_sectors_global"
LOAD = (
    "again:\nload| LDG.E R2, [R4.64] // 9\nuse| FADD R8, R2, R9 // 9\nput| STG.E [R6.64], R8 // 10\n"
    "@P0 BRA again\nend| EXIT"
)


def test_without_counters_the_throttle_stalls_count_in_part() -> None:
    rows = [Row("lg_throttle", "load", 300, 250), Row("selected", "use", 100)]
    context = context_of(listing(LOAD), rows)
    found = _match(memory_transaction_reduction, context)
    assert found.measured_bound is None
    assert found.adjustments[0].expected == 0.6
    estimate = memory_transaction_reduction.OPTIMIZER.estimate(context, found)
    assert estimate.paper == pytest.approx(4.0)
    waits = 1 - 0.6 * 300 / 400
    issued = 150 / 400
    apart = issued + (1 - issued) * waits
    assert estimate.expected == pytest.approx(1 / (apart * waits) ** 0.5)


@pytest.mark.parametrize(("load", "words"), [("LDS R2", "by 4 bytes"), ("LDS.128 R4", "by 16 bytes")])
def test_padding_keeps_wide_accesses_to_shared_memory_aligned(load: str, words: str) -> None:
    text = f"again:\nload| {load}, [R8] // 9\nuse| FADD R9, R2, R9 // 9\n@P0 BRA again\nend| EXIT"
    rows = [
        Row("short_scoreboard", "use", 300, 250, due_to="load", kind=DependencyClass.SHARED_MEMORY),
        Row("selected", "use", 100),
    ]
    wavefronts = "memory_l1_wavefronts_shared"
    metrics = {wavefronts: {"load": 800.0}, f"{wavefronts}_ideal": {"load": 100.0}}
    found = _match(memory_transaction_reduction, context_of(listing(text), rows, pc_metrics=metrics))
    assert words in found.advice
    assert words in found.cure


def _scattered(
    address: str,
    sectors: float,
    *,
    load: str = "LDG.E R4, [R2.64]",
    block: int = 256,
    full: dict[str, float] | None = None,
    needed: int = 4,
) -> KernelContext:
    """A load of which each of 1000 warps asks for so many sectors, where four would do."""
    text = f"S2R R0, SR_TID.X\n{address}\nload| {load} // 9\nuse| FADD R8, R4, R9 // 9\nend| EXIT"
    rows = [Row("lg_throttle", "load", 300, 250), Row("selected", "use", 100)]
    metrics = {SECTORS: {"load": 1000 * sectors}, f"{SECTORS}_ideal": {"load": 1000.0 * needed}}
    counts = {"load": (1000, 32000)}
    return context_of(listing(text), rows, counts=counts, pc_metrics=metrics, block=block, metrics=full)


@pytest.mark.parametrize(
    ("address", "sectors", "words"),
    [
        ("S2R R1, SR_TID.Y\nIMAD R2, R0, c[0x0][0x170], R1\nLEA R2, R2, R6, 0x2", 32, "swap the indices"),
        ("IMAD R2, R0, c[0x0][0x170], RZ\nLEA R2, R2, R6, 0x2", 32, "fill tiles in shared memory"),
        ("IMAD.WIDE R2, R0, 0xc, R6", 12, "let what neighbouring threads access follow each other"),
        ("F2I R2, R0", 32, "let neighbouring threads access neighbouring addresses"),
    ],
)
def test_scattered_accesses_are_told_apart_by_their_addresses(
    address: str, sectors: float, words: str
) -> None:
    assert words in _match(memory_transaction_reduction, _scattered(address, sectors)).cure


@pytest.mark.parametrize(
    ("axis", "words"),
    [
        ("SR_TID.Y", "let threadIdx.x run along a row (swap the indices)"),  # tiles of 2 x 2 along y
        ("SR_CTAID.Y", "they are 8192 bytes apart"),  # what lies along the row are blocks
    ],
)
def test_of_rows_of_constant_length_the_indices_are_swapped_where_the_other_one_runs_along_them(
    axis: str, words: str
) -> None:
    address = f"S2R R1, {axis}\nIMAD R2, R0, 0x2000, R6\nLEA R2, R1, R2, 0x3"
    context = _scattered(address, 32)
    assert context.profile is not None
    launch = replace(context.profile.launch, block=(16, 16, 1))
    context = replace(context, profile=replace(context.profile, launch=launch))
    assert words in _match(memory_transaction_reduction, context).cure


@pytest.mark.parametrize(("distance", "whole"), [(0x20, True), (0x100, False)])
def test_values_of_a_thread_that_are_tested_one_by_one(distance: int, whole: bool) -> None:
    """As the results of a tile of 8 x 8, each behind a test that it is inside of the matrix."""
    tested = [f"@{'!' * (i % 2)}P{i} LDG.E R{10 + i}, [R2.64+{4 * i:#x}]" for i in range(1, 7)]
    address = f"IMAD.WIDE R2, R0, {distance:#x}, R6\n" + "\n".join(tested)
    found = _match(memory_transaction_reduction, _scattered(address, 32, load="@P0 LDG.E R4, [R2.64]"))
    assert ("accesses of 16 bytes where all is inside" in found.cure) is whole
    assert ("follow each other (a structure of arrays" in found.cure) is not whole


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ("IMAD R12, R1, c[0x0][0x170], RZ\nLEA R12, R12, R14, 0x2", "with the indices swapped of another"),
        ("LEA R12, R1, R14, 0x2", "swap the indices"),  # which brings that one's threads together, too
    ],
)
def test_indices_are_swapped_only_if_no_other_access_of_the_loop_scatters_then(
    other: str, words: str
) -> None:
    text = (
        f"S2R R1, SR_TID.Y\nIMAD R2, R0, c[0x0][0x170], RZ\nLEA R2, R2, R6, 0x2\n{other}\nLDG.E R13, [R12.64]"
    )
    assert words in _match(memory_transaction_reduction, _scattered(text, 32)).cure


@pytest.mark.parametrize(("access", "verb"), [("LDG.E R4, [R2.64]", "load"), ("STG.E [R2.64], R13", "store")])
def test_rows_that_stores_scatter_are_to_be_stored_wider(access: str, verb: str) -> None:
    """As a transposition that reads whole rows: wider loads there would leave the stores as they are."""
    text = (
        "S2R R1, SR_TID.Y\nIMAD R2, R0, c[0x0][0x170], RZ\nLEA R2, R2, R6, 0x2\n"
        "IMAD R12, R1, c[0x0][0x170], RZ\nLEA R12, R12, R14, 0x2\nLDG.E R13, [R12.64]"
    )
    cure = _match(memory_transaction_reduction, _scattered(text, 32, load=access)).cure
    assert f"let each thread {verb} 16 bytes of its row" in cure


@pytest.mark.parametrize(
    ("address", "sectors"),
    [
        ("IMAD.WIDE R2, R0, 0x4, R6\nLDG.E R3, [R2.64]\nIMAD.WIDE R2, R3, 0x4, R10", 32),  # a gather
        ("IMAD.WIDE R2, R0, 0x4, R6", 5),  # rows that begin between two sectors
        ("F2I R2, R0", 8),  # nobody can say what these addresses are
    ],
)
def test_what_no_order_of_threads_brings_together_is_no_waste(address: str, sectors: float) -> None:
    found = memory_transaction_reduction.OPTIMIZER.match(_scattered(address, sectors))
    assert isinstance(found, Match)
    assert not found.actionable  # the queue is full all the same: a note
    assert "sectors they need" not in found.advice


@pytest.mark.parametrize(
    ("sectors", "words"),
    [(5, "as few as the places of the data allow"), (4, "the fewest for the bytes accessed")],
)
def test_sectors_that_rows_between_two_cost_are_not_called_the_fewest(sectors: float, words: str) -> None:
    full = {"l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed": 95.0}
    context = _scattered("IMAD.WIDE R2, R0, 0x4, R6", sectors, full=full)
    assert words in _reason(memory_transaction_reduction, context)


def test_stores_one_by_one_beside_wide_loads_become_wide() -> None:
    stores = "\n".join(f"STG.E [R2.64+{4 * i:#x}], R{4 + i}" for i in (1, 2, 3))
    text = f"LDG.E.128 R4, [R10.64]\nSHF.L.U32 R2, R0, 0x4, RZ\n{stores}"
    found = _match(memory_transaction_reduction, _scattered(text, 16, load="STG.E [R2.64], R4"))
    assert "use accesses of 16 bytes: each thread accesses 4 values" in found.cure
    same = f"IMAD.WIDE R2, R0, 0x10, c[0x0][0x160]\nLDG.E.128 R4, [R2.64]\n{stores}"
    found = _match(memory_transaction_reduction, _scattered(same, 16, load="STG.E [R2.64], R4"))
    assert "use accesses of 16 bytes, as elsewhere in the kernel" in found.cure  # of the same array
    both = same.replace("\nLDG", "\nLDG.E.128 R12, [R10.64]\nLDG", 1)
    found = _match(memory_transaction_reduction, _scattered(both, 16, load="STG.E [R2.64], R4"))
    assert "use accesses of 16 bytes, as elsewhere in the kernel" in found.cure  # whatever of others


@pytest.mark.parametrize(
    ("values", "width", "sectors", "words"),
    [
        (3, 1, 4, "or pad the elements of 3 bytes to 4"),  # pixels side by side, as the sectors say
        (7, 2, 5, ""),  # windows of neighbours overlap, as in a convolution: nothing to pad
        (2, 4, 32, ""),  # rows of no known length, in which 8 bytes may not be aligned
    ],
)
def test_runs_whose_distance_nobody_knows_are_as_far_apart_as_their_sectors_say(
    values: int, width: int, sectors: float, words: str
) -> None:
    kind = {1: "LDG.E.U8", 2: "LDG.E.U16", 4: "LDG.E"}[width]
    more = "\n".join(f"{kind} R{4 + i}, [R2.64+{width * i:#x}]" for i in range(1, values))
    text = f"LDG.E.128 R20, [R30.64]\nF2I R2, R0\n{more}"
    found = _match(
        memory_transaction_reduction, _scattered(text, sectors, load=f"{kind} R4, [R2.64]", needed=1)
    )
    assert "accesses of" not in found.cure
    assert words in found.cure
    assert found.actionable is (bool(words) or sectors == 32)


def test_threads_that_an_argument_keeps_apart_are_in_rows_only_if_the_sectors_say_so() -> None:
    """A stride that is an argument, as of a convolution: by the code alone it may be a row's length."""
    address = "IMAD R2, R0, c[0x0][0x170], RZ\nLEA R2, R2, R6, 0x2"
    cure = _match(memory_transaction_reduction, _scattered(address, 8)).cure
    assert "how far apart they are, an argument decides" in cure
    found = _match(
        memory_transaction_reduction, _scattered(address, 5)
    )  # it is 1: rows begin between sectors
    assert not found.actionable
    assert not found.cure


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("IMAD.WIDE R4, R0, 0xc, R6", "they are 12 bytes apart"),
        ("IMAD.WIDE R4, R0, 0x4, R6", ""),
        ("F2I R4, R0", ""),
    ],
)
def test_without_counters_a_full_queue_has_a_cure_only_if_the_addresses_show_one(
    address: str, words: str
) -> None:
    """No list of what else might be tried: registers, shared memory, vector loads, constant memory."""
    text = f"S2R R0, SR_TID.X\n{address}\n{LOAD}"
    rows = [Row("lg_throttle", "load", 300, 250), Row("selected", "use", 100)]
    found = _match(memory_transaction_reduction, context_of(listing(text), rows))
    assert found.actionable is bool(words)
    assert words in found.cure
    assert bool(found.cure) is bool(words)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (("", ""), True),
        (("[R6.64]", "[R4.64]"), False),  # the address moves on
        (("put| STG", "put| @P1 STG"), False),  # not in every pass
        (("c[0x0][0x168]", "c[0x0][0x160]"), False),  # what is stored is loaded again
        (("MOV R20, R21", "MEMBAR.SC.GPU"), False),  # somebody else may look at it
    ],
)
def test_stores_to_the_same_elements_in_every_pass_go_behind_the_loop(
    change: tuple[str, str], found: bool
) -> None:
    """After a product of tiles whose results are copied out within the loop over them."""
    text = (
        "IMAD.WIDE R4, R1, 0x4, c[0x0][0x160]\nbefore| IMAD.WIDE R6, R1, 0x4, c[0x0][0x168] // 7\nagain:\n"
        "load| LDG.E R2, [R4.64] // 9\nIADD3 R4, R4, 0x80, RZ // 9\nMOV R20, R21 // 9\n"
        "use| FADD R8, R2, R8 // 9\nput| STG.E [R6.64], R8 // 10\n@P0 BRA again // 8\nend| EXIT"
    ).replace(*change)
    rows = [Row("lg_throttle", "put", 300, 250, "put", DependencyClass.QUEUE), Row("selected", "use", 100)]
    sectors = {"load": 4000.0, "put": 4000.0}
    context = context_of(
        listing(text),
        rows,
        counts={"before": (10, 320), "load": (1000, 32000), "put": (1000, 32000)},
        pc_metrics={SECTORS: sectors, f"{SECTORS}_ideal": sectors},
    )
    match = _match(memory_transaction_reduction, context)
    assert match.actionable is found
    if found:
        assert match.cure.startswith("store behind the loop at kernel.cu:9: each of its 100 passes stores")
        assert match.title == "a loop stores to the same elements in every pass"
        assert match.adjustments[0].expected == pytest.approx(0.99 / 2)


def test_the_place_of_scattered_accesses_is_the_one_that_the_words_name() -> None:
    """As of a filter whose store waits in the queue that its loads fill."""
    text = (
        "S2R R0, SR_TID.X\nIMAD.WIDE R2, R0, 0xc, R6\nload| LDG.E R4, [R2.64] // 30\n"
        "use| FADD R8, R4, R9 // 31\nput| STG.E [R10.64], R8 // 42\nend| EXIT"
    )
    rows = [
        Row("lg_throttle", "put", 300, 250, "put", DependencyClass.QUEUE),
        Row("lg_throttle", "use", 100, 90, "load", DependencyClass.QUEUE),
        Row("selected", "use", 100),
    ]
    metrics = {SECTORS: {"load": 12000.0, "put": 4000.0}, f"{SECTORS}_ideal": {"load": 4000.0, "put": 4000.0}}
    context = context_of(listing(text), rows, counts={"load": (1000, 32000)}, pc_metrics=metrics)
    advice = advise_kernel(context, [memory_transaction_reduction.OPTIMIZER], limits=NO_THRESHOLDS)
    (told,) = advice.suggestions
    assert "LDG kernel.cu:30" in told.advice
    place = primary(told)
    assert place is not None
    assert place.line == 30


@pytest.mark.parametrize(
    ("pixel", "words"),
    [
        (6, "or pad the elements of 6 bytes to 8, which moves 33"),
        (12, "use accesses of 4 bytes"),
        (22, "they are 22 bytes apart"),
    ],
)
def test_an_access_is_no_wider_than_the_distance_between_threads_keeps_aligned(
    pixel: int, words: str
) -> None:
    loads = "\n".join(f"LDG.E.U16 R{4 + i}, [R2.64+{2 * i:#x}]" for i in (1, 2))
    text = f"LDG.E.128 R12, [R10.64]\nIMAD.WIDE R2, R0, {pixel:#x}, R6\n{loads}"
    found = _match(memory_transaction_reduction, _scattered(text, 8, load="LDG.E.U16 R4, [R2.64]"))
    assert words in found.cure


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ("F2I R0, R1", ""),  # a stack of integers by its top: a window of three, not an element of 12 bytes
        ("F2I R1, R1\nLEA R0, R1, R1, 0x1", "or pad the elements of 12 bytes to 16"),  # three to each index
    ],
)
def test_three_values_are_an_element_only_if_their_index_is_multiplied_by_three(
    index: str, words: str
) -> None:
    loads = "\n".join(f"LDG.E R{4 + i}, [R2.64+{4 * i:#x}]" for i in (1, 2))
    text = f"{index}\nIMAD.WIDE R2, R0, 0x4, R6\n{loads}"
    found = memory_transaction_reduction.OPTIMIZER.match(_scattered(text, 12, load="LDG.E R4, [R2.64]"))
    assert isinstance(found, Match)
    assert words in found.cure
    assert ("elements of" in found.cure) is bool(words)


def test_fragments_out_of_device_memory_go_through_a_tile() -> None:
    matrix = "HMMA.16816.F32 R12, R4, R6, R12"
    text = "IMAD R2, R0, c[0x0][0x170], RZ\nLEA R2, R2, R6, 0x1"
    load = f"LDG.E R4, [R2.64]\n{matrix}"
    found = _match(memory_transaction_reduction, _scattered(text, 8, load=load))
    assert "with whole rows, and load the fragments from there" in found.cure
    found = _match(memory_transaction_reduction, _scattered(text, 8, load=load, block=32))
    assert "for several warps of a block (it has one now)" in found.cure  # one alone shares it with nobody


def _conflicting(access: str, metrics: dict[str, float] | None = None, before: str = "") -> KernelContext:
    text = f"S2R R0, SR_TID.X\n{before}\nload| {access} // 9\nuse| FADD R9, R2, R9 // 9\nend| EXIT"
    rows = [
        Row("short_scoreboard", "use", 300, 250, due_to="load", kind=DependencyClass.SHARED_MEMORY),
        Row("selected", "use", 100),
    ]
    wavefronts = "memory_l1_wavefronts_shared"
    counted = {wavefronts: {"load": 800.0}, f"{wavefronts}_ideal": {"load": 100.0}}
    return context_of(listing(text), rows, pc_metrics=counted, metrics=metrics)


@pytest.mark.parametrize(
    ("access", "words"),
    [
        ("LDS R2, [R0.X4+UR4]", "by 4 bytes or swizzle the index"),  # not known: in general
        ("LDS.64 R2, [R0.X16]", "let neighbouring threads take neighbouring elements of 8 bytes"),
    ],
)
def test_conflicts_within_a_row_are_no_matter_of_padding(access: str, words: str) -> None:
    assert words in _match(memory_transaction_reduction, _conflicting(access)).cure


def _exchanged(register: str, distance: int) -> str:
    """The first of two elements of four bytes that are a distance apart, of a thread."""
    return f"""
        LOP3.LUT R9, R0, {distance - 1:#x}, RZ, 0xc0, !PT
        IMAD.IADD {register}, R0, 0x1, -R9
        IMAD {register}, {register}, 0x2, R9
        SHF.L.U32 {register}, {register}, 0x2, RZ
    """


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("IMAD R3, R0, 0x84, RZ\nLEA R3, R0, R3, 0x2", "pad each row of 136 bytes of the array"),
        (_exchanged("R3", 4), "insert 16 bytes after every 128 of the array"),
        (f"{_exchanged('R3', 4)}{_exchanged('R4', 1)}LDS R5, [R4]\nLDS R6, [R4+0x4]", "swizzle the index"),
    ],
)
def test_padding_is_told_where_it_parts_the_banks_and_swizzling_elsewhere(before: str, words: str) -> None:
    cure = _match(memory_transaction_reduction, _conflicting("LDS R2, [R3]", before=f"{before}\n")).cure
    assert words in cure
    assert ("swizzle" in cure) is ("swizzle" in words)


@pytest.mark.parametrize(("shared", "lost"), [(16384, ", 3 of 4 blocks still fit on an SM"), (15360, "")])
def test_padding_that_costs_blocks_says_so(shared: int, lost: str) -> None:
    context = _conflicting("LDS R2, [R0.X4+UR4]")
    assert context.profile is not None
    launch = replace(context.profile.launch, static_shared_bytes=shared, dynamic_shared_bytes=0)
    context = replace(context, profile=replace(context.profile, launch=launch), machine=machine.load("sm_75"))
    cure = _match(memory_transaction_reduction, context).cure
    assert cure.endswith(lost or "swizzle the index")
    small = replace(launch, grid=(context.profile.device.sms, 1, 1))  # one block on each SM: none is lost
    alone = replace(context, profile=replace(context.profile, launch=small))
    assert _match(memory_transaction_reduction, alone).cure.endswith("swizzle the index")


@pytest.mark.parametrize(
    ("ideal", "seen", "offered"), [(100.0, 4, True), (100.0, 19, True), (100.0, 20, False), (600.0, 4, False)]
)
def test_conflicts_that_were_counted_need_no_samples(ideal: float, seen: int, offered: bool) -> None:
    """After a kernel of a few microseconds: four samples, and 32 turns for each access."""
    text = "S2R R0, SR_TID.X\nload| LDS R2, [R0.X4+UR4] // 9\nuse| FADD R9, R2, R9 // 9\nend| EXIT"
    wavefronts = "memory_l1_wavefronts_shared"
    data = "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_active"
    context = context_of(
        listing(text),
        [Row("wait", "use", seen, seen)],
        pc_metrics={wavefronts: {"load": 800.0}, f"{wavefronts}_ideal": {"load": ideal}},
        metrics={data: 50.0},
    )
    found = memory_transaction_reduction.OPTIMIZER.match(context)
    assert isinstance(found, Match) is offered
    if isinstance(found, Match):
        assert "pad the rows" in found.cure
        estimate = memory_transaction_reduction.OPTIMIZER.estimate(context, found)
        assert estimate.low == pytest.approx(1 - RUN_TO_RUN)
        assert estimate.expected == pytest.approx(1 / (0.5 + 0.5 / 8), rel=0.01)


@pytest.mark.parametrize(
    ("before", "access"),
    [("", "ATOMS.ADD R2, [R0.X4], R3"), ("LDG.E R1, [R0.64]", "LDS R2, [R1.X4]")],
)
def test_conflicts_that_the_data_make_have_no_cure(before: str, access: str) -> None:
    context = _conflicting(access, before=before)
    assert isinstance(memory_transaction_reduction.OPTIMIZER.match(context), Rejection)


def test_conflicts_behind_a_full_dram_cost_nothing() -> None:
    full = {"dram__throughput.avg.pct_of_peak_sustained_elapsed": 88.0}
    reason = _reason(memory_transaction_reduction, _conflicting("LDS.64 R2, [R0.X16]", full))
    assert "bank conflicts are hidden behind it" in reason


def test_the_shape_of_a_block_smaller_than_a_warp_comes_first() -> None:
    rows = [Row("lg_throttle", "load", 300, 250), Row("selected", "use", 100)]
    found = memory_transaction_reduction.OPTIMIZER.match(context_of(listing(LOAD), rows, block=9))
    assert isinstance(found, Rejection)
    assert "blocks of 9 threads are no whole warp" in found.reason


def test_atomics_that_fill_the_queue_are_no_scattered_accesses() -> None:
    text = "again:\nadd| RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R6.64], R8 // 10\n@P0 BRA again\nend| EXIT"
    rows = [
        Row("lg_throttle", "add", 300, 250),
        Row("drain", "end", 200, 150, due_to="add", kind=DependencyClass.STORE_IN_FLIGHT),
        Row("selected", "add", 100),
    ]
    found = memory_transaction_reduction.OPTIMIZER.match(context_of(listing(text), rows))
    assert isinstance(found, Rejection)


@pytest.mark.parametrize("sectors", [SECTORS, "memory_l2_sectors_global"])  # the latter in reports of 2020
def test_waste_without_a_busy_unit_lowers_the_equation(sectors: str) -> None:
    rows = [Row("lg_throttle", "load", 300, 250), Row("selected", "use", 100)]
    metrics = {sectors: {"load": 1000.0}, f"{sectors}_ideal": {"load": 250.0}}
    found = _match(memory_transaction_reduction, context_of(listing(LOAD), rows, pc_metrics=metrics))
    assert found.measured_bound is None
    assert found.adjustments[0].expected == 0.75


def test_shuffles_out_of_line_are_no_library_math() -> None:
    text = (
        ".function kernel\nagain:\nCALL.REL.NOINC __cuda_sm70_shflsync_bfly_p\n@P0 BRA again\nEXIT\n"
        ".function __cuda_sm70_shflsync_bfly_p math_helper\n"
        "SHFL.BFLY PT, R2, R3, R4, R5\nRET.REL.NODEC R20 0x0"
    )
    assert "no library math" in _reason(fast_math, context_of(listing(text)))


def test_drain_belongs_to_scattered_stores() -> None:
    rows = [
        Row("drain", "end", 700, 700, "put", DependencyClass.STORE_IN_FLIGHT),
        Row("selected", "use", 300),
    ]
    scattered = {SECTORS: {"put": 3200.0}, f"{SECTORS}_ideal": {"put": 400.0}}
    found = _match(memory_transaction_reduction, context_of(listing(LOAD), rows, pc_metrics=scattered))
    assert "STG kernel.cu:10" in found.advice
    ideal = {SECTORS: {"put": 400.0}, f"{SECTORS}_ideal": {"put": 400.0}}
    assert "no sample waits" in _reason(
        memory_transaction_reduction, context_of(listing(LOAD), rows, pc_metrics=ideal)
    )


def test_scattered_loads_count_by_their_waits_where_no_queue_is_full() -> None:
    rows = [Row("long_scoreboard", "use", 700, 650, "load", GLOBAL), Row("selected", "use", 300)]
    scattered = {SECTORS: {"load": 3200.0}, f"{SECTORS}_ideal": {"load": 400.0}}
    found = _match(memory_transaction_reduction, context_of(listing(LOAD), rows, pc_metrics=scattered))
    assert [region.rows.tolist() for region in found.regions] == [[0]]


def test_bank_conflicts_have_words_of_their_own() -> None:
    text = "put| STS [R4], R2 // 3\nget| LDS R2, [R5] // 4\nuse| FADD R8, R2, R9 // 5\nEXIT"
    rows = [
        Row("short_scoreboard", "use", 300, 290, "get", DependencyClass.SHARED_MEMORY),
        Row("mio_throttle", "get", 100, 90),
        Row("mio_throttle", "put", 50, 40),
        Row("selected", "use", 100),
    ]
    waves = {
        "memory_l1_wavefronts_shared": {"get": 3200.0, "put": 100.0},
        "memory_l1_wavefronts_shared_ideal": {"get": 100.0, "put": 100.0},
    }
    found = _match(memory_transaction_reduction, context_of(listing(text), rows, pc_metrics=waves))
    assert found.title == "shared memory accesses conflict on banks"
    assert "pad the rows" in found.advice
    assert np.concatenate([region.rows for region in found.regions]).tolist() == [0, 1]
    assert found.adjustments[0].expected == pytest.approx(1 - 200 / 3300)


def test_a_full_dram_is_named() -> None:
    rows = [Row("lg_throttle", "load", 300, 250), Row("selected", "use", 100)]
    ideal = {SECTORS: {"load": 400.0}, f"{SECTORS}_ideal": {"load": 400.0}}
    full = {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 93.0}
    context = context_of(listing(LOAD), rows, pc_metrics=ideal, metrics=full)
    assert "the limit is DRAM throughput, at 93 % of its peak" in _reason(
        memory_transaction_reduction, context
    )


def test_machine_code_alone_says_nothing_about_coalescing() -> None:
    found = _reason(memory_transaction_reduction, context_of(listing(LOAD)))
    assert "no access of the innermost loops is seen to put neighbouring threads into different rows" in found


@pytest.mark.parametrize("reason", ["lg_throttle", "mio_throttle", "tex_throttle"])
def test_double_precision_that_queues_like_an_access_is_arithmetic(reason: str) -> None:
    context = context_of(
        listing("double| DFMA R4, R8, R12, R4 // 3\nEXIT"),
        [Row(reason, "double", 100, 90), Row("selected", "double", 100)],
    )
    assert "no sample waits for the load/store queue" in _reason(memory_transaction_reduction, context)
    assert "DFMA" in _match(strength_reduction, context).advice


@pytest.mark.parametrize(
    ("moves", "product", "said"),
    [
        ("IMAD.MOV.U32 R6, RZ, RZ, 0xe3cb2859\nMOV R7, 0x3ff6678a\n", "DMUL R4, R4, R6", False),
        ("IMAD.MOV.U32 R6, RZ, RZ, -0x1c34d7a7\nMOV R7, 0x3ff6678a\n", "DMUL R4, R4, R6", False),
        ("IMAD.MOV.U32 R6, RZ, RZ, 0x0\nMOV R7, 0x40080000\n", "DMUL R4, R4, R6", True),
        ("UMOV UR4, 0x9999999a\nUMOV UR5, 0xbfc99999\n", "DMUL R4, R4, UR4", False),
        ("UMOV UR4, URZ\nUMOV UR5, 0x40080000\n", "DMUL R4, R4, UR4", True),
        ("", "UMOV UR6, 0x9999999a\nUMOV UR7, 0x3fc99999\nDMUL R4, R4, -UR6", False),
        ("", "UMOV.64 UR6, 0x3fc999999999999a\nDMUL R4, R4, -UR6", False),
        ("", "DMUL R4, R4, -1.5", False),
        ("", "DMUL R4, R4, 3", True),
    ],
)
def test_a_broken_exponent_is_no_product(moves: str, product: str, said: bool) -> None:
    """As an argument, or in a routine that ptxas made for the only call."""
    text = (
        f"DADD R4, -RZ, |R18|\n{moves}call| CALL.REL.NOINC __internal_accurate_pow\nEXIT\n"
        f".function __internal_accurate_pow math_helper\n{product}\nRET.REL.NODEC R20"
    )
    rows = [Row("wait", "call", 100, 80), Row("selected", "call", 20)]
    assert ("as a product" in _match(fast_math, context_of(listing(text), rows)).advice) == said


SKIPPING = """
    index| S2R R0, SR_TID.X // 11
    again:
    table| LDG.E R2, [R4.64] // 12
    step| LOP3.LUT R6, R6, R2, RZ, 0x3c, !PT // 12
    ISETP.NE.AND P0, PT, R0, RZ, PT // 12
    @P0 BRA again // 12
    number| FADD R8, R8, R6 // 14
    EXIT
"""


def _with_states(waiting: int, *headers: str) -> KernelContext:
    """A kernel that starts states at line 12, with so many samples in the loop of cuRAND's headers."""
    counts = dict.fromkeys(("table", "step"), (100_000, 3_200_000))
    rows = [Row("lg_throttle", "table", waiting), Row("wait", "number", 100)]
    requests = "l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed"
    context = context_of(listing(SKIPPING), rows, counts=counts, metrics={requests: 95.0})
    (function,) = context.program.functions
    files = headers or ("curand_kernel.h",)
    inside = tuple(SourceLocation(f"/usr/local/cuda/include/{header}", 240) for header in files)
    lines = tuple(
        one if one is None or one.location.line != 12 else replace(one, library=inside)
        for one in function.lines
    )
    return replace(context, program=replace(context.program, functions=(replace(function, lines=lines),)))


def test_random_states_that_skip_ahead() -> None:
    """As in a Monte Carlo kernel that spent 96 % of its samples in curand_init."""
    context = _with_states(900)
    found = _match(strength_reduction, context)
    assert found.title == "random states skip ahead to a sequence for each thread"
    assert "another seed for each thread and sequence 0" in found.cure
    assert "90.0 % of the samples are in curand_init at kernel.cu:12" in found.advice
    estimate = strength_reduction.OPTIMIZER.estimate(context, found)
    assert 1.3 < estimate.low < estimate.expected < estimate.high < 10 * (1 + 2 * RUN_TO_RUN)


@pytest.mark.parametrize(
    "context",
    [
        _with_states(50),
        _with_states(900, "block_reduce.cuh"),
        _with_states(900, "curand_kernel.h", "curand_poisson.h"),  # draws numbers until one fits
    ],
)
def test_loops_of_other_libraries_and_cheap_states_are_none(context: KernelContext) -> None:
    found = strength_reduction.OPTIMIZER.match(context)
    assert isinstance(found, Rejection) or "random" not in found.title
