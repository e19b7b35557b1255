# SPDX-License-Identifier: Apache-2.0
"""Which arithmetic type an expression has, as far as one file shows: float, double, integer, or not known.

Everything that another file decides (a class, a macro, a template argument) is unknown, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from tree_sitter import Node

from gpadvisor.source.edits.nodes import arguments_of, called_name, operands_of, operator_of, text_of, walk

DOUBLE_LITERAL: Final = re.compile(
    rb"[-+]?(?:(?:[0-9][0-9']*\.[0-9']*|\.[0-9][0-9']*)(?:[eE][+-]?[0-9]+)?|[0-9][0-9']*[eE][+-]?[0-9]+"
    rb"|0[xX][0-9a-fA-F']*\.?[0-9a-fA-F']*[pP][+-]?[0-9]+)"
)
_INTEGER_LITERAL: Final = re.compile(rb"[-+]?(?:0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)[uUlLzZ]{0,3}")
_FLOAT_LITERAL: Final = re.compile(rb"[0-9a-fA-FxX'.+pP-]+[fF]")
_MACRO_NAME: Final = re.compile(r"[A-Z_][A-Z0-9_]+")
_MACROS_OF_LIBRARIES: Final = frozenset({"assert", "static_assert", "offsetof", "va_arg", "errno"})
_MAX_DEPTH: Final = 60

_VECTORS: Final = {f"{base}{n}": base for base in ("float", "double", "int", "uint") for n in (1, 2, 3, 4)}
_OVERLOADED: Final = frozenset(
    {
        *("abs", "fabs", "sqrt", "rsqrt", "cbrt", "exp", "exp2", "exp10", "expm1", "log", "log2", "log10"),
        *("log1p", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh"),
        *("acosh", "atanh", "pow", "hypot", "fmod", "remainder", "floor", "ceil", "round", "trunc", "rint"),
        *("fmin", "fmax", "min", "max", "fma", "erf", "erfc", "tgamma", "lgamma", "copysign", "fdim"),
    }
)
"""Functions whose result has the type of their arguments."""
_FLOAT_FUNCTIONS: Final = frozenset(
    {
        *(f"{name}f" for name in _OVERLOADED if name not in {"abs", "min", "max"}),
        *("__expf", "__exp10f", "__logf", "__log2f", "__log10f", "__sinf", "__cosf", "__tanf", "__powf"),
        *("__fdividef", "__frcp_rn", "__frsqrt_rn", "__fsqrt_rn", "__fmaf_rn", "__fadd_rn", "__fmul_rn"),
        *("__fdiv_rn", "__saturatef", "__int2float_rn", "__uint2float_rn", "__half2float", "__int_as_float"),
        *("__double2float_rn", "__low2float", "__high2float", "__bfloat162float", "__uint_as_float"),
    }
)
_SHUFFLES: Final = frozenset({"__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync"})
_LOADS: Final = frozenset({"__ldg", "__ldcg", "__ldca", "__ldcs"})
PURE_FUNCTIONS: Final = _OVERLOADED | _FLOAT_FUNCTIONS | _SHUFFLES
"""Functions that take their arguments by value."""
_ARITHMETIC: Final = frozenset({"+", "-", "*", "/"})


class Type(Enum):
    """An arithmetic type."""

    FLOAT = "float"
    DOUBLE = "double"
    INTEGER = "integer"
    LITERAL = "literal"  # double literals only: a suffix makes it float
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Named:
    """What a name is declared as: a type's name and how many pointers or dimensions are around it."""

    base: str
    depth: int
    reference: bool = False


_UNKNOWN: Final = Named("", 0)


@dataclass(slots=True)
class FileTypes:
    """What the declarations of a file outside its functions say."""

    macros: dict[str, bytes | None] = field(default_factory=dict)  # None for those with parameters
    aliases: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Named] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)  # type of the result
    names: dict[str, Named] = field(default_factory=dict)

    def is_macro(self, name: str) -> bool:
        """Whether a name is a macro, or looks like one of another file."""
        if name in self.macros or name in _MACROS_OF_LIBRARIES:
            return True
        return name not in self.names and _MACRO_NAME.fullmatch(name) is not None

    def resolve(self, base: str) -> str:
        """A type's name without the aliases of this file."""
        for _ in range(8):
            if base not in self.aliases:
                return base
            base = self.aliases[base]
        return ""


@dataclass(slots=True)
class NameScope:
    """Names inside one function; one that is declared as two things is unknown."""

    file: FileTypes
    data: bytes
    names: dict[str, Named]

    def named(self, node: Node) -> Named:
        """What an identifier is declared as."""
        name = text_of(self.data, node)
        return self.names.get(name) or self.file.names.get(name) or _UNKNOWN

    def scalar(self, variable: Named) -> Type:
        """The type of a value that is declared so."""
        if variable.depth:
            return Type.UNKNOWN
        return _SCALARS.get(self.file.resolve(variable.base), Type.UNKNOWN)


_SCALARS: Final = {
    "float": Type.FLOAT,
    "double": Type.DOUBLE,
    **dict.fromkeys(
        (
            *("int", "unsigned", "unsigned int", "char", "signed char", "unsigned char", "short", "bool"),
            *("unsigned short", "long", "unsigned long", "long long", "unsigned long long", "size_t"),
            *("int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t"),
            *("uint", "std::size_t", "ptrdiff_t"),
        ),
        Type.INTEGER,
    ),
}
INTEGER_TYPES: Final = frozenset(name for name, kind in _SCALARS.items() if kind is Type.INTEGER)


def declared(data: bytes, node: Node) -> list[tuple[str, Named]]:
    """Names that a declaration or a parameter introduces."""
    kind = node.child_by_field_name("type")
    base = "" if kind is None else " ".join(text_of(data, kind).split())
    result = []
    for declarator in node.children_by_field_name("declarator"):
        name, depth, plain, reference = _declarator(declarator)
        if name is not None:
            result.append((text_of(data, name), Named(base if plain else "", depth, reference)))
    return result


def _declarator(node: Node) -> tuple[Node | None, int, bool, bool]:
    """The name in a declarator, its pointers and dimensions, whether that is all, whether it refers."""
    depth, plain, reference = 0, True, False
    current: Node | None = node
    for _ in range(_MAX_DEPTH):
        if current is None:
            break
        if current.type in {"identifier", "field_identifier"}:
            return current, depth, plain, reference
        if current.type == "reference_declarator":
            reference = True
            current = next(iter(current.named_children), None)
            continue
        if current.type in {"pointer_declarator", "array_declarator"}:
            depth += 1
        elif current.type != "init_declarator":
            plain = False
        current = current.child_by_field_name("declarator")
    return None, 0, False, False


def file_types(data: bytes, outside: Iterable[Node]) -> FileTypes:
    """The types of a file from its nodes outside of function bodies."""
    types = FileTypes()
    for node in outside:
        if node.type in {"preproc_function_def", "preproc_def"}:
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is not None:
                plain = node.type == "preproc_def" and value is not None
                types.macros[text_of(data, name)] = (
                    data[value.start_byte : value.end_byte][:80].strip() if plain and value else None
                )
        elif node.type in {"type_definition", "alias_declaration"}:
            _alias(data, node, types)
        elif node.type == "field_declaration":
            for name_text, variable in declared(data, node):
                _note(types.fields, name_text, variable)
        elif node.type == "declaration":
            for name_text, variable in declared(data, node):
                _note(types.names, name_text, variable)
        elif node.type == "function_definition":
            _function(data, node, types)
    return types


def _note(table: dict[str, Named], name: str, variable: Named) -> None:
    table[name] = variable if table.get(name, variable) == variable else _UNKNOWN


def _alias(data: bytes, node: Node, types: FileTypes) -> None:
    kind = node.child_by_field_name("type")
    name = node.child_by_field_name("name") or node.child_by_field_name("declarator")
    if kind is None or name is None or name.type != "type_identifier":
        return
    old, new = types.aliases.get(text_of(data, name)), " ".join(text_of(data, kind).split())
    types.aliases[text_of(data, name)] = new if old in (None, new) else ""


def _function(data: bytes, node: Node, types: FileTypes) -> None:
    kind, declarator = node.child_by_field_name("type"), node.child_by_field_name("declarator")
    if kind is None or declarator is None or declarator.type != "function_declarator":
        return
    name = declarator.child_by_field_name("declarator")
    if name is not None and name.type == "identifier":
        text, result = text_of(data, name), " ".join(text_of(data, kind).split())
        types.functions[text] = result if types.functions.get(text, result) == result else ""


def function_scope(data: bytes, function: Node, types: FileTypes) -> NameScope:
    """The names of one function, parameters and all blocks together."""
    names: dict[str, Named] = {}
    for node in walk(function):
        if node.type in {"declaration", "parameter_declaration", "for_range_loop"}:
            for name, variable in declared(data, node):
                _note(names, name, variable)
    for parameter in _template_names(data, function):
        names[parameter] = _UNKNOWN
    return NameScope(types, data, names)


def _template_names(data: bytes, function: Node) -> Iterator[str]:
    head = None if function.parent is None else function.parent.child_by_field_name("parameters")
    if head is not None and head.type == "template_parameter_list":
        for node in walk(head, 1_000):
            if node.type in {"identifier", "type_identifier"}:
                yield text_of(data, node)


def combined(types: Iterable[Type]) -> Type:
    """The type of an arithmetic expression of operands; literals give way to float."""
    kinds = set(types)
    for kind in (Type.DOUBLE, Type.UNKNOWN, Type.FLOAT, Type.LITERAL, Type.INTEGER):
        if kind in kinds:
            return kind
    return Type.UNKNOWN


def type_of(scope: NameScope, node: Node | None, depth: int = 0) -> Type:
    """The type of an expression."""
    if node is None or depth > _MAX_DEPTH:
        return Type.UNKNOWN
    if node.type == "number_literal":
        return literal_type(scope.data[node.start_byte : node.end_byte])
    if node.type == "identifier":
        return _identifier(scope, node)
    if node.type in {"subscript_expression", "pointer_expression"}:
        return scope.scalar(_element(scope, node, depth))
    if node.type == "field_expression":
        return _field(scope, node)
    if node.type == "cast_expression":
        return _descriptor(scope, node.child_by_field_name("type"))
    if node.type == "call_expression":
        return _call(scope, node, depth)
    if node.type == "assignment_expression":
        return type_of(scope, node.child_by_field_name("left"), depth + 1)
    return combined_of(scope, node, depth)


def combined_of(scope: NameScope, node: Node, depth: int = 0) -> Type:
    """The type of an expression that only combines others."""
    if node.type == "binary_expression":
        operator = operator_of(node)
        if operator not in _ARITHMETIC:
            return Type.INTEGER  # comparisons, logic, shifts and remainders
    operands = operands_of(node)
    if operands is None:
        return Type.UNKNOWN
    return combined(type_of(scope, operand, depth + 1) for operand in operands)


def literal_type(text: bytes) -> Type:
    """The type of a number."""
    if DOUBLE_LITERAL.fullmatch(text):
        return Type.LITERAL
    if _INTEGER_LITERAL.fullmatch(text):
        return Type.INTEGER
    return Type.FLOAT if _FLOAT_LITERAL.fullmatch(text) else Type.UNKNOWN


def overloaded_call(scope: NameScope, node: Node) -> bool:
    """Whether a call's result has the type of its arguments."""
    return node.type == "call_expression" and called_name(scope.data, node) in _OVERLOADED


def _result(name: str, arguments: list[Type]) -> Type:
    """The type that an overloaded function gives back; an integer among the arguments makes most double."""
    if Type.INTEGER in arguments and name not in {"min", "max", "abs"}:
        return Type.UNKNOWN
    return combined(arguments)


def _identifier(scope: NameScope, node: Node) -> Type:
    name = text_of(scope.data, node)
    if name in scope.names:
        return scope.scalar(scope.names[name])
    value = scope.file.macros.get(name)
    if value is not None:
        kind = literal_type(value)
        return Type.DOUBLE if kind is Type.LITERAL else kind  # no suffix can be put there
    return scope.scalar(scope.named(node))


def _element(scope: NameScope, node: Node | None, depth: int) -> Named:
    """What a subscript or a dereference yields."""
    if node is None or depth > _MAX_DEPTH:
        return _UNKNOWN
    if node.type == "identifier":
        return scope.named(node)
    if node.type == "parenthesized_expression":
        return _element(scope, next(iter(operands_of(node) or ()), None), depth + 1)
    if node.type == "binary_expression" and operator_of(node) in {"+", "-"}:
        return _element(scope, node.child_by_field_name("left"), depth + 1)
    if node.type == "field_expression":
        name = node.child_by_field_name("field")
        return _UNKNOWN if name is None else scope.file.fields.get(text_of(scope.data, name), _UNKNOWN)
    if node.type not in {"subscript_expression", "pointer_expression"}:
        return _UNKNOWN
    inner = _element(scope, node.child_by_field_name("argument"), depth + 1)
    if node.type == "pointer_expression" and operator_of(node) == "&":
        return Named(inner.base, inner.depth + 1)
    return Named(inner.base, inner.depth - 1) if inner.depth else _UNKNOWN


def _field(scope: NameScope, node: Node) -> Type:
    name, argument = node.child_by_field_name("field"), node.child_by_field_name("argument")
    if name is None or argument is None:
        return Type.UNKNOWN
    owner = scope.file.resolve(_element(scope, argument, 0).base)
    if owner in _VECTORS:
        return _SCALARS.get(_VECTORS[owner], Type.UNKNOWN)
    return scope.scalar(scope.file.fields.get(text_of(scope.data, name), _UNKNOWN))


def _descriptor(scope: NameScope, node: Node | None) -> Type:
    if node is None:
        return Type.UNKNOWN
    return scope.scalar(Named(" ".join(text_of(scope.data, node).split()), 0))


def _call(scope: NameScope, node: Node, depth: int) -> Type:
    function = node.child_by_field_name("function")
    arguments = arguments_of(node)
    if function is not None and function.type == "primitive_type":
        return scope.scalar(Named(text_of(scope.data, function), 0))
    name = called_name(scope.data, node)
    if scope.file.is_macro(name):
        return Type.UNKNOWN
    if name == "static_cast" and function is not None:
        argument_list = function.child_by_field_name("arguments")
        return _descriptor(
            scope, None if argument_list is None else next(iter(argument_list.named_children), None)
        )
    if name in _OVERLOADED:
        return _result(name, [type_of(scope, argument, depth + 1) for argument in arguments])
    if name in _SHUFFLES and len(arguments) > 1:
        return type_of(scope, arguments[1], depth + 1)
    if name in _LOADS and arguments:
        pointed = _element(scope, arguments[0], depth)
        return scope.scalar(Named(pointed.base, pointed.depth - 1)) if pointed.depth else Type.UNKNOWN
    if name in _FLOAT_FUNCTIONS:
        return Type.FLOAT
    return scope.scalar(Named(scope.file.functions.get(name, ""), 0))
