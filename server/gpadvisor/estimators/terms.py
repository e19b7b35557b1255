# SPDX-License-Identifier: Apache-2.0
"""Every term of advice that CUDA C++, CUDA Fortran, Julia and Python write differently.

A rule asks for one by its name, in the kernel's language; a parenthesis that it has nothing for is empty.
"""

from __future__ import annotations

from typing import Final

from gpadvisor.model.language import Term


def _only_cuda(text: str, others: str = "") -> Term:
    """A term that only CUDA C++ has, with what stands there in all other languages."""
    return Term(cuda=text, fortran=others, julia=others, python=others)


# Loops and pointers.
UNROLLED: Final = Term(
    cuda=" (#pragma unroll {times})",
    fortran=" by hand",
    julia=" (@unroll, or by hand)",
    python=" (its unroll factor, or by hand)",
)
UNROLLED_FURTHER: Final = Term(
    cuda=" (#pragma unroll {times}, {now} now)",
    fortran=" by hand ({now} copies now)",
    julia=" (@unroll, or by hand; {now} copies now)",
    python=" (its unroll factor, or by hand; {now} copies now)",
)
SIGNED_STEP: Final = _only_cuda(
    ", with a signed counter and step (const int step = blockDim.x;): an unsigned one may wrap, so that each "
    "copy tests for the end"
)
STAYS_FIRST: Final = _only_cuda(", by __ldca() as plain loads sink back to their use")
UNROLLED_ALL: Final = Term(
    cuda=" (#pragma unroll)",
    fortran=" by hand",
    julia=" (@unroll, or by hand)",
    python=" (its unroll factor, or by hand)",
)
MARK_POINTERS: Final = Term(
    cuda="mark the pointers{too} __restrict__, const where they are only read, if they never overlap",
    fortran="say that the loop is independent{too} if it is",
    julia="pass the arrays as Const{too} if they never overlap",
    python="load into a variable first",
)
MARKED: Final = _only_cuda("nothing can be marked __restrict__", "the compiler cannot be told")
FROM_GLOBAL: Final = _only_cuda(" (const __restrict__)")

# Functions.
INLINE: Final = Term(
    cuda="Mark it __forceinline__, with its definition visible to the caller (a header, or -dlto)",
    fortran="Compile with -Minline, both in one file",
    julia="Mark it @inline",
    python="Write its body where it is called",
)
INLINED: Final = Term(cuda=" (__forceinline__)", fortran="", julia=" (@inline)", python="")
KEEP_CALLED: Final = Term(
    cuda="Mark {name} __noinline__",
    fortran="Keep {name} from being inlined",
    julia="Mark {name} @noinline",
    python="Keep {name} from being inlined",
)
CALLED_FUNCTION: Final = Term(
    cuda="a __noinline__ function",
    fortran="a function that is not inlined",
    julia="a @noinline function",
    python="a function that is not inlined",
)
BY_LINKER: Final = _only_cuda(": -dlto")

# Arithmetic.
SINGLE_LITERALS: Final = Term(
    cuda="add the suffix f to literals",
    fortran="write literals in single precision (2.0, not 2.0d0)",
    julia="write literals as Float32 (2.0f0)",
    python="make literals and constants float32",
)
SINGLE_LITERALS_AT: Final = Term(
    cuda="add the suffix f to the literals at {places}",
    fortran="write the literals at {places} in single precision (2.0, not 2.0d0)",
    julia="write the literals at {places} as Float32 (2.0f0)",
    python="make the literals at {places} float32",
)
SINGLE_LITERALS_AND_MATH: Final = Term(
    cuda=f"{SINGLE_LITERALS.cuda} and call the float form of math functions",
    fortran=SINGLE_LITERALS.fortran,
    julia=SINGLE_LITERALS.julia,
    python=SINGLE_LITERALS.python,
)
SINGLE_MATH: Final = _only_cuda(
    "call the float form of math functions", "call math functions with arguments in single precision"
)
POWER_AT: Final = _only_cuda(
    "write pow() at {places} as a product, or powf()", "write the power at {places} as a product"
)
WHOLE_POWER_AT: Final = _only_cuda(
    "write powf() at {places} as a product", "write the power at {places} as a product"
)
POWER: Final = _only_cuda("pow()", "a power")
RECIPROCAL_ROOT: Final = _only_cuda("call rsqrtf()", "take the reciprocal root")
FAST_MATH: Final = Term(
    cuda="call the fast forms or compile with --use_fast_math if the accuracy allows",
    fortran="compile with -gpu=fastmath if the accuracy allows",
    julia="launch with fastmath=true or write @fastmath if the accuracy allows",
    python="use fast forms (fastmath=True in Numba, libdevice.fast_... in Triton) if the accuracy allows",
)
NO_NEGATIVE_BASE: Final = _only_cuda(
    " and no base of powf() is negative, of which __powf() makes a NaN",
    " and no base of a power is negative, of which the fast form makes a NaN",
)
FAST_FORM: Final = _only_cuda(" (fast: {name})")
DIVISOR: Final = Term(
    cuda="make the divisor a template parameter",
    fortran="make the divisor a named constant",
    julia="pass the divisor as a Val",
    python="make the divisor a constexpr",
)
HIGH_PRODUCT: Final = _only_cuda(" (__umulhi)")
UNLIKE_WARP_SIZE: Final = _only_cuda(" (as warpSize is 32)")
FLOAT_OF_BITS: Final = _only_cuda(" (__int_as_float(0x4b000000 | x) - 8388608.0f)")
PACKED: Final = _only_cuda(" or packed (__ffma2_rn)")
FOUR_BYTES: Final = _only_cuda(" (__dp4a)")

# Memory.
SIZED_ARRAYS: Final = Term(
    cuda="size its arrays at the launch (extern __shared__) or by a template parameter",
    fortran="size its arrays at the launch",
    julia="size its arrays at the launch (CuDynamicSharedArray) or by a Val",
    python="give its arrays the size that this launch needs",
)
CONSTANT_MEMORY: Final = _only_cuda("__constant__, up to 64 KiB", "up to 64 KiB")
GRID_CONSTANT: Final = _only_cuda(
    "Declare the parameter that is indexed at run time const __grid_constant__, so that it is read where it "
    "is passed, in constant memory",
    "Pass what is indexed at run time in an array instead of by value",
)
CONSTANT_ARRAY: Final = _only_cuda(
    "Declare the array of constants __constant__, outside of the kernel",
    "Keep the array of constants outside",
)
CONSTANT_ARRAY_OF_LANES: Final = _only_cuda(
    "Declare the array of constants static __device__ const, outside of the kernel, or keep it in shared "
    "memory",
    "Keep the array of constants outside, in global or shared memory",
)
CONSTANT_INDICES: Final = _only_cuda(
    "Let the compiler know the indices (static __device__ const in place of __constant__ for the array that "
    "they come from, and unrolled loops)",
    "Let the compiler know the indices",
)
ASYNCHRONOUSLY: Final = _only_cuda(" with cuda::memcpy_async or __pipeline_memcpy_async", " asynchronously")
NEWEST_COPY: Final = _only_cuda(" (__pipeline_wait_prior(1))")

# Threads of a block and of a warp.
BLOCK_BARRIER: Final = Term(
    cuda="__syncthreads()", fortran="syncthreads()", julia="sync_threads()", python="syncthreads()"
)
WARP_BARRIER: Final = Term(
    cuda="__syncwarp()", fortran="syncwarp()", julia="sync_warp()", python="syncwarp()"
)
SHUFFLES: Final = _only_cuda(" (__shfl_down_sync())")
SHUFFLES_AND_SCAN: Final = _only_cuda(" (__shfl_down_sync(), in a scan __shfl_up_sync())")
WARP_REDUCTION: Final = _only_cuda(", from sm_80 by __reduce_{operation}_sync()")
COUNTED_IN_WARP: Final = _only_cuda(" (count with __activemask() and __popc(), pass on with __shfl_sync())")
BALLOT: Final = _only_cuda(" (__ballot_sync(), __popc(), __shfl_sync())")

# Launches; Fortran and Julia count from one.
ELEMENT: Final = Term(
    cuda="blockIdx.x * blockDim.x + threadIdx.x",
    fortran="(blockIdx%x - 1) * blockDim%x + threadIdx%x",
    julia="(blockIdx().x - 1) * blockDim().x + threadIdx().x",
    python="cuda.grid(1)",
)
ALL_THREADS: Final = Term(
    cuda="blockDim.x * gridDim.x",
    fortran="blockDim%x * gridDim%x",
    julia="blockDim().x * gridDim().x",
    python="cuda.gridsize(1)",
)
GRID_SIZE: Final = Term(
    cuda="gridDim.{axis}", fortran="gridDim%{axis}", julia="gridDim().{axis}", python="cuda.gridDim.{axis}"
)
ALONG_X: Final = Term(
    cuda="threadIdx.x", fortran="threadIdx%x", julia="threadIdx().x", python="cuda.threadIdx.x"
)
ALONG_Y: Final = Term(
    cuda="threadIdx.y", fortran="threadIdx%y", julia="threadIdx().y", python="cuda.threadIdx.y"
)
REGISTER_LIMITS: Final = _only_cuda(" (__launch_bounds__, -maxrregcount)")
LAUNCH_BOUNDS: Final = Term(
    cuda="__launch_bounds__",
    fortran="its launch bounds",
    julia="the maxthreads of its launch",
    python="its launch bounds",
)
LAUNCH_BOUNDS_OF: Final = Term(
    cuda="__launch_bounds__({bounds})",
    fortran=LAUNCH_BOUNDS.fortran,
    julia=LAUNCH_BOUNDS.julia,
    python=LAUNCH_BOUNDS.python,
)
REGISTER_CAP: Final = Term(
    cuda="-maxrregcount or maxnreg",
    fortran="-gpu=maxregcount",
    julia="the maxregs of its launch",
    python="maxnreg (max_registers in Numba)",
)
BOUNDS_OR_CAP: Final = Term(
    cuda=f"the second number of {LAUNCH_BOUNDS.cuda}, {REGISTER_CAP.cuda}",
    fortran=REGISTER_CAP.fortran,
    julia=REGISTER_CAP.julia,
    python=REGISTER_CAP.python,
)
