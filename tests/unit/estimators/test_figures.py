# SPDX-License-Identifier: Apache-2.0
"""Figures of estimates worked by hand, at the edges where a formula could be another one."""

from __future__ import annotations

from math import sqrt

import pytest
from tests.optimizer_values import context_of, listing

from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.division_words import division_advice, told_divisions
from gpadvisor.estimators.fast_forms import FoundMath, gone_with_fast_forms
from gpadvisor.estimators.fast_math_words import math_advice, math_cure
from gpadvisor.estimators.parallel import parallel
from gpadvisor.estimators.reuse import steps
from gpadvisor.estimators.traffic_loads import millions
from gpadvisor.evidence.divisions import integer_divisions
from gpadvisor.evidence.patterns import SINE, SLOW_PATH, CodeSequence, math_sequences
from gpadvisor.evidence.products import product_loops
from gpadvisor.model.advice import Adjustment, Match, ParallelTarget, ReducedLoad, Utilisation
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.language import Language
from gpadvisor.model.sentence import Sentence


def _unit(percent: float) -> Utilisation:
    return Utilisation(name="DRAM", percent=percent, metric="dram")


@pytest.mark.parametrize(("percent", "load"), [(60.0, 0.6), (100.0, 1.0), (104.0, 1.0), (149.0, 1.0)])
def test_no_unit_works_for_longer_than_the_kernel_runs(percent: float, load: float) -> None:
    """Counters of separate passes can put a unit above its peak."""
    found = busiest_after([_unit(percent)], ())
    assert found is not None
    assert found.load == pytest.approx(load)


def test_what_a_cure_takes_off_a_unit_is_a_share_of_its_load() -> None:
    found = busiest_after([_unit(104.0)], [ReducedLoad(resource="DRAM", remaining=0.5, remaining_best=0.25)])
    assert found is not None
    assert found.load == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("count", "text"), [(99_999, "99,999"), (100_000, "0.1 M"), (2_340_000, "2.3 M"), (7, "7")]
)
def test_counts_are_millions_from_a_tenth_of_one(count: float, text: str) -> None:
    assert millions(count) == text


def test_an_adjustment_scales_what_a_launch_gains_over_one() -> None:
    """Half of a gain of 8 % is one of 4 %."""
    target = ParallelTarget(
        warps_now=4.0, warps_new=1.0, issue_ratio=0.05, factor=1.0, factor_reason="f", blocks_now=82,
        blocks_new=328, threads_now=512, threads_new=128, limiter=None, busy_sms_now=82, busy_sms_new=82,
    )  # fmt: skip

    def gains(*adjustments: Adjustment) -> tuple[float, float, float]:
        match = Match(title="t", advice="a", regions=(), parallel=target, adjustments=adjustments)
        estimate = parallel(context_of(listing("FADD R1, R2, R3\nEXIT")), match)
        return estimate.low, estimate.expected, estimate.high

    full = gains()
    half = gains(Adjustment(low=0.5, expected=0.5, high=0.5, reason="half of the warps wait"))
    assert full[1] - 1 == pytest.approx(0.078, abs=1e-3)
    assert half[1] - 1 == pytest.approx((full[1] - 1) / 2)
    margin = full[0] / full[1]  # what two runs differ by, at either end
    assert [half[0] / margin, half[2] * margin] == pytest.approx([half[1], half[1]], rel=2e-3)


def test_a_tile_in_shared_memory_keeps_little_of_a_loop_of_global_loads() -> None:
    """Worked for 256 threads, so a tile of 16 x 16, and two loads for each product.

    A product then takes one load of 16 bytes for four along the sum and one across it, and 4/16 to fill the
    tile: (1 + 1/4 + 1/4) / 2 of the loads. Where the compiler joins none of them, all stay.
    """
    loop = "again:\nLDG.E R8, [R4.64]\nLDG.E R9, [R6.64]\nFFMA R10, R8, R9, R10\n@P0 BRA again\nEXIT"
    context = context_of(listing(loop), [], block=256)
    assert context.profile is not None
    (products,) = product_loops(context.program, context.kernel)
    least, expected, most = steps(products, context.profile)
    assert (expected.requests, expected.overhead) == (0.75, 2 / 16)
    assert (least.requests, least.overhead) == (pytest.approx(sqrt(0.75)), 2 / 16)
    assert (most.requests, most.overhead) == ((1.25 / 2 + 2 / 16) / 2, 1 / 16)


def test_the_fast_form_of_a_division_takes_four_instructions() -> None:
    gone, division = _gone_of_division("", "")
    assert sum(gone.values()) == pytest.approx(len(division.whole) - 4)
    assert gone[0, 1] == gone[0, 2] > 0  # the check for rare operands as the rest


def test_the_reciprocal_goes_too_where_it_is_taken_before_the_loop() -> None:
    gone, division = _gone_of_division("FADD R3, R8, R9\nagain:\n", "@P0 BRA again\n")
    assert sum(gone.values()) == pytest.approx(len(division.whole) - 1)
    assert gone[0, 1] == gone[0, 2] > 0.8  # the special function as all others


def _gone_of_division(before: str, after: str) -> tuple[dict[tuple[FunctionId, int], float], CodeSequence]:
    text = (
        f"{before}MUFU.RCP R6, R3\nFCHK P0, R0, R3\nFFMA R7, -R3, R6, 1\nFFMA R7, R6, R7, R6\n"
        f"@!P0 BRA over\nCALL.REL.NOINC slow\nover:\n{after}EXIT"
    )
    context = context_of(listing(text))
    kernel = context.program.functions[0]
    (division,) = math_sequences(kernel)
    found = FoundMath((kernel,), {kernel.id: (division,)}, ())
    return gone_with_fast_forms(context, found), division


def _divided(setup: str, divisor: str) -> str:
    text = (
        f"{setup}I2F.U32.RP R4, {divisor} // 3\nMUFU.RCP R4, R4 // 3\nIADD3 R2, R4, 0xffffffe, RZ // 3\n"
        "F2I.FTZ.U32.TRUNC.NTZ R3, R2 // 3\nEXIT"
    )
    function = listing(text).program.functions[0]
    words, cure = division_advice((function,), {function.id: integer_divisions(function)}, Language.CUDA)
    return words + cure


@pytest.mark.parametrize(
    ("setup", "divisor", "words"),
    [
        ("", "0x20", "the divisor is 32, but not as a constant of the source"),
        ("", "c[0x0][0x170]", "all threads divide by the same value"),
        ("MOV R9, c[0x0][0x170]\n", "R9", "all threads divide by the same value"),
        ("LDG.E R9, [R6.64]\n", "R9", "one reciprocal for all numbers that are divided by the same value"),
    ],
)
def test_what_is_known_of_a_divisor_is_told(setup: str, divisor: str, words: str) -> None:
    assert words in _divided(setup, divisor)


def _steps(divisor: str, line: int) -> str:
    """A division as the compiler expands it."""
    return (
        f"I2F.U32.RP R4, {divisor} // {line}\nMUFU.RCP R4, R4 // {line}\n"
        f"IADD3 R2, R4, 0xffffffe, RZ // {line}\nF2I.FTZ.U32.TRUNC.NTZ R3, R2 // {line}\n"
    )


def test_a_divisor_that_changes_in_each_pass_is_not_meant() -> None:
    """As in Euclid's algorithm, whose divisors no parameter of a template can be."""
    changing = f"again:\n{_steps('R9', 3)}IADD3 R9, R9, -R3, RZ // 3\n@P0 BRA again\n"
    both = listing(f"{changing}{_steps('c[0x0][0x170]', 5)}EXIT").program.functions
    told, others = told_divisions(both)
    assert [function.lines[one.start].location.line for function in both for one in told[function.id]] == [5]  # type: ignore[union-attr] # the listing has lines
    assert [len(one) for one in others.values()] == [1]
    alone = listing(f"{changing}EXIT").program.functions
    told, others = told_divisions(alone)
    assert [len(one) for one in (*told.values(), *others.values())] == [0, 1]


def test_a_divisor_that_doubles_in_each_pass_may_be_a_power_of_two() -> None:
    doubled = listing(f"again:\n{_steps('R9', 3)}SHF.L.U32 R9, R9, 0x1, RZ // 3\n@P0 BRA again\nEXIT")
    told, _ = told_divisions(doubled.program.functions)
    words, cure = division_advice(doubled.program.functions, told, Language.CUDA)
    assert "doubles or halves from pass to pass" in words
    assert cure == "use a shift and a mask if it starts at a power of two."


@pytest.mark.parametrize(("line", "named"), [(3, False), (4, True)])
def test_the_slow_path_of_a_sine_is_told_where_no_sine_is(line: int, named: bool) -> None:
    """Its own line says that it is part of the sine; elsewhere it stands for one that nobody sees."""
    function = listing(f"FMUL R2, R2, R2 // 3\nFMUL R3, R3, R3 // {line}\nEXIT").program.functions[0]
    found = FoundMath(
        (function,),
        {function.id: (CodeSequence(SINE, 0, frozenset({0})), CodeSequence(SLOW_PATH, 1, frozenset({1})))},
        (),
    )
    for words in (math_advice(found, single=True), math_cure(found, single=True)):
        assert "sinf/cosf at kernel.cu:3" in Sentence(words)
        assert ("slow path at kernel.cu:4" in Sentence(words)) is named
        assert "slow path at kernel.cu:3" not in Sentence(words)
