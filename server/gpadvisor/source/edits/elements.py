# SPDX-License-Identifier: Apache-2.0
"""Edits of loops that write one element of an array in every pass: a variable holds it meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tree_sitter import Node

from gpadvisor.source.edits import MAX_REPLACEMENTS, EditSite, Replacement, SiteKind
from gpadvisor.source.edits.expressions import anchor, changed_places, changes_in
from gpadvisor.source.edits.nodes import called_name, text_of, walk
from gpadvisor.source.edits.text import LOOPS, ParsedPart
from gpadvisor.source.edits.types import PURE_FUNCTIONS

_POSITIONS: Final = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim"})
_INDEX: Final = frozenset(
    {
        *("subscript_expression", "subscript_argument_list", "binary_expression", "parenthesized_expression"),
        *("identifier", "number_literal", "field_expression", "field_identifier"),
    }
)
"""What the text of an element may be made of."""
_LEAVES: Final = frozenset({"return_statement", "goto_statement", "lambda_expression", "gnu_asm_expression"})
_MAX_ELEMENTS: Final = 100
_UNCONDITIONAL: Final = frozenset({"compound_statement", "expression_statement", *LOOPS})


@dataclass(slots=True)
class _Kept:
    """An element, and the loop that it stays the same in."""

    loop: Node
    array: str
    text: bytes
    writes: list[Node] = field(default_factory=list)


def kept_elements(part: ParsedPart) -> Iterator[EditSite]:
    """Elements that a loop around them neither moves nor accesses in another way."""
    if b"volatile" in part.file.data[part.node.start_byte : part.node.end_byte]:
        return
    changed: dict[str, list[int]] | None = None
    hides: dict[int, bool] = {}
    groups: dict[tuple[int, bytes], _Kept] = {}
    for node in part.nodes:
        target = node.child_by_field_name("left") if node.type == "assignment_expression" else None
        array = None if target is None or part.in_macro(node) else _array(part, target)
        if target is None or array is None or len(groups) >= _MAX_ELEMENTS:
            continue
        if changed is None:
            changed = changed_places(part)
        loop = _outermost(part, node, target, changed, hides)
        if loop is not None:
            text = _plain(part, target)
            groups.setdefault((loop.id, text), _Kept(loop, array, text)).writes.append(target)
    for group in groups.values():
        site = _site(part, group)
        if site is not None:
            yield site


def _plain(part: ParsedPart, node: Node) -> bytes:
    return b"".join(part.file.data[node.start_byte : node.end_byte].split())


def _array(part: ParsedPart, element: Node) -> str | None:
    """The array of an element whose index is a sum or product of names, numbers and positions."""
    base: Node | None = element if text_of(part.file.data, element) else None
    while base is not None and base.type == "subscript_expression":
        base = base.child_by_field_name("argument")
    if base is None or base is element or base.type != "identifier":
        return None
    for node in walk(element):
        if node.is_named and node.type not in _INDEX:
            return None
        if node.type == "field_expression":
            owner = node.child_by_field_name("argument")
            if owner is None or text_of(part.file.data, owner) not in _POSITIONS:
                return None
    return text_of(part.file.data, base) or None


def _names(part: ParsedPart, element: Node) -> set[str]:
    return {text_of(part.file.data, node) for node in walk(element) if node.type == "identifier"}


def _outermost(
    part: ParsedPart, node: Node, element: Node, changed: dict[str, list[int]], hides: dict[int, bool]
) -> Node | None:
    """The largest loop that leaves an element where it is, and that reaches it in every pass."""
    names, result = (*_names(part, element), ""), None
    for around in part.around(node):
        if around.type not in _UNCONDITIONAL:
            break
        if around.type in LOOPS:
            if around.id not in hides:
                hides[around.id] = _hides(part, around)
            if not hides[around.id] or any(changes_in(around, changed.get(name, [])) for name in names):
                break
            if anchor(part, around) is not None:
                result = around
    return result


def _hides(part: ParsedPart, loop: Node) -> bool:
    """Whether nobody sees what a loop writes before its end, and it is left there alone."""
    return not any(
        node.type in _LEAVES
        or node.type.startswith("preproc_if")
        or (node.type == "call_expression" and called_name(part.file.data, node) not in PURE_FUNCTIONS)
        for node in walk(loop)
    )


def _accesses(part: ParsedPart, group: _Kept) -> list[Node] | None:
    """Where a loop accesses the element; None where it writes another of the array, or hands the array on."""
    accesses = []
    for node in walk(group.loop):
        if node.type != "identifier" or text_of(part.file.data, node) != group.array:
            continue
        access = node
        for parent in part.around(node):
            if parent.type != "subscript_expression" or parent.child_by_field_name("argument") != access:
                break
            access = parent
        if access == node:
            return None
        if _plain(part, access) == group.text:
            accesses.append(access)
        elif _is_written(part, access):
            return None
    return accesses


def _is_written(part: ParsedPart, node: Node) -> bool:
    parent = part.parents.get(node.id)
    if parent is None or parent.type in {"update_expression", "pointer_expression"}:
        return True
    return parent.type == "assignment_expression" and parent.child_by_field_name("left") == node


def _site(part: ParsedPart, group: _Kept) -> EditSite | None:
    file, first = part.file, anchor(part, group.loop)
    accesses = _accesses(part, group)
    names = (f"{group.array}_kept{suffix}" for suffix in ("", *range(2, 10)))
    name = next((name for name in names if name.encode() not in file.words), None)
    if first is None or not accesses or name is None or len(accesses) > MAX_REPLACEMENTS - 2:
        return None
    if any(
        file.positions.line(access.start_byte) != file.positions.line(access.end_byte) for access in accesses
    ):
        return None
    behind = _behind(part, group.loop)
    if behind is None:
        return None
    positions = file.positions
    start = positions.start(positions.line(first.start_byte))
    ending = positions.ending(positions.line(first.start_byte))
    blanks = file.indentation(first)
    element = file.data[accesses[0].start_byte : accesses[0].end_byte].decode("utf-8", "replace")
    replacements: list[Replacement] = [
        positions.replace(start, start, f"{blanks}auto {name} = {element};{ending}"),
        *(positions.replace(node.start_byte, node.end_byte, name) for node in accesses),
        positions.replace(behind, behind, f"{blanks}{element} = {name};{ending}"),
    ]
    lines = sorted({positions.line(node.start_byte) for node in accesses})
    return EditSite(
        kind=SiteKind.KEEP_ELEMENT,
        first_line=lines[0],
        last_line=lines[-1],
        more_lines=(positions.line(group.loop.start_byte),),
        name=element,
        words=(name,),
        more_words=(),
        number=None,
        limit=None,
        sure=True,
        exact=False,
        replacements=tuple(replacements),
    )


def _behind(part: ParsedPart, loop: Node) -> int | None:
    """The start of the line behind a loop; None where more stands on its last one."""
    positions = part.file.positions
    line = positions.line(loop.end_byte - 1)
    if line >= positions.lines or positions.continued(line):
        return None
    trailing = part.file.data[loop.end_byte : positions.start(line + 1)].strip()
    return None if trailing and not trailing.startswith(b"//") else positions.start(line + 1)
