# SPDX-License-Identifier: Apache-2.0
"""Edits of parameters that are passed by value: structs whose arrays are indexed where they are passed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tree_sitter import Node

from gpadvisor.source.edits import MAX_NAMES, EditSite, SiteKind
from gpadvisor.source.edits.nodes import text_of
from gpadvisor.source.edits.text import ParsedPart

_CLASSES: Final = frozenset(
    {"type_identifier", "qualified_identifier", "template_type", "struct_specifier", "class_specifier"}
)
_WORD: Final = "__grid_constant__"
_CHANGES: Final = frozenset({"update_expression", "pointer_expression", "reference_declarator"})


def grid_constants(part: ParsedPart) -> Iterator[EditSite]:
    """Structs that a kernel takes by value, of which it indexes an array at run time and changes nothing."""
    parameters = part.declarator.child_by_field_name("parameters")
    if "__global__" not in part.attributes or parameters is None:
        return
    if part.file.declared_functions[part.name] != 1:
        return  # another declaration would have to say the same
    positions, pointers = part.file.positions, _pointers(part)
    words, replacements = [], []
    for parameter, kind, name in _values(part, parameters):
        text = text_of(part.file.data, name)
        uses = [
            node for node in part.nodes if node.type == "identifier" and text_of(part.file.data, node) == text
        ]
        if any(_is_indexed(part, use, pointers) for use in uses) and not any(
            _is_changed(part, use, pointers) for use in uses
        ):
            constant = any(text_of(part.file.data, node) == "const" for node in parameter.children)
            new = f"{_WORD} " if constant else f"const {_WORD} "
            replacements.append(positions.replace(kind.start_byte, kind.start_byte, new))
            words.append(text)
    if words:
        yield EditSite(
            kind=SiteKind.GRID_CONSTANT,
            first_line=part.first_line,
            last_line=part.last_line,
            more_lines=(),
            name=part.name,
            words=tuple(words),
            more_words=(),
            number=None,
            limit=None,
            sure=True,
            exact=True,
            replacements=tuple(replacements),
        )


def _values(part: ParsedPart, parameters: Node) -> Iterator[tuple[Node, Node, Node]]:
    """Declaration, type and name of parameters of a class's type that are passed by value."""
    declarations = [node for node in parameters.named_children if node.type == "parameter_declaration"]
    for parameter in declarations[:MAX_NAMES]:
        kind, name = parameter.child_by_field_name("type"), parameter.child_by_field_name("declarator")
        if kind is None or name is None or kind.type not in _CLASSES or name.type != "identifier":
            continue
        if _WORD.encode() not in part.file.data[parameter.start_byte : parameter.end_byte]:
            yield parameter, kind, name


def _steps(part: ParsedPart, use: Node, pointers: frozenset[str]) -> Iterator[tuple[Node, Node]]:
    """From a mention of a parameter to what is around it: each part of the parameter, and what it stands in.

    What a pointer in it leads to is no part of it.
    """
    member = use
    for parent in part.around(use):
        yield member, parent
        if parent.type == "field_expression":
            field = parent.child_by_field_name("field")
            if field is None or text_of(part.file.data, field) in pointers:
                return
        elif parent.type not in {"subscript_expression", "parenthesized_expression"}:
            return
        member = parent


def _is_indexed(part: ParsedPart, use: Node, pointers: frozenset[str]) -> bool:
    """Whether a mention of a parameter leads to an element of an array in it, by an index of run time."""
    for member, parent in _steps(part, use, pointers):
        if parent.type == "subscript_expression":
            if parent.child_by_field_name("argument") != member:
                return False
            indices = parent.child_by_field_name("indices")
            children = [] if indices is None else indices.named_children
            if member != use and any(node.type != "number_literal" for node in children):
                return True
    return False


def _is_changed(part: ParsedPart, use: Node, pointers: frozenset[str]) -> bool:
    """Whether a mention of a parameter, or of a part of it, may change it."""
    for member, parent in _steps(part, use, pointers):
        if parent.type == "subscript_expression" and parent.child_by_field_name("argument") != member:
            return False
        if parent.type == "assignment_expression":
            return parent.child_by_field_name("left") == member
        if parent.type in _CHANGES:
            return True
    return False


def _pointers(part: ParsedPart) -> frozenset[str]:
    """Members of the file's classes that are pointers."""
    return frozenset(
        text_of(part.file.data, name)
        for node in part.file.outside
        if node.type == "pointer_declarator"
        and (name := node.child_by_field_name("declarator")) is not None
        and name.type == "field_identifier"
    )
