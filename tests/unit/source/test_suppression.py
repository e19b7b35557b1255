# SPDX-License-Identifier: Apache-2.0
"""Suggestions set aside by comments, and comments that set nothing aside."""

from __future__ import annotations

from dataclasses import replace

from tests import advice_values as values

from gpadvisor.model.advice import KernelAdvice
from gpadvisor.model.problem import ProblemCode
from gpadvisor.source.facts import SuppressionComment
from gpadvisor.source.reading import source_facts
from gpadvisor.source.suppression import apply_suppressions


def comment(line: int, *codes: str, last: int | None = None) -> SuppressionComment:
    return SuppressionComment(codes=codes, reason="why", line=line, first_line=line, last_line=last or line)


def silent(kernel: KernelAdvice) -> set[str]:
    return {s.code for s in kernel.suggestions if s.suppressed is not None}


def test_the_line_of_the_scope() -> None:
    comments = {values.GATHER_FILE: [comment(8, "GPA201")]}
    (kernel,), problems = apply_suppressions([values.kernel()], comments)
    assert silent(kernel) == {"GPA201"}
    assert problems == ()
    (suggestion,) = (s for s in kernel.suggestions if s.suppressed)
    assert suggestion.suppressed is not None
    assert (suggestion.suppressed.location, suggestion.suppressed.reason) == (values.at(8), "why")


def test_every_hotspot_covered_by_def_use_or_inlined_call() -> None:
    inlined = replace(
        values.MEMORY_HOTSPOT,
        use=values.code(0x150, "FADD R1, R2, R3", values.at(3, values.LOAD_FILE)),
    )
    suggestion = replace(values.LOOP_UNROLLING, hotspots=(values.INDEX_HOTSPOT, inlined))
    kernel = values.kernel(suggestions=(suggestion,))
    (marked,), _ = apply_suppressions([kernel], {values.GATHER_FILE: [comment(10, "GPA201")]})
    assert silent(marked) == {"GPA201"}


def test_a_hotspot_elsewhere_keeps_the_suggestion_but_the_comment_is_used() -> None:
    suggestion = replace(values.LOOP_UNROLLING, hotspots=(values.INDEX_HOTSPOT, values.STORE_HOTSPOT))
    kernel = values.kernel(suggestions=(suggestion,))
    (marked,), problems = apply_suppressions([kernel], {values.GATHER_FILE: [comment(9, "GPA201")]})
    assert silent(marked) == set()
    assert problems == ()


def test_another_code_or_another_file_changes_nothing() -> None:
    comments = {values.GATHER_FILE: [comment(8, "GPA202")], values.LOAD_FILE: [comment(8, "GPA201")]}
    kernel = values.kernel(suggestions=(values.LOOP_UNROLLING,))
    marked, problems = apply_suppressions([kernel], comments)
    assert marked == (kernel,)
    assert [problem.code for problem in problems] == [ProblemCode.UNUSED_SUPPRESSION] * 2
    assert {problem.rule for problem in problems} == {"GPA201", "GPA202"}


def test_unused_codes_are_named_one_by_one() -> None:
    comments = {values.GATHER_FILE: [comment(8, "GPA201", "GPA104"), comment(12)]}
    _, problems = apply_suppressions([values.kernel()], comments)
    first, second = (problem.message for problem in problems)
    assert "gather.cu:8 ignores GPA104" in first
    assert "gather.cu:12 names no rule" in second


def test_a_comment_outside_the_analysed_code_is_not_called_unused() -> None:
    comments = {values.GATHER_FILE: [comment(40, "GPA201"), comment(9, "GPA104")]}
    lines = {values.GATHER_FILE: {8, 9, 10}}
    _, problems = apply_suppressions([values.kernel()], comments, analysed_lines=lines)
    assert [problem.message.partition(" ")[0] for problem in problems] == [f"{values.GATHER_FILE}:9"]


def test_one_comment_can_serve_two_kernels() -> None:
    other = values.kernel(suggestions=(values.STRENGTH_REDUCTION,), groups=())
    comments = {values.GATHER_FILE: [comment(10, "GPA102"), comment(8, "GPA201")]}
    kernels, problems = apply_suppressions([other, values.kernel()], comments)
    assert [silent(kernel) for kernel in kernels] == [{"GPA102"}, {"GPA102", "GPA201"}]
    assert problems == ()


def test_groups_with_a_suppressed_suggestion_go() -> None:
    (kernel,), _ = apply_suppressions([values.kernel()], {values.GATHER_FILE: [comment(8, "GPA201")]})
    assert kernel.groups == ()


def test_a_comment_before_the_kernel_covers_kernel_scope() -> None:
    text = "// gpadvisor: ignore[GPA302] the grid is small\n" + values.GATHER_SOURCE.partition("\n\n")[2]
    comments = {values.GATHER_FILE: source_facts(values.GATHER_FILE, text).comments}
    (kernel,), _ = apply_suppressions([values.kernel()], comments)
    assert silent(kernel) == {"GPA302"}


def test_without_comments_nothing_changes() -> None:
    kernel = values.kernel()
    assert apply_suppressions([kernel], {}) == ((kernel,), ())
