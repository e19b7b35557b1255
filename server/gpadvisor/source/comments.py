# SPDX-License-Identifier: Apache-2.0
"""Suppression comments: ``// gpadvisor: ignore[GPA102] reason`` and which lines each one covers.

A comment behind code covers the statement that begins on its line; one on a line of its own, or one that says
``ignore-next-line``, the statement after it. Of a loop or a branch only its head is covered, of a function
all of it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from tree_sitter import Node, Tree

from gpadvisor.source.facts import HASH_SUFFIXES, MARKER, MAX_COMMENTS, MAX_REASON, SuppressionComment

_MAX_WRAPPERS: Final = 8
"""``extern "C"`` and template heads around a function."""
_MARKER: Final = re.compile(
    rb"gpadvisor:[ \t]{0,8}ignore\b(?P<next>-next-line\b)?(?:[ \t]{0,8}\[(?P<codes>[^\]\r\n]{0,400})\])?"
    rb"(?P<reason>[^\r\n]{0,400})"
)
_CODE: Final = re.compile(r"^GPA[0-9]{3}$")
_PYTHON_TOKEN: Final = re.compile(rb'"""|\'\'\'|\\.|["\'#\n]', re.DOTALL)
_JULIA_TOKEN: Final = re.compile(rb'"""|#=|=#|\\.|["#\n]', re.DOTALL)
_LINE_COMMENT: Final = re.compile(rb"//[ \t]{0,80}(?=gpadvisor:)")
_BODIES: Final = ("body", "consequence", "alternative")


def suppression_comments(path: str, data: bytes, tree: Tree | None) -> tuple[SuppressionComment, ...]:
    """The suppression comments of a source, in order; the file name decides the language.

    Markers in strings and macros are not comments. A source without a tree, or one that the parser cannot
    make sense of at that place, still has its comments read, each covering one line.
    """
    spans = marked_comments(path, data, tree)
    source = _Source(data if spans else b"")
    return tuple(_comment(source, tree, start, end, match) for start, end, match in spans)


def marked_comments(path: str, data: bytes, tree: Tree | None) -> list[_Span]:
    """Start and end of each suppression comment, and the match of what it says."""
    if MARKER.encode() not in data:
        return []
    lower = path.lower()
    if lower.endswith(HASH_SUFFIXES):
        spans = list(_hash_comments(data, _JULIA_TOKEN if lower.endswith(".jl") else _PYTHON_TOKEN))
    else:
        spans = list(_line_comments(data)) if tree is None else _cuda_comments(data, tree)
    return spans[:MAX_COMMENTS]


class _Source:
    """Bytes with their line starts."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.next_code: dict[int, int | None] = {}
        self._starts = [0, *(match.end() for match in re.finditer(rb"\n", data))]

    @property
    def lines(self) -> int:
        return len(self._starts)

    def line_of(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def start(self, line: int) -> int:
        return self._starts[line - 1]

    def end(self, line: int) -> int:
        return self._starts[line] - 1 if line < len(self._starts) else len(self.data)


_Span = tuple[int, int, re.Match[bytes]]


def _cuda_comments(data: bytes, tree: Tree) -> list[_Span]:
    """Comments that hold a marker, by the grammar."""
    spans = []
    for match in _MARKER.finditer(data):
        node = tree.root_node.descendant_for_byte_range(match.start(), match.start() + 1)
        if node is not None and node.type == "comment":
            spans.append((node.start_byte, node.end_byte, match))
    return spans


def _line_comments(data: bytes) -> Iterator[_Span]:
    for match in _LINE_COMMENT.finditer(data):
        marker = _MARKER.match(data, match.end())
        if marker is not None:
            yield match.start(), _line_end(data, match.end()), marker


def _line_end(data: bytes, offset: int) -> int:
    end = data.find(b"\n", offset)
    return len(data) if end < 0 else end


def _hash_comments(data: bytes, token: re.Pattern[bytes]) -> Iterator[_Span]:
    """Comments of Python or Julia, by following strings and block comments."""
    inside: bytes | None = None
    offset = 0
    while (match := token.search(data, offset)) is not None:
        offset = match.end()
        word = match.group()
        if inside is not None:
            closes = word == inside or (word == b"\n" and len(inside) == 1)
            inside = None if closes else inside
        elif word in {b'"', b"'", b'"""', b"'''"}:
            inside = word
        elif word == b"#=":
            inside = b"=#"
        elif word == b"#":
            end = _line_end(data, offset)
            marker = _MARKER.search(data, offset, end)
            if marker is not None:
                yield match.start(), end, marker
            offset = end


def _comment(
    source: _Source, tree: Tree | None, start: int, end: int, match: re.Match[bytes]
) -> SuppressionComment:
    line, end_line = source.line_of(start), source.line_of(max(start, end - 1))
    before = source.data[source.start(line) : start].strip()
    after = source.data[end : source.end(end_line)].strip()
    if match.group("next") is not None:
        target = _next_code(source, tree, end_line)
    elif before:
        target = line
    elif after:
        target = end_line
    else:
        target = _next_code(source, tree, end_line)
    first_line, last_line = _statement(source, tree, target)
    codes = match.group("codes")
    words = [] if codes is None else codes.decode("utf-8", "replace").upper().replace(",", " ").split()
    reason = source.data[match.start("reason") : min(match.end("reason"), end)].decode("utf-8", "replace")
    return SuppressionComment(
        codes=tuple(dict.fromkeys(word for word in words if _CODE.match(word))),
        reason=_reason(reason),
        line=source.line_of(match.start()),
        first_line=first_line,
        last_line=last_line,
    )


def _reason(text: str) -> str:
    return " ".join(text.replace("*/", " ").replace("=#", " ").split()).lstrip(":-").strip()[:MAX_REASON]


def _next_code(source: _Source, tree: Tree | None, line: int) -> int:
    """The first line below that holds more than blanks and comments; the line itself at the end."""
    passed: list[int] = []
    result = None
    for below in range(line + 1, source.lines + 1):
        if below in source.next_code:
            result = source.next_code[below]
            break
        if _has_code(source, tree, below):
            result = below
            break
        passed.append(below)
    # Comments in a row ask for the same line: what one has passed, the next need not look at.
    source.next_code.update(dict.fromkeys(passed, result))
    return line if result is None else result


def _has_code(source: _Source, tree: Tree | None, line: int) -> bool:
    text = source.data[source.start(line) : source.end(line)]
    content = text.strip()
    # A directive such as #pragma unroll belongs to the statement after it.
    if not content or content.startswith((b"#", b"//")):
        return False
    if tree is None:
        return True
    node = _node_at(tree, source.start(line) + len(text) - len(text.lstrip()))
    return node is None or node.type != "comment"


def _node_at(tree: Tree, offset: int) -> Node | None:
    return tree.root_node.descendant_for_byte_range(offset, offset + 1)


def _statement(source: _Source, tree: Tree | None, line: int) -> tuple[int, int]:
    """Lines of the statement that begins on a line: to the end of its head, or of the whole function."""
    if tree is None:
        return line, line
    text = source.data[source.start(line) : source.end(line)]
    node = _outermost_at(tree, source.start(line) + len(text) - len(text.lstrip()))
    if node is None or node.type == "comment":
        return line, line
    if _is_function(node):
        return line, source.line_of(node.end_byte - 1)
    if node.has_error or node.type in {"compound_statement", "declaration_list", "ERROR"}:
        return line, line
    bodies = [child.start_byte for name in _BODIES if (child := node.child_by_field_name(name)) is not None]
    end = min(bodies, default=node.end_byte)
    return line, max(line, source.line_of(max(node.start_byte, len(source.data[:end].rstrip()) - 1)))


def _outermost_at(tree: Tree, offset: int) -> Node | None:
    """The largest node that begins at an offset: the statement, where one begins there.

    Going down from the root costs as much as the place is deep; going up would cost the square of it.
    """
    cursor = tree.root_node.walk()
    while cursor.goto_first_child_for_byte(offset) is not None:
        if cursor.node is None or cursor.node.start_byte > offset:
            return None
        if cursor.node.start_byte == offset:
            return cursor.node
    return None


def _is_function(node: Node) -> bool:
    for _ in range(_MAX_WRAPPERS):
        if node.type == "function_definition":
            return True
        if node.type not in {"template_declaration", "linkage_specification"} or not node.named_children:
            return False
        node = node.named_children[-1]
    return False
