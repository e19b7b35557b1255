# SPDX-License-Identifier: Apache-2.0
"""Syntax nodes of an expression: their text, operands, operators and arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tree_sitter import Node

_MAX_NODES: Final = 400_000
_MAX_NAME: Final = 200
_COMPARISONS: Final = frozenset({"<", ">", "<=", ">=", "==", "!="})


def text_of(data: bytes, node: Node) -> str:
    """A node's text; "" where it is longer than any name."""
    if node.end_byte - node.start_byte > _MAX_NAME:
        return ""
    return data[node.start_byte : node.end_byte].decode("utf-8", "replace")


def walk(node: Node, limit: int = _MAX_NODES) -> Iterator[Node]:
    """A node and all below it in source order, without recursion."""
    stack = [node]
    for _ in range(limit):
        if not stack:
            return
        current = stack.pop()
        yield current
        stack.extend(reversed(current.children))


def operands_of(node: Node) -> list[Node] | None:
    """The parts of an expression that its type is combined of; None where it is none of that kind."""
    parts: list[Node | None]
    if node.type == "binary_expression":
        parts = [node.child_by_field_name("left"), node.child_by_field_name("right")]
    elif node.type == "conditional_expression":
        parts = [node.child_by_field_name("consequence"), node.child_by_field_name("alternative")]
    elif node.type == "unary_expression":
        parts = [node.child_by_field_name("argument")]
    elif node.type == "parenthesized_expression":
        parts = list(node.named_children[:1])
    else:
        return None
    return [part for part in parts if part is not None]


def operator_of(node: Node) -> str:
    """The operator of an expression."""
    operator = node.child_by_field_name("operator")
    return "" if operator is None else operator.type


def is_comparison(node: Node) -> bool:
    """Whether an expression compares."""
    return node.type == "binary_expression" and operator_of(node) in _COMPARISONS


def called_name(data: bytes, call: Node) -> str:
    """The plain name of what is called, without ``std::`` and template arguments."""
    function = call.child_by_field_name("function")
    if function is not None and function.type in {"template_function", "qualified_identifier"}:
        function = function.child_by_field_name("name")
    return text_of(data, function) if function is not None and function.type == "identifier" else ""


def arguments_of(call: Node) -> list[Node]:
    """The arguments of a call."""
    arguments = call.child_by_field_name("arguments")
    return [] if arguments is None else [node for node in arguments.named_children if node.type != "comment"]
