# SPDX-License-Identifier: Apache-2.0
"""Which line of a text is which line of another: unchanged ones in order, then blocks that were moved.

Anchors are lines that stand once in both texts (patience diff); what lies between them is aligned by Myers'
greedy algorithm. All of it spends from one budget, as a text can be made to be expensive; what no budget is
left for stays unmatched.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

_STEPS: Final = 1_000_000
"""Elementary steps of one comparison; a million take about half a second."""
_MAX_LINES: Final = 250_000
"""Of both texts together, without the equal lines at both ends; of more nothing is matched."""
_MAX_FREE: Final = 120_000
"""Unmatched lines of both texts together; of more none is looked for elsewhere."""
_MAX_DIFFERENCES: Final = 500
_MIN_MOVED: Final = 8
"""Letters that a single moved line must have: a brace says nothing about where it came from."""
_LOOKED_AT: Final = 4_096
"""Letters of a line without which it is the same with other white space; longer lines are generated ones."""
_WORD: Final = re.compile(r"\w")
_TOKENS: Final = {
    "//": re.compile(r"""//|/\*|\*/|"(?:[^"\\]|\\.)*"|(?<!\w)'(?:[^'\\]|\\.)*'|["']"""),
    "#": re.compile(r"""#|\"{3}|'{3}|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|["']"""),
}
"""What may begin a comment on a line, by how comments begin, and what hides such a beginning."""
_UNCLEAR: Final = frozenset({"*/", '"', "'", '"' * 3, "'" * 3})
"""Where one of these stands, the line begins or ends within something that others share."""
_OWN_COMMENT: Final = re.compile(r"\s*(?://|/\*|#)\s*gpadvisor:")

Span = tuple[int, int, int, int]  # old start, old end, new start, new end


def split_lines(text: str) -> list[str]:
    """The lines as compilers and editors count them: form feeds and the like end none."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def line_keys(
    text: str, replacements: Mapping[str, str] | None = None, comment: str | None = None
) -> tuple[str, ...]:
    """The lines without white space and without comments to gpadvisor, neither of which changes the code.

    Args:
        text: Whose lines are wanted.
        replacements: Lines with their keys, as of another state of the text.
        comment: How comments begin, "//" or "#", where all those behind code are left out.
    """
    lines = split_lines(text)
    if not replacements:
        return tuple(_key(line, comment) for line in lines)
    keys = map(replacements.get, lines)
    return tuple(_key(line, comment) if key is None else key for line, key in zip(lines, keys, strict=True))


def _without_comment(line: str, comment: str) -> str:
    """The line without a comment behind its code; as it is where there is doubt, or nothing but a comment."""
    if comment[0] not in line or line.endswith("\\"):
        return line
    for match in _TOKENS[comment].finditer(line):
        mark, code = match[0], line[: match.start()]
        if mark in _UNCLEAR:
            break
        if mark == comment or (mark == "/*" and line.find("*/", match.end()) == len(line.rstrip()) - 2):
            return code if code.strip() else line
        if mark == "/*":
            break
    return line


def _key(line: str, comment: str | None) -> str:
    remainder = line[_LOOKED_AT:]
    head = line[:_LOOKED_AT] if remainder else line
    if comment is not None and not remainder:
        head = _without_comment(head, comment)
    if not remainder and "gpadvisor:" in head:
        match = _OWN_COMMENT.search(head)
        head = head if match is None else head[: match.start()]
    return "".join(head.split()) + remainder


class _Budget:
    """Steps left."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> bool:
        self.left -= steps
        return self.left >= 0


def match_in_order(old: Sequence[str], new: Sequence[str], steps: int = _STEPS) -> dict[int, int]:
    """Equal lines of both texts, in the same order in both; positions from 0."""
    matched: dict[int, int] = {}
    # What is compared is what was edited: from the first line that differs to the last one, and on to a line
    # that both texts have once, as those before it may belong to the edit as well.
    a, a_end, b, b_end = _trimmed(old, new, (0, len(old), 0, len(new)), matched)
    in_old, in_new = Counter(old), Counter(new)
    while a_end < len(old) and not in_old[old[a_end]] == in_new[old[a_end]] == 1:
        del matched[a_end]
        a_end, b_end = a_end + 1, b_end + 1
    if a_end - a + b_end - b <= _MAX_LINES:
        inside = _matched_inside(old[a:a_end], new[b:b_end], steps)
        matched.update((a + before, b + line_today) for before, line_today in inside.items())
    return matched


def _matched_inside(old: Sequence[str], new: Sequence[str], steps: int) -> dict[int, int]:
    numbers: dict[str, int] = {}
    left = [numbers.setdefault(line, len(numbers)) for line in old]
    right = [numbers.setdefault(line, len(numbers)) for line in new]
    matched: dict[int, int] = {}
    budget = _Budget(steps)
    pending: list[Span] = [(0, len(left), 0, len(right))]
    while pending:
        span = pending.pop()
        if span[0] == span[1] or span[2] == span[3]:
            continue
        affordable = budget.spend(span[1] - span[0] + span[3] - span[2])
        anchors = _anchors(left, right, span) if affordable else []
        if anchors:
            pending += _between(span, anchors, matched)
            continue
        unmatched = _trimmed(left, right, span, matched)
        if unmatched != span and affordable:
            pending.append(unmatched)
        elif not affordable or not _aligned(left, right, unmatched, matched, budget):
            _in_place(left, right, unmatched, matched)
    return matched


def _trimmed(left: Sequence[object], right: Sequence[object], span: Span, matched: dict[int, int]) -> Span:
    """The span without the equal lines at both ends, which are matched."""
    a, a_end, b, b_end = span
    while a < a_end and b < b_end and left[a] == right[b]:
        matched[a] = b
        a, b = a + 1, b + 1
    while a < a_end and b < b_end and left[a_end - 1] == right[b_end - 1]:
        a_end, b_end = a_end - 1, b_end - 1
        matched[a_end] = b_end
    return a, a_end, b, b_end


def _anchors(left: list[int], right: list[int], span: Span) -> list[tuple[int, int]]:
    """Lines that stand once on both sides of the span: the longest ascending series of them."""
    a, a_end, b, b_end = span
    in_old, in_new = Counter(left[a:a_end]), Counter(right[b:b_end])
    where = {
        right[index]: index
        for index in range(b, b_end)
        if in_new[right[index]] == 1 and in_old[right[index]] == 1
    }
    pairs = [(index, where[left[index]]) for index in range(a, a_end) if left[index] in where]
    tails: list[int] = []  # new position at the end of the best series of each length
    ends: list[int] = []  # its pair
    before: list[int] = []
    for index, (_, position) in enumerate(pairs):
        length = bisect_left(tails, position)
        before.append(ends[length - 1] if length else -1)
        if length == len(tails):
            tails.append(position)
            ends.append(index)
        else:
            tails[length], ends[length] = position, index
    series: list[tuple[int, int]] = []
    position = ends[-1] if ends else -1
    while position >= 0:
        series.append(pairs[position])
        position = before[position]
    return series[::-1]


def _between(span: Span, anchors: Sequence[tuple[int, int]], matched: dict[int, int]) -> list[Span]:
    a, a_end, b, b_end = span
    gaps: list[Span] = []
    for old, new in anchors:
        matched[old] = new
        gaps.append((a, old, b, new))
        a, b = old + 1, new + 1
    return [*gaps, (a, a_end, b, b_end)]


def _aligned(left: list[int], right: list[int], span: Span, matched: dict[int, int], budget: _Budget) -> bool:
    """Match the span with as few insertions and deletions as possible; False where that takes too many."""
    a, a_end, b, b_end = span
    width, height = a_end - a, b_end - b
    furthest = {1: 0}  # on each diagonal x - y, the x reached
    rounds: list[dict[int, int]] = []
    for differences in range(min(width + height, _MAX_DIFFERENCES) + 1):
        reached: dict[int, int] = {}
        rounds.append(furthest)
        for diagonal in range(-differences, differences + 1, 2):
            x = _step(furthest, diagonal, differences)[1]
            start = x
            while x < width and x - diagonal < height and left[a + x] == right[b + x - diagonal]:
                x += 1
            if diagonal == width - height and x >= width:
                _walk_back(rounds, (a, b), (width, height), matched)
                return True
            reached[diagonal] = x
            if not budget.spend(2 + x - start):
                return False
        furthest = reached
    return False


def _step(furthest: Mapping[int, int], diagonal: int, differences: int) -> tuple[int, int]:
    """The diagonal that the furthest path to this one comes from, and the x that it arrives at."""
    below = diagonal == -differences or (
        diagonal != differences and furthest[diagonal - 1] < furthest[diagonal + 1]
    )
    return (diagonal + 1, furthest[diagonal + 1]) if below else (diagonal - 1, furthest[diagonal - 1] + 1)


def _walk_back(
    rounds: Sequence[Mapping[int, int]], start: tuple[int, int], end: tuple[int, int], matched: dict[int, int]
) -> None:
    (a, b), (x, y) = start, end
    for differences in range(len(rounds) - 1, -1, -1):
        furthest = rounds[differences]
        before, arrived = _step(furthest, x - y, differences)
        while x > arrived:
            x, y = x - 1, y - 1
            matched[a + x] = b + y
        x = furthest[before]
        y = x - before


def _in_place(left: list[int], right: list[int], span: Span, matched: dict[int, int]) -> None:
    """What is left when the budget is spent: lines that are equal and equally far from the start."""
    a, a_end, b, b_end = span
    for offset in range(min(a_end - a, b_end - b)):
        if left[a + offset] == right[b + offset]:
            matched[a + offset] = b + offset


def match_moved(old: Sequence[str], new: Sequence[str], matched: Mapping[int, int]) -> dict[int, int]:
    """Blocks that were cut in one place and pasted in another, as far as there is no doubt which.

    A block grows from a line, or two lines in a row, that both texts have once.
    """
    used, used_new = set(matched), set(matched.values())
    moved: dict[int, int] = {}
    for length in (1, 2):
        free_old = [position for position in range(len(old)) if position not in used]
        free_new = [index for index in range(len(new)) if index not in used_new]
        common = {old[index] for index in free_old} & {new[index] for index in free_new}
        if not common or len(free_old) + len(free_new) > _MAX_FREE:
            break
        seeds = _unique(old, free_old, new, free_new, length)
        for index in free_old:
            if index in seeds and index not in used and seeds[index] not in used_new:
                block = _grown(old, new, (index, seeds[index]), used, used_new)
                if _speaks(old, block):
                    moved.update(block)
                    used.update(block)
                    used_new.update(block.values())
    return moved


def _unique(
    old: Sequence[str], free_old: Sequence[int], new: Sequence[str], free_new: Sequence[int], length: int
) -> dict[int, int]:
    """Runs of free lines that both texts have once, as a whole."""
    old_runs, new_runs = _runs(old, length), _runs(new, length)
    free = set(free_new)
    places = {
        new_runs[index]: index
        for index in free_new
        if index < len(new_runs) and all(index + step in free for step in range(length))
    }
    once_old, once_new = Counter(old_runs), Counter(new_runs)
    return {
        position: places[old_runs[position]]
        for position in free_old
        if position < len(old_runs)
        and old_runs[position] in places
        and once_old[old_runs[position]] == 1 == once_new[old_runs[position]]
    }


def _runs(lines: Sequence[str], length: int) -> list[tuple[str, ...]]:
    return list(zip(*(lines[start:] for start in range(length)), strict=False))


def _grown(
    old: Sequence[str],
    new: Sequence[str],
    seed: tuple[int, int],
    used: Collection[int],
    used_new: Collection[int],
) -> dict[int, int]:
    """The block around a seed: equal lines on both sides that nothing else has claimed."""
    block: dict[int, int] = {}
    for step in (1, -1):
        a, b = seed
        while 0 <= a < len(old) and 0 <= b < len(new) and old[a] == new[b]:
            if a in used or b in used_new:
                break
            block[a] = b
            a, b = a + step, b + step
    return block


def _speaks(old: Sequence[str], block: Mapping[int, int]) -> bool:
    """Whether a block says enough to be told from others."""
    return sum(len(old[index]) for index in block if _WORD.search(old[index])) >= _MIN_MOVED
