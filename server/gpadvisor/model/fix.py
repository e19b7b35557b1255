# SPDX-License-Identifier: Apache-2.0
r"""Quick fixes as plain values: what is edited, whether it asks first, and what a compile says of it.

Lines count from 1 and end at ``\n`` or ``\r\n``; columns count code points of the line from 0, a byte order
mark included. Whoever speaks another language of positions converts.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpadvisor.model.kind import Kind


class FixKind(Kind):
    """The kind of a code action, by its LSP name."""

    QUICKFIX = "quickfix"
    REWRITE = "refactor.rewrite"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEdit:
    """Text that takes the place of a range; an insertion where both ends are one place."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int
    new_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """One change that a user can pick; edits are in order and do not overlap."""

    id: str  # the same for the same change of the same file, whichever finding it is for
    code: str  # of the rule; the first one where several are disabled together
    title: str  # "Use float literals 0.5f and 1.0f [GPA102]"
    kind: FixKind
    file: str  # to be edited; the settings file for a flag
    edits: tuple[TextEdit, ...]  # none where the change is only shown
    needs_confirmation: bool
    reason: str | None  # why it asks, or what it assumes: "changes rounding: ..."
    preferred: bool  # whether it is the one that "fix" without a choice means
    change: str  # what it does: a ``source.edits.SiteKind``, "flag" or "disable"
    line: int  # of the finding, in the text before the edit
    first_line: int  # of what the fix is about: an expression, a loop, a function
    last_line: int
    finding: str | None = None  # id of the finding that it is for
    checkable: bool = True  # whether a compile can tell what it does; False for comments
    flag: str | None = None  # the compiler flag, where that is the change
    creates: bool = False  # whether the file is not there yet; its text is then empty before the edit
    words: str = ""  # what it does, without its rule and its estimate
    build_line: str | None = None  # what to change in the build system for it, as Markdown


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFacts:
    """What is known of a kernel's launches, for the numbers in a fix; None where it is not known."""

    block_threads: int | None = None
    blocks_per_sm: int | None = None  # that the kernel should reach, for the second launch bound
    threads_new: int | None = None  # block size that a parallel optimizer proposes
    trips: Mapping[int, int] = field(default_factory=dict)  # passes of a loop by the line of its head
    copies: Mapping[int, int] = field(default_factory=dict)  # bodies of a loop in the code
    lacks_warps: bool = False  # few warps, and no unit full: more loads of a thread in flight would help


class PatternState(Kind):
    """What became of the pattern that a finding is about."""

    GONE = "gone"
    FEWER = "fewer"  # places than before
    STAYS = "stays"
    UNKNOWN = "unknown"  # the machine code alone does not show this pattern: a new profile tells


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A number without and with the fix; None where it is not known."""

    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelChange:
    """What a fix does to the machine code of one kernel."""

    kernel: str  # mangled
    name: str
    instructions: Change
    registers: Change
    local_bytes: Change  # stack of a thread: spills and arrays
    local_accesses: Change  # instructions that load or store it
    shared_bytes: Change  # static
    gone: tuple[tuple[str, int], ...]  # opcodes that the lines of the fix have fewer of, and how many
    added: tuple[tuple[str, int], ...]
    unchanged: bool  # the machine code is byte for byte what it was


@dataclass(frozen=True, slots=True, kw_only=True)
class FixCheck:
    """A translation unit rebuilt with and without a fix."""

    fix: str  # its id
    compiles: bool
    pattern: PatternState
    arch: str | None
    compiler: str | None
    unit: str  # the source that was compiled: for a header, one that includes it
    kernels: tuple[KernelChange, ...]  # that the fix changes, the finding's own first
    message: str  # one sentence
    details: str  # Markdown
    error: str | None = None  # the compiler's first complaint

    @property
    def bad(self) -> bool:
        """Whether the fix should not be taken as it is."""
        return not self.compiles or self.pattern is PatternState.STAYS


def fix_all(fixes: Sequence[Fix], kernel: str) -> Fix | None:
    """One fix of the first edits that answer each finding of a kernel; None where that is only one change."""
    parts: list[Fix] = []
    fixed: set[str | None] = set()
    for fix in fixes:
        usable = fix.kind is FixKind.QUICKFIX and fix.checkable and fix.flag is None and bool(fix.edits)
        if usable and fix.finding not in fixed and not any(_overlap(fix, part) for part in parts):
            parts.append(fix)
            fixed.add(fix.finding)
    if len(parts) < 2:
        return None
    first, edits = parts[0], [edit for part in parts for edit in part.edits]
    reasons = list(dict.fromkeys(part.reason for part in parts if part.needs_confirmation and part.reason))
    digest = hashlib.sha256("\0".join(part.id for part in parts).encode())
    return replace(
        first,
        id=digest.hexdigest()[: len(first.id)],
        title=f"Fix all in {kernel}: {len(parts)} changes",
        edits=tuple(sorted(edits, key=lambda edit: (edit.start_line, edit.start_column))),
        needs_confirmation=bool(reasons),
        reason="; ".join(reasons) or None,
        preferred=False,
        first_line=min(part.first_line for part in parts),
        last_line=max(part.last_line for part in parts),
    )


def _overlap(fix: Fix, second: Fix) -> bool:
    """Whether edits of two fixes meet; two insertions at one place do."""
    return any(
        (a.start_line, a.start_column) <= (b.end_line, b.end_column)
        and (b.start_line, b.start_column) <= (a.end_line, a.end_column)
        for a in fix.edits
        for b in second.edits
    )


def apply_edits(text: str, edits: Sequence[TextEdit]) -> str:
    """The text with all edits applied; their ranges are those of the text before.

    Raises:
        ValueError: an edit lies outside the text or over another one.
    """
    starts = [0, *(index + 1 for index, character in enumerate(text) if character == "\n")]
    parts: list[str] = []
    done = 0
    for edit in sorted(edits, key=lambda text_edit: (text_edit.start_line, text_edit.start_column)):
        start = _offset(text, starts, edit.start_line, edit.start_column)
        end = _offset(text, starts, edit.end_line, edit.end_column)
        if not done <= start <= end:
            raise ValueError("edits overlap")
        parts += [text[done:start], edit.new_text]
        done = end
    return "".join((*parts, text[done:]))


def moved_line(line: int, edits: Sequence[TextEdit]) -> int:
    """Where a line of the text before is once the edits are applied."""
    ends = sorted((edit.end_line, edit.end_column, _lines_added(edit)) for edit in edits)
    before = bisect_right([(end, column) for end, column, _ in ends], (line, 0))
    return line + sum(added for _, _, added in ends[:before])


def _lines_added(edit: TextEdit) -> int:
    return edit.new_text.count("\n") - (edit.end_line - edit.start_line)


def _offset(text: str, starts: Sequence[int], line: int, column: int) -> int:
    if not 1 <= line <= len(starts):
        raise ValueError("an edit names no line of the text")
    start = starts[line - 1]
    end = starts[line] - 1 if line < len(starts) else len(text)
    if not 0 <= column <= end - start:
        raise ValueError("an edit names no column of its line")
    return start + column
