# SPDX-License-Identifier: Apache-2.0
"""Tensor Cores: plain products that run on the multiply-add pipe (beyond GPA Table II).

## What it finds

Loops that multiply two loaded values and add the products up, each value used by many threads, in a kernel
without a tensor core instruction on a GPU that has them for this type: half precision from sm_70 on, TF32 and
bfloat16 (and double precision) from sm_80 on.

## Why warps stall

They need not: the note is about the unit. A tensor core does in one instruction of a warp what takes the
multiply-add pipe hundreds, with fewer loads for each product.

## What to try

- cuBLAS, cuDNN or CUTLASS where the product has the shape of one.
- `nvcuda::wmma` or `mma.sync` for products inside a larger kernel; TF32 keeps the range of `float` and 10
  bits of its mantissa.
- From sm_100 on, packed single precision (`__ffma2_rn` on `float2`) does two products at once without
  rounding.

## Example

```cuda
sum += a_tile[ty][k] * b_tile[k][tx];

nvcuda::wmma::load_matrix_sync(a, a_tile + k, pitch);
nvcuda::wmma::load_matrix_sync(b, b_tile + k * pitch, pitch);
nvcuda::wmma::mma_sync(sum, a, b, sum);
```

## When this advice is wrong

A matrix times a vector uses each element of the matrix once: where each thread loads its own and computes a
factor of it, beside a vector in shared memory, nothing is said.
Where inputs must not be rounded to fewer bits: TF32 has 10 bits of mantissa, `float` 23. Double precision is
fast on the tensor cores of data center GPUs only.

## How the gain is estimated

It is not: the gain depends on the type that the result can bear and on how the data gets to the unit.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.notes import no_estimate
from gpadvisor.evidence.accesses import is_global, is_shared
from gpadvisor.evidence.products import ProductLoop, product_loops, times_loaded
from gpadvisor.evidence.queries import (
    Mask,
    by_place,
    causes,
    kernel_functions,
    line_text,
    regions,
    samples,
    share,
)
from gpadvisor.machine import code_form
from gpadvisor.model.advice import Category, Match, Rejection
from gpadvisor.model.blame import Blame
from gpadvisor.model.figures import percent
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.machine import Feature

_CODE: Final = "GPA402"
_HALF: Final = frozenset({"HFMA2", "HMUL2"})
_DOUBLE: Final = frozenset({"DFMA", "DMUL"})
_SINGLE: Final = "TF32 or bfloat16"
_NEEDED: Final = {
    "half precision": Feature.TENSOR_HALF,
    _SINGLE: Feature.TENSOR_TF32,
    "double precision": Feature.TENSOR_DOUBLE,
}


def _match(context: KernelContext) -> Match | Rejection:
    blame, profile = context.blame, context.profile
    if blame is None or profile is None:
        return Rejection(code=_CODE, reason="needs samples and executed counts", looked=False)
    functions = kernel_functions(context.program, context.kernel)
    if any(
        instruction.info.opclass is OpcodeClass.TENSOR
        for function in functions
        for instruction in function.instructions
    ):
        return Rejection(code=_CODE, reason="the kernel uses the tensor cores")
    loops = product_loops(context.program, context.kernel, context.profile)
    loop = max(
        (product_loop for product_loop in loops if not product_loop.integer),
        key=lambda candidate: samples(blame, _rows(blame, candidate)),
        default=None,
    )
    if loop is None:
        return Rejection(code=_CODE, reason="no loop multiplies floating-point values that it loads")
    rows = _rows(blame, loop)
    times = times_loaded(context.program, profile, loop)
    if share(blame, rows) < constants.MATRIX or times is None or times < constants.SHARED_OPERANDS:
        return Rejection(
            code=_CODE,
            reason=f"the products at {line_text(loop.function, loop.products[0])} have "
            f"{percent(share(blame, rows))} of the samples, or are none of matrices",
        )
    if _has_factors_of_its_own(loop):
        return Rejection(
            code=_CODE,
            reason=f"a factor of the products at {line_text(loop.function, loop.products[0])} each thread "
            "computes from what it loads for itself: a matrix times a vector, no two matrices",
        )
    kind = _kind(loop)
    features = code_form(context.machine.arch).features
    if _NEEDED[kind] not in features:
        return Rejection(code=_CODE, reason=f"{context.machine.arch} has no tensor cores for {kind}")
    has_packed = Feature.PACKED_SINGLE in features and kind == _SINGLE
    packed = terms.PACKED.of(context.language) if has_packed else ""
    return Match(
        title="a plain product without tensor cores",
        advice=(
            f"The loop at {line_text(loop.function, loop.products[0])}, with {percent(share(blame, rows))} "
            f"of the samples, is a plain product on the multiply-add pipe; the tensor cores do it in {kind}"
            f"{packed}, by cuBLAS, CUTLASS or wmma, if the result bears the rounding."
        ),
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(rows)),
    )


def _has_factors_of_its_own(loop: ProductLoop) -> bool:
    """Whether one factor comes from shared memory, and the other from memory that fills no tile."""
    accesses = [loop.function.instructions[index] for index in loop.indices]
    own = any(is_global(access) and access.info.opclass is OpcodeClass.LOAD for access in accesses)
    fills = any(is_shared(access) and access.info.opclass is OpcodeClass.STORE for access in accesses)
    return loop.from_shared and loop.sums is None and own and not fills


def _kind(loop: ProductLoop) -> str:
    """The type of tensor core operation that comes nearest."""
    opcodes = {loop.function.instructions[index].opcode for index in loop.products}
    if opcodes <= _HALF:
        return "half precision"
    return "double precision" if opcodes & _DOUBLE else _SINGLE


def _rows(blame: Blame, loop: ProductLoop) -> Mask:
    return by_place(blame, causes(blame), [(loop.function.id, index) for index in loop.indices])


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="tensor-cores",
    name="Tensor Cores",
    category=Category.NOTE,
    match=_match,
    estimate=no_estimate,
    document=__doc__ or "",
)
