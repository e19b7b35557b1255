# SPDX-License-Identifier: Apache-2.0
"""Suggestions set aside by comments in the source, and comments that set nothing aside."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from gpadvisor.model.advice import Hotspot, KernelAdvice, Suggestion, Suppression
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.source.facts import SuppressionComment

Comments = Mapping[str, Sequence[SuppressionComment]]
"""Suppression comments by file, under the names that the advice uses."""

_Used = set[tuple[str, SuppressionComment, str]]


def apply_suppressions(
    kernels: Sequence[KernelAdvice],
    comments: Comments,
    *,
    analysed_lines: Mapping[str, Collection[int]] | None = None,
) -> tuple[tuple[KernelAdvice, ...], tuple[Problem, ...]]:
    """The kernels with suppressed suggestions marked, and a problem for each code that suppressed nothing.

    A suggestion is suppressed by a comment with its code that covers the line of its scope, or when comments
    with its code cover every hotspot that has a line: the line of its def, of its use, or of a call that
    either was inlined at. A comment that covers some of the hotspots counts as used. Groups with a
    suppressed suggestion are left out, because their joint estimate includes it.

    Args:
        kernels: Advice for every kernel that the comments could be about.
        comments: Suppression comments of the sources.
        analysed_lines: Lines by file that belong to the code analysed; a comment that covers none of them is
            not called unused, since this run could not tell. None takes every line for analysed.
    """
    used: _Used = set()
    marked = tuple(_kernel(kernel, comments, used) for kernel in kernels)
    problems = [
        problem
        for file in sorted(comments)
        for comment in comments[file]
        if _concerns(comment, file, analysed_lines)
        for problem in _unused(file, comment, used)
    ]
    return marked, tuple(problems)


def _kernel(kernel: KernelAdvice, comments: Comments, used: _Used) -> KernelAdvice:
    suggestions = tuple(_suggestion(suggestion, comments, used) for suggestion in kernel.suggestions)
    notes = tuple(_suggestion(note, comments, used) for note in kernel.notes)
    silent = {entry.code for entry in (*suggestions, *notes) if entry.suppressed is not None}
    if not silent:
        return kernel
    groups = tuple(group for group in kernel.groups if not silent.intersection(group.suggestions))
    return replace(kernel, suggestions=suggestions, notes=notes, groups=groups)


def _suggestion(suggestion: Suggestion, comments: Comments, used: _Used) -> Suggestion:
    code = suggestion.code
    scope = suggestion.scope.location
    by_scope = None if scope is None else _covering(scope, code, comments, used)
    located = [places for hotspot in suggestion.hotspots if (places := _places(hotspot))]
    by_hotspot = [
        next((hit for place in places if (hit := _covering(place, code, comments, used))), None)
        for places in located
    ]
    if by_scope is not None:
        return replace(suggestion, suppressed=by_scope)
    if by_hotspot and by_hotspot[0] is not None and all(hit is not None for hit in by_hotspot):
        return replace(suggestion, suppressed=by_hotspot[0])
    return suggestion


def _places(hotspot: Hotspot) -> list[SourceLocation]:
    locations = []
    for code in (hotspot.definition, hotspot.use):
        if code is not None and code.location is not None:
            locations += [code.location, *(frame.call_site for frame in code.inline)]
    return locations


def _covering(place: SourceLocation, code: str, comments: Comments, used: _Used) -> Suppression | None:
    for comment in comments.get(place.file, ()):
        if code in comment.codes and comment.covers(place.line):
            used.add((place.file, comment, code))
            return Suppression(location=SourceLocation(place.file, comment.line), reason=comment.reason)
    return None


def _concerns(
    comment: SuppressionComment, file: str, analysed_lines: Mapping[str, Collection[int]] | None
) -> bool:
    if analysed_lines is None or not comment.codes:
        return True
    return any(comment.covers(line) for line in analysed_lines.get(file, ()))


def _unused(file: str, comment: SuppressionComment, used: _Used) -> list[Problem]:
    where, location = f"{file}:{comment.line}", SourceLocation(file, comment.line)
    if not comment.codes:
        text = f"{where} names no rule to ignore: write ignore[GPA102] with the code of the rule"
        return [Problem(ProblemCode.UNUSED_SUPPRESSION, text, location)]
    return [
        Problem(
            ProblemCode.UNUSED_SUPPRESSION,
            f"{where} ignores {code}, which says nothing there: remove it from the comment",
            location,
            rule=code,
        )
        for code in comment.codes
        if (file, comment, code) not in used
    ]
