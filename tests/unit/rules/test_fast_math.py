# SPDX-License-Identifier: Apache-2.0
"""GPA104: what can be done about divisions of doubles, by what they divide by."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.estimators.fast_forms import SINGLE
from gpadvisor.evidence.library_math import POW
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.model.ids import SourceLocation
from gpadvisor.rules.fast_math import OPTIMIZER

BEFORE_LOOP = "take the reciprocal of the divisor before the loop, in which it stays, and multiply at"


def _divided(divisor: str, line: int = 4) -> str:
    """A double division as the compiler expands it."""
    return (
        f"MUFU.RCP64H R3, {divisor} // {line}\nDFMA R8, -R4, R2, 1 // {line}\nDFMA R8, R8, R8, R8 // {line}\n"
        f"@P1 BRA over{line}\nCALL.REL.NOINC slow\nover{line}:\n"
    )


SQUARED = "LDG.E.64 R12, [R20.64]\nDFMA R14, R12, R12, c[0x3][0x8]\n"


def _found(text: str, arch: str = "sm_86") -> Match | Rejection:
    return OPTIMIZER.match(replace(context_of(listing(text, arch)), blame=None))


def _loop(body: str, before: str = "") -> str:
    return f"{before}again:\n{body}@P0 BRA again\nEXIT"


@pytest.mark.parametrize(
    ("text", "arch", "cure"),
    [
        (_loop(_divided("12")), "sm_86", "multiply by the reciprocal of the constant at kernel.cu:4"),
        (
            _loop(_divided("c[0x0][0x164]")),
            "sm_86",
            "multiply by the reciprocal of the parameter, passed as one of its own, at kernel.cu:4",
        ),
        (
            _loop(_divided("UR7"), "ULDC UR7, c[0x0][0x214]\n"),
            "sm_90",
            "multiply by the reciprocal of the parameter, passed as one of its own, at kernel.cu:4",
        ),
        (
            _loop(_divided("UR7"), "ULDC UR7, c[0x3][0x8]\n"),
            "sm_90",
            "multiply by the reciprocal of the constant at kernel.cu:4",
        ),
        (
            _loop(f"{SQUARED}{_divided('R15')}{_divided('R15', 9)}"),
            "sm_86",
            "take one reciprocal for all that is divided by the same value at kernel.cu:4, kernel.cu:9; use",
        ),
        (
            _loop(_divided("R15"), "DMUL R14, R12, R12\n"),
            "sm_86",
            f"{BEFORE_LOOP} kernel.cu:4; use single",
        ),
        (
            _loop(f"LDG.E.64 R14, [R20.64]\n{_divided('R15')}{_divided('R15', 9)}"),
            "sm_86",
            "take one reciprocal for all that is divided by the same value at kernel.cu:4, kernel.cu:9; use",
        ),
    ],
    ids=[
        "number",
        "parameter",
        "uniform register",
        "constant memory",
        "a sum with a constant",
        "made before the loop",
        "of two divisions",
    ],
)
def test_a_divisor_that_stays_has_one_reciprocal(text: str, arch: str, cure: str) -> None:
    found = _found(text, arch)
    assert isinstance(found, Match)
    assert found.cure.startswith(cure)


INNER = "outer:\n{around}inner:\nLDG.E R20, [R22.64]\n{inside}@P1 BRA inner\n@P0 BRA outer\nEXIT"


@pytest.mark.parametrize(("around", "inside"), [(True, False), (False, True)])
def test_what_runs_once_beside_a_loop_is_not_told(around: bool, inside: bool) -> None:
    """As three quotients for each ray, beside a loop over all slices of a volume."""
    parts = ["" if not here else _divided("12") for here in (around, inside)]
    found = _found(INNER.format(around=parts[0], inside=parts[1]))
    assert isinstance(found, Match) is inside


@pytest.mark.parametrize(("line", "told"), [(4, False), (9, True)])
def test_a_loop_whose_inner_loop_has_no_pass_there_is_no_innermost_one(line: int, told: bool) -> None:
    """As a quotient once for each element, beside the loop over the terms of its series."""
    series = INNER.format(around=_divided("12"), inside="FFMA R1, R20, R1, R2 // 5\n").removesuffix("EXIT")
    without = f"again:\nLDG.E R20, [R22.64] // 4\n{_divided('12', line)}@P0 BRA again // 4\nEXIT"
    marked = series.replace("LDG.E R20, [R22.64]", "LDG.E R20, [R22.64] // 5").replace(
        "@P0", "LDG.E R9, [R2.64] // 4\n@P0"
    )
    found = _found(f"{marked}{without.replace('over4', 'past4')}")
    assert isinstance(found, Match) is told


@pytest.mark.parametrize(
    ("divisors", "told"), [(("2", "2", "2"), True), (("2", "3"), True), (("2", "3", "4"), False)]
)
def test_a_counter_that_unrolling_makes_a_constant_is_none_of_the_source(
    divisors: tuple[str, ...], told: bool
) -> None:
    """As in a mean that is kept up to date: each step divides by how many there are."""
    copies = "".join(_divided(one).replace("over4", f"over{at}") for at, one in enumerate(divisors))
    assert isinstance(_found(_loop(copies)), Match) is told


def test_of_other_doubles_nothing_is_said_without_samples() -> None:
    """Each pass divides by a value of its own: only the program tells whether floats would do."""
    found = _found(_loop(f"LDG.E.64 R14, [R20.64]\n{_divided('R15')}"))
    assert isinstance(found, Rejection)
    assert "no fast forms" in found.reason


_TO_FLOAT = "I2F R5, R4 // 6\nFFMA R6, R5, R9, RZ // 6\nFCHK P1, R5, 255 // 6\nFFMA R7, R6, R9, R6 // 6\n"
"""A whole number divided by a constant, as the compiler expands it."""


@pytest.mark.parametrize(
    ("after", "whole"),
    [
        ("F2I.TRUNC R8, R7 // 7\n", True),
        ("FMUL R8, R7, R12 // 7\nF2I.TRUNC R8, R8 // 7\n", True),
        ("FADD R7, R7, R12 // 7\nF2I.TRUNC R8, R7 // 7\n", False),
    ],
    ids=["cut", "multiplied and cut", "another value in its register"],
)
def test_a_quotient_that_becomes_whole_is_one_of_whole_numbers(after: str, *, whole: bool) -> None:
    """As an index into an image; not as a color from 0 to 1 that is filtered before it is a byte again."""
    text = f"{_TO_FLOAT}@!P1 BRA over // 6\nCALL.REL.NOINC slow // 6\nover:\n{after}"
    found = _found(_loop(text))
    assert isinstance(found, Match)
    assert ("divide whole numbers at kernel.cu:6" in found.cure) == whole


def test_a_division_by_a_number_has_no_reciprocal_in_front_of_it() -> None:
    """As a distance that is divided by its largest, behind the reciprocal of an integer division."""
    found = _found(_loop(f"MUFU.RCP R0, R1 // 3\n{_TO_FLOAT}CALL.REL.NOINC slow // 6\n"))
    assert isinstance(found, Match)
    assert "kernel.cu:3" not in found.advice
    assert "multiply by the reciprocal of the constant at kernel.cu:6" in found.cure


@pytest.mark.parametrize(
    ("after", "off"),
    [
        ("F2I.FLOOR.NTZ R8, R7 // 7\n", True),
        ("FRND R8, R7 // 7\n", True),
        ("FADD R8, R7, R12 // 7\nF2I.TRUNC R8, R8 // 7\n", False),
        ("F2I.TRUNC R8, R9 // 7\n", False),
    ],
    ids=["floor", "rounded", "moved first", "another value"],
)
def test_a_quotient_that_becomes_an_integer_may_be_one_off_with_a_fast_form(after: str, *, off: bool) -> None:
    """As a bin of a histogram, which a less exact quotient misses at whole values."""
    divided = _TO_FLOAT.replace("I2F R5, R4", "FADD R5, R4, R4")
    found = _found(_loop(f"{divided}@!P1 BRA over // 6\nCALL.REL.NOINC slow // 6\nover:\n{after}"))
    assert isinstance(found, Match)
    assert ("that is cut or rounded to an integer may then be one off" in found.cure) == off


POWF = (
    "IADD3 R6, R7, -0x3f3504f3, RZ // 4\nLOP3.LUT R6, R6, 0xff800000, RZ, 0xc0, !PT // 4\n"
    "IADD3 R7, R7, -R6, RZ // 4\nFADD R8, R7, 1 // 4\nMUFU.RCP R8, R8 // 4\nFMUL R9, R8, {exponent} // 4\n"
    "FRND R10, R9 // 4\nFADD R5, R9, -R10 // 4\nFFMA R5, R4, R5, 0.69314718246459960938 // 4\n"
)
"""powf() as the compiler expands it."""
NO_NEGATIVE = "no base of powf() is negative, of which __powf() makes a NaN"


@pytest.mark.parametrize(
    ("exponent", "cure", "condition"),
    [
        ("c[0x0][0x170]", "powf at kernel.cu:4 (fast: __powf)", True),
        ("2.4000000953674316406", "powf at kernel.cu:4 (fast: __powf)", False),
        ("64", "powf at kernel.cu:4 (fast: __powf)", True),
        ("3", "write powf() at kernel.cu:4 as a product", False),
        ("-3", "write powf() at kernel.cu:4 as a product", False),
    ],
)
def test_what_is_said_of_powf_goes_by_its_exponent(exponent: str, cure: str, condition: bool) -> None:
    """Its fast form takes no negative base, nor does a broken exponent; a product takes any."""
    found = _found(_loop(f"LDG.E R7, [R2.64]\n{POWF.format(exponent=exponent)}"))
    assert isinstance(found, Match)
    assert cure in found.cure
    assert ("__powf" in found.cure) is ("product" not in cure)
    assert (NO_NEGATIVE in found.cure) is condition


FLOATS = (
    "MUFU.RCP R6, R3 // {line}\nFFMA R7, -R3, R6, 1 // {line}\nFFMA R7, R6, R7, R6 // {line}\n"
    "check{line}| FCHK P1, R0, R3 // {line}\n@!P1 BRA over{line} // {line}\n"
    "CALL.REL.NOINC slow // {line}\nover{line}:\n"
)
"""A division of floats as the compiler expands it."""


@pytest.mark.parametrize(
    ("before", "cure"),
    [
        ("FADD R3, R8, R9\n", f"{BEFORE_LOOP} kernel.cu:4"),
        ("FADD R3, R8, R9\n" + FLOATS.split("check", maxsplit=1)[0], f"{BEFORE_LOOP} kernel.cu"),
        ("", "call the fast forms"),
    ],
    ids=["made before the loop", "approximated there, too", "made in each pass"],
)
def test_floats_that_are_divided_by_what_stays_have_one_reciprocal(before: str, cure: str) -> None:
    division = FLOATS[FLOATS.index("check") :] if "MUFU" in before else FLOATS
    text = _loop(f"{'' if before else 'FADD R3, R8, R9'}\n{division}", before).format(line=4)
    found = OPTIMIZER.match(context_of(listing(text), [Row("wait", "check4", 90, 80)]))
    assert isinstance(found, Match)
    assert found.cure.startswith(cure)
    assert (found.place is not None) == bool(before)  # where the told change is, else the heaviest


ROOT = (
    "IADD3 R4, R10, -0xd000000, RZ // 3\nMUFU.RSQ R5, R10 // 3\n"
    "ISETP.GT.U32.AND P0, PT, R4, 0x727fffff, PT // 3\n"
    "@!P0 BRA fast // 3\nCALL.REL.NOINC slow // 3\nBRA ready // 3\nfast:\nFMUL.FTZ R3, R10, R5 // 3\n"
    "FFMA R3, R3, R5, R3 // 3\nready:\n"
)


@pytest.mark.parametrize(
    ("between", "told"),
    [
        ("NOP", True),  # m / sqrtf(x)
        ("FMUL R3, R10, R3", True),  # m / (x * sqrtf(x)), as of a force
        ("FADD R3, R10, R3", False),  # m / (x + sqrtf(x))
    ],
)
def test_a_division_by_a_root_is_a_reciprocal_root(between: str, *, told: bool) -> None:
    text = _loop(f"FADD R10, R8, R9\n{ROOT}{between}\n{FLOATS.format(line=4)}")
    found = OPTIMIZER.match(context_of(listing(text), [Row("wait", "check4", 90, 80)]))
    assert isinstance(found, Match)
    assert ("call rsqrtf() for a root and the division by it at kernel.cu:4" in found.cure) is told
    assert "square root" in found.cure


@pytest.mark.parametrize(("heaviest", "first"), [("check4", "call the fast forms"), ("c", "multiply by the")])
def test_what_has_most_samples_is_told_first(heaviest: str, first: str) -> None:
    text = _loop(f"FADD R3, R8, R9\n{FLOATS.format(line=4)}c| {_divided('12', 9)}")
    rows = [Row("wait", heaviest, 90, 80), *(Row("wait", tag, 5, 4) for tag in ("check4", "c"))]
    found = OPTIMIZER.match(context_of(listing(text), rows))
    assert isinstance(found, Match)
    assert found.cure.startswith(first)


POWER = (
    "DADD R4, -RZ, |R18| // 5\nMOV R6, R12 // 5\ncall| CALL.REL.NOINC k$__internal_accurate_pow // 5\n"
    "queue| DADD R8, R8, R4 // 6\nEXIT\n"
    ".function k$__internal_accurate_pow math_helper\nin| DMUL R4, R4, R6\nRET.REL.NODEC R20"
)


def test_single_precision_comes_first_where_only_it_gains() -> None:
    rows = [
        ("wait", "in", 100),
        ("math_pipe_throttle", "queue", 60),
        ("wait", "queue", 40),
        ("selected", "in", 9),
    ]
    found = OPTIMIZER.match(context_of(listing(POWER), [Row(*one) for one in rows]))
    assert isinstance(found, Match)
    assert found.cure.startswith(
        "use single precision where the result bears it (doubles have no fast forms)"
    )
    (adjustment,) = found.adjustments
    assert adjustment.expected == pytest.approx((109 * SINGLE[POW] + 60) / 169)  # others wait as before
    assert {one.resource: one.remaining for one in found.reduced_loads}["FP64 pipe"] < 0.01


def test_single_precision_comes_last_where_products_gain() -> None:
    text = f"again:\nc| {_divided('12')}@P0 BRA again\n{POWER}"
    rows = [Row("wait", "c", 100, 90), Row("wait", "in", 50, 40)]
    found = OPTIMIZER.match(context_of(listing(text), rows))
    assert isinstance(found, Match)
    assert found.cure.startswith("multiply by the reciprocal of the constant at kernel.cu:4")
    assert found.adjustments[0].expected == pytest.approx(0.95 * 100 / 150)  # of pow() nothing


@pytest.mark.parametrize(("header", "told"), [("curand_normal.h", False), ("array.h", True)])
def test_math_of_curand_is_its_own_affair(header: str, told: bool) -> None:
    """As of a sequence's start, whose divisions nobody who calls curand_init() can change."""
    context = replace(context_of(listing(_loop(_divided("12")))), blame=None)
    (function,) = context.program.functions
    inside = (SourceLocation(f"/usr/local/cuda/include/{header}", 300),)
    lines = tuple(None if line is None else replace(line, library=inside) for line in function.lines)
    program = replace(context.program, functions=(replace(function, lines=lines),))
    assert isinstance(OPTIMIZER.match(replace(context, program=program)), Match) is told


def test_the_place_is_that_of_what_is_told_first() -> None:
    """As pow() below a root, of which nothing is told but that it is of doubles."""
    called, _, routine = POWER.partition("queue|")
    body = f"LDG.E.64 R14, [R20.64]\n{_divided('R15')}{called}"
    code = listing(f"{_loop(body)}\n{routine[routine.index('.function') :]}", "sm_86")
    found = OPTIMIZER.match(replace(context_of(code), blame=None))
    assert isinstance(found, Match)
    assert found.cure.startswith("write pow() with a small whole exponent as a product")
    assert found.place == code.tags["call"]


def test_without_samples_the_place_of_floats_is_what_is_told_first_too() -> None:
    """A quotient by a constant on line 5 is told behind that by what stays in the loop, on line 4."""
    text = _loop(f"{FLOATS.format(line=5).replace('R3', 'R12')}{FLOATS.format(line=4)}", "FADD R3, R8, R9\n")
    code = listing(text)
    found = OPTIMIZER.match(replace(context_of(code), blame=None))
    assert isinstance(found, Match)
    assert found.cure.startswith(f"{BEFORE_LOOP} kernel.cu:4")
    assert found.place is not None
    (function,) = code.program.functions
    line = function.lines[found.place[1]]
    assert line is not None
    assert line.location.line == 4
