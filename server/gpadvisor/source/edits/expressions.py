# SPDX-License-Identifier: Apache-2.0
"""Edits of arithmetic: double literals among floats, and divisors that a loop does not change."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tree_sitter import Node

from gpadvisor.source.edits import MAX_NAMES, MAX_REPLACEMENTS, EditSite, SiteKind
from gpadvisor.source.edits.nodes import (
    arguments_of,
    called_name,
    is_comparison,
    operands_of,
    operator_of,
    text_of,
)
from gpadvisor.source.edits.text import ParsedPart
from gpadvisor.source.edits.types import (
    DOUBLE_LITERAL,
    PURE_FUNCTIONS,
    Type,
    declared,
    overloaded_call,
    type_of,
)

_ARITHMETIC: Final = frozenset({"+", "-", "*", "/"})
_COMPOUND: Final = frozenset({"+=", "-=", "*=", "/="})
_MAX_DEPTH: Final = 200
_MAX_LITERAL: Final = 60


def float_literals(part: ParsedPart) -> Iterator[EditSite]:
    """Expressions whose only doubles are literals: with a suffix each, they are computed as float."""
    groups: dict[int, tuple[Node, list[Node]]] = {}
    for node in part.nodes:
        if node.type != "number_literal" or not DOUBLE_LITERAL.fullmatch(_bytes(part, node)):
            continue
        if part.in_macro(node):
            continue
        top = _expression(part, node)
        groups.setdefault(top.id, (top, []))[1].append(node)
    for top, literals in groups.values():
        site = _literal_site(part, top, literals)
        if site is not None:
            yield site


def _bytes(part: ParsedPart, node: Node) -> bytes:
    return part.file.data[node.start_byte : min(node.end_byte, node.start_byte + _MAX_LITERAL + 1)]


def _expression(part: ParsedPart, literal: Node) -> Node:
    """The largest expression that the literal's type spreads over."""
    top = literal
    for parent in part.around(literal):
        if parent.type == "binary_expression":
            if is_comparison(parent):
                return parent
            if operator_of(parent) not in _ARITHMETIC:
                return top
            top = parent
        elif parent.type in {"parenthesized_expression", "unary_expression"}:
            top = parent
        elif parent.type == "conditional_expression":
            if parent.child_by_field_name("condition") == top:
                return top
            top = parent
        elif parent.type == "call_expression" and overloaded_call(part.scope, parent):
            top = parent
        elif parent.type != "argument_list":
            return top
    return top


def _literal_site(part: ParsedPart, top: Node, literals: list[Node]) -> EditSite | None:
    leaves = [type_of(part.scope, leaf) for leaf in _leaves(part, top)]
    target, operand = _target(part, top)
    leaves += [operand] if operand is not None else []
    leaf_types = set(leaves)
    if Type.DOUBLE in leaf_types or target is Type.DOUBLE or leaf_types <= {Type.LITERAL}:
        return None
    floats = Type.FLOAT in leaf_types or target is Type.FLOAT
    unknown = Type.UNKNOWN in leaf_types or target is Type.UNKNOWN
    texts = [_bytes(part, node) for node in literals]
    if not (floats or unknown) or not all(_fits(text) for text in texts) or len(texts) > MAX_REPLACEMENTS:
        return None
    operands = operands_of(top) or []
    exact = (
        is_comparison(top)
        and all(map(_is_float, texts))
        and sorted(type_of(part.scope, operand).name for operand in operands) == ["FLOAT", "LITERAL"]
        and any(operand.type == "number_literal" for operand in operands)
        and any(not operands_of(operand) for operand in operands if operand.type != "number_literal")
    )
    positions = part.file.positions
    return EditSite(
        kind=SiteKind.FLOAT_LITERALS,
        first_line=positions.line(top.start_byte),
        last_line=positions.line(max(top.start_byte, top.end_byte - 1)),
        more_lines=(),
        name="",
        words=tuple(f"{text.decode()}f" for text in texts[:MAX_NAMES]),
        more_words=(),
        number=None,
        limit=None,
        sure=floats and not unknown,
        exact=exact,
        replacements=tuple(positions.replace(node.end_byte, node.end_byte, "f") for node in literals),
    )


def _leaves(part: ParsedPart, top: Node) -> Iterator[Node]:
    """The operands whose types decide how an expression is computed."""
    stack = [top]
    while stack:
        node = stack.pop()
        below = operands_of(node)
        if below is not None and (
            node == top or node.type != "binary_expression" or operator_of(node) in _ARITHMETIC
        ):
            stack.extend(below)
        elif overloaded_call(part.scope, node):
            stack.extend(arguments_of(node))
        elif node.type != "comment":
            yield node


def _target(part: ParsedPart, top: Node) -> tuple[Type | None, Type | None]:
    """What the value becomes (None: nothing that has a type), and the operand that an assignment adds."""
    parent = part.parents.get(top.id)
    if parent is None or is_comparison(top):
        return None, None
    if parent.type == "init_declarator":
        owner = part.parents.get(parent.id)
        names = [] if owner is None else declared(part.file.data, owner)
        name = parent.child_by_field_name("declarator")
        callee = None if name is None else text_of(part.file.data, name).lstrip("*& ")
        declared_name = next((candidate for text, candidate in names if text == callee), None)
        return (Type.UNKNOWN if declared_name is None else part.scope.scalar(declared_name)), None
    if parent.type == "assignment_expression" and parent.child_by_field_name("right") == top:
        target_type = type_of(part.scope, parent.child_by_field_name("left"))
        return target_type, target_type if operator_of(parent) in _COMPOUND else None
    if parent.type == "return_statement":
        kind = part.node.child_by_field_name("type")
        if any(node.type == "lambda_expression" for node in part.around(top)) or kind is None:
            return Type.UNKNOWN, None
        return _result_type(part, kind), None
    if parent.type == "argument_list":
        call = part.parents.get(parent.id)
        is_call = call is not None and call.type == "call_expression"
        name_ = called_name(part.file.data, call) if is_call and call is not None else ""
        return (Type.FLOAT if name_ in PURE_FUNCTIONS else Type.UNKNOWN), None
    return None, None


def _result_type(part: ParsedPart, kind: Node) -> Type:
    name = " ".join(text_of(part.file.data, kind).split())
    resolved = part.file.types.resolve(name)
    return {"float": Type.FLOAT, "double": Type.DOUBLE}.get(resolved, Type.UNKNOWN)


def _value(text: bytes) -> float | None:
    plain = text.decode("ascii", "replace").replace("'", "")
    try:
        return float.fromhex(plain) if "x" in plain.lower() else float(plain)
    except (ValueError, OverflowError):
        return None


def _as_float(value: float) -> float | None:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return None


def _fits(text: bytes) -> bool:
    """Whether a number is one in single precision, too: neither infinite nor gone."""
    value = _value(text)
    if value is None or len(text) > _MAX_LITERAL:
        return False
    single = _as_float(value)
    return single is not None and (single != 0.0 or value == 0.0)


def _is_float(text: bytes) -> bool:
    value = _value(text)
    return value is not None and _as_float(value) == value


@dataclass(slots=True)
class _Divisions:
    """Divisions by one name inside one loop."""

    loop: Node
    name: str
    nodes: list[Node] = field(default_factory=list)


def reciprocals(part: ParsedPart) -> Iterator[EditSite]:
    """Divisions by a float variable that a loop around them leaves as it is."""
    if b"volatile" in part.file.data[part.node.start_byte : part.node.end_byte]:
        return
    changed: dict[str, list[int]] | None = None
    groups: dict[tuple[int, str], _Divisions] = {}
    for node in part.nodes:
        divisor = _float_divisor(part, node)
        if divisor is None or part.in_macro(node):
            continue
        if changed is None:
            changed = changed_places(part)
        name = text_of(part.file.data, divisor)
        loop = _outermost(part, node, name, changed)
        if loop is not None:
            groups.setdefault((loop.id, name), _Divisions(loop, name)).nodes.append(node)
    for group in groups.values():
        site = _reciprocal_site(part, group)
        if site is not None:
            yield site


def _float_divisor(part: ParsedPart, node: Node) -> Node | None:
    """The variable that floats are divided by."""
    divides = node.type == "binary_expression" and operator_of(node) == "/"
    if not divides and not (node.type == "assignment_expression" and operator_of(node) == "/="):
        return None
    right, left = node.child_by_field_name("right"), node.child_by_field_name("left")
    if right is None or right.type != "identifier" or type_of(part.scope, right) is not Type.FLOAT:
        return None
    divisor = part.scope.names.get(text_of(part.file.data, right))
    if divisor is None or divisor.reference:
        return None
    # Among double literals the division is one of doubles.
    types = set() if left is None else {type_of(part.scope, leaf) for leaf in _leaves(part, left)}
    return right if types and types <= {Type.FLOAT, Type.INTEGER} else None


_Change = tuple[str, Node]


def _changes(part: ParsedPart) -> Iterator[_Change]:
    """Names that may get another value, with where; "" stands for any name, the body for anywhere."""
    data, body = part.file.data, part.body
    for node in part.nodes:
        if node.type == "assignment_expression":
            yield from _plain(data, node.child_by_field_name("left"), node)
        elif node.type == "update_expression":
            yield from _plain(data, node.child_by_field_name("argument"), node)
        elif node.type == "pointer_expression" and operator_of(node) == "&":
            yield from _plain(data, node.child_by_field_name("argument"), body)
        elif node.type in {"declaration", "for_range_loop"}:
            names = declared(data, node)
            yield from ((name, node) for name, _ in names)
            if any(variable.reference for _, variable in names):
                yield "", body
        elif node.type == "call_expression" and called_name(data, node) not in PURE_FUNCTIONS:
            for argument in arguments_of(node):
                yield from _plain(data, argument, node)
        elif node.type in {"lambda_expression", "gnu_asm_expression"}:
            yield "", body


def _plain(data: bytes, node: Node | None, where: Node) -> Iterator[_Change]:
    for _ in range(_MAX_DEPTH):
        if node is None or node.type != "parenthesized_expression":
            break
        node = next(iter(node.named_children), None)
    if node is not None and node.type == "identifier":
        yield text_of(data, node), where


def changed_places(part: ParsedPart) -> dict[str, list[int]]:
    """Offsets at which each name changes, in order; 0 for anywhere."""
    offsets: dict[str, list[int]] = {}
    for name, where in _changes(part):
        offsets.setdefault(name, []).append(0 if where == part.body else where.start_byte)
    return {name: sorted(offsets) for name, offsets in offsets.items()}


def changes_in(loop: Node, offsets: list[int]) -> bool:
    """Whether one of the places at which a name changes is in a loop, or anywhere."""
    if offsets and not offsets[0]:
        return True
    first = bisect_left(offsets, loop.start_byte)
    return first < len(offsets) and offsets[first] < loop.end_byte


def _outermost(part: ParsedPart, node: Node, name: str, changed: dict[str, list[int]]) -> Node | None:
    """The largest loop around a node that leaves a name as it is and that a line can be put before."""
    result = None
    for loop in part.loops(node):
        if any(changes_in(loop, changed.get(variable, [])) for variable in (name, "")):
            break
        if anchor(part, loop) is not None:
            result = loop
    return result


def anchor(part: ParsedPart, loop: Node) -> Node | None:
    """What a line before a loop goes in front of: its pragma, else the loop; None where no line can."""
    parent = part.parents.get(loop.id)
    if parent is None or parent.type != "compound_statement":
        return None
    pragma = pragma_before(parent, loop)
    first = loop if pragma is None else pragma
    return first if part.file.first_on_line(first) and part.file.first_on_line(loop) else None


def pragma_before(parent: Node, loop: Node) -> Node | None:
    """The directive right before a statement, comments aside."""
    before = None
    for child in parent.children:
        if child == loop:
            break
        if child.is_named and child.type != "comment":
            before = child
    return before if before is not None and before.type == "preproc_call" else None


def _reciprocal_site(part: ParsedPart, group: _Divisions) -> EditSite | None:
    file, first = part.file, anchor(part, group.loop)
    names = (f"inv_{group.name}{suffix}" for suffix in ("", *range(2, 10)))
    name = next((name for name in names if name.encode() not in file.words), None)
    if first is None or name is None or len(group.nodes) >= MAX_REPLACEMENTS // 2 - 1:
        return None
    positions = file.positions
    line = positions.line(first.start_byte)
    start = positions.start(line)
    text = f"{file.indentation(first)}const float {name} = 1.0f / {group.name};{positions.ending(line)}"
    replacements = [positions.replace(start, start, text)]
    for node in group.nodes:
        operator, right = node.child_by_field_name("operator"), node.child_by_field_name("right")
        if operator is None or right is None:
            return None
        stars = "*=" if operator.type == "/=" else "*"
        replacements.append(positions.replace(operator.start_byte, operator.end_byte, stars))
        replacements.append(positions.replace(right.start_byte, right.end_byte, name))
    replacements.sort(key=lambda replacement: (replacement.start_line, replacement.start_column))
    lines = sorted({positions.line(node.start_byte) for node in group.nodes})
    lines += sorted({positions.line(node.end_byte - 1) for node in group.nodes} - set(lines))
    return EditSite(
        kind=SiteKind.RECIPROCAL,
        first_line=lines[0],
        last_line=lines[0],
        more_lines=tuple(lines[1:]),
        name=group.name,
        words=(name,),
        more_words=(),
        number=None,
        limit=None,
        sure=True,
        exact=False,
        replacements=tuple(replacements),
    )
