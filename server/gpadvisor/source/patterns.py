# SPDX-License-Identifier: Apache-2.0
"""What a CUDA source says that its machine code does not: literals, divisions, pragmas, launch bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from gpadvisor.source.syntax import MAX_PARSED_BYTES, parse_cuda

_LOOPS: Final = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})
_DOUBLE: Final = re.compile(
    r"^(?:(?:[0-9][0-9']*\.[0-9']*|\.[0-9][0-9']*)(?:[eE][+-]?[0-9]+)?|[0-9][0-9']*[eE][+-]?[0-9]+"
    r"|0[xX][0-9a-fA-F'.]+[pP][+-]?[0-9]+)[lL]?$"
)
_UNROLL: Final = re.compile(r"^(?:GCC\s+)?unroll\b\s*(.{0,80})$")
_BOUNDS: Final = re.compile(r"__launch_bounds__\s*\(([^()]{0,200}(?:\([^()]{0,100}\)[^()]{0,100}){0,4})\)")
_RESTRICT: Final = re.compile(r"\b(?:__restrict__|__restrict|restrict)\b")
_MAX_VISITED: Final = 100_000
"""Nodes looked at for one question; a line of generated code can have any number."""
_MAX_FOUND: Final = 100
"""Findings on one line or in one signature."""
_MAX_COMMENTS: Final = 16
"""Comments between a pragma and its loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """An expression as the source has it, on one line."""

    text: str
    line: int
    column: int  # from 1, in bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSite:
    """A loop statement."""

    line: int
    last_line: int
    unroll: str | None  # what stands behind ``#pragma unroll``, "" where nothing does; None without a pragma


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSite:
    """A kernel's definition."""

    line: int
    last_line: int
    launch_bounds: str | None  # the arguments as written
    unrestricted: tuple[str, ...]  # pointer parameters without __restrict__


class CudaSource:
    """A parsed source; its questions are answered for one line each, so that a large file costs little."""

    def __init__(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        # Of a generated file of many megabytes nothing is known rather than everything late.
        self._root = parse_cuda(data if len(data) <= MAX_PARSED_BYTES else b"").root_node

    def double_literals(self, line: int) -> tuple[Token, ...]:
        """Floating-point literals of type double (or long double, which device code treats alike)."""
        nodes = (node for node in self._on(line) if node.type == "number_literal")
        return _tokens(node for node in nodes if _DOUBLE.match(_text(node)))

    def divisions(self, line: int) -> tuple[Token, ...]:
        """Divisions and remainders, also by assignment, by something that is not a literal."""
        return _tokens(node for node in self._on(line) if _is_division(node))

    def loop(self, line: int) -> LoopSite | None:
        """The innermost loop whose head begins on a line."""
        found = None
        for node in self._on(line):
            if node.type in _LOOPS and _line(node) == line:
                found = node
        if found is None:
            return None
        return LoopSite(line=line, last_line=_last_line(found), unroll=_unroll(found))

    def kernel(self, line: int) -> KernelSite | None:
        """The ``__global__`` function that a line is in."""
        for node in self._on(line):
            if node.type != "function_definition":
                continue
            body = node.child_by_field_name("body")
            whole = _text(node)
            head = whole if body is None else whole.encode()[: body.start_byte - node.start_byte].decode()
            if "__global__" not in head:
                continue
            bounds = _BOUNDS.search(head)
            return KernelSite(
                line=_line(node),
                last_line=_last_line(node),
                launch_bounds=None if bounds is None else " ".join(bounds.group(1).split()),
                unrestricted=_unrestricted(node),
            )
        return None

    def _on(self, line: int) -> Iterator[Node]:
        """Nodes that touch a line, outer ones first, in source order."""
        row = line - 1
        stack = [self._root]
        for _ in range(_MAX_VISITED):
            if not stack:
                return
            node = stack.pop()
            if node.start_point[0] <= row <= node.end_point[0]:
                yield node
                stack.extend(reversed(node.children))


def _text(node: Node) -> str:
    return "" if node.text is None else node.text.decode("utf-8", "replace")


def _line(node: Node) -> int:
    return node.start_point[0] + 1


def _last_line(node: Node) -> int:
    return node.end_point[0] + 1


def _tokens(nodes: Iterator[Node]) -> tuple[Token, ...]:
    found = []
    for node in nodes:
        text = " ".join(_text(node).split())
        found.append(Token(text=text, line=_line(node), column=node.start_point[1] + 1))
        if len(found) == _MAX_FOUND:
            break
    return tuple(found)


def _is_division(node: Node) -> bool:
    if node.type not in {"binary_expression", "assignment_expression"}:
        return False
    operator, right = node.child_by_field_name("operator"), node.child_by_field_name("right")
    if operator is None or right is None or operator.type not in {"/", "%", "/=", "%="}:
        return False
    return right.type != "number_literal"


def _unroll(loop: Node) -> str | None:
    """The pragma before a loop, over comments."""
    before = loop.prev_named_sibling
    for _ in range(_MAX_COMMENTS):
        if before is None or before.type != "comment":
            break
        before = before.prev_named_sibling
    if before is None or before.type != "preproc_call":
        return None
    argument = before.child_by_field_name("argument")
    found = None if argument is None else _UNROLL.match(_text(argument).strip())
    return None if found is None else found.group(1).partition("//")[0].strip()


def _unrestricted(function: Node) -> tuple[str, ...]:
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    parameters = None if declarator is None else declarator.child_by_field_name("parameters")
    if parameters is None:
        return ()
    names = []
    for parameter in parameters.named_children[:_MAX_FOUND]:
        inner = parameter.child_by_field_name("declarator")
        if inner is None or inner.type != "pointer_declarator" or _RESTRICT.search(_text(parameter)):
            continue
        while inner is not None and inner.type != "identifier":
            inner = inner.child_by_field_name("declarator")
        if inner is not None:
            names.append(_text(inner))
    return tuple(names)
