# SPDX-License-Identifier: Apache-2.0
"""Which divisions of a source are of integers, as far as the types that the source names tell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tree_sitter import Node

_OPERATORS: Final = frozenset({"/", "%", "/=", "%="})
_FLOATING: Final = re.compile(rb"\b(?:float|double|half2?|__half2?|(?:__)?nv_bfloat16\d?)[1-4]?\b")
_FLOATING_LITERAL: Final = re.compile(rb"^(?!0[xX])[0-9']*[.eE]|^0[xX].*[pP]")
_NUMBER: Final = re.compile(rb"^[\s(]*[0-9][0-9a-fA-FxXuUlL\s+*/%()<<-]*(?://.*|/\*.*)?$")
"""What whole numbers alone make up."""
_MATH: Final = re.compile(
    rb"^(?:std::|::)?(?:__)?f?(?:sqrt|rsqrt|cbrt|exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|sin|cos|tan|sinpi|cospi"
    rb"|asin|acos|atan|atan2|sinh|cosh|tanh|hypot|floor|ceil|round|rint|trunc|fabs|fma|fmod|erf|erfc|tgamma|lgamma)"
    rb"(?:f|l|_r[nzud])?$"
)
_DECLARATIONS: Final = frozenset(
    {"declaration", "parameter_declaration", "optional_parameter_declaration", "field_declaration"}
)
_MAX_PARTS: Final = 64
_MAX_DEPTH: Final = 24
_NAME_BYTES: Final = 128


@dataclass(slots=True)
class DeclaredNames:
    """The names that a source declares: as floating-point numbers or arrays of them, and as anything else."""

    data: bytes
    floating: set[tuple[str, bytes]] = field(
        default_factory=set
    )  # kind of name (of a variable, a member), text
    other: set[tuple[str, bytes]] = field(default_factory=set)
    constant: set[bytes] = field(default_factory=set)  # macros that are a number

    def look_at(self, node: Node) -> None:
        """Note what a declaration or a macro declares."""
        if node.type == "preproc_def":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is not None and value is not None and _NUMBER.match(self._text(value)):
                self.constant.add(self._text(name))
        kind = node.child_by_field_name("type") if node.type in _DECLARATIONS else None
        if kind is None:
            return
        names = self.floating if _FLOATING.search(self._text(kind)) else self.other
        names.update(
            (name.type, self._text(name))
            for name in map(_declared, node.children_by_field_name("declarator"))
            if name is not None
        )

    def is_floating(self, expression: Node) -> bool:
        """Whether an expression is of a floating-point type, by its first parts."""
        parts = [expression]
        for _ in range(_MAX_PARTS):
            if not parts:
                break
            node = parts.pop()
            if self._is_floating_part(node):
                return True
            parts.extend(_operands(node))
        return False

    def is_by_constant(self, division: Node) -> bool:
        """Whether the divisor is a macro that is a number, which leaves no division."""
        right = division.child_by_field_name("right")
        return right is not None and right.type == "identifier" and self._text(right) in self.constant

    def _is_floating_part(self, node: Node) -> bool:
        match node.type:
            case "number_literal":
                return _FLOATING_LITERAL.search(self._text(node)) is not None
            case "identifier" | "field_identifier":
                name = node.type, self._text(node)
                return name in self.floating and name not in self.other
            case "call_expression":
                return self._is_floating_call(node)
            case "cast_expression":
                cast = node.child_by_field_name("type")
                return cast is not None and _FLOATING.search(self._text(cast)) is not None
        return False

    def _is_floating_call(self, node: Node) -> bool:
        function = node.child_by_field_name("function")
        name = b"" if function is None else self._text(function)
        return _MATH.match(name) is not None or _FLOATING.search(name.partition(b"<")[2] or name) is not None

    def _text(self, node: Node) -> bytes:
        return self.data[node.start_byte : min(node.end_byte, node.start_byte + _NAME_BYTES)]


def is_division(node: Node) -> bool:
    """Whether an expression divides, or takes a remainder, by something that is not a literal."""
    operator, right = node.child_by_field_name("operator"), node.child_by_field_name("right")
    return (
        operator is not None
        and right is not None
        and operator.type in _OPERATORS
        and right.type != "number_literal"
    )


def _operands(node: Node) -> Iterator[Node]:
    """The parts whose type is the type of the whole."""
    match node.type:
        case "binary_expression" | "assignment_expression":
            parts = [node.child_by_field_name(name) for name in ("left", "right")]
        case "subscript_expression" | "unary_expression" | "pointer_expression" | "field_expression":
            parts = [node.child_by_field_name(name) for name in ("argument", "field")]
        case "conditional_expression":
            parts = [node.child_by_field_name(name) for name in ("consequence", "alternative")]
        case "parenthesized_expression":
            parts = list(node.named_children)
        case _:
            parts = []
    return (part for part in parts if part is not None)


def _declared(node: Node) -> Node | None:
    """The name inside a declarator: of a pointer, an array, a reference, with what it begins with."""
    inner: Node | None = node
    for _ in range(_MAX_DEPTH):
        if inner is None or inner.type in {"identifier", "field_identifier"}:
            return inner
        inner = inner.child_by_field_name("declarator") or next(
            (part for part in inner.named_children if part.type != "type_qualifier"), None
        )
    return None
