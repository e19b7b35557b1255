# SPDX-License-Identifier: Apache-2.0
"""Sources of this machine of another version than was profiled: said, with lines followed by their text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests import advice_values as values

from gpadvisor.model.advice import Advice, KernelAdvice, SourceMatch
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.sentence import line_mark
from gpadvisor.pipeline.sources.lookup import FoundSources
from gpadvisor.pipeline.sources.moved import with_todays_lines
from gpadvisor.report.markdown import render_markdown
from gpadvisor.report.text import render_text

MOVED = "// one line more\n" + values.GATHER_SOURCE
FILE = values.GATHER_FILE


def _seen(
    profiled: str | None,
    now: str,
    local: str = "/here/src/gather.cu",
    kernels: tuple[KernelAdvice, ...] | None = None,
) -> Advice:
    """Advice on a kernel of one file, of which the text here is not what the report carries."""
    advice = values.measured()
    advice = advice if kernels is None else replace(advice, kernels=kernels)
    match = SourceMatch(report_path=FILE, local_path=local, method="path suffix")
    sources = FoundSources(
        matches=(match,),
        profiled={} if profiled is None else {FILE: profiled},
        local={FILE: now},
        wanted={},
        problems=(),
    )
    return replace(advice, sources=with_todays_lines(sources, advice.kernels))


def test_lines_are_followed_by_their_text() -> None:
    advice = _seen(values.GATHER_SOURCE, MOVED)
    text = render_text(advice, sources={FILE: values.GATHER_SOURCE})
    assert "! gather.cu here is another version than was profiled: " in text
    assert "lines moved by text." in text
    assert "/here/src/gather.cu:11  acc += load(in, j) * 0.5;" in text
    assert "/here/src/gather.cu:11" in render_markdown(advice, sources={FILE: values.GATHER_SOURCE})


def test_lines_in_a_sentence_are_followed_too() -> None:
    """What it names need not be a line that stands elsewhere in the advice."""
    line, other = line_mark(SourceLocation(FILE, 9)), line_mark(SourceLocation("src/other.cu", 9))
    alone = line_mark(SourceLocation(FILE, 10), with_file=False)
    cure = f"Hoist {line}; the source has 0.5 (line {alone}), and {other} stays."
    kernel = values.measured().kernels[0]
    first, *others = kernel.suggestions
    kernel = replace(kernel, suggestions=(replace(first, cure=cure), *others))
    text = " ".join(render_text(_seen(values.GATHER_SOURCE, MOVED, kernels=(kernel,))).split())
    assert "Hoist gather.cu:10; the source has 0.5 (line 11), and other.cu:9 stays." in text
    gone = values.GATHER_SOURCE.replace("* 0.5", "* 0.25")
    text = " ".join(render_text(_seen(values.GATHER_SOURCE, gone, kernels=(kernel,))).split())
    assert "Hoist gather.cu:9; the source has 0.5 (line 10 as profiled), and other.cu:9 stays." in text


def test_a_line_that_is_gone_is_named_as_profiled() -> None:
    gone = values.GATHER_SOURCE.replace("* 0.5", "* 0.25")
    text = render_text(_seen(values.GATHER_SOURCE, gone), sources={FILE: values.GATHER_SOURCE})
    assert "1 line not found." in text
    assert "gather.cu:10 as profiled  acc += load(in, j) * 0.5;" in text


def test_the_same_text_is_not_told() -> None:
    text = render_text(_seen(values.GATHER_SOURCE, values.GATHER_SOURCE), sources={FILE: MOVED})
    assert "another version" not in text


def test_a_line_that_cannot_be_the_instruction_is_not_quoted() -> None:
    lines = values.GATHER_SOURCE.splitlines()
    lines[9] = "#pragma unroll"
    other = "\n".join(lines)
    text = render_text(_seen(None, other), sources={FILE: other})
    assert "! gather.cu seems to be another version than was profiled: 1 line named here" in text
    assert "gather.cu:10" not in text  # rather the instruction than a line that cannot be it
    assert "#pragma unroll\n" not in text


@pytest.mark.parametrize(("local", "told"), [("/here/lib/gather.cu", True), ("/here/src/gather.cu", False)])
def test_what_was_found_by_its_name_alone_says_so(local: str, told: bool) -> None:
    text = render_text(_seen(None, values.GATHER_SOURCE, local), sources={FILE: values.GATHER_SOURCE})
    assert ("! gather.cu was found by its name alone" in text) == told


@pytest.mark.parametrize(("local", "told"), [("/here/sum.cu", True), ("/here/src/Gather.cu", False)])
def test_a_source_that_has_another_name_here_says_so(local: str, told: bool) -> None:
    """Sentences have the name of the report, and places that of the file which a click opens."""
    text = render_text(_seen(values.GATHER_SOURCE, values.GATHER_SOURCE, local))
    assert ("! gather.cu is sum.cu here.\n" in text) == told
