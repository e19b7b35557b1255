# SPDX-License-Identifier: Apache-2.0
"""Edits of ``a && b`` whose sides read the same arrays: both are evaluated, so that both load at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tree_sitter import Node

from gpadvisor.source.edits import EditSite, SiteKind
from gpadvisor.source.edits.nodes import is_comparison, operator_of, walk
from gpadvisor.source.edits.text import ParsedPart

_HAS_EFFECT: Final = frozenset(
    {
        *("call_expression", "assignment_expression", "update_expression", "lambda_expression"),
        *("new_expression", "delete_expression", "comma_expression", "gnu_asm_expression"),
    }
)
_ACCESSES: Final = frozenset({"subscript_expression", "pointer_expression"})


def both_sides(part: ParsedPart) -> Iterator[EditSite]:
    """Conditions whose second side compares, changes nothing, and reads no array that the first does not."""
    if b"volatile" in part.file.data[part.node.start_byte : part.node.end_byte]:
        return
    positions = part.file.positions
    for node in part.nodes:
        operator = node.child_by_field_name("operator")
        if node.type != "binary_expression" or operator is None or operator_of(node) != "&&":
            continue
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is not None and _is_and(left):  # & binds to the nearest side alone
            left = left.child_by_field_name("right")
        if left is None or right is None or not _compares(left) or not _compares(right):
            continue
        arrays = _arrays(part, right)
        if not arrays or not arrays <= _arrays(part, left) or part.in_macro(node):
            continue
        yield EditSite(
            kind=SiteKind.BOTH_SIDES,
            first_line=positions.line(left.start_byte),
            last_line=positions.line(right.end_byte - 1),
            more_lines=(),
            name="",
            words=(),
            more_words=(),
            number=None,
            limit=None,
            sure=True,
            exact=False,
            replacements=(positions.replace(operator.start_byte, operator.end_byte, "&"),),
        )


def _is_and(node: Node) -> bool:
    return node.type == "binary_expression" and operator_of(node) == "&&"


def _compares(side: Node) -> bool:
    """Whether a side is one comparison, in brackets or not, that changes nothing."""
    inner: Node | None = side
    while inner is not None and inner.type == "parenthesized_expression":
        inner = next(iter(inner.named_children), None)
    if inner is None or not is_comparison(inner):
        return False
    return all(node.type not in _HAS_EFFECT for node in walk(inner))


def _arrays(part: ParsedPart, side: Node) -> set[bytes]:
    """What a side reads elements of, as it stands there."""
    found = set()
    for node in walk(side):
        is_arrow = node.type == "field_expression" and operator_of(node) == "->"
        base = node.child_by_field_name("argument") if node.type in _ACCESSES or is_arrow else None
        if base is not None:
            found.add(b"".join(part.file.data[base.start_byte : base.end_byte].split()))
    return found
