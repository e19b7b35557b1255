# SPDX-License-Identifier: Apache-2.0
"""Numbers that a host source writes: constants, sums and sizes of types, as far as one value is possible."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from tree_sitter import Node

from gpadvisor.source.launch_sites import (
    MAX_NAME,
)

Value: TypeAlias = int | float | tuple[int, int, int]

_MAX_DEPTH: Final = 40
MOST_VALUES: Final = 1 << 62
_SIZES: Final = {"char": 1, "bool": 1, "short": 2, "int": 4, "float": 4, "unsigned": 4, "unsigned int": 4}
_WIDE: Final = {"double": 8, "long": 8, "size_t": 8, "long long": 8}
_NUMBER: Final = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]{0,3}")
_REAL: Final = re.compile(r"([-+]?[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?)[fF]?")
_COMPONENTS: Final = ("x", "y", "z")


class _UnknownError(Exception):
    """A value hangs on something that the source does not decide."""


@dataclass(eq=False)
class ScopeNames:
    """What one function, or a file outside of its functions, does to names."""

    declared: set[str] = field(default_factory=set)
    values: dict[str, list[Node]] = field(default_factory=dict)  # by name, or name.x: what it is set to
    changed: set[str] = field(default_factory=set)  # in a way that is not followed

    def set_to(self, name: str, value: Node) -> None:
        """Note that a name is set to a value."""
        self.values.setdefault(name, []).append(value)


@dataclass(eq=False)
class HostTexts:
    """All texts of a translation unit."""

    globals: ScopeNames = field(default_factory=ScopeNames)
    macros: dict[str, list[Node]] = field(default_factory=dict)
    macro_lines: dict[str, int] = field(default_factory=dict)  # of the first definition
    parameters: dict[str, list[Node]] = field(default_factory=dict)  # of kernels, by name
    kernels: dict[str, list[Node]] = field(default_factory=dict)  # their definitions
    launches: list[tuple[int, Node, ScopeNames]] = field(default_factory=list)


def node_text(node: Node) -> str:
    """The text of a node."""
    return (node.text or b"").decode("utf-8", "replace")


@dataclass(eq=False)
class ValueReader:
    """Evaluates expressions at one launch, and keeps the names that stand in the way."""

    unit: HostTexts
    names: ScopeNames
    unknown: list[str] = field(default_factory=list)
    constants: dict[str, int] = field(default_factory=dict)  # names that stand for a number, with their line

    def sizes(self, node: Node) -> tuple[int, int, int] | None:
        """Three sizes from an expression or a ``dim3``."""
        value = self._try(node)
        if isinstance(value, tuple):
            return value if all(0 < extent < 1 << 32 for extent in value) else None
        return None if value is None or not 0 < value < 1 << 32 else (int(value), 1, 1)

    def number(self, node: Node) -> int | float | None:
        """A number, None where it is unknown."""
        value = self._try(node)
        return None if isinstance(value, tuple) else value

    def _try(self, node: Node) -> Value | None:
        try:
            return self._value(node, 0)
        except (_UnknownError, ArithmeticError, ValueError) as error:
            name = str(error) if isinstance(error, _UnknownError) else node_text(node)
            self.unknown.append(name[:MAX_NAME])
            return None

    def _value(self, node: Node, depth: int) -> Value:
        handler = _HANDLERS.get(node.type)
        if handler is None or depth > _MAX_DEPTH:
            raise _UnknownError(node_text(node))
        value = handler(self, node, depth + 1)
        if not isinstance(value, tuple) and not -MOST_VALUES < value < MOST_VALUES:
            raise _UnknownError(node_text(node))
        return value

    def _scalar(self, node: Node | None, depth: int) -> int | float:
        value = None if node is None else self._value(node, depth)
        if value is None or isinstance(value, tuple):
            raise _UnknownError("" if node is None else node_text(node))
        return value

    def literal(self, node: Node, _depth: int) -> Value:
        """A whole or a real number."""
        text = node_text(node).replace("'", "")
        match = _NUMBER.fullmatch(text)
        if match:
            digits = match[2]
            octal = len(digits) > 1 and digits[0] == "0" and digits.isdecimal()
            value = int(digits, 8) if octal else int(digits, 0)
            return -value if match[1] == "-" else value
        real = _REAL.fullmatch(text)
        return float(real[1]) if real else _raise(text)

    def named(self, node: Node, depth: int) -> Value:
        """What a name stands for."""
        return self._lookup(node_text(node), depth)

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
                extents = start if isinstance(start, tuple) else (int(start), 1, 1)
                x, y, z = (
                    int(self._scalar(part[0], depth)) if part else old
                    for part, old in zip(parts, extents, strict=True)
                )
                return x, y, z
            if name in names.declared:
                raise _UnknownError(name)
        return self._macro(name, depth)

    def _macro(self, name: str, depth: int) -> Value:
        """Of several definitions the one that is known, where all that are known agree."""
        candidates: set[Value] = set()
        for value in self.unit.macros.get(name, ()):
            try:
                candidates.add(self._value(value, depth))
            except (_UnknownError, ArithmeticError):
                continue
        if len(candidates) != 1:
            raise _UnknownError(name)
        if _is_number(self.unit.macros[name][0]):
            self.constants.setdefault(name, self.unit.macro_lines[name])
        return candidates.pop()

    def inside(self, node: Node, depth: int) -> Value:
        """The one expression in brackets."""
        (inner,) = [child for child in node.named_children if child.type != "comment"] or [node]
        return _raise(node_text(node)) if inner is node else self._value(inner, depth)

    def several(self, node: Node, depth: int) -> Value:
        """The arguments of a ``dim3``, or of a scalar."""
        return self._dim3([child for child in node.named_children if child.type != "comment"], depth)

    def _dim3(self, nodes: list[Node], depth: int) -> Value:
        if not 1 <= len(nodes) <= 3:
            raise _UnknownError("dim3")
        first = self._value(nodes[0], depth)
        if len(nodes) == 1:
            return first
        further = [self._scalar(node, depth) for node in nodes[1:]]
        if isinstance(first, tuple):
            raise _UnknownError(node_text(nodes[0]))
        x, y, z = (*(int(extent) for extent in (first, *further)), 1, 1)[:3]
        return x, y, z

    def parameter(self, node: Node, depth: int) -> Value:
        """``dim3 grid(n);`` reads as a function that takes an n."""
        kind = node.child_by_field_name("type")
        if kind is None or node.child_by_field_name("declarator") is not None:
            raise _UnknownError(node_text(node))
        return self._lookup(node_text(kind), depth)

    def binary(self, node: Node, depth: int) -> Value:
        """Arithmetic as in C."""
        sign = node.child_by_field_name("operator")
        compute = _OPERATORS.get("" if sign is None else node_text(sign))
        left = self._scalar(node.child_by_field_name("left"), depth)
        right = self._scalar(node.child_by_field_name("right"), depth)
        return _raise(node_text(node)) if compute is None else compute(left, right)

    def unary(self, node: Node, depth: int) -> Value:
        """A sign."""
        sign, inner = node.child_by_field_name("operator"), node.child_by_field_name("argument")
        if sign is None or node_text(sign) not in {"-", "+"}:
            raise _UnknownError(node_text(node))
        value = self._scalar(inner, depth)
        return -value if node_text(sign) == "-" else value

    def cast(self, node: Node, depth: int) -> Value:
        """A value as a whole or a real number."""
        kind = node.child_by_field_name("type")
        value = self._scalar(node.child_by_field_name("value"), depth)
        return float(value) if kind is not None and node_text(kind) in {"float", "double"} else int(value)

    def assigned(self, node: Node, depth: int) -> Value:
        """What ``a = b = 5`` sets both to."""
        if not any(child.type == "=" for child in node.children):
            raise _UnknownError(node_text(node))
        return self._scalar(node.child_by_field_name("right"), depth)

    def sizeof(self, node: Node, _depth: int) -> Value:
        """Bytes of a plain type."""
        inner = node.child_by_field_name("type") or node.child_by_field_name("value")
        text = "" if inner is None else node_text(inner).strip("() ")
        size = 8 if text.endswith("*") else {**_SIZES, **_WIDE}.get(text)
        return _raise(node_text(node)) if size is None else size

    def call(self, node: Node, depth: int) -> Value:
        """``dim3(...)`` and a few functions."""
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        name = "" if function is None else node_text(function).removeprefix("std::")
        nodes = (
            []
            if arguments is None
            else [child for child in arguments.named_children if child.type != "comment"]
        )
        if name == "dim3":
            return self._dim3(nodes, depth)
        compute = _FUNCTIONS.get(name)
        if compute is None or not nodes:
            raise _UnknownError(node_text(node))
        return compute(self._scalar(argument, depth) for argument in nodes)

    def component(self, node: Node, depth: int) -> Value:
        """One size of a ``dim3``."""
        inner, name = node.child_by_field_name("argument"), node.child_by_field_name("field")
        if inner is None or name is None or inner.type != "identifier" or node_text(name) not in _COMPONENTS:
            raise _UnknownError(node_text(node))
        value = self._lookup(node_text(inner), depth)
        return (
            value[_COMPONENTS.index(node_text(name))] if isinstance(value, tuple) else _raise(node_text(node))
        )


def _is_number(node: Node) -> bool:
    return _NUMBER.fullmatch(node_text(node).strip("() ")) is not None


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
_HANDLERS: Final[dict[str, Callable[[ValueReader, Node, int], Value]]] = {
    "number_literal": ValueReader.literal,
    "identifier": ValueReader.named,
    "parenthesized_expression": ValueReader.inside,
    "argument_list": ValueReader.several,
    "initializer_list": ValueReader.several,
    "parameter_list": ValueReader.several,
    "parameter_declaration": ValueReader.parameter,
    "binary_expression": ValueReader.binary,
    "unary_expression": ValueReader.unary,
    "cast_expression": ValueReader.cast,
    "sizeof_expression": ValueReader.sizeof,
    "assignment_expression": ValueReader.assigned,
    "call_expression": ValueReader.call,
    "field_expression": ValueReader.component,
}
