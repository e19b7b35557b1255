# SPDX-License-Identifier: Apache-2.0
"""Questions about one line of a CUDA source."""

from __future__ import annotations

import pytest

from gpadvisor.source.facts import MAX_SITES, MAX_TEXT, KernelSite, LoopSite, SourceFacts, Token
from gpadvisor.source.reading import source_facts
from gpadvisor.source.syntax import MAX_PARSED_BYTES

KERNEL = """#include <x.h>
template <typename T>
__global__ void __launch_bounds__(256, (2 + 2)) scale(float *out, const T *__restrict__ in,
                                                      int **table, int w, float (&fixed)[4])
{
    #pragma unroll 4  // by hand
    // why
    for (int i = 0; i < w; ++i)
        out[i] = in[i / w] % w * 0.5 + 1.0f + 2e3 + 1.f + 3. + .25L + 0x1p-3 + 7 + 1'000.5 / 8 + 0x1e3;
    while (w) { w /= out[0]; }
    #pragma unroll
    do { w--; } while (w > 3);
}
__device__ float helper(float *a, float *b) { return *a / *b; }
"""


@pytest.fixture(scope="module")
def source() -> SourceFacts:
    return source_facts("scale.cu", KERNEL)


def on(line: int, tokens: tuple[Token, ...]) -> list[str]:
    return [token.text for token in tokens if token.line == line]


def test_double_literals(source: SourceFacts) -> None:
    assert on(9, source.double_literals) == ["0.5", "2e3", "3.", ".25L", "0x1p-3", "1'000.5"]
    assert {token.line for token in source.double_literals} == {9}


def test_divisions_by_what_is_not_a_literal(source: SourceFacts) -> None:
    assert on(9, source.divisions) == ["in[i / w] % w", "i / w"]
    assert on(10, source.divisions) == []  # by an element of an array of floats


def test_a_macro_that_is_a_number_leaves_no_division() -> None:
    text = """#define WORDS (64 / 4)
#define ROWS 1024u // of a tile
#define HALF (SIZE / 2)
__global__ void f(int *a, int i, int n) {
    a[i % WORDS] = i / ROWS;
    a[i % HALF] = i / n;
}"""
    divisions = source_facts("f.cu", text).divisions
    assert [token.text for token in divisions if token.line >= 4] == ["i % HALF", "i / n"]


def test_divisions_of_floating_point_numbers_are_no_divisions_of_integers() -> None:
    text = """struct Cell { float mass; int count; };
__global__ void f(const unsigned n, const double length, float *out, const half *h, T t, Cell c, int both) {
    int i = threadIdx.x / n;
    double x = acos(-1.0) * i / length;
    out[i] = 1.f / (1.f + expf(-i)) + n / out[i];
    out[i / n] = (float)i / n + (int)x / n + static_cast<double>(i) / n + float(i) / n;
    i = c.count / n + int(c.mass / n);
    i = t / n + i % (n ? n : 2) + *h / i;
    float both = i; i = both / n;
}"""
    divisions = source_facts("f.cu", text).divisions
    assert on(3, divisions) == ["threadIdx.x / n"]
    assert on(4, divisions) == on(5, divisions) == []
    assert on(6, divisions) == ["i / n", "(int)x / n"]
    assert on(7, divisions) == ["c.count / n"]
    assert on(8, divisions) == ["t / n", "i % (n ? n : 2)"]
    assert on(9, divisions) == ["both / n"]  # declared as both: nobody knows which is meant


def test_loops_and_their_pragmas(source: SourceFacts) -> None:
    assert source.loop(8) == LoopSite(line=8, last_line=9, unroll="4")
    assert source.loop(10) == LoopSite(line=10, last_line=10, unroll=None)
    assert source.loop(12) == LoopSite(line=12, last_line=12, unroll="")
    assert source.loop(9) is None
    nested = source_facts("a.cu", "void f() { for (;;) {\n#pragma unroll 3\nx(); for (;;) while (y) ;\n} }")
    assert nested.loop(1) == LoopSite(line=1, last_line=4, unroll=None)
    assert nested.loop(3) == LoopSite(line=3, last_line=3, unroll=None)


def test_kernels(source: SourceFacts) -> None:
    kernel = source.kernel(9)
    assert kernel == KernelSite(
        line=3,
        last_line=13,
        launch_bounds="256, (2 + 2)",
        unrestricted=("out", "table"),
        name="scale",
        parameters=("float*", "T*", "int**", "int", "float*"),
    )
    assert source.kernel(3) == kernel
    assert source.kernel(14) is None
    assert source.kernel(99) is None


def test_pointers_that_are_written_as_arrays_are_named_too() -> None:
    text = "__global__ void f(double y[], const float *__restrict__ x, int n, float m[4][4]) {}"
    kernel = source_facts("a.cu", text).kernel(1)
    assert kernel is not None
    assert kernel.unrestricted == ("y", "m")


def test_kernels_have_their_namespaces() -> None:
    text = """namespace a::b { namespace { template <class T>
__global__ void one(T *x) {} }
namespace c { __global__ void __launch_bounds__(64) two() {} } }
template <> __global__ void three<float>(float) {}
"""
    assert [one.name for one in source_facts("k.cu", text).kernels] == ["a::b::one", "a::b::c::two", "three"]


def test_broken_huge_and_other_sources_have_no_answers() -> None:
    broken = source_facts("a.cu", "__global__ void k( { for (;; ")
    assert broken.loop(1) in {None, LoopSite(line=1, last_line=1, unroll=None)}
    assert source_facts("a.cu", "float x = 0.5;\n" * (MAX_PARSED_BYTES // 15 + 1)) == SourceFacts()
    assert source_facts("a.py", "x = y * 0.5 / z") == SourceFacts()


def test_deep_nesting_is_no_recursion() -> None:
    deep = source_facts("a.cu", "void f() { x = " + "(" * 3_000 + "0.5" + ")" * 3_000 + "; }")
    assert len(deep.double_literals) <= 1


def test_one_huge_line_has_so_many_short_answers_and_no_more() -> None:
    text = "void f() { x = " + "0.5 + y / v + " * (MAX_SITES + 10) + " 1; z = 1" + " / w" * 5_000 + "; }"
    facts = source_facts("a.cu", text)
    assert len(facts.double_literals) == len(facts.divisions) == MAX_SITES
    chain = source_facts("a.cu", "void f() { z = 1" + " / w" * 5_000 + "; }")
    assert len(chain.divisions) == 5_000
    assert max(len(token.text) for token in chain.divisions) == MAX_TEXT
    assert chain.divisions[0].text.endswith("/ w...")
    assert chain.divisions[-1].text == "1 / w"


def test_long_whitespace_is_cut_visibly() -> None:
    facts = source_facts("a.cu", "void f() { z = 1" + " " * 1_000 + "/ w; }")
    assert [token.text for token in facts.divisions] == ["1..."]
