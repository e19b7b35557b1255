# SPDX-License-Identifier: Apache-2.0
"""What fast forms are said to do without, beside what the compiler leaves out with ``--use_fast_math``."""

from __future__ import annotations

import re
from typing import Final

import pytest
from tests.simulations import code_length, text_program

from gpadvisor.estimators.fast_forms import KEPT, SINGLE, gone_of_sequence
from gpadvisor.evidence.library_math import POW
from gpadvisor.evidence.patterns import RECIPROCAL, TANH, math_sequences
from gpadvisor.model.program import Function

ARCHITECTURES: Final = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
CALLS: Final = {
    "float division": "y / x",
    RECIPROCAL: "1.0f / x",
    "square root": "sqrtf(x)",
    "expf": "expf(x)",
    "logf": "logf(x)",
    "log2f": "log2f(x)",
    "powf": "powf(x, y)",
    TANH: "tanhf(x)",
    "sinf/cosf": "sinf(x)",
}
BOTH: Final = """
extern "C" __global__ void k(float* a, const float* b) {
  float sine, cosine;
  sincosf(b[threadIdx.x], &sine, &cosine);
  a[threadIdx.x] = sine * cosine;
}"""
TEXT: Final = "\n".join(
    f'extern "C" __global__ void f{number}(float* a, const float* b, int n) {{\n'
    f"  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  float x = b[i], y = b[i + n];\n"
    f"  a[i] = {call} + y;\n}}"
    for number, call in enumerate(CALLS.values())
)


def _kernels(arch: str, *options: str) -> dict[str, Function]:
    program = text_program(TEXT, arch, *options)
    return {function.name: function for function in program.functions}


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_fast_forms_do_without_what_the_compiler_leaves_out(arch: str) -> None:
    exact, fast = _kernels(arch), _kernels(arch, "--use_fast_math")
    for number, kind in enumerate(CALLS):
        function = exact[f"f{number}"]
        sequences = math_sequences(function)
        assert kind in {sequence.kind for sequence in sequences}, (arch, kind)
        gone: dict[tuple[int, int], float] = {}
        for sequence in sequences:
            gone |= gone_of_sequence(function, sequence, 1.0, KEPT[sequence.kind])
        left_out = code_length(function) - code_length(fast[f"f{number}"])
        # Not counted are constants that loops load once, and the call for rare arguments with its moves.
        assert 0.35 * left_out <= sum(gone.values()) <= left_out + 1, (arch, kind, left_out)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_fast_forms_are_no_library_math(arch: str) -> None:
    for function in _kernels(arch, "--use_fast_math").values():
        assert not math_sequences(function), function.name


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_of_sincosf_both_polynomials_go(arch: str) -> None:
    (exact,), (fast,) = (
        text_program(BOTH, arch, *options).functions for options in ((), ("--use_fast_math",))
    )
    whole = frozenset[int]().union(*(sequence.whole for sequence in math_sequences(exact)))
    # What stays is more than the fast form by moves and constants of the path for rare arguments.
    assert 0 <= code_length(exact) - len(whole) - (code_length(fast) - 3) <= 3, arch


DOUBLES: Final = {
    "double division": "y / x",
    "double square root": "sqrt(x)",
    "double reciprocal square root": "rsqrt(x)",
    POW: "pow(x, y)",
}


@pytest.mark.parametrize("kind", DOUBLES)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_floats_do_without_the_share_of_doubles_that_is_said(arch: str, kind: str) -> None:
    def lengths(number: str, call: str) -> tuple[int, Function, tuple[Function, ...]]:
        functions = text_program(
            f'extern "C" __global__ void k({number}* a, const {number}* b, int n) {{\n'
            f"  {number} x = b[threadIdx.x], y = b[threadIdx.x + n];\n  a[threadIdx.x] = {call};\n}}",
            arch,
        ).functions
        kernel = next(function for function in functions if function.name == "k")
        powers = tuple(function for function in functions if POW in function.name)
        return code_length(kernel) + sum(map(code_length, powers)), kernel, powers

    doubles, kernel, powers = lengths("double", DOUBLES[kind])
    floats, *_ = lengths("float", DOUBLES[kind])
    sequences = [sequence for sequence in math_sequences(kernel) if sequence.kind == kind]
    whole = sum(map(code_length, powers)) or sum(len(sequence.whole) for sequence in sequences)
    conversions = 4 * (len(re.findall(r"\b[xy]\b", DOUBLES[kind])) + 1)
    share = (doubles - floats - conversions) / whole
    assert max(0.0, share) == pytest.approx(SINGLE.get(kind, 0.0), abs=0.35), (doubles, floats, whole)
