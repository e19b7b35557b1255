# SPDX-License-Identifier: Apache-2.0
"""Quick fixes as values: which are offered for a finding, with which numbers, and what they leave alone."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.fix_sources import GATHER, SCALE, SOURCES, closed_ranges, offset
from tests.fix_values import finding

from gpadvisor.model.advice import Estimate
from gpadvisor.model.finding import Finding
from gpadvisor.model.fix import Fix, FixKind, LaunchFacts, TextEdit, apply_edits, fix_all, moved_line
from gpadvisor.model.remedy import Remedy
from gpadvisor.pipeline.fixes.offered import base_name, fixes_for, flag_fix
from gpadvisor.source.edits.reading import edit_facts

LAUNCH = LaunchFacts(block_threads=256, blocks_per_sm=4, threads_new=512)
CODES = ("GPA101", "GPA102", "GPA103", "GPA104", "GPA201", "GPA202", "GPA203", "GPA301", "GPA302")


def offered(text: str, one: Finding, launch: LaunchFacts = LAUNCH) -> tuple[Fix, ...]:
    return fixes_for(one, edit_facts("kernel.cu", text), path="kernel.cu", launch=launch)


def edit(line: int, start: int, end: int, text: str, *, end_line: int | None = None) -> TextEdit:
    return TextEdit(
        start_line=line, start_column=start, end_line=end_line or line, end_column=end, new_text=text
    )


def test_edits_are_applied_to_the_text_before() -> None:
    text = "one two\r\nthree\r\n"
    assert apply_edits(text, [edit(1, 4, 7, "2"), edit(1, 0, 3, "1"), edit(2, 0, 0, "new\r\n")]) == (
        "1 2\r\nnew\r\nthree\r\n"
    )
    assert apply_edits(text, [edit(1, 7, 0, " ", end_line=2)]) == "one two three\r\n"
    assert apply_edits("", [edit(1, 0, 0, "x")]) == "x"


@pytest.mark.parametrize(
    "edits",
    [
        [edit(1, 0, 3, "a"), edit(1, 2, 4, "b")],
        [edit(4, 0, 0, "a")],
        [edit(1, 0, 99, "a")],
        [edit(1, 3, 1, "a")],
        [edit(0, 0, 0, "a")],
    ],
)
def test_edits_that_do_not_fit_are_errors(edits: list[TextEdit]) -> None:
    with pytest.raises(ValueError, match="edit"):
        apply_edits("one two\nthree\n", edits)


def test_lines_move_by_the_lines_added_before_them() -> None:
    edits = [edit(2, 0, 0, "a\n"), edit(5, 3, 4, "*"), edit(6, 2, 1, "", end_line=8)]
    assert [moved_line(line, edits) for line in (1, 2, 5, 9)] == [1, 3, 6, 8]


def test_literals() -> None:
    speedup = Estimate(low=1.12, expected=1.15, high=1.19, paper=None, equation="", reasons=())
    (fix,) = offered(SCALE, finding("GPA102", 5, "scale", speedup=speedup))
    assert (
        fix.title == "Use float literals 0.25f and 1e-3f (est. 1.15x (1.12-1.19); changes rounding) [GPA102]"
    )
    assert fix.needs_confirmation
    assert not fix.preferred
    assert fix.kind is FixKind.QUICKFIX
    assert (fix.line, fix.first_line, fix.last_line, fix.change) == (5, 5, 5, "float_literals")
    assert "table[i] * 0.25f + 1e-3f;" in apply_edits(SCALE, fix.edits)


def test_literals_in_an_exact_comparison_need_no_question() -> None:
    found = {fix.change: fix for fix in offered(SCALE, finding("GPA102", 16, "scale"))}
    assert set(found) == {"float_literals", "reciprocal"}
    assert not found["float_literals"].needs_confirmation
    assert found["float_literals"].preferred
    assert found["reciprocal"].needs_confirmation


def test_literals_of_unknown_types_only_where_the_finding_names_doubles() -> None:
    assert not offered(GATHER, finding("GPA102", 11, "gather"))
    named = finding("GPA102", 11, "gather", remedies=(Remedy.IN_FLOAT,))
    assert [fix.change for fix in offered(GATHER, named)] == ["float_literals"]


def test_unrolling_takes_the_loop_of_the_scope_or_the_innermost_one() -> None:
    (fix, _) = offered(SCALE, finding("GPA201", 14, "scale"))
    assert fix.title == "Add #pragma unroll 16, all of the loop's passes [GPA201]"
    assert not fix.needs_confirmation
    assert fix.preferred
    assert (fix.first_line, fix.last_line) == (13, 15)
    (fix, _) = offered(SCALE, finding("GPA201", 14, "scale", scope=10))
    assert fix.title == "Add #pragma unroll 4 [GPA201]"
    (fix, _) = offered(SCALE, finding("GPA201", 14, "scale", scope=10), LaunchFacts(trips={10: 8}))
    assert fix.title == "Add #pragma unroll 8, all of the loop's passes [GPA201]"
    # The compiler unrolls four times by itself, which would be nothing new.
    further = LaunchFacts(copies={10: 4}, lacks_warps=True)
    (fix, _) = offered(SCALE, finding("GPA201", 14, "scale", scope=10), further)
    assert fix.title == "Add #pragma unroll 16 [GPA201]"
    (fix, _) = offered(GATHER, finding("GPA201", 11, "gather"))
    assert fix.title == "Unroll 4 times instead of 2 [GPA201]"
    assert not [
        fix
        for fix in offered(GATHER.replace("unroll 2", "unroll 4"), finding("GPA201", 11))
        if fix.change == "unroll"
    ]


def test_a_loop_that_the_compiler_has_unrolled_further_is_not_unrolled_less() -> None:
    launch = LaunchFacts(copies={10: 16})
    found = offered(SCALE, finding("GPA201", 14, "scale", scope=10), launch)
    assert not [fix for fix in found if fix.change == "unroll"]


def test_no_pragma_is_offered_where_loads_have_to_come_first_by_hand() -> None:
    by_hand = finding("GPA201", 14, "scale", scope=10, remedies=(Remedy.LOADS_FIRST,))
    assert not [fix for fix in offered(SCALE, by_hand) if fix.change == "unroll"]


def test_the_head_of_a_loop_in_another_file_means_no_line_of_this_one() -> None:
    elsewhere = finding("GPA201", 14, "scale", scope=10)
    assert elsewhere.scope is not None
    elsewhere = replace(elsewhere, scope=replace(elsewhere.scope, file="/other/loops.cuh"))
    (fix, _) = offered(SCALE, elsewhere)
    assert fix.first_line == 13


def test_a_loop_around_the_one_that_cannot_be_unrolled_further_is_left_alone() -> None:
    text = SCALE.replace("        for (int j", "#pragma unroll\n        for (int j")
    assert not [fix for fix in offered(text, finding("GPA201", 15, "scale")) if fix.change == "unroll"]


def test_aliasing_is_a_promise_that_is_asked_for() -> None:
    (fix,) = offered(GATHER, finding("GPA202", 11, "gather"))
    assert fix.title == "Mark out, idx and values as __restrict__ (promises no aliasing) [GPA202]"
    assert fix.needs_confirmation
    assert "results are wrong" in str(fix.reason)


def test_launch_bounds_need_a_launch() -> None:
    assert not offered(SCALE, finding("GPA301", 7, "scale"), LaunchFacts())
    found = {fix.change: fix for fix in offered(SCALE, finding("GPA302", 5, "scale(float const*)"))}
    assert found["launch_bounds"].title == (
        "Bound scale to 256 threads, 4 blocks per SM (__launch_bounds__(256, 4)) "
        "(limits the block size) [GPA302]"
    )
    assert found["block_size"].title == (
        "Launch blocks of 512 threads instead of 256 (kThreads) (changes the launch) [GPA302]"
    )
    assert all(fix.needs_confirmation for fix in found.values())


def test_a_launch_bound_above_what_is_launched_is_lowered() -> None:
    (fix,) = offered(GATHER, finding("GPA101", 11, "void gather<float>(float *)"))
    assert "__launch_bounds__(256) gather(" in apply_edits(GATHER, fix.edits)
    assert not offered(GATHER, finding("GPA101", 11, "gather"), LaunchFacts(block_threads=512))
    # Another kernel of this name may be meant by the launch.
    assert not offered(GATHER, finding("GPA101", 11, "other"))


def test_inlining() -> None:
    (fix,) = offered(GATHER, finding("GPA203", 11, "gather"))
    assert fix.title == "Mark pick as __forceinline__ [GPA203]"
    (fix,) = offered(SCALE, finding("GPA103", 18, "scale", scope=10))
    assert fix.title == "Mark shifted as __noinline__ [GPA103]"


def test_block_sizes_stay_within_launch_bounds() -> None:
    bound = SCALE.replace("void scale", "void __launch_bounds__(256) scale")
    changes = [fix.change for fix in offered(bound, finding("GPA302", 7, "scale"))]
    assert "block_size" not in changes


def test_all_fixes_of_a_kernel_are_one_change_where_they_do_not_meet() -> None:
    (literals,) = offered(SCALE, finding("GPA102", 5, "scale"))
    (whole,) = (replace(literals, id="other", finding="other", edits=(edit(9, 0, 0, "// new\n"),)),)
    meets = replace(literals, id="meets", finding="meets")
    again = replace(whole, id="again", edits=(edit(12, 0, 0, "x"),))  # a second way for the same finding
    comment = replace(whole, id="comment", finding="c", checkable=False, edits=(edit(14, 0, 0, "// x"),))
    found = fix_all([literals, meets, whole, again, comment], "scale")
    assert found is not None
    assert found.title == "Fix all in scale: 2 changes"
    assert found.edits == (*literals.edits, *whole.edits)
    assert (found.needs_confirmation, found.reason) == (True, literals.reason)
    assert fix_all([literals, meets, comment], "scale") is None


def test_suppressed_findings_and_unreadable_files_get_none() -> None:
    one = finding("GPA102", 5, "scale")
    assert not offered(SCALE, replace(one, suppressed="on purpose"))
    assert not fixes_for(one, edit_facts("kernel.cu", "\r" + SCALE), path="kernel.cu")


def test_the_name_of_a_kernel() -> None:
    assert base_name("void ns::gather<float, (int)4>(float *, int)") == "gather"
    assert base_name("scale") == "scale"


def test_flags_say_that_the_build_is_unchanged() -> None:
    fix = flag_fix(
        finding("GPA104", 3),
        "--use_fast_math",
        settings="/p/gpadvisor.toml",
        edits=[edit(1, 0, 0, "x")],
        creates=True,
        build_line="`Makefile`",
    )
    assert fix.title == (
        "Compile with --use_fast_math (writes gpadvisor.toml only, the build itself is unchanged) [GPA104]"
    )
    assert fix.needs_confirmation
    assert fix.build_line == "`Makefile`"


_LINES = st.sampled_from(
    [
        *(line for text in SOURCES for line in text.split("\n")),
        "/* a comment",
        "*/",
        "#define PART(x) \\",
        "    y[i] = x * 0.5 / w; \\",
        "#if 0",
        "#endif",
        "}",
        "{",
        'R"(text',
        'const char* raw = R"(\n    for (;;) x = 0.5 * w; // \n)";',
        "x = 0.5 * w; // 0.5 * w",
        "for (int ü = 0; ü < 3; ++ü) { sum += 0.5 * sum / w; }",
        "",
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A source with lines inserted, removed, moved, wrapped in macros, and other line ends."""
    lines = draw(st.sampled_from(SOURCES)).split("\n")
    for _ in range(draw(st.integers(0, 6))):
        place = draw(st.integers(0, len(lines)))
        kind = draw(st.sampled_from(["insert", "remove", "copy", "macro", "indent"]))
        if kind == "insert":
            lines.insert(place, draw(_LINES))
        elif place < len(lines):
            lines[place : place + 1] = {
                "remove": [],
                "copy": [lines[place], lines[place]],
                "macro": [f"SOME_MACRO({lines[place].strip().rstrip(';')});"],
                "indent": ["\t" + lines[place]],
            }[kind]
    text = "\n".join(lines)
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return ("\ufeff" if draw(st.booleans()) else "") + text


@given(mutated(), st.sampled_from(CODES), st.integers(1, 30))
def test_fixes_stay_in_their_ranges_and_out_of_macros_and_comments(text: str, code: str, line: int) -> None:
    one = finding(code, line, "scale" if "scale(" in text else "gather", title="double precision")
    found = offered(text, one)
    assume(found)
    closed = closed_ranges(text)
    for fix in found:
        ranges = [
            (offset(text, one.start_line, one.start_column), offset(text, one.end_line, one.end_column))
            for one in fix.edits
        ]
        for start, end in ranges:
            assert not any(
                first < end and start < last and (start, end) != (first, first) for first, last in closed
            )
            assert not any(first < start < last for first, last in closed)
        new = apply_edits(text, fix.edits)
        pieces = [
            text[end:start]
            for (_, end), (start, _) in zip([(0, 0), *ranges], [*ranges, (len(text), 0)], strict=True)
        ]
        pattern = ".*?".join(map(re.escape, pieces))
        assert re.fullmatch(pattern, new, re.DOTALL), "something outside of the ranges changed"
        assert ("\r\n" in text) == ("\r\n" in new)
        assert "\r\n" not in text or not re.search(r"(?<!\r)\n", new)
        moved = moved_line(line, fix.edits)
        again = offered(new, replace(one, line=moved))
        assert fix.title not in {other.title for other in again}, "offered again after it was applied"


def test_an_element_is_kept_only_where_the_advice_is_to_store_it_behind_the_loop() -> None:
    text = "__global__ void k(float* x, float* y, int n) {\n    for (int j = 0; j < n; ++j) {\n"
    text += "        y[threadIdx.x] += x[j];\n    }\n}\n"
    (fix,) = offered(text, finding("GPA106", 3, remedies=(Remedy.KEEP_ELEMENT,)))
    assert fix.title == (
        "Keep y[threadIdx.x] in y_kept while the loop runs (promises no other access) [GPA106]"
    )
    assert fix.needs_confirmation
    assert not fix.preferred
    assert not offered(text, finding("GPA106", 3))


def test_both_sides_are_evaluated_only_where_the_advice_is_to_load_both() -> None:
    text = "__global__ void k(const int* x, int* y, int w) {\n    const int i = threadIdx.x;\n"
    text += "    if (x[i] <= w && x[i + 1] > w) y[0] = i;\n}\n"
    fix, *others = offered(text, finding("GPA202", 3, remedies=(Remedy.BOTH_SIDES,)))
    assert fix.title == "Evaluate both sides of the condition (& for &&) (reads both values) [GPA202]"
    assert "if (x[i] <= w & x[i + 1] > w)" in apply_edits(text, fix.edits)
    assert fix.needs_confirmation
    assert not fix.preferred
    assert [other.change for other in others] == ["restrict"]
    assert [other.change for other in offered(text, finding("GPA202", 3))] == ["restrict"]


def test_a_parameter_is_read_in_place_only_where_the_advice_is_about_it() -> None:
    text = "struct Tables { float eps[9]; };\n__global__ void k(Tables t, float* x, int i) {\n"
    text += "    x[i] = t.eps[i];\n}\n"
    (fix,) = offered(text, finding("GPA101", 3, remedies=(Remedy.GRID_CONSTANT,)), LaunchFacts())
    assert fix.title == "Read t in place (__grid_constant__) [GPA101]"
    assert apply_edits(text, fix.edits).splitlines()[1] == (
        "__global__ void k(const __grid_constant__ Tables t, float* x, int i) {"
    )
    assert fix.preferred
    assert not offered(text, finding("GPA101", 3), LaunchFacts())
