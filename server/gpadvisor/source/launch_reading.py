# SPDX-License-Identifier: Apache-2.0
"""Launches of kernels with what constants of the source decide: numbers, macros, ``dim3``, ``int`` variables.

A variable counts where it is set once and on every way; anything else is unknown and named. Like all
parsing, this runs in a child process.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from tree_sitter import Node, Tree

from gpadvisor.source.facts import MAX_SIZES, MAX_TEXT, LaunchPlace, Token
from gpadvisor.source.launch_sites import (
    MAX_ARGUMENTS,
    MAX_LAUNCHES,
    MAX_NAME,
    MAX_NAMES,
    LaunchArgument,
    LaunchSite,
)
from gpadvisor.source.syntax import parse_cuda

Value: TypeAlias = int | float | tuple[int, int, int]

_MAX_DEPTH: Final = 40
_MAX_VISITED: Final = 1_000_000
_MOST: Final = 1 << 62
_TYPES: Final = {
    **dict.fromkeys(("int", "unsigned", "unsigned int", "signed", "int32_t", "uint32_t", "uint"), "int"),
    **dict.fromkeys(("long", "unsigned long", "long long", "unsigned long long", "size_t"), "long"),
    **dict.fromkeys(("int64_t", "uint64_t", "long int", "unsigned long int", "ptrdiff_t"), "long"),
    "float": "float",
    "double": "double",
}
_SIZES: Final = {"char": 1, "bool": 1, "short": 2, "int": 4, "float": 4, "unsigned": 4, "unsigned int": 4}
_WIDE: Final = {"double": 8, "long": 8, "size_t": 8, "long long": 8}
_NUMBER: Final = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]{0,3}")
_REAL: Final = re.compile(r"([-+]?[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?)[fF]?")
_QUALIFIERS: Final = re.compile(r"\b(?:const|volatile|register|struct|__restrict__|__grid_constant__)\b")
_COMPONENTS: Final = ("x", "y", "z")


class _UnknownError(Exception):
    """A value hangs on something that the source does not decide."""


@dataclass(eq=False)
class _Names:
    """What one function, or a file outside of its functions, does to names."""

    declared: set[str] = field(default_factory=set)
    values: dict[str, list[Node]] = field(default_factory=dict)  # by name, or name.x: what it is set to
    changed: set[str] = field(default_factory=set)  # in a way that is not followed

    def set_to(self, name: str, value: Node) -> None:
        self.values.setdefault(name, []).append(value)


@dataclass(eq=False)
class _Texts:
    """All texts of a translation unit."""

    globals: _Names = field(default_factory=_Names)
    macros: dict[str, list[Node]] = field(default_factory=dict)
    macro_lines: dict[str, int] = field(default_factory=dict)  # of the first definition
    parameters: dict[str, list[Node]] = field(default_factory=dict)  # of kernels, by name
    launches: list[tuple[int, Node, _Names]] = field(default_factory=list)


def launch_sites(texts: list[tuple[str, str]]) -> tuple[LaunchSite, ...]:
    """The launches in texts that are compiled together, in order."""
    unit = _Texts()
    for index, (path, text) in enumerate(texts):
        tree = parse_cuda(path, text.encode("utf-8", "replace"))
        if tree is not None:
            _read(unit, index, tree.root_node)
    return tuple(_site(unit, *launch) for launch in unit.launches[:MAX_LAUNCHES])


def launch_places(tree: Tree) -> tuple[LaunchPlace, ...]:
    """The launches of a text, with the constants that their blocks' sizes are made of."""
    unit = _Texts()
    _read(unit, 0, tree.root_node)
    found = []
    for _, node, names in unit.launches[:MAX_LAUNCHES]:
        reader = _Reader(unit, names)
        block = _places(node)[1:2]
        if block:
            reader.sizes(block[0])
        found.append(
            LaunchPlace(
                kernel=_kernel_name(node)[:MAX_TEXT],
                line=node.start_point[0] + 1,
                sizes=tuple(
                    Token(text=name, line=line)
                    for name, line in list(reader.constants.items())[:MAX_SIZES]
                    if len(name) <= MAX_TEXT
                ),
            )
        )
    return tuple(found)


def _read(unit: _Texts, index: int, root: Node) -> None:
    stack: list[tuple[Node, _Names, bool]] = [(root, unit.globals, True)]
    for _ in range(_MAX_VISITED):
        if not stack:
            return
        node, names, always = stack.pop()
        if node.type == "function_definition":
            names = _Names()
            _parameters(unit, names, node)
        elif node.type == "preproc_def":
            _macro(unit, node)
        elif node.type == "call_expression" and _launch_syntax(node) is not None:
            unit.launches.append((index, node, names))
        else:
            _note(names, node, always=always)
        # Behind a condition or in a loop nothing is sure to happen once.
        always = always and node.type not in _CONDITIONAL
        stack.extend((child, names, always) for child in reversed(node.children))


_CONDITIONAL: Final = frozenset(
    {
        *("if_statement", "for_statement", "while_statement", "do_statement", "switch_statement"),
        *("conditional_expression", "lambda_expression", "catch_clause"),
    }
)


def _parameters(unit: _Texts, names: _Names, node: Node) -> None:
    declarator = _inner(node.child_by_field_name("declarator"), "function_declarator")
    name = None if declarator is None else declarator.child_by_field_name("declarator")
    given = None if declarator is None else declarator.child_by_field_name("parameters")
    if name is None or given is None:
        return
    rows = [child for child in given.named_children if child.type == "parameter_declaration"]
    for row in rows:
        names.declared.update(_declared(row))
    head = node.text or b""
    body = node.child_by_field_name("body")
    if b"__global__" in head[: (body.start_byte - node.start_byte) if body is not None else None]:
        unit.parameters.setdefault(_text(name), rows)


def _inner(node: Node | None, kind: str) -> Node | None:
    for _ in range(8):
        if node is None or node.type == kind:
            return node
        node = node.child_by_field_name("declarator") or next(iter(node.named_children), None)
    return None


def _declared(node: Node) -> Iterator[str]:
    """The names that the declarators below a node declare."""
    for child in node.children_by_field_name("declarator"):
        if child.type == "identifier":
            yield _text(child)
        else:
            yield from _declared(child)


def _macro(unit: _Texts, node: Node) -> None:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None or value is None or value.text is None:
        return
    text = re.sub(rb"//.*|/\*.*?\*/", b"", value.text)
    tree = parse_cuda("macro.cu", b"auto macro = (" + text + b");")
    inner = None if tree is None else _inner(tree.root_node, "declaration")
    declarator = None if inner is None or inner.has_error else inner.child_by_field_name("declarator")
    given = None if declarator is None else declarator.child_by_field_name("value")
    if given is not None:
        unit.macros.setdefault(_text(name), []).append(given)
        unit.macro_lines.setdefault(_text(name), node.start_point[0] + 1)


def _note(names: _Names, node: Node, *, always: bool) -> None:
    """What a node does to names."""
    kind = node.type
    if kind == "declaration":
        names.declared.update(_declared(node))
        for child in node.children_by_field_name("declarator"):
            if child.type in {"init_declarator", "function_declarator"}:
                name = child.child_by_field_name("declarator")
                value = child.child_by_field_name("value") or child.child_by_field_name("parameters")
                if name is not None and value is not None:
                    _set(names, _text(name), value, always=always)
    elif kind == "assignment_expression":
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is not None and right is not None:
            plain = any(child.type == "=" for child in node.children)
            _set(names, _text(left), right, always=always and plain)
    elif kind in {"update_expression", "pointer_expression"}:
        inner = node.child_by_field_name("argument")
        if inner is not None and (kind == "update_expression" or _text(node).startswith("&")):
            names.changed.add(_text(inner).partition(".")[0])


def _set(names: _Names, name: str, value: Node, *, always: bool) -> None:
    if always:
        names.set_to(name, value)
    else:
        names.changed.add(name.partition(".")[0])


def _launch_syntax(node: Node) -> Node | None:
    return next((child for child in node.children if child.type == "kernel_call_syntax"), None)


def _places(node: Node) -> list[Node]:
    """What stands between ``<<<`` and ``>>>``."""
    syntax = _launch_syntax(node)
    return [] if syntax is None else [one for one in syntax.named_children if one.type != "comment"]


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


# ---- one launch ----


def _site(unit: _Texts, file: int, node: Node, names: _Names) -> LaunchSite:
    places = _places(node)
    reader = _Reader(unit, names)
    grid, block = (reader.sizes(places[at]) if len(places) > at else None for at in (0, 1))
    shared = reader.number(places[2]) if len(places) > 2 else 0
    name = _kernel_name(node)
    return LaunchSite(
        kernel=name[:MAX_NAME],
        file=file,
        line=node.start_point[0] + 1,
        grid=grid,
        block=block,
        dynamic_shared_bytes=int(shared) if shared is not None and 0 <= shared < _MOST else None,
        arguments=_arguments(unit, reader, name, node.child_by_field_name("arguments")),
        unknown=tuple(dict.fromkeys(reader.unknown))[:MAX_NAMES],
    )


def _kernel_name(node: Node) -> str:
    function = node.child_by_field_name("function")
    return re.sub(r"<.*|[()\s]", "", "" if function is None else _text(function)).rpartition("::")[2]


def _arguments(unit: _Texts, reader: _Reader, kernel: str, given: Node | None) -> tuple[LaunchArgument, ...]:
    values = [] if given is None else [one for one in given.named_children if one.type != "comment"]
    kinds = [_kind(row) for row in unit.parameters.get(kernel, ())]
    if len(kinds) != len(values) or len(kinds) > MAX_ARGUMENTS:
        return ()
    found = []
    for kind, value in zip(kinds, values, strict=True):
        if kind is None:
            return ()
        number = None if kind == "pointer" else reader.number(value)
        if number is not None and kind in {"int", "long"}:
            number = int(number) if abs(number) < _MOST else None
        found.append(LaunchArgument(kind=kind, value=number))
    return tuple(found)


def _kind(parameter: Node) -> str | None:
    declarator, base = parameter.child_by_field_name("declarator"), parameter.child_by_field_name("type")
    while declarator is not None and declarator.type != "identifier":
        if declarator.type in {"pointer_declarator", "array_declarator", "abstract_pointer_declarator"}:
            return "pointer"
        declarator = declarator.child_by_field_name("declarator") or next(
            iter(declarator.named_children), None
        )
    text = "" if base is None else _text(base)
    return _TYPES.get(" ".join(_QUALIFIERS.sub(" ", text).split()))


@dataclass(eq=False)
class _Reader:
    """Evaluates expressions at one launch, and keeps the names that stand in the way."""

    unit: _Texts
    names: _Names
    unknown: list[str] = field(default_factory=list)
    constants: dict[str, int] = field(default_factory=dict)  # names that stand for a number, with their line

    def sizes(self, node: Node) -> tuple[int, int, int] | None:
        """Three sizes from an expression or a ``dim3``."""
        value = self._try(node)
        if isinstance(value, tuple):
            return value if all(0 < one < 1 << 32 for one in value) else None
        return None if value is None or not 0 < value < 1 << 32 else (int(value), 1, 1)

    def number(self, node: Node) -> int | float | None:
        """A number, None where it is unknown."""
        value = self._try(node)
        return None if isinstance(value, tuple) else value

    def _try(self, node: Node) -> Value | None:
        try:
            return self._value(node, 0)
        except (_UnknownError, ArithmeticError, ValueError) as error:
            name = str(error) if isinstance(error, _UnknownError) else _text(node)
            self.unknown.append(name[:MAX_NAME])
            return None

    def _value(self, node: Node, depth: int) -> Value:
        handler = _HANDLERS.get(node.type)
        if handler is None or depth > _MAX_DEPTH:
            raise _UnknownError(_text(node))
        value = handler(self, node, depth + 1)
        if not isinstance(value, tuple) and not -_MOST < value < _MOST:
            raise _UnknownError(_text(node))
        return value

    def _scalar(self, node: Node | None, depth: int) -> int | float:
        value = None if node is None else self._value(node, depth)
        if value is None or isinstance(value, tuple):
            raise _UnknownError("" if node is None else _text(node))
        return value

    def literal(self, node: Node, _depth: int) -> Value:
        """A whole or a real number."""
        text = _text(node).replace("'", "")
        whole = _NUMBER.fullmatch(text)
        if whole:
            digits = whole[2]
            octal = len(digits) > 1 and digits[0] == "0" and digits.isdecimal()
            value = int(digits, 8) if octal else int(digits, 0)
            return -value if whole[1] == "-" else value
        real = _REAL.fullmatch(text)
        return float(real[1]) if real else _raise(text)

    def named(self, node: Node, depth: int) -> Value:
        """What a name stands for."""
        return self._lookup(_text(node), depth)

    def _lookup(self, name: str, depth: int) -> Value:
        for names in (self.names, self.unit.globals):
            if name in names.changed:
                raise _UnknownError(name)
            parts = [names.values.get(f"{name}.{axis}", []) for axis in _COMPONENTS]
            values = names.values.get(name, [])
            if len(values) > 1 or any(len(part) > 1 for part in parts):
                raise _UnknownError(name)
            if values or any(parts):
                start = self._value(values[0], depth) if values else (1, 1, 1)
                if values and _is_number(values[0]):
                    self.constants.setdefault(name, values[0].start_point[0] + 1)
                if not any(parts):
                    return start
                whole = start if isinstance(start, tuple) else (int(start), 1, 1)
                x, y, z = (
                    int(self._scalar(part[0], depth)) if part else old
                    for part, old in zip(parts, whole, strict=True)
                )
                return x, y, z
            if name in names.declared:
                raise _UnknownError(name)
        return self._macro(name, depth)

    def _macro(self, name: str, depth: int) -> Value:
        """Of several definitions the one that is known, where all that are known agree."""
        found: set[Value] = set()
        for value in self.unit.macros.get(name, ()):
            try:
                found.add(self._value(value, depth))
            except (_UnknownError, ArithmeticError):
                continue
        if len(found) != 1:
            raise _UnknownError(name)
        if _is_number(self.unit.macros[name][0]):
            self.constants.setdefault(name, self.unit.macro_lines[name])
        return found.pop()

    def inside(self, node: Node, depth: int) -> Value:
        """The one expression in brackets."""
        (inner,) = [one for one in node.named_children if one.type != "comment"] or [node]
        return _raise(_text(node)) if inner is node else self._value(inner, depth)

    def several(self, node: Node, depth: int) -> Value:
        """The arguments of a ``dim3``, or of a scalar."""
        return self._dim3([one for one in node.named_children if one.type != "comment"], depth)

    def _dim3(self, nodes: list[Node], depth: int) -> Value:
        if not 1 <= len(nodes) <= 3:
            raise _UnknownError("dim3")
        first = self._value(nodes[0], depth)
        if len(nodes) == 1:
            return first
        rest = [self._scalar(one, depth) for one in nodes[1:]]
        if isinstance(first, tuple):
            raise _UnknownError(_text(nodes[0]))
        x, y, z = (*(int(one) for one in (first, *rest)), 1, 1)[:3]
        return x, y, z

    def parameter(self, node: Node, depth: int) -> Value:
        """``dim3 grid(n);`` reads as a function that takes an n."""
        kind = node.child_by_field_name("type")
        if kind is None or node.child_by_field_name("declarator") is not None:
            raise _UnknownError(_text(node))
        return self._lookup(_text(kind), depth)

    def binary(self, node: Node, depth: int) -> Value:
        """Arithmetic as in C."""
        sign = node.child_by_field_name("operator")
        compute = _OPERATORS.get("" if sign is None else _text(sign))
        left = self._scalar(node.child_by_field_name("left"), depth)
        right = self._scalar(node.child_by_field_name("right"), depth)
        return _raise(_text(node)) if compute is None else compute(left, right)

    def unary(self, node: Node, depth: int) -> Value:
        """A sign."""
        sign, inner = node.child_by_field_name("operator"), node.child_by_field_name("argument")
        if sign is None or _text(sign) not in {"-", "+"}:
            raise _UnknownError(_text(node))
        value = self._scalar(inner, depth)
        return -value if _text(sign) == "-" else value

    def cast(self, node: Node, depth: int) -> Value:
        """A value as a whole or a real number."""
        kind = node.child_by_field_name("type")
        value = self._scalar(node.child_by_field_name("value"), depth)
        return float(value) if kind is not None and _text(kind) in {"float", "double"} else int(value)

    def sizeof(self, node: Node, _depth: int) -> Value:
        """Bytes of a plain type."""
        inner = node.child_by_field_name("type") or node.child_by_field_name("value")
        text = "" if inner is None else _text(inner).strip("() ")
        size = 8 if text.endswith("*") else {**_SIZES, **_WIDE}.get(text)
        return _raise(_text(node)) if size is None else size

    def call(self, node: Node, depth: int) -> Value:
        """``dim3(...)`` and a few functions."""
        function, given = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        name = "" if function is None else _text(function).removeprefix("std::")
        nodes = [] if given is None else [one for one in given.named_children if one.type != "comment"]
        if name == "dim3":
            return self._dim3(nodes, depth)
        compute = _FUNCTIONS.get(name)
        if compute is None or not nodes:
            raise _UnknownError(_text(node))
        return compute(self._scalar(one, depth) for one in nodes)

    def component(self, node: Node, depth: int) -> Value:
        """One size of a ``dim3``."""
        inner, name = node.child_by_field_name("argument"), node.child_by_field_name("field")
        if inner is None or name is None or inner.type != "identifier" or _text(name) not in _COMPONENTS:
            raise _UnknownError(_text(node))
        value = self._lookup(_text(inner), depth)
        return value[_COMPONENTS.index(_text(name))] if isinstance(value, tuple) else _raise(_text(node))


def _is_number(node: Node) -> bool:
    return _NUMBER.fullmatch(_text(node).strip("() ")) is not None


def _raise(text: str) -> Value:
    raise _UnknownError(text)


def _divide(left: float, right: float) -> int | float:
    """As in C: whole numbers are cut towards zero."""
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient
    return left / right


def _shift(left: float, right: float) -> int:
    if not 0 <= right < 62:
        raise _UnknownError("<<")
    return int(left) << int(right)


_OPERATORS: Final[dict[str, Callable[[int | float, int | float], int | float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": lambda left, right: int(math.fmod(int(left), int(right))),
    "<<": _shift,
    ">>": lambda left, right: int(left) >> min(max(int(right), 0), 62),
}
_FUNCTIONS: Final[dict[str, Callable[[Iterable[int | float]], int | float]]] = {
    "max": max,
    "min": min,
    "ceil": lambda values: float(math.ceil(next(iter(values)))),
    "ceilf": lambda values: float(math.ceil(next(iter(values)))),
    "floor": lambda values: float(math.floor(next(iter(values)))),
}
_HANDLERS: Final[dict[str, Callable[[_Reader, Node, int], Value]]] = {
    "number_literal": _Reader.literal,
    "identifier": _Reader.named,
    "parenthesized_expression": _Reader.inside,
    "argument_list": _Reader.several,
    "initializer_list": _Reader.several,
    "parameter_list": _Reader.several,
    "parameter_declaration": _Reader.parameter,
    "binary_expression": _Reader.binary,
    "unary_expression": _Reader.unary,
    "cast_expression": _Reader.cast,
    "sizeof_expression": _Reader.sizeof,
    "call_expression": _Reader.call,
    "field_expression": _Reader.component,
}


def answer(request: bytes) -> bytes:
    """The launches in the texts of one unit (JSON), for a child process."""
    return json.dumps([site.to_json() for site in launch_sites(json.loads(request))]).encode()
