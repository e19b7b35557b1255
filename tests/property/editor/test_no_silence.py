# SPDX-License-Identifier: Apache-2.0
"""No silence: whatever problem an advice has, wherever it has it, an editor shows its words somewhere."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests import advice_values
from tests.editor_values import FILE, ONE, SOURCE, analysis, file_analysis, kernel, placed

from gpadvisor.editor.contents.findings import KernelInput
from gpadvisor.editor.contents.kernels import tool_notes
from gpadvisor.editor.show.diagnostics import diagnostics
from gpadvisor.editor.show.options import Options
from gpadvisor.editor.show.status import nowhere_words, status
from gpadvisor.model.finding import Place, ToolNote
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.report.caveats import caveats

WORDS = "what went wrong, and what to do"
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def notes(of_input: list[Problem], of_kernel: list[Problem], place: Place | None) -> tuple[ToolNote, ...]:
    """What an editor is told of an advice with these problems."""
    one = advice_values.kernel(problems=tuple(of_kernel))
    advised: Any = type("Advised", (), {"advice": one})
    known = KernelInput(kernel=ONE, name="gather<1>", advised=advised, rows=(), place=place, total=1000)
    whole = advice_values.advice(one, problems=tuple(of_input))
    return tool_notes(whole, [known], {}, {})


@given(
    code=st.sampled_from(ProblemCode),
    where=st.sampled_from(["input", "kernel", "line"]),
    place=st.sampled_from([None, Place(file=FILE, line=3)]),
)
def test_every_problem_is_on_a_line_or_in_the_status(
    code: ProblemCode, where: str, place: Place | None
) -> None:
    problem = Problem(code, WORDS, SourceLocation(FILE, 7) if where == "line" else None)
    on_kernel = where == "kernel"
    found = notes([] if on_kernel else [problem], [problem] if on_kernel else [], place)
    value = analysis(kernel(place=place), problems=found)
    file = placed(value)
    shown = diagnostics(value, file, {FILE: file}, Options(), SOURCE)
    on_lines = [one.message for one in shown if WORDS in one.message.lower()]
    details = [one for one in status(value, [file], NOW).details if WORDS in one.lower()]
    assert len(on_lines) + len(details) == 1
    assert bool(on_lines) == (where == "line" or (place is not None and not found[0].quiet))


@given(code=st.sampled_from(ProblemCode))
def test_what_is_told_first_on_the_command_line_is_no_hint(code: ProblemCode) -> None:
    problem = Problem(code, WORDS)
    first = caveats(advice_values.advice(advice_values.kernel(problems=(problem,)), problems=()))
    (note,) = notes([], [problem], None)
    assert not note.quiet or not first or code is ProblemCode.SOURCE_UNMATCHED


@given(code=st.sampled_from(ProblemCode), local=st.booleans())
def test_an_input_on_no_line_here_says_so(code: ProblemCode, local: bool) -> None:
    found = notes([Problem(code, WORDS)], [], None)
    here = file_analysis(local="/home/gather.cu" if local else None)
    said = nowhere_words(analysis(files=(here,), problems=found))
    assert (said is None) == local
    assert local or (said is not None and WORDS in said.lower() and "run.ncu-rep" in said)
