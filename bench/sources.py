# SPDX-License-Identifier: Apache-2.0
"""CUDA sources of a wanted size: loop nests, loads, arithmetic, branches, barriers, inlined and real calls.

The same size gives the same text. What matters for the times is near to real kernels: a loop every few dozen
instructions, a line table that changes file position often, two levels of inlining, a few calls.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

PHASE_INSTRUCTIONS = 80
KERNEL_INSTRUCTIONS = 100
"""Machine instructions per phase, and of a kernel beside its phases, on sm_80; the table has true counts."""

_PRELUDE = """\
__device__ __forceinline__ float soften(float x, float y) {
    return x * y / (1.0f + fabsf(x));
}

__device__ __forceinline__ float blend(float x, float y, float t) {
    const float bent = soften(x, t);
    return fmaf(bent, y - x, soften(y, t));
}

__device__ __noinline__ float settle(float x, int rounds) {
    for (int i = 0; i < rounds; ++i) {
        x = x - 0.25f * (x * x * x - 2.0f * x);
    }
    return x;
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What is asked of the generator."""

    instructions: int  # in all, about
    kernels: int

    @property
    def name(self) -> str:
        """A file name."""
        return f"i{self.instructions}-k{self.kernels}"


def cuda_source(size: Size) -> str:
    """The text of one translation unit."""
    each = size.instructions / size.kernels
    phases = max(1, round((each - KERNEL_INSTRUCTIONS) / PHASE_INSTRUCTIONS))
    kernels = [_kernel(number, phases) for number in range(size.kernels)]
    return "\n".join([_PRELUDE, *kernels])


def _kernel(number: int, phases: int) -> str:
    choice = random.Random(number)
    head = (
        f'extern "C" __global__ void stress_{number}(const float* __restrict__ a,\n'
        f"        const float* __restrict__ b, float* c, int n, int stride) {{\n"
        f"    __shared__ float tile[256];\n"
        f"    const int at = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"    float x = a[at], y = b[at], z = 0.0f;\n"
    )
    body = "".join(_phase(number + phase, choice) for phase in range(phases))
    return f"{head}{body}    c[at] = x + y + z;\n}}\n"


def _phase(number: int, choice: random.Random) -> str:
    k1, k2, k3 = (round(choice.uniform(0.1, 9.9), 3) for _ in range(3))
    offset = choice.randrange(1, 4096)
    kind = number % 4
    if kind == 0:
        return (
            f"#pragma unroll 2\n"
            f"    for (int i = 0; i < n; ++i) {{\n"
            f"        const float left = a[at + i * stride + {offset}];\n"
            f"        const float right = b[at * stride + i];\n"
            f"        if (left > {k1}f) {{\n"
            f"            x = blend(x, right, {k2}f);\n"
            f"        }} else {{\n"
            f"            y = fmaf(left, right, y * {k3}f);\n"
            f"        }}\n"
            f"    }}\n"
        )
    if kind == 1:
        return (
            f"    tile[threadIdx.x] = x * {k1}f;\n"
            f"    __syncthreads();\n"
            f"#pragma unroll 4\n"
            f"    for (int i = 0; i < 32; ++i) {{\n"
            f"        z = fmaf(tile[(threadIdx.x + i * {offset % 31 + 1}) & 255], y, z);\n"
            f"        y += z * {k2}f;\n"
            f"    }}\n"
            f"    __syncthreads();\n"
        )
    if kind == 2:
        return (
            f"#pragma unroll 1\n"
            f"    for (int i = 0; i < n; ++i) {{\n"
            f"#pragma unroll 1\n"
            f"        for (int j = i; j < n; j += {offset % 7 + 1}) {{\n"
            f"            x += __sinf(y + {k1}f) * __expf(z * {k2}f);\n"
            f"            if (x > {k3}f) break;\n"
            f"            c[(at + j) % stride] = x;\n"
            f"        }}\n"
            f"        y = rsqrtf(x * x + {k3}f);\n"
            f"    }}\n"
        )
    return (
        f"    if (n > {offset}) {{\n"
        f"        x = settle(x * {k1}f, n);\n"
        f"        z += (float)((double)x * {k2} + (double)(at / (stride + {offset})));\n"
        f"    }} else {{\n"
        f"        z = blend(x, z, y * {k3}f) + a[at + {offset}];\n"
        f"    }}\n"
    )
