# SPDX-License-Identifier: Apache-2.0
"""Constants that size the arrays of a kernel in shared memory, by the names that its launch has for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from gpadvisor.source.launch_values import node_text

_MAX_VISITED: Final = 100_000


@dataclass(frozen=True, slots=True)
class ArraySizes:
    """The names in the sizes of a kernel's arrays."""

    parameters: tuple[str, ...]  # of its template
    names: frozenset[str]

    def at(self, launch: Node) -> frozenset[str]:
        """The names with what a launch gives for template parameters."""
        called = launch.child_by_field_name("function")
        arguments = None if called is None else called.child_by_field_name("arguments")
        argument_texts = [] if arguments is None else [node_text(node) for node in arguments.named_children]
        arguments_by_name = dict(zip(self.parameters, argument_texts, strict=False))
        return frozenset(arguments_by_name.get(name, name) for name in self.names)


def array_sizes(kernels: Mapping[str, Sequence[Node]]) -> dict[str, ArraySizes]:
    """By name those of kernels that are defined once."""
    return {
        name: ArraySizes(tuple(template_parameters(nodes[0])), frozenset(_sizes(nodes[0])))
        for name, nodes in kernels.items()
        if len(nodes) == 1
    }


def template_parameters(function: Node) -> dict[str, int]:
    """The names of the parameters of a function's template, in order, with their lines."""
    around = function.parent
    if around is None or around.type != "template_declaration":
        return {}
    parameters = around.child_by_field_name("parameters")
    rows = [] if parameters is None else parameters.named_children
    return {node_text(row.child_by_field_name("declarator") or row): row.start_point[0] + 1 for row in rows}


def _sizes(kernel: Node) -> Iterator[str]:
    """The names between the brackets of each array declared __shared__."""
    for node in _below(kernel):
        if node.type == "declaration" and any(map(_is_shared, node.children)):
            for inner in _below(node):
                size = inner.child_by_field_name("size") if inner.type == "array_declarator" else None
                if size is not None:
                    yield from (node_text(name) for name in _below(size) if name.type == "identifier")


def _is_shared(node: Node) -> bool:
    return node.type == "type_qualifier" and node_text(node) == "__shared__"


def _below(node: Node) -> Iterator[Node]:
    """A node and all nodes inside of it."""
    stack = [node]
    for _ in range(_MAX_VISITED):
        if not stack:
            return
        inner = stack.pop()
        yield inner
        stack.extend(inner.children)
