# SPDX-License-Identifier: Apache-2.0
"""A parsed source as edits need it: byte offsets as lines and columns, functions, what is a macro."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from tree_sitter import Node

from gpadvisor.source.edits import Replacement
from gpadvisor.source.edits.nodes import called_name, text_of
from gpadvisor.source.edits.types import FileTypes, NameScope, file_types, function_scope

LOOPS: Final = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})
_BRANCHES: Final = frozenset({"preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif"})
_MAX_VISITED: Final = 1_000_000
_MAX_FUNCTIONS: Final = 2_000
_MAX_AROUND: Final = 200
"""Levels of nesting that are looked through; deeper code is generated."""


class TextPositions:
    """Byte offsets of a text as lines from 1 and columns in code points from 0."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._starts = [0, *(match.end() for match in re.finditer(rb"\n", data))]

    @property
    def lines(self) -> int:
        """How many lines there are."""
        return len(self._starts)

    def line(self, offset: int) -> int:
        """The line that an offset is on."""
        return bisect_right(self._starts, offset)

    def column(self, offset: int) -> int:
        """Code points between the start of the line and an offset."""
        start = self._starts[self.line(offset) - 1]
        return len(self.data[start:offset].decode("utf-8", "replace"))

    def start(self, line: int) -> int:
        """The offset of a line's first byte."""
        return self._starts[line - 1]

    def content(self, line: int) -> bytes:
        """A line without its end."""
        end = self._starts[line] if line < self.lines else len(self.data)
        return self.data[self._starts[line - 1] : end].rstrip(b"\r\n")

    def ending(self, line: int) -> str:
        """What ends a line; that of the line before where it is the last one."""
        for number in (line, line - 1):
            if 0 < number < self.lines:
                return "\r\n" if self.data[: self._starts[number]].endswith(b"\r\n") else "\n"
        return "\n"

    def continued(self, line: int) -> bool:
        """Whether a line goes on in the next one."""
        return 0 < line <= self.lines and self.content(line).endswith(b"\\")

    def replace(self, start: int, end: int, text: str) -> Replacement:
        """Text in place of the bytes of a range."""
        return Replacement(
            start_line=self.line(start),
            start_column=self.column(start),
            end_line=self.line(end),
            end_column=self.column(end),
            text=text,
        )


@dataclass(eq=False)
class ParsedPart:
    """One function with a body that parsed without an error."""

    file: ParsedFile
    node: Node
    declarator: Node  # the function_declarator
    name_node: Node

    @cached_property
    def name(self) -> str:
        """Its plain name."""
        return text_of(self.file.data, self.name_node)

    @cached_property
    def parents(self) -> dict[int, Node]:
        """The parent of each node below the function."""
        nodes: dict[int, Node] = {}
        stack = [self.node]
        while stack:
            node = stack.pop()
            for child in node.children:
                nodes[child.id] = node
                stack.append(child)
        return nodes

    @cached_property
    def nodes(self) -> list[Node]:
        """All nodes of the body, in source order."""
        matching, stack = [], [self.body]
        while stack:
            node = stack.pop()
            matching.append(node)
            stack.extend(reversed(node.children))
        return matching

    @cached_property
    def body(self) -> Node:
        """The compound statement."""
        return self.node.child_by_field_name("body") or self.node

    @cached_property
    def scope(self) -> NameScope:
        """The types of its names."""
        return function_scope(self.file.data, self.node, self.file.types)

    @cached_property
    def attributes(self) -> dict[str, Node]:
        """The words before the declarator, such as ``__global__``."""
        nodes: dict[str, Node] = {}
        for child in self.node.children:
            if child.start_byte >= self.declarator.start_byte:
                break
            nodes[text_of(self.file.data, child)] = child
        return nodes

    @property
    def first_line(self) -> int:
        """Its first line."""
        return self.file.positions.line(self.node.start_byte)

    @property
    def last_line(self) -> int:
        """Its last line."""
        return self.file.positions.line(max(self.node.start_byte, self.node.end_byte - 1))

    def around(self, node: Node) -> Iterator[Node]:
        """The nodes around one, innermost first, up to the function or so far as anybody looks."""
        parent = self.parents.get(node.id)
        for _ in range(_MAX_AROUND):
            if parent is None:
                return
            yield parent
            parent = self.parents.get(parent.id)

    def in_macro(self, node: Node) -> bool:
        """Whether a node is an argument of a macro, or of what looks like one, or lies too deep to tell."""
        depth = 0
        for parent in self.around(node):
            depth += 1
            name = called_name(self.file.data, parent) if parent.type == "call_expression" else ""
            if name and self.file.types.is_macro(name):
                return True
        return depth >= _MAX_AROUND

    def loops(self, node: Node) -> Iterator[Node]:
        """The loops around a node in the same function, innermost first."""
        for parent in self.around(node):
            if parent.type == "lambda_expression":
                return
            if parent.type in LOOPS:
                yield parent


@dataclass(eq=False)
class ParsedFile:
    """What one walk over the tree finds."""

    data: bytes
    positions: TextPositions
    parts: list[ParsedPart] = field(default_factory=list)
    function_names: list[str] = field(default_factory=list)  # of all definitions and declarations
    outside: list[Node] = field(default_factory=list)  # nodes that are in no function's body
    comments: list[Node] = field(default_factory=list)
    directives: list[Node] = field(default_factory=list)
    raw_strings: list[Node] = field(default_factory=list)
    launches: list[Node] = field(default_factory=list)
    numbers: list[Node] = field(default_factory=list)
    calls: dict[str, list[Node]] = field(default_factory=dict)
    conditional: set[int] = field(default_factory=set)  # nodes right under #if
    initialised: dict[str, list[tuple[Node, Node | None]]] = field(default_factory=dict)
    """Declarators with a value or arguments by name, and what is around each."""
    types: FileTypes = field(default_factory=FileTypes)

    def first_on_line(self, node: Node) -> bool:
        """Whether nothing but blanks stands before a node, and the line before does not run on into it."""
        line = self.positions.line(node.start_byte)
        before = self.data[self.positions.start(line) : node.start_byte]
        return not before.strip(b" \t") and not self.positions.continued(line - 1)

    def indentation(self, node: Node) -> str:
        """The blanks before the first node of a line."""
        line = self.positions.line(node.start_byte)
        return self.data[self.positions.start(line) : node.start_byte].decode("utf-8", "replace")

    @cached_property
    def _part_starts(self) -> list[int]:
        return [part.node.start_byte for part in self.parts]

    def part_at(self, offset: int) -> ParsedPart | None:
        """The function around an offset."""
        index = bisect_right(self._part_starts, offset) - 1
        return self.parts[index] if index >= 0 and offset < self.parts[index].node.end_byte else None

    @cached_property
    def words(self) -> frozenset[bytes]:
        """All words of the file, comments included."""
        return frozenset(re.findall(rb"\w+", self.data))

    @cached_property
    def integers(self) -> Counter[int]:
        """How often each plain number stands in the code."""
        texts = (text_of(self.data, node).rstrip("uUlL") for node in self.numbers)
        return Counter(int(text) for text in texts if text.isdecimal() and len(text) < 10)

    @cached_property
    def by_name(self) -> dict[str, list[ParsedPart]]:
        """Functions by their plain name."""
        result: dict[str, list[ParsedPart]] = {}
        for part in self.parts:
            result.setdefault(part.name, []).append(part)
        return result

    @cached_property
    def declared_functions(self) -> Counter[str]:
        """How often each function is declared or defined."""
        return Counter(self.function_names)


def parsed_file(data: bytes, root: Node) -> ParsedFile:
    """Walk a tree once; generated files of millions of nodes are seen in part."""
    file = ParsedFile(data, TextPositions(data))
    functions: list[Node] = []
    nested: set[int] = set()
    stack: list[tuple[Node, Node | None, bool, bool]] = [(root, None, False, False)]
    for _ in range(_MAX_VISITED):
        if not stack:
            break
        node, parent, inside, broken = stack.pop()
        broken = broken or node.type == "ERROR"
        _note(file, node, parent, inside=inside)
        if node.type == "function_definition" and not broken and len(functions) < _MAX_FUNCTIONS:
            if not inside:
                functions.append(node)
            elif functions:  # the braces are not where they should be, or it is a local class
                nested.add(functions[-1].id)
        body = node.child_by_field_name("body") if node.type == "function_definition" else None
        stack.extend((child, node, inside or child == body, broken) for child in reversed(node.children))
    file.types = file_types(data, file.outside)
    for node in functions:
        part = None if node.id in nested else _part(file, node)
        if part is not None:
            file.parts.append(part)
    return file


def _note(file: ParsedFile, node: Node, parent: Node | None, *, inside: bool) -> None:
    kind = node.type
    if kind in {"init_declarator", "function_declarator"}:
        name = node.child_by_field_name("declarator")
        if name is not None:
            file.initialised.setdefault(text_of(file.data, name), []).append((node, parent))
    if not inside:
        file.outside.append(node)
    if kind == "comment":
        file.comments.append(node)
    elif kind.startswith("preproc_") and kind in _DIRECTIVES:
        file.directives.append(node)
    elif kind == "raw_string_literal":
        file.raw_strings.append(node)
    elif kind == "number_literal":
        file.numbers.append(node)
    elif kind == "call_expression":
        file.calls.setdefault(called_name(file.data, node), []).append(node)
        if any(child.type == "kernel_call_syntax" for child in node.children):
            file.launches.append(node)
    elif kind == "function_declarator":
        name = node.child_by_field_name("declarator")
        if name is not None:
            file.function_names.append(text_of(file.data, name))
    elif kind in _BRANCHES:
        file.conditional.update(child.id for child in node.children)


_DIRECTIVES: Final = frozenset(
    {"preproc_def", "preproc_function_def", "preproc_call", "preproc_include", "preproc_directive"}
)


def _part(file: ParsedFile, node: Node) -> ParsedPart | None:
    """A function that edits may touch: no error anywhere in it, and a plain name."""
    declarator = node.child_by_field_name("declarator")
    for _ in range(8):
        if declarator is None or declarator.type == "function_declarator":
            break
        declarator = declarator.child_by_field_name("declarator") or next(
            iter(declarator.named_children), None
        )
    name = None if declarator is None else declarator.child_by_field_name("declarator")
    body = node.child_by_field_name("body")
    if declarator is None or name is None or body is None or node.has_error:
        return None
    return ParsedPart(file, node, declarator, name)
