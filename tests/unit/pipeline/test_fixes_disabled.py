# SPDX-License-Identifier: Apache-2.0
"""Suppression comments that are written: where they may stand, and that they read as what was meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fix_sources import SOURCES

from gpadvisor.model.fix import apply_edits
from gpadvisor.pipeline.fixes.disabled import disable_fix
from gpadvisor.source.edits.reading import edit_facts
from gpadvisor.source.reading import source_facts


def disabled(
    text: str, line: int, *codes: str, path: str = "kernel.cu", reason: str = "on purpose"
) -> str | None:
    """The text with the comment; None where none is offered."""
    fix = disable_fix(path, text, line, codes or ("GPA102",), edit_facts(path, text), reason=reason)
    return None if fix is None else apply_edits(text, fix.edits)


def silenced(text: str, line: int, path: str = "kernel.cu") -> set[str]:
    """The codes that comments of a text silence on a line."""
    return {code for one in source_facts(path, text).comments if one.covers(line) for code in one.codes}


def body(*lines: str) -> str:
    return "\n".join(("void f(float* x, float w) {", *lines, "}", ""))


def test_at_the_end_of_the_line() -> None:
    text = body("\tx[0] = w * 0.5;  ", "x[1] = 1;")
    new = disabled(text, 2)
    assert new == body("\tx[0] = w * 0.5;  // gpadvisor: ignore[GPA102] on purpose", "x[1] = 1;")
    assert silenced(new, 2) == {"GPA102"}
    assert silenced(new, 3) == set()


def test_behind_a_comment_and_with_other_line_ends() -> None:
    text = body("x[0] = w; // half", "").replace("\n", "\r\n")
    new = disabled(text, 2, "GPA102", "GPA201")
    assert new is not None
    assert "x[0] = w; // half  // gpadvisor: ignore[GPA102, GPA201] on purpose\r\n" in new
    assert silenced(new, 2) == {"GPA102", "GPA201"}
    assert new.count("\n") == new.count("\r\n")


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("x[0] = w;  // gpadvisor: ignore[GPA201] why", "ignore[GPA201, GPA102] why"),
        ("x[0] = w;  // gpadvisor: ignore[GPA201, ] why", "ignore[GPA201, GPA102] why"),
        ("x[0] = w;  // gpadvisor: ignore[] why", "ignore[GPA102] why"),
        ("x[0] = w;  // gpadvisor: ignore why", "ignore[GPA102] why"),
        ("x[0] = w;  /* gpadvisor: ignore[GPA201] */", "ignore[GPA201, GPA102] */"),
    ],
)
def test_into_a_comment_that_is_there(line: str, wanted: str) -> None:
    new = disabled(body(line), 2)
    assert new is not None
    assert wanted in new
    assert new.count("\n") == body(line).count("\n")
    assert "GPA102" in silenced(new, 2)


def test_into_a_comment_of_the_line_above() -> None:
    text = body("// gpadvisor: ignore[GPA201] why", "x[0] = w;")
    new = disabled(text, 3)
    assert new == body("// gpadvisor: ignore[GPA201, GPA102] why", "x[0] = w;")
    assert silenced(new, 3) == {"GPA102", "GPA201"}


def test_nothing_where_it_is_there_already() -> None:
    assert disabled(body("x[0] = w;  // gpadvisor: ignore[GPA102] why"), 2) is None


def test_a_comment_about_the_whole_function_is_not_extended() -> None:
    text = "// gpadvisor: ignore[GPA201] why\n" + body("x[0] = w;")
    new = disabled(text, 3)
    assert new is not None
    assert silenced(new, 3) == {"GPA102", "GPA201"}
    assert silenced(new, 2) == {"GPA201"}


def test_above_a_line_that_goes_on() -> None:
    text = body("  x[0] = w \\", "    * 0.5;")
    new = disabled(text, 2)
    assert new == body("  // gpadvisor: ignore-next-line[GPA102] on purpose", "  x[0] = w \\", "    * 0.5;")
    assert silenced(new, 3) == {"GPA102"}
    assert disabled(text, 3) is not None  # its own end is free
    text = body('  x[0] = len(R"(', '  a)");')
    new = disabled(text, 2)
    assert new is not None
    assert "ignore-next-line" in new
    assert silenced(new, 3) == {"GPA102"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("#define TWICE(x) \\\n  ((x) * \\\n  2.0)\nint i;\n", 2),
        ("#define TWICE(x) \\\n  ((x) * \\\n  2.0)\nint i;\n", 3),
        ("#define TWICE(x) ((x) * 2.0)\n", 1),
        ("#pragma unroll 4\n", 1),
        (body("x[0] = 1; /* a", "b", "c */ x[1] = 2;"), 3),
        (body('const char* q = R"(a', "b", ')";'), 3),
        (body(""), 2),
        (body("// a comment"), 2),
        (body("x[0] = 1;"), 99),
        (body("x[0] = 1;"), 0),
    ],
)
def test_no_comment_where_none_can_stand(text: str, line: int) -> None:
    assert disabled(text, line) is None


def test_python_and_julia() -> None:
    text = 'def kernel(x):\n    """\n    doc\n    """\n    y = x * 0.5\n    z = x \\\n        + 1\n'
    new = disabled(text, 5, path="k.py")
    assert new is not None
    assert "    y = x * 0.5  # gpadvisor: ignore[GPA102] on purpose\n" in new
    assert silenced(new, 5, "k.py") == {"GPA102"}
    assert disabled(text, 3, path="k.py") is None
    above = disabled(text, 6, path="k.py")
    assert above is not None
    assert "    # gpadvisor: ignore-next-line[GPA102] on purpose\n    z = x \\" in above
    assert silenced(above, 7, "k.py") == {"GPA102"}
    assert disabled("#= a\nb\n=# x = 1\n", 2, path="k.jl") is None
    julia = disabled("x = 1\n", 1, path="k.jl")
    assert julia == "x = 1  # gpadvisor: ignore[GPA102] on purpose\n"


def test_a_reason_of_several_lines_stays_on_one() -> None:
    new = disabled(body("x[0] = w;"), 2, reason="two\nlines \t of it")
    assert new is not None
    assert "ignore[GPA102] two lines of it\n" in new
    assert disabled(body("x[0] = w;"), 2, reason="") == body("x[0] = w;  // gpadvisor: ignore[GPA102]")


@given(st.sampled_from(SOURCES), st.integers(1, 30), st.booleans())
def test_every_comment_that_is_written_silences_its_line(text: str, line: int, windows: bool) -> None:
    text = text.replace("\n", "\r\n") if windows else text
    fix = disable_fix("kernel.cu", text, line, ("GPA102",), edit_facts("kernel.cu", text))
    if fix is None:
        content = [*text.split("\n"), *[""] * 30][line - 1].strip()
        assert not content or content.startswith(("//", "#"))
        return
    new = apply_edits(text, fix.edits)
    moved = line + new.count("\n") - text.count("\n")
    assert "GPA102" in silenced(new, moved)
    assert disabled(new, moved) is None
    twice = disabled(new, moved, "GPA201")
    assert twice is not None
    assert silenced(twice, moved) >= {"GPA102", "GPA201"}
