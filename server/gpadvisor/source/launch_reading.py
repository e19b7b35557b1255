# SPDX-License-Identifier: Apache-2.0
"""Launches of kernels with what constants of the source decide: numbers, macros, ``dim3``, ``int`` variables.

A variable counts where it is set once and on every way; anything else is unknown and named. Like all
parsing, this runs in a child process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tree_sitter import Node, Tree

from gpadvisor.sandbox.codec import from_bytes, to_bytes
from gpadvisor.source.facts import MAX_SIZES, MAX_TEXT, LaunchPlace, Token
from gpadvisor.source.launch_sites import (
    MAX_ARGUMENTS,
    MAX_LAUNCHES,
    MAX_NAME,
    MAX_NAMES,
    LaunchArgument,
    LaunchSite,
    LaunchSites,
)
from gpadvisor.source.launch_values import MOST_VALUES, HostTexts, ScopeNames, ValueReader, node_text
from gpadvisor.source.shared_arrays import array_sizes, template_parameters
from gpadvisor.source.syntax import parse_cuda

_MAX_VISITED: Final = 1_000_000
_TYPES: Final = {
    **dict.fromkeys(("int", "unsigned", "unsigned int", "signed", "int32_t", "uint32_t", "uint"), "int"),
    **dict.fromkeys(("long", "unsigned long", "long long", "unsigned long long", "size_t"), "long"),
    **dict.fromkeys(("int64_t", "uint64_t", "long int", "unsigned long int", "ptrdiff_t"), "long"),
    "float": "float",
    "double": "double",
}
_QUALIFIERS: Final = re.compile(r"\b(?:const|volatile|register|struct|__restrict__|__grid_constant__)\b")


def launch_sites(texts: list[tuple[str, str]]) -> tuple[LaunchSite, ...]:
    """The launches in texts that are compiled together, in order."""
    unit = HostTexts()
    for index, (path, text) in enumerate(texts):
        tree = parse_cuda(path, text.encode("utf-8", "replace"))
        if tree is not None:
            _read(unit, index, tree.root_node)
    return tuple(_site(unit, *launch) for launch in unit.launches[:MAX_LAUNCHES])


def launch_places(tree: Tree) -> tuple[LaunchPlace, ...]:
    """The launches of a text, with the constants that their blocks' sizes are made of."""
    unit = HostTexts()
    _read(unit, 0, tree.root_node)
    arrays = array_sizes(unit.kernels)
    places = []
    for _, node, names in unit.launches[:MAX_LAUNCHES]:
        reader = ValueReader(unit, names)
        block = _places(node)[1:2]
        if block:
            reader.sizes(block[0])
        lines = reader.constants | {
            name: line for name, line in _around(node).items() if name in reader.unknown
        }
        sizes = tuple(
            Token(text=name, line=line)
            for name, line in list(lines.items())[:MAX_SIZES]
            if len(name) <= MAX_TEXT
        )
        kernel = _written_name(node).rpartition("::")[2]
        tile = arrays[kernel].at(node) if kernel in arrays else frozenset()
        places.append(
            LaunchPlace(
                kernel=kernel[:MAX_TEXT],
                line=node.start_point[0] + 1,
                sizes=sizes,
                tile=tuple(size.text for size in sizes if size.text in tile),
            )
        )
    return tuple(places)


def _around(node: Node) -> dict[str, int]:
    """The template parameters of the function that a launch is in, which are constants, too."""
    function = node.parent
    while function is not None and function.type != "function_definition":
        function = function.parent
    return {} if function is None else template_parameters(function)


def _read(unit: HostTexts, index: int, root: Node) -> None:
    stack: list[tuple[Node, ScopeNames, bool]] = [(root, unit.globals, True)]
    for _ in range(_MAX_VISITED):
        if not stack:
            return
        node, names, always = stack.pop()
        if node.type == "function_definition":
            names = ScopeNames()
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


def _parameters(unit: HostTexts, names: ScopeNames, node: Node) -> None:
    declarator = _inner(node.child_by_field_name("declarator"), "function_declarator")
    name = None if declarator is None else declarator.child_by_field_name("declarator")
    parameter_list = None if declarator is None else declarator.child_by_field_name("parameters")
    if name is None or parameter_list is None:
        return
    rows = [child for child in parameter_list.named_children if child.type == "parameter_declaration"]
    for row in rows:
        names.declared.update(_declared(row))
    head = node.text or b""
    body = node.child_by_field_name("body")
    if b"__global__" in head[: (body.start_byte - node.start_byte) if body is not None else None]:
        unit.parameters.setdefault(node_text(name), rows)
        unit.kernels.setdefault(node_text(name), []).append(node)


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
            yield node_text(child)
        else:
            yield from _declared(child)


def _macro(unit: HostTexts, node: Node) -> None:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None or value is None or value.text is None:
        return
    text = re.sub(rb"//.*|/\*.*?\*/", b"", value.text)
    tree = parse_cuda("macro.cu", b"auto macro = (" + text + b");")
    inner = None if tree is None else _inner(tree.root_node, "declaration")
    declarator = None if inner is None or inner.has_error else inner.child_by_field_name("declarator")
    body = None if declarator is None else declarator.child_by_field_name("value")
    if body is not None:
        unit.macros.setdefault(node_text(name), []).append(body)
        unit.macro_lines.setdefault(node_text(name), node.start_point[0] + 1)


def _note(names: ScopeNames, node: Node, *, always: bool) -> None:
    """What a node does to names."""
    kind = node.type
    if kind == "declaration":
        names.declared.update(_declared(node))
        for child in node.children_by_field_name("declarator"):
            if child.type in {"init_declarator", "function_declarator"}:
                name = child.child_by_field_name("declarator")
                value = child.child_by_field_name("value") or child.child_by_field_name("parameters")
                if name is not None and value is not None:
                    _set(names, node_text(name), value, always=always)
    elif kind == "assignment_expression":
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is not None and right is not None:
            plain = any(child.type == "=" for child in node.children)
            _set(names, node_text(left), right, always=always and plain)
    elif kind in {"update_expression", "pointer_expression"}:
        inner = node.child_by_field_name("argument")
        if inner is not None and (kind == "update_expression" or node_text(node).startswith("&")):
            names.changed.add(node_text(inner).partition(".")[0])


def _set(names: ScopeNames, name: str, value: Node, *, always: bool) -> None:
    if always:
        names.set_to(name, value)
    else:
        names.changed.add(name.partition(".")[0])


def _launch_syntax(node: Node) -> Node | None:
    return next((child for child in node.children if child.type == "kernel_call_syntax"), None)


def _places(node: Node) -> list[Node]:
    """What stands between ``<<<`` and ``>>>``."""
    syntax = _launch_syntax(node)
    return [] if syntax is None else [child for child in syntax.named_children if child.type != "comment"]


# ---- one launch ----


def _site(unit: HostTexts, file: int, node: Node, names: ScopeNames) -> LaunchSite:
    places = _places(node)
    reader = ValueReader(unit, names)
    grid, block = (reader.sizes(places[index]) if len(places) > index else None for index in (0, 1))
    shared = reader.number(places[2]) if len(places) > 2 else 0
    name = _written_name(node)
    return LaunchSite(
        kernel=name[:MAX_NAME],
        file=file,
        line=node.start_point[0] + 1,
        grid=grid,
        block=block,
        dynamic_shared_bytes=int(shared) if shared is not None and 0 <= shared < MOST_VALUES else None,
        arguments=_arguments(unit, reader, name.rpartition("::")[2], node.child_by_field_name("arguments")),
        unknown=tuple(dict.fromkeys(reader.unknown))[:MAX_NAMES],
    )


def _written_name(node: Node) -> str:
    """Of the kernel, with its namespaces as far as they are written."""
    function = node.child_by_field_name("function")
    return re.sub(r"<.*|[()\s]", "", "" if function is None else node_text(function)).removeprefix("::")


def _arguments(
    unit: HostTexts, reader: ValueReader, kernel: str, node: Node | None
) -> tuple[LaunchArgument, ...]:
    values = [] if node is None else [child for child in node.named_children if child.type != "comment"]
    kinds = [_kind(row) for row in unit.parameters.get(kernel, ())]
    if len(kinds) != len(values) or len(kinds) > MAX_ARGUMENTS:
        return ()
    arguments = []
    for kind, value in zip(kinds, values, strict=True):
        if kind is None:
            return ()
        number = None if kind == "pointer" else reader.number(value)
        if number is not None and kind in {"int", "long"}:
            number = int(number) if abs(number) < MOST_VALUES else None
        arguments.append(LaunchArgument(kind=kind, value=number))
    return tuple(arguments)


def _kind(parameter: Node) -> str | None:
    declarator, base = parameter.child_by_field_name("declarator"), parameter.child_by_field_name("type")
    while declarator is not None and declarator.type != "identifier":
        if declarator.type in {"pointer_declarator", "array_declarator", "abstract_pointer_declarator"}:
            return "pointer"
        declarator = declarator.child_by_field_name("declarator") or next(
            iter(declarator.named_children), None
        )
    text = "" if base is None else node_text(base)
    return _TYPES.get(" ".join(_QUALIFIERS.sub(" ", text).split()))


def answer(request: bytes) -> bytes:
    """The launches in the texts of one unit (JSON), for a child process."""
    return to_bytes(LaunchSites(sites=launch_sites(from_bytes(request, list[tuple[str, str]]))))
