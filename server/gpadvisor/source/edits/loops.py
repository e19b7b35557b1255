# SPDX-License-Identifier: Apache-2.0
"""Edits of loops: a pragma that unrolls them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tree_sitter import Node

from gpadvisor.source.edits import NUMBER, EditSite, Replacement, SiteKind
from gpadvisor.source.edits.expressions import anchor, pragma_before
from gpadvisor.source.edits.nodes import operator_of, text_of
from gpadvisor.source.edits.text import LOOPS, ParsedPart

_UNROLL: Final = re.compile(rb"\s*unroll[ \t]+(?:\([ \t]*)?([0-9]{1,9})[ \t]*\)?[ \t]*\r?\n?")
_UNROLLED: Final = frozenset({"for_statement", "while_statement"})
_MAX_TRIPS: Final = 1 << 30


def unrolls(part: ParsedPart) -> Iterator[EditSite]:
    """All loops; those that no pragma can be put before have no replacement."""
    for node in part.nodes:
        if node.type not in LOOPS:
            continue
        parent = part.parents.get(node.id)
        pragma = None if parent is None else pragma_before(parent, node)
        number, replacement = (None, _insertion(part, node)) if pragma is None else _present(part, pragma)
        if node.type not in _UNROLLED or part.in_macro(node) or anchor(part, node) is None:
            replacement = None
        yield _site(part, node, number, () if replacement is None else (replacement,))


def _insertion(part: ParsedPart, loop: Node) -> Replacement:
    positions = part.file.positions
    line = positions.line(loop.start_byte)
    start = positions.start(line)
    text = f"{part.file.indentation(loop)}#pragma unroll {NUMBER}{positions.ending(line)}"
    return positions.replace(start, start, text)


def _present(part: ParsedPart, pragma: Node) -> tuple[int | None, Replacement | None]:
    """The number in a pragma that is there, and how to replace it; a pragma without one stays."""
    argument = pragma.child_by_field_name("argument")
    if argument is None:
        return None, None
    text = part.file.data[argument.start_byte : min(argument.end_byte, argument.start_byte + 200)]
    match = _UNROLL.fullmatch(text)
    if match is None:
        return None, None
    start = argument.start_byte + match.start(1)
    end = argument.start_byte + match.end(1)
    return int(match[1]), part.file.positions.replace(start, end, NUMBER)


def _site(
    part: ParsedPart, loop: Node, number: int | None, replacements: tuple[Replacement, ...]
) -> EditSite:
    positions = part.file.positions
    return EditSite(
        kind=SiteKind.UNROLL,
        first_line=positions.line(loop.start_byte),
        last_line=positions.line(max(loop.start_byte, loop.end_byte - 1)),
        more_lines=(),
        name="",
        words=(),
        more_words=(),
        number=number,
        limit=_trips(part, loop),
        sure=True,
        exact=True,
        replacements=replacements,
    )


def _trips(part: ParsedPart, loop: Node) -> int | None:
    """How often a loop with plain numbers in its head runs."""
    start = _start(part, loop.child_by_field_name("initializer"))
    condition, update = loop.child_by_field_name("condition"), loop.child_by_field_name("update")
    if start is None or condition is None or update is None or condition.type != "binary_expression":
        return None
    name, first = start
    bound = _number(part, condition.child_by_field_name("right"))
    step = _step(part, update, name)
    if bound is None or step is None or _name(part, condition.child_by_field_name("left")) != name:
        return None
    span = {"<": bound - first, "<=": bound - first + 1}.get(operator_of(condition))
    if span is None:
        return None
    trips = -(-span // step)
    return trips if 0 < trips < _MAX_TRIPS else None


def _start(part: ParsedPart, node: Node | None) -> tuple[str, int] | None:
    declarators = [] if node is None else node.children_by_field_name("declarator")
    if len(declarators) != 1 or declarators[0].type != "init_declarator":
        return None
    name = _name(part, declarators[0].child_by_field_name("declarator"))
    value = _number(part, declarators[0].child_by_field_name("value"))
    return None if name is None or value is None else (name, value)


def _step(part: ParsedPart, update: Node, name: str) -> int | None:
    if update.type == "update_expression" and operator_of(update) == "++":
        return 1 if _name(part, update.child_by_field_name("argument")) == name else None
    if update.type == "assignment_expression" and operator_of(update) == "+=":
        step = _number(part, update.child_by_field_name("right"))
        return step if step and _name(part, update.child_by_field_name("left")) == name else None
    return None


def _name(part: ParsedPart, node: Node | None) -> str | None:
    return None if node is None or node.type != "identifier" else text_of(part.file.data, node)


def _number(part: ParsedPart, node: Node | None) -> int | None:
    if node is None or node.type != "number_literal":
        return None
    text = text_of(part.file.data, node)
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None
