# SPDX-License-Identifier: Apache-2.0
"""Edits of function heads: pointers that do not overlap, launch bounds, inlining; and of block sizes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from tree_sitter import Node

from gpadvisor.model.machine import BLOCK_LIMITS
from gpadvisor.source.edits import MAX_NAMES, NUMBER, EditSite, Replacement, SiteKind
from gpadvisor.source.edits.nodes import arguments_of, called_name, operator_of, text_of
from gpadvisor.source.edits.text import ParsedFile, ParsedPart
from gpadvisor.source.edits.types import INTEGER_TYPES, PURE_FUNCTIONS

_RESTRICT: Final = ("__restrict__", "__restrict", "restrict")
_INLINE: Final = re.compile(rb"noinline|always_inline|__inline_hint__|__forceinline\b")
_NUMBER: Final = re.compile(r"[0-9]{1,9}[uU]?")
_LOADS: Final = frozenset({"__ldg", "__ldcg", "__ldca", "__ldcs", "__ldlu", "__ldcv"})
_MAX_LINES: Final = 1_000
_SMALL: Final = 16


def _site(part: ParsedPart, kind: SiteKind, replacements: list[Replacement], **more: object) -> EditSite:
    values: dict[str, object] = {
        "first_line": part.first_line,
        "last_line": part.last_line,
        "more_lines": (),
        "name": part.name,
        "words": (),
        "more_words": (),
        "number": None,
        "limit": None,
        "sure": True,
        "exact": True,
        **more,
    }
    return EditSite(kind=kind, replacements=tuple(replacements), **values)  # type: ignore[arg-type] # fields by name


def restricts(part: ParsedPart) -> Iterator[EditSite]:
    """Pointer parameters of a device function or kernel without ``__restrict__``."""
    if not part.attributes.keys() & {"__global__", "__device__"} or "__host__" in part.attributes:
        return
    parameters = part.declarator.child_by_field_name("parameters")
    pointers = [] if parameters is None else list(_pointers(parameters))
    same = _passed_twice(part)
    positions = part.file.positions
    words, constant, replacements = [], [], []
    for index, parameter, name in pointers[:MAX_NAMES]:
        if _has(part, parameter, _RESTRICT) or index in same:
            continue
        kind = parameter.child_by_field_name("type")
        text = text_of(part.file.data, name)
        if kind is not None and not _has(part, parameter, ("const",)) and _only_read(part, text):
            replacements.append(positions.replace(kind.start_byte, kind.start_byte, "const "))
            constant.append(text)
        replacements.append(positions.replace(name.start_byte, name.start_byte, "__restrict__ "))
        words.append(text)
    if words and (len(pointers) > 1 or constant):
        more = {"words": tuple(words), "more_words": tuple(constant), "exact": False}
        yield _site(part, SiteKind.RESTRICT, replacements, **more)


def _pointers(parameters: Node) -> Iterator[tuple[int, Node, Node]]:
    """Position, declaration and name of parameters that are plain pointers to one thing."""
    declarations = [node for node in parameters.named_children if node.type != "comment"]
    for index, parameter in enumerate(declarations):
        if parameter.type != "parameter_declaration":
            continue
        declarator = parameter.child_by_field_name("declarator")
        if declarator is None or declarator.type != "pointer_declarator":
            continue
        name = declarator.child_by_field_name("declarator")
        if name is not None and name.type == "identifier":
            yield index, parameter, name


def _has(part: ParsedPart, parameter: Node, words: tuple[str, ...]) -> bool:
    declarator = parameter.child_by_field_name("declarator")
    # A const behind the star is about the pointer, not about what it points to.
    nodes = list(parameter.children)
    if "const" not in words and declarator is not None:
        nodes += declarator.children
    return any(text_of(part.file.data, node) in words for node in nodes)


def _passed_twice(part: ParsedPart) -> set[int]:
    """Positions of arguments that a call in this file passes in two places."""
    result: set[int] = set()
    for call in part.file.calls.get(part.name, ()):
        texts = [text_of(part.file.data, node) for node in arguments_of(call)]
        counts = Counter(texts)
        result |= {
            index
            for index, text in enumerate(texts)
            if counts[text] > 1 and not text.isdigit() and text != "nullptr"
        }
    return result


def _only_read(part: ParsedPart, name: str) -> bool:
    """Whether nothing in the body can write through a pointer, and no other declaration says otherwise."""
    if part.file.declared_functions[part.name] != 1:
        return False
    uses = [
        node for node in part.nodes if node.type == "identifier" and text_of(part.file.data, node) == name
    ]
    return bool(uses) and all(_read(part, use) for use in uses)


def _read(part: ParsedPart, use: Node) -> bool:
    """Whether one mention of a pointer only loads through it."""
    element = _element(part, use)
    if element is None:
        return False
    for parent in part.around(element):
        if parent.type in {"field_expression", "parenthesized_expression", "subscript_expression"}:
            if parent.type == "subscript_expression" and not _is_argument(parent, element):
                return True  # an index
            element = parent
            continue
        if parent.type == "assignment_expression":
            return parent.child_by_field_name("left") != element
        if parent.type in {"update_expression", "reference_declarator", "lambda_expression"}:
            return False
        if parent.type == "pointer_expression":
            return operator_of(parent) == "&" and _loaded(part, parent)
        if parent.type == "init_declarator":
            declarator = parent.child_by_field_name("declarator")
            return declarator is not None and declarator.type == "identifier"
        if parent.type == "argument_list":
            call = part.parents.get(parent.id)
            return call is not None and called_name(part.file.data, call) in PURE_FUNCTIONS
        if parent.type == "call_expression":
            return False  # a method of what it points to
        return parent.type in _READERS
    return False


_READERS: Final = frozenset(
    {
        *("binary_expression", "unary_expression", "conditional_expression", "cast_expression"),
        *("condition_clause", "return_statement", "expression_statement", "subscript_argument_list"),
        *("if_statement", "while_statement", "for_statement", "initializer_list", "comma_expression"),
    }
)


def _is_argument(subscript: Node, element: Node) -> bool:
    return subscript.child_by_field_name("argument") == element


def _element(part: ParsedPart, use: Node) -> Node | None:
    """The element that a name is used for: ``p[i]``, ``*p``, ``*(p + i)``, ``p->x``, ``__ldg(p)``."""
    current = use
    for parent in part.around(use):
        if parent.type == "subscript_expression":
            return parent if _is_argument(parent, current) else None
        if parent.type == "pointer_expression" and operator_of(parent) == "*":
            return parent
        if parent.type == "field_expression":
            return parent if current == use else None
        if parent.type == "argument_list":
            call = part.parents.get(parent.id)
            return call if call is not None and called_name(part.file.data, call) in _LOADS else None
        sums = parent.type == "binary_expression" and operator_of(parent) in {"+", "-"}
        if not sums and parent.type != "parenthesized_expression":
            return None
        current = parent
    return None


def _loaded(part: ParsedPart, address: Node) -> bool:
    parent = part.parents.get(address.id)
    call = None if parent is None or parent.type != "argument_list" else part.parents.get(parent.id)
    return call is not None and called_name(part.file.data, call) in _LOADS


def launch_bounds(part: ParsedPart) -> Iterator[EditSite]:
    """Kernels without launch bounds, or with bounds that are plain numbers."""
    anchor = part.attributes.get("__global__")
    if anchor is None:
        return
    positions = part.file.positions
    present = [node for node in part.node.children if node.type == "launch_bounds"]
    if not present:
        if b"__launch_bounds__" not in _head(part):
            text = f" __launch_bounds__({NUMBER})"
            place = positions.replace(anchor.end_byte, anchor.end_byte, text)
            yield _site(part, SiteKind.LAUNCH_BOUNDS, [place])
        return
    numbers = [node for node in present[0].named_children if node.type != "comment"]
    texts = [text_of(part.file.data, node) for node in numbers]
    if texts and all(_NUMBER.fullmatch(text) for text in texts) and len(texts) <= 2:
        place = positions.replace(numbers[0].start_byte, numbers[-1].end_byte, NUMBER)
        number = int(texts[0].rstrip("uU"))
        blocks = int(texts[1].rstrip("uU")) if len(texts) > 1 else None
        yield _site(part, SiteKind.LAUNCH_BOUNDS, [place], number=number, limit=blocks)


def _head(part: ParsedPart) -> bytes:
    return part.file.data[part.node.start_byte : part.body.start_byte]


def inlining(part: ParsedPart) -> Iterator[EditSite]:
    """Device functions that can be marked as always or never to be inlined."""
    device = part.attributes.get("__device__")
    if device is None or "__global__" in part.attributes or part.name_node.type != "identifier":
        return
    if part.file.declared_functions[part.name] != 1 or "__host__" in part.attributes:
        return
    always, never = part.attributes.get("__forceinline__"), part.attributes.get("__noinline__")
    head = _head(part).replace(b"__forceinline__", b"").replace(b"__noinline__", b"")
    if _INLINE.search(head) or (always and never):
        return
    calls = part.file.calls.get(part.name, [])
    lines = sorted({part.file.positions.line(call.start_byte) for call in calls})[:_MAX_LINES]
    loops = sorted({*lines, *_loops_around(part.file, calls)})[:_MAX_LINES]
    for kind, has, node, word, more in (
        (SiteKind.FORCE_INLINE, always, never, "__forceinline__", lines),
        (SiteKind.NO_INLINE, never, always, "__noinline__", loops),
    ):
        if has is None:
            place = _word(part, device, node, word)
            yield _site(part, kind, [place], more_lines=tuple(more), words=(word,))


def _word(part: ParsedPart, device: Node, node: Node | None, word: str) -> Replacement:
    positions = part.file.positions
    if node is not None:
        return positions.replace(node.start_byte, node.end_byte, word)
    return positions.replace(device.end_byte, device.end_byte, f" {word}")


def _loops_around(file: ParsedFile, calls: list[Node]) -> Iterator[int]:
    """Heads of the loops that call."""
    for call in calls[:_MAX_LINES]:
        part = file.part_at(call.start_byte)
        for loop in () if part is None else part.loops(call):
            yield file.positions.line(loop.start_byte)


def block_sizes(file: ParsedFile) -> Iterator[EditSite]:
    """Constants that one kernel of this file is launched with, where nothing else depends on their value."""
    sizes: dict[str, set[str]] = {}
    for launch in file.launches:
        kernel = called_name(file.data, launch)
        sizes.setdefault(kernel, set()).add(_block_name(file, launch))
    for kernel, names in sizes.items():
        name = next(iter(names))
        owners = [size_name for size_name, used in sizes.items() if name in used]
        if len(names) == 1 and name and owners == [kernel]:
            yield from _constant(file, kernel, name)


def _block_name(file: ParsedFile, launch: Node) -> str:
    """The name in the second place of a launch, through a dim3 of one argument."""
    syntax = next(child for child in launch.children if child.type == "kernel_call_syntax")
    places = [node for node in syntax.named_children if node.type != "comment"]
    if len(places) < 2 or places[1].type != "identifier":
        return ""
    name = text_of(file.data, places[1])
    initialisers = file.initialised.get(name, [])
    if len(initialisers) != 1:
        return name if not initialisers else ""
    node = initialisers[0][0]
    sizes = node.child_by_field_name("value") or node.child_by_field_name("parameters")
    if sizes is None or sizes.type not in {"argument_list", "parameter_list"}:
        return name
    inner_names = [text_of(file.data, node) for node in sizes.named_children]
    return inner_names[0] if len(inner_names) == 1 and inner_names[0].isidentifier() else ""


def _constant(file: ParsedFile, kernel: str, name: str) -> Iterator[EditSite]:
    initialisers = file.initialised.get(name, [])
    kernels = [part for part in file.by_name.get(kernel, ()) if "__global__" in part.attributes]
    declared = file.declared_functions[kernel]
    if len(initialisers) != 1 or len(kernels) != 1 or declared != 1 or name in file.types.macros:
        return
    declarator, declaration = initialisers[0]
    value = declarator.child_by_field_name("value")
    if declaration is None or declaration.type != "declaration" or declaration.id in file.conditional:
        return
    if value is None:
        return
    number = _constant_value(file, declaration, value)
    if number is None or _also_literal(file, number):
        return
    positions = file.positions
    bound = next(launch_bounds(kernels[0]), None)
    limit = BLOCK_LIMITS[0] if bound is None or bound.number is None else min(bound.number, BLOCK_LIMITS[0])
    launches = {
        positions.line(launch.start_byte)
        for launch in file.launches
        if called_name(file.data, launch) == kernel
    }
    place = positions.replace(value.start_byte, value.end_byte, NUMBER)
    yield _site(
        kernels[0],
        SiteKind.BLOCK_SIZE,
        [place],
        name=kernel,
        words=(name,),
        more_lines=tuple(sorted(launches)),
        number=number,
        limit=limit,
        exact=False,
    )


def _constant_value(file: ParsedFile, declaration: Node, value: Node) -> int | None:
    """The number that a constant of an integer type is."""
    kind = declaration.child_by_field_name("type")
    words = {text_of(file.data, child) for child in declaration.children}
    text = text_of(file.data, value)
    constant = words & {"const", "constexpr"}
    if kind is None or text_of(file.data, kind) not in INTEGER_TYPES or not constant or "volatile" in words:
        return None
    if len(declaration.children_by_field_name("declarator")) != 1 or declaration.has_error:
        return None
    if value.type != "number_literal" or not re.fullmatch(r"[0-9]{1,4}", text):
        return None
    return int(text)


def _also_literal(file: ParsedFile, number: int) -> bool:
    """Whether the size stands elsewhere as a bare number, which would then disagree."""
    tied = {number - 1, number + 1, number // 32, number * 4, number}
    # Small numbers, such as those of warps, stand for many other things.
    alike = [integer for integer in tied if integer >= _SMALL or integer == number]
    if any(file.integers[integer] > (integer == number) for integer in alike):
        return True
    return any(
        body is not None and re.search(rb"\b%d\b" % number, body) for body in file.types.macros.values()
    )
