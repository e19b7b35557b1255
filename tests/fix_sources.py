# SPDX-License-Identifier: Apache-2.0
"""Sources with something to edit, and an independent view of comments and directives in them."""

from __future__ import annotations

import re

SCALE = """\
// Scales, with doubles by accident.
#define WIDE(x) ((x) * 2.0)
constexpr int kThreads = 256;

__device__ float shifted(const float* table, int i) { return table[i] * 0.25 + 1e-3; }

extern "C" __global__ void scale(const float* in, float *out, int n, float w) {
    const int t = threadIdx.x + blockIdx.x * kThreads;  /* 0.5 */
    float sum = 0.0f;
    for (int i = t; i < n; i += kThreads) {
\t    const float v = in[i] * 0.5 + WIDE(2.0) / w;
        out[i] = v / w + shifted(in, i);
        for (int j = 0; j < 16; ++j) {
            sum += v * j / w;
        }
        if (v > 0.5) sum /= w;
    }
    out[t] = sum;
}

void run(const float* in, float* out, int n) {
    scale<<<n / kThreads, kThreads>>>(in, out, n, 2.0f);
}
"""

GATHER = """\
template <typename T>
__device__ __noinline__ T pick(const T* values, int i) { return values[i]; }

template <typename T>
__global__ void __launch_bounds__(512) gather(T* out, const int* idx, const T* values, int n) {
    const char* text = "for (;;) 0.5 // no comment";
    T sum = 0;
#pragma unroll 2
    for (int i = 0; i < n; ++i)
    {
        sum += pick(values, idx[i]) * 0.5;
    }
    out[threadIdx.x] = sum;
}
"""

SOURCES = (SCALE, GATHER)

_TOKEN = re.compile(
    r'//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|R"(?P<end>[^()\\\s]{0,16})\(.*?(?:\)(?P=end)"|\Z)'
    r"|\"(?:\\.|[^\"\\\n])*\"?|(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])*'?",
    re.DOTALL,
)
_MACRO_CALL = re.compile(r"\b[A-Z_][A-Z0-9_]+\((?:[^()]|\([^()]*\))*\)")
_DIRECTIVE = re.compile(r"^[ \t]*#(?!pragma unroll)(?:\\\r?\n|[^\n])*", re.MULTILINE)


def closed_ranges(text: str) -> list[tuple[int, int]]:
    """Where comments, strings, macros and directives other than unroll pragmas stand, by text alone."""
    tokens = [match.span() for match in _TOKEN.finditer(text)]
    blank = text
    for start, end in tokens:
        blank = blank[:start] + re.sub(r"[^\n]", " ", text[start:end]) + blank[end:]
    directives = [match.span() for match in _DIRECTIVE.finditer(blank)]
    calls = [match.span() for match in _MACRO_CALL.finditer(blank)]
    return [*tokens, *directives, *calls]


def offset(text: str, line: int, column: int) -> int:
    """The position of a line and column, counted anew."""
    return sum(len(one) + 1 for one in text.split("\n")[: line - 1]) + column
