# SPDX-License-Identifier: Apache-2.0
"""Suppression comments to be written: at the end of a line, above it, or into one that is there."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from gpadvisor.model.fix import Fix, FixKind, TextEdit
from gpadvisor.source.edits import CommentPlace, EditFacts
from gpadvisor.source.facts import HASH_SUFFIXES

DEFAULT_REASON: Final = "accepted as it is"


def disable_fix(
    path: str,
    text: str,
    line: int,
    codes: Sequence[str],
    facts: EditFacts,
    *,
    reason: str = DEFAULT_REASON,
    finding: str | None = None,
) -> Fix | None:
    """A comment that silences rules on one line; None where no comment can stand, or one does already.

    None stands inside macros and other directives, and in the middle of strings and block comments.
    """
    lines = text.split("\n")
    if not facts.readable or not codes or not 1 <= line <= len(lines):
        return None
    edit = _edit(path, lines, line, list(dict.fromkeys(codes)), facts, " ".join(reason.split()))
    if edit is None:
        return None
    listed = ", ".join(codes)
    return Fix(
        id=hashlib.sha256(repr((path, "disable", codes, edit)).encode("utf-8", "replace")).hexdigest()[:16],
        code=codes[0],
        title=f"Disable for this line [{listed}]",
        kind=FixKind.QUICKFIX,
        file=path,
        edits=(edit,),
        needs_confirmation=False,
        reason=None,
        preferred=False,
        change="disable",
        line=line,
        first_line=line,
        last_line=line,
        finding=finding,
        checkable=False,
    )


def _edit(
    path: str, lines: list[str], line: int, codes: list[str], facts: EditFacts, reason: str
) -> TextEdit | None:
    present = next((place for place in facts.comments if place.first_line == line), None)
    if present is not None:
        return _merged(present, lines[present.line - 1], codes)
    content = lines[line - 1].removesuffix("\r")
    mark = "#" if path.lower().endswith(HASH_SUFFIXES) else "//"
    if not content.strip() or content.lstrip().startswith(mark):
        return None
    if not _within(line, facts.no_trailing):
        end = len(content.rstrip())
        return TextEdit(
            start_line=line,
            start_column=end,
            end_line=line,
            end_column=len(content),
            new_text=f"  {mark} gpadvisor: ignore[{', '.join(codes)}] {reason}".rstrip(),
        )
    if _within(line, facts.no_above):
        return None
    blanks = content[: len(content) - len(content.lstrip())]
    ending = "\r\n" if lines[line - 1].endswith("\r") else "\n"
    comment = f"{mark} gpadvisor: ignore-next-line[{', '.join(codes)}] {reason}".rstrip()
    return TextEdit(
        start_line=line,
        start_column=0,
        end_line=line,
        end_column=0,
        new_text=f"{blanks}{comment}{ending}",
    )


def _merged(place: CommentPlace, content: str, codes: list[str]) -> TextEdit | None:
    """The codes that a comment lacks, written behind those that it has."""
    new = ", ".join(code for code in codes if code not in place.codes)
    if not new:
        return None
    column = place.start_column
    if not place.brackets:
        new = f"[{new}]"
    elif content[place.start_column : place.end_column].strip():
        column = place.start_column + len(content[place.start_column : place.end_column].rstrip(" ,"))
        new = f", {new}"
    return TextEdit(
        start_line=place.line,
        start_column=column,
        end_line=place.line,
        end_column=place.end_column,
        new_text=new,
    )


def _within(line: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= line <= end for first, end in ranges)
