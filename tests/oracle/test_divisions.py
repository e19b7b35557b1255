# SPDX-License-Identifier: Apache-2.0
"""How much of an integer division is found, beside what the compiler adds to a kernel for it."""

from __future__ import annotations

from typing import Final

import pytest
from tests.simulations import code_length, text_program

from gpadvisor.evidence.divisions import integer_divisions
from gpadvisor.model.program import Function

ARCHITECTURES: Final = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
DIVISIONS: Final = (
    ("int", "a / n", "a ^ n"),
    ("int", "a % n", "a ^ n"),
    ("int", "a / b", "a ^ b"),
    ("int", "(a * 3) % (b + 5)", "(a * 3) ^ (b + 5)"),
    ("unsigned", "a / n", "a ^ n"),
    ("unsigned", "a % b", "a ^ b"),
)
"""With the type, and what stands in its place in the kernel without one."""


def _kernels(arch: str, texts: list[tuple[str, str]]) -> list[Function]:
    program = text_program(
        "\n".join(
            f'extern "C" __global__ void k{number}({kind}* out, const {kind}* in, {kind} n) {{\n'
            f"  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  {kind} a = in[i], b = in[i + 7];\n"
            f"  out[i] = {text};\n}}"
            for number, (kind, text) in enumerate(texts)
        ),
        arch,
    )
    return sorted(program.functions, key=lambda function: int(function.name[1:]))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_division_is_found_whole(arch: str) -> None:
    divided = _kernels(arch, [(kind, text) for kind, text, _ in DIVISIONS])
    plain = _kernels(arch, [(kind, text) for kind, _, text in DIVISIONS])
    for (_, text, _), function, other in zip(DIVISIONS, divided, plain, strict=True):
        (found,) = integer_divisions(function)
        added = code_length(function) - code_length(other)
        assert 0.8 * added <= len(found.indices) <= added + 2, (arch, text, len(found.indices), added)
    assert not any(integer_divisions(function) for function in plain)
