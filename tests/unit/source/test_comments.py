# SPDX-License-Identifier: Apache-2.0
"""Suppression comments: what is one, and which lines it covers."""

from __future__ import annotations

import pytest

from gpadvisor.source.facts import SuppressionComment
from gpadvisor.source.reading import source_facts
from gpadvisor.source.syntax import MAX_PARSED_BYTES


def only(text: str, path: str = "a.cu") -> SuppressionComment:
    (comment,) = source_facts(path, text).comments
    return comment


def covered(text: str, path: str = "a.cu") -> tuple[int, int]:
    comment = only(text, path)
    return comment.first_line, comment.last_line


def test_a_comment_behind_code_covers_its_line() -> None:
    comment = only("void f() {\n  x = y; // gpadvisor: ignore[GPA102] double is needed here\n  z();\n}\n")
    assert comment == SuppressionComment(
        codes=("GPA102",), reason="double is needed here", line=2, first_line=2, last_line=2
    )


def test_several_codes_and_a_block_comment() -> None:
    comment = only("void f() {\n  x = y; /* gpadvisor: ignore[GPA102, gpa104,GPA102]: slow path */\n}\n")
    assert comment.codes == ("GPA102", "GPA104")
    assert comment.reason == "slow path"


def test_a_comment_before_code_on_its_line_covers_that_line() -> None:
    assert covered("void f() {\n  /* gpadvisor: ignore[GPA102] */ x = y;\n}\n") == (2, 2)


def test_on_a_line_of_its_own_it_covers_the_next_statement() -> None:
    text = "void f() {\n  // gpadvisor: ignore[GPA102]\n\n  // why\n  x = a\n    * 0.5;\n  y = 1;\n}\n"
    assert covered(text) == (5, 6)


def test_of_a_loop_only_the_head_is_covered_also_behind_a_pragma() -> None:
    text = (
        "void f() {\n  // gpadvisor: ignore[GPA201] two trips\n  #pragma unroll 1\n"
        "  for (int i = 0;\n       i < 2; ++i) {\n    x[i] = 0;\n  }\n}\n"
    )
    assert covered(text) == (4, 5)


@pytest.mark.parametrize(
    "head",
    [
        "__global__ void k(float *a)",
        "template <int N>\n__global__ void __launch_bounds__(256, 2) k(float *__restrict__ a)",
        'extern "C" __global__ void k(float *a)',
    ],
)
def test_before_a_function_all_of_it_is_covered(head: str) -> None:
    text = f"// gpadvisor: ignore[GPA302]\n{head}\n{{\n  a[0] = 1;\n}}\nint other;\n"
    assert covered(text) == (2, 2 + head.count("\n") + 3)


def test_a_kernel_with_a_syntax_error_inside_is_still_covered() -> None:
    text = "__global__ void k() // gpadvisor: ignore[GPA301] small\n{\n  broken( ;\n}\n"
    assert covered(text) == (1, 4)


def test_of_a_namespace_only_the_head_is_covered() -> None:
    assert covered("namespace a { // gpadvisor: ignore[GPA301]\n  int x;\n}\n") == (1, 1)


def test_a_marker_in_a_string_or_a_macro_is_no_comment() -> None:
    text = (
        'const char *s = "// gpadvisor: ignore[GPA102]";\n'
        'const char *r = R"(\n// gpadvisor: ignore[GPA102]\n)";\n'
        '#define TWICE(x) x + /* */ \\\n  x "gpadvisor: ignore[GPA102]"\n'
    )
    assert source_facts("a.cuh", text).comments == ()


@pytest.mark.parametrize(
    "text", ["// gpadvisor: ignore", "// gpadvisor: ignore[] x", "// gpadvisor: ignore[all]"]
)
def test_a_comment_without_a_code_is_void_but_seen(text: str) -> None:
    assert only(text + "\nint x;\n").codes == ()


def test_at_the_end_of_the_file_there_is_nothing_to_cover() -> None:
    assert covered("int x;\n// gpadvisor: ignore[GPA102]") == (2, 2)


def test_windows_line_ends() -> None:
    comment = only("void f() {\r\n  x(); // gpadvisor: ignore[GPA106] padded\r\n}\r\n")
    assert (comment.first_line, comment.reason) == (2, "padded")


def test_python_follows_strings() -> None:
    text = (
        "x = tl.load(p)  # gpadvisor: ignore[GPA101] registers\n"
        's = "# gpadvisor: ignore[GPA102]"\n'
        '"""\n# gpadvisor: ignore[GPA103]\n"""\n'
        "t = 'it\\'s # gpadvisor: ignore[GPA104]'\n"
        "# gpadvisor: ignore[GPA105]\n\n# note\ny = 1\n"
    )
    found = source_facts("kernels/softmax.py", text).comments
    assert [(c.codes[0], c.first_line, c.last_line) for c in found] == [("GPA101", 1, 1), ("GPA105", 10, 10)]


def test_an_unclosed_python_string_ends_with_its_line() -> None:
    assert only("x = 'oops\ny = 1  # gpadvisor: ignore[GPA101]\n", "a.py").line == 2


def test_julia_has_transposes_and_block_comments() -> None:
    text = "y = x' * z'  # gpadvisor: ignore[GPA101] ok\n#=\n # gpadvisor: ignore[GPA102]\n=#\n"
    assert only(text, "a.jl").codes == ("GPA101",)


def test_a_file_too_large_for_the_parser_has_comments_for_one_line() -> None:
    filler = "int x;\n" * (MAX_PARSED_BYTES // 7 + 1)
    comment = only(filler + "for (;;) { // gpadvisor: ignore[GPA201] generated\n}\n")
    assert comment.first_line == comment.last_line == filler.count("\n") + 1


def test_long_lines_and_odd_bytes_do_not_matter() -> None:
    text = f"void f() {{ x = {'1 + ' * 50_000}1; // gpadvisor: ignore[GPA102] \udc80{'é' * 5_000}\n}}\n"
    comment = only(text)
    assert comment.first_line == 1
    assert len(comment.reason) <= 400


def test_a_source_without_markers_has_no_comments() -> None:
    assert source_facts("a.cu", "// nothing here\nint x;\n").comments == ()


def test_a_thousand_comments_in_a_row_are_for_the_same_line() -> None:
    text = "// gpadvisor: ignore[GPA102]\n\n" * 1_200 + "int x = 1;\n"
    found = source_facts("a.cu", text).comments
    assert len(found) == 1_000
    assert {(comment.first_line, comment.last_line) for comment in found} == {(2_401, 2_401)}


def test_nesting_as_deep_as_the_file_is_long() -> None:
    for body in ("template <int N> " * 5_000, "a < " * 5_000, "{" * 20_000, 'extern "C" ' * 5_000):
        assert covered(f"// gpadvisor: ignore[GPA102]\n{body}\n")[0] == 2
