# SPDX-License-Identifier: Apache-2.0
"""Fragment sizes of the matrix instructions, in 32-bit registers per thread."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpadvisor.model.machine import WARP


@dataclass(frozen=True, slots=True)
class Fragments:
    """Registers of each operand of ``D = A * B + C``."""

    d: int
    a: int
    b: int
    c: int


_SHAPE = re.compile(r"(?P<m>8|16)(?:x)?(?P<n>8|16)(?:x)?(?P<k>4|8|16|32|64|128|256)$")
_INPUT_BITS = {"HMMA": 16, "BMMA": 1, "DMMA": 64, "IMMA": 8, "QMMA": 8, "OMMA": 4, "MXQMMA": 8}


def fragments(base: str, modifiers: Sequence[str]) -> Fragments | None:
    """Fragment sizes of a warp-wide matrix instruction; None for a shape that is not understood."""
    if base == "HMMA" and modifiers and modifiers[0] == "884":
        return _volta(modifiers)
    match = next((shape for shape in map(_SHAPE.match, modifiers) if shape), None)
    if match is None:
        return None
    m, n, k = (int(match[name]) for name in ("m", "n", "k"))
    bits = _input_bits(base, modifiers)
    result = 64 if base == "DMMA" else 16 if _half_result(base, modifiers) else 32
    dense = 2 if "SP" in modifiers else 1  # half of a sparse A is stored
    size = [
        max(1, count * width // 32 // WARP)
        for count, width in ((m * n, result), (m * k // dense, bits), (k * n, bits))
    ]
    return Fragments(d=size[0], a=size[1], b=size[2], c=size[0])


def _input_bits(base: str, modifiers: Sequence[str]) -> int:
    if base == "HMMA" and "TF32" in modifiers:
        return 32
    if base == "IMMA" and any(modifier.startswith(("S4", "U4")) for modifier in modifiers):
        return 4
    return _INPUT_BITS.get(base, 16)


def _half_result(base: str, modifiers: Sequence[str]) -> bool:
    return base in ("HMMA", "QMMA") and "F16" in modifiers and "F32" not in modifiers


def _volta(modifiers: Sequence[str]) -> Fragments:
    """HMMA.884: quads of 8 threads; a step holds half of an FP32 result."""
    result = 4 if "F32" in modifiers else 2
    if "F32" in modifiers and any(modifier.startswith("STEP") for modifier in modifiers):
        result = 2
    return Fragments(d=result, a=2, b=2, c=result)


_WARPGROUP_SHAPE = re.compile(r"64x(?P<n>[0-9]{1,3})x[0-9]{1,3}$")


def warpgroup_fragments(base: str, modifiers: Sequence[str]) -> Fragments | None:
    """Fragment sizes of HGMMA and its kin, 64 rows over four warps; B is never in registers."""
    match = next((shape for shape in map(_WARPGROUP_SHAPE.match, modifiers) if shape), None)
    if match is None:
        return None
    half = "F16" in modifiers and "F32" not in modifiers and base in ("HGMMA", "QGMMA")
    result = max(1, int(match["n"]) // (4 if half else 2))
    return Fragments(d=result, a=4, b=4, c=result)
