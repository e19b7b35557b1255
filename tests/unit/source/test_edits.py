# SPDX-License-Identifier: Apache-2.0
"""Where a source can be edited: each kind of edit, and the places that look like it and are none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.damage import damage, damaged, document_of
from tests.fix_sources import GATHER, SCALE

from gpadvisor.sandbox.codec import from_json
from gpadvisor.source.edits import EditFacts, EditSite, Replacement, SiteKind
from gpadvisor.source.edits.reading import edit_facts


def sites(text: str, kind: SiteKind) -> list[EditSite]:
    """Sites of a kind that have something to replace."""
    facts = edit_facts("kernel.cu", text)
    assert from_json(document_of(facts), EditFacts).of_text(text) == facts
    return [site for site in facts.sites if site.kind is kind and site.replacements]


def edited(text: str, site: EditSite, number: str = "4") -> str:
    """A site's replacements applied line by line, from the last to the first."""
    lines = text.split("\n")
    for one in reversed(site.replacements):
        assert one.start_line == one.end_line
        line = lines[one.start_line - 1]
        new = one.text.replace("{n}", number)
        lines[one.start_line - 1] = line[: one.start_column] + new + line[one.end_column :]
    return "\n".join(lines)


def kernel(body: str, parameters: str = "float* x, float* y, int n, float w, double d") -> str:
    return f"__global__ void k({parameters}) {{\n{body}\n}}\n"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("x[0] = y[0] * 0.5 + 1.0;", ("0.5f", "1.0f")),
        ("x[0] = -0.5 * (w + 1.);", ("-0.5f", "1.f")),
        ("x[0] += w * .5;", (".5f",)),
        ("float v = w > 0.25 ? w : 0.0;", ("0.25f",)),  # the condition is an expression of its own
        ("x[0] = 1e-3 * sqrt(2.0 * w);", ("1e-3f", "2.0f")),
        ("x[0] = pow(w, 2.0);", ("2.0f",)),
        ("float v = n * 0.5;", ("0.5f",)),
        ("x[0] = 0x1p-3 * w;", ("0x1p-3f",)),
        ("x[0] = 1'000.5 * w;", ("1'000.5f",)),
        ("x[0] = __expf(-0.5 * w);", ("-0.5f",)),
        ("float4 q = {}; x[0] = q.x * 2.0;", ("2.0f",)),
        ("x[0] = *(y + n) * 2.0;", ("2.0f",)),
        ("x[0] = static_cast<float>(n) * 2.0 + (float)n;", ("2.0f",)),
        ("x[0] = __ldg(&y[n]) * 2.0;", ("2.0f",)),
    ],
)
def test_literals_among_floats(statement: str, words: tuple[str, ...]) -> None:
    text = kernel(statement)
    found = sites(text, SiteKind.FLOAT_LITERALS)
    assert found[0].words == words
    assert found[0].sure
    assert words[0] in edited(text, found[0])


@pytest.mark.parametrize(
    "statement",
    [
        "double q = 0.5 * w;",
        "d = 0.5 * w;",
        "x[0] = d * 0.5;",
        "x[0] = (double)w * 0.5;",
        "x[0] = 0.5;",  # folded
        "x[0] = 0.5f * w;",
        "x[0] = 0.5L * w;",
        "x[0] = 1e300 * w;",  # no float
        "x[0] = 1e-300 * w;",
        "int q = n * 0.5;",  # an integer times a double, meant or not
        "WIDE(w * 0.5);",  # a macro, by its name
        "assert(w < 0.5);",
        "x[0] = w * PI_HALF * 0.5;",  # a double, in a macro of this file
        "// w * 0.5",
        'const char* q = "w * 0.5";',
    ],
)
def test_literals_that_stay(statement: str) -> None:
    found = sites("#define PI_HALF 1.57\n" + kernel(statement), SiteKind.FLOAT_LITERALS)
    assert not [site for site in found if site.sure]


def test_literals_among_unknown_types_are_not_sure() -> None:
    text = "template <typename T>\n" + kernel("x[0] = y[0] * 0.5;", "T* x, const T* y")
    assert [site.sure for site in sites(text, SiteKind.FLOAT_LITERALS)] == [False]
    text = kernel("x[0] = y[0].weight * 0.5;", "Foreign* y, float* x")
    assert [site.sure for site in sites(text, SiteKind.FLOAT_LITERALS)] == [False]


def test_types_that_the_file_declares() -> None:
    text = "typedef float real; struct P { real m; double w; };\n" + kernel(
        "x[0] = p.m * 0.5;\nx[1] = p.w * 0.5;", "P p, real* x"
    )
    assert [site.first_line for site in sites(text, SiteKind.FLOAT_LITERALS)] == [3]


def test_a_name_declared_twice_is_unknown() -> None:
    text = kernel("{ float q = w; x[0] = q * 0.5; }\n{ double q = d; x[1] = q * 0.5; }")
    assert not [site for site in sites(text, SiteKind.FLOAT_LITERALS) if site.sure]


def test_comparisons_with_a_number_that_is_a_float_are_exact() -> None:
    text = kernel("if (w > 0.5) x[0] = 1;\nif (w > 0.1) x[1] = 1;\nif (w * w > 0.5) x[2] = 1;")
    assert [site.exact for site in sites(text, SiteKind.FLOAT_LITERALS)] == [True, False, False]


def test_a_multi_line_expression_answers_each_of_its_lines() -> None:
    (site,) = sites(kernel("x[0] = y[0] *\n  0.5 +\n  y[1];"), SiteKind.FLOAT_LITERALS)
    assert [site.is_for(line) for line in (1, 2, 3, 4, 5)] == [False, True, True, True, False]


def test_columns_are_code_points() -> None:
    text = "\ufeff" + kernel("/* 🎛 ü */ x[0] = w * 0.5;").replace("\n", "\r\n")
    (site,) = sites(text, SiteKind.FLOAT_LITERALS)
    assert site.replacements == (
        Replacement(start_line=2, start_column=24, end_line=2, end_column=24, text="f"),
    )
    assert "w * 0.5f;" in edited(text, site)


def test_lone_carriage_returns_are_lines_to_some_only() -> None:
    assert edit_facts("a.cu", kernel("x[0] = w * 0.5;") + "\r") == EditFacts()


def test_reciprocal_before_the_outermost_loop_that_keeps_the_divisor() -> None:
    text = SCALE
    (site,) = sites(text, SiteKind.RECIPROCAL)
    assert site.name == "w"
    assert [site.is_for(line) for line in (11, 12, 14, 16)] == [False, True, True, True]
    new = edited(text, site)
    assert "    const float inv_w = 1.0f / w;\n    for (int i = t;" in new
    assert "out[i] = v * inv_w + shifted" in new
    assert "sum *= inv_w;" in new
    assert not sites(new, SiteKind.RECIPROCAL)


@pytest.mark.parametrize(
    "body",
    [
        "for (;;) { x[0] = w / d; }",  # a double
        "for (;;) { x[0] = x[0] / w; w += 1.0f; }",
        "for (;;) { x[0] = x[0] / w; change(w); }",
        "for (;;) { x[0] = x[0] / w; change(&w); }",
        "float& r = w; for (;;) { x[0] = x[0] / w; r = 2; }",
        "for (;;) { float q = x[1]; x[0] = x[0] / q; }",
        "for (;;) { x[0] = n / n; }",
        "for (;;) { x[0] = 0.5 * w / w; }",  # a division of doubles
        "x[0] = x[1] / w;",
        "if (n) for (;;) x[0] = x[1] / w;",  # no place for a line before
        "for (;;) { x[0] = SOME(x[1] / w); }",
        "for (;;) { auto f = [&] { w = 2; }; x[0] = x[1] / w; }",
    ],
)
def test_divisors_that_change_or_are_no_float(body: str) -> None:
    assert not sites(kernel("  " + body), SiteKind.RECIPROCAL)


def test_reciprocal_gets_a_name_of_its_own_and_stands_before_the_pragma() -> None:
    text = kernel("  float inv_w = 3;\n#pragma unroll 4\n  for (;;) {\n    x[0] = inv_w / w;\n  }")
    (site,) = sites(text, SiteKind.RECIPROCAL)
    assert "const float inv_w2 = 1.0f / w;\n#pragma unroll 4" in edited(text, site)


def test_unrolling_a_loop() -> None:
    outer, inner = sites(SCALE, SiteKind.UNROLL)
    assert (outer.first_line, outer.number, outer.limit) == (10, None, None)
    assert (inner.first_line, inner.limit) == (13, 16)
    assert "        #pragma unroll 4\n        for (int j = 0;" in edited(SCALE, inner)
    tabs = kernel("\t\tfor (int i = 2; i <= n; i += 2) {}").replace("\n", "\r\n")
    (site,) = sites(tabs, SiteKind.UNROLL)
    assert "{\r\n\t\t#pragma unroll 4\r\n\t\tfor (" in edited(tabs, site)


def test_a_pragma_that_is_there() -> None:
    (site,) = sites(GATHER, SiteKind.UNROLL)
    assert site.number == 2
    assert "#pragma unroll 4\n    for" in edited(GATHER, site)
    assert not sites(kernel("#pragma unroll\nfor (;;) {}"), SiteKind.UNROLL)
    assert not sites(kernel("#pragma unroll N\nfor (;;) {}"), SiteKind.UNROLL)
    assert not sites(kernel("#pragma nounroll\nfor (;;) {}"), SiteKind.UNROLL)
    (site,) = sites(kernel("#pragma unroll (3)\nfor (;;) {}"), SiteKind.UNROLL)
    assert site.number == 3


@pytest.mark.parametrize(
    "body",
    [
        "if (n) for (;;) {}",
        "n = 2; for (;;) {}",
        "if (n)\nfor (;;) {}",
        "else_less: for (;;) {}",
        "do { } while (n);",
        "#define LOOP \\\nfor (;;) {}",
    ],
)
def test_loops_that_no_line_can_be_put_before(body: str) -> None:
    assert not sites(kernel(body), SiteKind.UNROLL)


def test_trip_counts_of_plain_loops() -> None:
    heads = {
        "int i = 0; i < 16; ++i": 16,
        "int i = 1; i <= 16; i += 5": 4,
        "int i = 0; i < n; ++i": None,
        "int i = 0; i < 16; --i": None,
        "int i = 0, j = 0; i < 16; ++i": None,
        "int i = 0; j < 16; ++i": None,
    }
    for head, trips in heads.items():
        (site,) = sites(kernel(f"for ({head}) {{}}"), SiteKind.UNROLL)
        assert site.limit == trips, head


def test_pointers_without_restrict() -> None:
    (site, *_) = sites(SCALE, SiteKind.RESTRICT)
    assert (site.name, site.words, site.more_words) == ("scale", ("in", "out"), ())
    assert "scale(const float* __restrict__ in, float *__restrict__ out, int n" in edited(SCALE, site)
    text = kernel("y[0] = x[0] + *x + x[n] * __ldg(x + 2);", "float* x, float* y, int n")
    (site,) = sites(text, SiteKind.RESTRICT)
    assert (site.words, site.more_words) == (("x", "y"), ("x",))
    assert "k(const float* __restrict__ x, float* __restrict__ y, int n)" in edited(text, site)
    assert not sites(edited(text, site), SiteKind.RESTRICT)


@pytest.mark.parametrize(
    "use",
    [
        "x[0] = 1;",
        "*x = 1;",
        "x[0]++;",
        "y = x;",
        "change(x);",
        "change(x[0]);",  # may take a reference
        "atomicAdd(&x[0], 1.0f);",
        "float& r = x[0];",
        "auto f = [&] { return x; };",
        "x->run();",
        "float* q = x + 1;",
    ],
)
def test_pointers_that_may_be_written_through_get_no_const(use: str) -> None:
    (site,) = sites(kernel(use, "float* x, float* y"), SiteKind.RESTRICT)
    assert "x" not in site.more_words


def test_pointers_that_a_launch_passes_twice_are_no_candidates() -> None:
    text = kernel("x[0] = y[0] + z[0];", "float* x, float* y, float* z")
    (site,) = sites(text + "void run(float* a, float* b) { k<<<1, 2>>>(a, a, b); }", SiteKind.RESTRICT)
    assert site.words == ("z",)


def test_no_const_where_another_declaration_says_otherwise() -> None:
    text = "__global__ void k(float*, float*);\n" + kernel("y[0] = x[0];", "float* x, float* y")
    (site,) = sites(text, SiteKind.RESTRICT)
    assert (site.words, site.more_words) == (("x", "y"), ())


def test_launch_bounds() -> None:
    (site,) = sites(SCALE, SiteKind.LAUNCH_BOUNDS)
    assert site.number is None
    assert '"C" __global__ __launch_bounds__(256, 4) void scale(' in edited(SCALE, site, "256, 4")
    (site,) = sites(GATHER, SiteKind.LAUNCH_BOUNDS)
    assert (site.number, site.limit) == (512, None)
    assert "__launch_bounds__(256, 2) gather(" in edited(GATHER, site, "256, 2")
    assert not sites("__global__ void __launch_bounds__(N) k() {}", SiteKind.LAUNCH_BOUNDS)
    assert not sites("__device__ void k() {}", SiteKind.LAUNCH_BOUNDS)


def test_inlining() -> None:
    (never,) = sites(SCALE, SiteKind.NO_INLINE)
    assert never.name == "shifted"
    assert "__device__ __noinline__ float shifted(" in edited(SCALE, never)
    assert [never.is_for(line) for line in (5, 10, 12, 13)] == [True, True, True, False]
    (always,) = sites(GATHER, SiteKind.FORCE_INLINE)
    assert "__device__ __forceinline__ T pick(" in edited(GATHER, always)
    assert not sites(GATHER, SiteKind.NO_INLINE)
    twice = "__device__ float f(float);\n__device__ float f(float v) { return v; }"
    assert not sites(twice, SiteKind.FORCE_INLINE)
    assert not sites("__host__ __device__ int f(int v) { return v; }", SiteKind.FORCE_INLINE)


def test_block_size() -> None:
    (site,) = sites(SCALE, SiteKind.BLOCK_SIZE)
    assert (site.name, site.words, site.number) == ("scale", ("kThreads",), 256)
    assert "constexpr int kThreads = 512;" in edited(SCALE, site, "512")
    through = SCALE.replace(
        "    scale<<<n / kThreads, kThreads>>>",
        "    dim3 block(kThreads);\n    scale<<<n / kThreads, block>>>",
    )
    assert len(sites(through, SiteKind.BLOCK_SIZE)) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("constexpr int kThreads = 256;", "#define kThreads 256"),
        ("constexpr int kThreads = 256;", "int kThreads = 256;"),
        ("constexpr int kThreads = 256;", "constexpr int kThreads = 2 * 128;"),
        ("constexpr int kThreads = 256;", "#if WIDE\nconstexpr int kThreads = 256;\n#endif"),
        ("float sum = 0.0f;", "float sum = 0.0f; __shared__ float part[256];"),  # disagrees with a new size
        ("float sum = 0.0f;", "float sum = 0.0f; int last = 255;"),
        ("void run(", "__global__ void other() {}\nvoid also() { other<<<1, kThreads>>>(); }\nvoid run("),
        ("kThreads>>>", "2 * kThreads>>>"),
        ("extern", 'extern "C" __global__ void scale(const float*, float*, int, float);\nextern'),
    ],
)
def test_block_sizes_that_are_not_plain(old: str, new: str) -> None:
    assert not sites(SCALE.replace(old, new, 1), SiteKind.BLOCK_SIZE)


def test_nothing_in_a_function_with_an_error_and_the_rest_stays() -> None:
    broken = kernel("x[0] = w * 0.5;\nfor (int i = 0; i < ; ++i) { }") + SCALE
    lines = {site.first_line for site in edit_facts("a.cu", broken).sites}
    assert lines
    assert min(lines) > 4


def test_nothing_in_other_languages_and_huge_files() -> None:
    assert edit_facts("a.py", SCALE).sites == ()
    assert edit_facts("a.cu", "// x\n" * 300_000) == EditFacts()


TEXT = f"// gpadvisor: ignore[GPA102] why\n{SCALE}"
GOOD = edit_facts("a.cu", TEXT)
REPLACEMENT = {"start_line": 1, "start_column": 2, "end_line": 1, "end_column": 4, "text": ""}


@given(damaged(GOOD))
def test_what_is_not_facts_is_a_value_error(document: object) -> None:
    try:
        facts = from_json(document, EditFacts).of_text(TEXT)
    except ValueError:
        return
    assert from_json(document_of(facts), EditFacts).of_text(TEXT) == facts


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((), None),
        ((), []),
        (("readable",), 1),
        (("sites",), [[]]),
        (("sites", 0, "kind"), "no kind"),
        (("sites", 0, "first_line"), 0),
        (("sites", 0, "last_line"), 10_000),
        (("sites", 0, "more_lines"), [0]),
        (("sites", 0, "more_lines"), [1] * 2_001),
        (("sites", 0, "name"), "x" * 401),
        (("sites", 0, "words"), ["x"] * 33),
        (("sites", 0, "more_words"), ["x" * 401]),
        (("sites", 0, "number"), -1),
        (("sites", 0, "limit"), (1 << 40) + 1),
        (("sites", 0, "sure"), 1),
        (("sites", 0, "replacements"), [REPLACEMENT] * 201),
        (("sites", 0, "replacements"), [REPLACEMENT, {**REPLACEMENT, "start_column": 3}]),
        (("sites", 0, "replacements"), [{**REPLACEMENT, "end_column": 1}]),
        (("sites", 0, "replacements"), [{**REPLACEMENT, "start_column": -1}]),
        (
            ("sites", 0, "replacements"),
            [{**REPLACEMENT, "end_column": TEXT.index("\n") + 1}],
        ),
        (("sites", 0, "replacements"), [{**REPLACEMENT, "end_line": 10_000}]),
        (("sites", 0, "replacements"), [{**REPLACEMENT, "text": "x" * 401}]),
        (("comments", 0, "line"), 10_000),
        (("comments", 0, "end_column"), 0),
        (("comments", 0, "first_line"), 10_000),
        (("comments", 0, "codes"), ["GPA101"] * 33),
        (("no_trailing",), [[5, 4]]),
        (("no_trailing",), [[1, 2]] * 20_001),
        (("no_above",), [[1, 10_000]]),
        (("no_above",), [[1]]),
    ],
)
def test_answers_that_are_no_facts(path: tuple[Any, ...], value: object) -> None:
    document = damage(document_of(GOOD), *path, to=value)
    with pytest.raises(ValueError, match=r"no EditFacts|range|overlap|number"):
        from_json(document, EditFacts).of_text(TEXT)


PIECES = (
    *(
        "// gpadvisor: ignore[GPA102] why",
        "/*",
        "*/",
        "\n",
        "\r\n",
        "\\\n",
        '"',
        "'",
        'R"(',
        ')"',
        "{",
        "}",
        "(",
    ),
    *(
        ")",
        "for (;;) {",
        "if (x)",
        "__global__ void k(float *a, int n) {",
        "__launch_bounds__(1)",
        ";",
        "0.5 * w",
    ),
    *(
        "#pragma unroll 2\n",
        "template <int N>",
        "x / w;",
        "float w;",
        "\x00",
        "\ud800",
        "\u4e2d",
        "k<<<1, N>>>(a);",
    ),
    *(
        "#if 0\n",
        "#endif\n",
        "#define A \\\n",
        "const int N = 64;",
        "__device__ float f(float v)",
        "return ",
        "=",
        "&",
    ),
)


@settings(max_examples=300)
@given(
    text=st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=40).map(" ".join),
    path=st.sampled_from(["a.cu", "a.py", "a.jl"]),
)
def test_any_text_makes_facts_that_come_back(text: str, path: str) -> None:
    facts = edit_facts(path, text)
    assert from_json(document_of(facts), EditFacts).of_text(text) == facts
