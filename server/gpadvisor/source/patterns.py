# SPDX-License-Identifier: Apache-2.0
"""What a CUDA source says that its machine code does not: literals, divisions, pragmas, launch bounds.

No text is looked at beyond some hundred bytes: expressions nest, and each level contains the ones below it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from tree_sitter import Node, Tree

from gpadvisor.source.divisions import DeclaredNames, is_division
from gpadvisor.source.facts import (
    MAX_NAME,
    MAX_PARAMETERS,
    MAX_POINTERS,
    MAX_SITES,
    MAX_TEXT,
    KernelSite,
    LoopSite,
    Token,
)

_LOOPS: Final = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})
_ARITHMETIC: Final = frozenset({"binary_expression", "assignment_expression"})
_DOUBLE: Final = re.compile(
    rb"^(?:(?:[0-9][0-9']*\.[0-9']*|\.[0-9][0-9']*)(?:[eE][+-]?[0-9]+)?|[0-9][0-9']*[eE][+-]?[0-9]+"
    rb"|0[xX][0-9a-fA-F'.]+[pP][+-]?[0-9]+)[lL]?$"
)
_UNROLL: Final = re.compile(rb"^(?:GCC\s+)?unroll\b\s*(.{0,80})$")
_BOUNDS: Final = re.compile(rb"__launch_bounds__\s*\(([^()]{0,200}(?:\([^()]{0,100}\)[^()]{0,100}){0,4})\)")
_RESTRICT: Final = re.compile(rb"\b(?:__restrict__|__restrict|restrict)\b")
_MAX_VISITED: Final = 2_000_000
_MAX_PARAMETERS: Final = 100
_EXPRESSION_BYTES: Final = 256
_HEAD_BYTES: Final = 4_096


_PARAMETERS = frozenset({"parameter_declaration", "optional_parameter_declaration"})
_POINTERS = frozenset(
    {
        "pointer_declarator",
        "array_declarator",
        "abstract_pointer_declarator",
        "abstract_array_declarator",
    }
)


@dataclass(slots=True)
class Patterns:
    """The sites found so far, in source order."""

    data: bytes
    double_literals: list[Token] = field(default_factory=list)
    division_nodes: list[Node] = field(default_factory=list)
    loops: list[LoopSite] = field(default_factory=list)
    kernels: list[KernelSite] = field(default_factory=list)
    names: DeclaredNames = field(init=False)

    def __post_init__(self) -> None:
        self.names = DeclaredNames(self.data)

    def look_at(self, node: Node, unroll: str | None) -> None:
        """Note what a node is; ``unroll`` is what the pragma right before it says."""
        kind = node.type
        self.names.look_at(node)
        if kind == "number_literal":
            if len(self.double_literals) < MAX_SITES and _DOUBLE.match(self.bytes_of(node)):
                self.double_literals.append(self._token(node))
        elif kind in _ARITHMETIC:
            if len(self.division_nodes) < MAX_SITES and is_division(node):
                self.division_nodes.append(node)
        elif kind in _LOOPS:
            if len(self.loops) < MAX_SITES:
                self.loops.append(LoopSite(line=_line(node), last_line=_last_line(node), unroll=unroll))
        elif kind == "function_definition" and len(self.kernels) < MAX_SITES:
            self._function(node)

    def divisions(self) -> tuple[Token, ...]:
        """Divisions and remainders of what no declaration says to be floating-point numbers or a constant."""
        return tuple(
            self._token(node)
            for node in self.division_nodes
            if not self.names.is_floating(node) and not self.names.is_by_constant(node)
        )

    def _token(self, node: Node) -> Token:
        # One byte more than the limit tells a text that was cut from one that ends there.
        return Token(text=_short(self.bytes_of(node, _EXPRESSION_BYTES + 1)), line=_line(node))

    def _function(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        end = node.end_byte if body is None else body.start_byte
        head = self.data[node.start_byte : min(end, node.start_byte + _HEAD_BYTES)]
        if b"__global__" not in head:
            return
        bounds = _BOUNDS.search(head)
        site = KernelSite(
            line=_line(node),
            last_line=_last_line(node),
            launch_bounds=None if bounds is None else _short(bounds.group(1)),
            unrestricted=self._unrestricted(node),
            name=self._name(node),
            parameters=self._parameters(node),
        )
        self.kernels.append(site)

    def _name(self, function: Node) -> str:
        """The name with the namespaces around it, without template arguments."""
        declarator = _declarator(function)
        node = None if declarator is None else declarator.child_by_field_name("declarator")
        if node is None:
            return ""
        parts = [self.bytes_of(node).partition(b"<")[0]]
        around = function.parent
        while around is not None:
            name = around.child_by_field_name("name") if around.type == "namespace_definition" else None
            parts += [] if name is None else [self.bytes_of(name)]
            around = around.parent
        return b"::".join(reversed(parts)).decode("utf-8", "replace")[:MAX_NAME]

    def _parameters(self, function: Node) -> tuple[str, ...] | None:
        """What ``KernelSite`` says of them; a pack, a macro or a damaged list is not told."""
        declarator = _declarator(function)
        parameters = None if declarator is None else declarator.child_by_field_name("parameters")
        if parameters is None or parameters.has_error or parameters.named_child_count > MAX_PARAMETERS:
            return None
        types = []
        for parameter in parameters.named_children:
            if parameter.type == "comment":
                continue
            kind = parameter.child_by_field_name("type")
            if kind is None or parameter.type not in _PARAMETERS:
                return None
            stars = 0
            inner = parameter.child_by_field_name("declarator")
            while inner is not None:
                stars += inner.type in _POINTERS
                inner = inner.child_by_field_name("declarator")
            base = " ".join(self.bytes_of(kind).partition(b"<")[0].decode("utf-8", "replace").split())
            types.append(f"{base[: MAX_TEXT - stars]}{'*' * stars}"[:MAX_TEXT])
        return () if types == ["void"] else tuple(types)

    def _unrestricted(self, function: Node) -> tuple[str, ...]:
        declarator = _declarator(function)
        parameters = None if declarator is None else declarator.child_by_field_name("parameters")
        names: list[str] = []
        for parameter in [] if parameters is None else parameters.named_children[:_MAX_PARAMETERS]:
            inner = parameter.child_by_field_name("declarator")
            if inner is None or inner.type not in {"pointer_declarator", "array_declarator"}:
                continue
            if _RESTRICT.search(self.bytes_of(parameter, _HEAD_BYTES)):
                continue
            while inner is not None and inner.type != "identifier":
                inner = inner.child_by_field_name("declarator")
            if inner is not None:
                names.append(_short(self.bytes_of(inner)))
        return tuple(names[:MAX_POINTERS])

    def bytes_of(self, node: Node, limit: int = _EXPRESSION_BYTES) -> bytes:
        """The text of a node, as far as it is looked at."""
        return self.data[node.start_byte : min(node.end_byte, node.start_byte + limit)]

    def unroll(self, node: Node) -> str | None:
        """What a pragma says about unrolling the statement after it."""
        if node.type != "preproc_call":
            return None
        argument = node.child_by_field_name("argument")
        match = None if argument is None else _UNROLL.match(self.bytes_of(argument).strip())
        return None if match is None else _short(match.group(1).partition(b"//")[0])


def _declarator(function: Node) -> Node | None:
    """What names a function and its parameters."""
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    return declarator


def find_patterns(data: bytes, tree: Tree) -> Patterns:
    """Walk a tree once, without recursion: code nests as deep as it likes."""
    patterns = Patterns(data)
    stack: list[tuple[Node, str | None]] = [(tree.root_node, None)]
    for _ in range(_MAX_VISITED):
        if not stack:
            break
        node, unroll = stack.pop()
        patterns.look_at(node, unroll)
        below: list[tuple[Node, str | None]] = []
        before: str | None = None
        for child in node.children:
            below.append((child, before))
            # Comments may stand between a pragma and its loop.
            if child.is_named and child.type != "comment":
                before = patterns.unroll(child)
        stack.extend(reversed(below))
    return patterns


def _short(raw: bytes) -> str:
    text = " ".join(raw.decode("utf-8", "replace").split())
    cut = len(raw) > _EXPRESSION_BYTES or len(text) > MAX_TEXT
    return text[: MAX_TEXT - 3] + "..." if cut else text


def _line(node: Node) -> int:
    return node.start_point[0] + 1


def _last_line(node: Node) -> int:
    return node.end_point[0] + 1
