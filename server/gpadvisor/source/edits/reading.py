# SPDX-License-Identifier: Apache-2.0
"""Everything that edits need of a source, by one parse; like all parsing, in a child process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tree_sitter import Tree

from gpadvisor.sandbox.codec import from_bytes, to_bytes
from gpadvisor.source.comments import marked_comments, suppression_comments
from gpadvisor.source.edits import (
    MAX_EDIT_SITES,
    MAX_EDIT_TEXT,
    MAX_NAMES,
    MAX_RANGES,
    CommentPlace,
    EditFacts,
    EditSite,
)
from gpadvisor.source.edits.conditions import both_sides
from gpadvisor.source.edits.elements import kept_elements
from gpadvisor.source.edits.expressions import float_literals, reciprocals
from gpadvisor.source.edits.functions import block_sizes, inlining, launch_bounds, restricts
from gpadvisor.source.edits.loops import unrolls
from gpadvisor.source.edits.parameters import grid_constants
from gpadvisor.source.edits.text import ParsedFile, TextPositions, parsed_file
from gpadvisor.source.facts import HASH_SUFFIXES
from gpadvisor.source.syntax import parse_cuda

_LONE_RETURN: Final = re.compile(r"\r(?!\n)")
_PYTHON_TEXT: Final = re.compile(rb'"""|\'\'\'|\\.|["\'#\n]', re.DOTALL)
_JULIA_TEXT: Final = re.compile(rb'"""|#=|=#|\\.|["#\n]', re.DOTALL)
_CUDA_TEXT: Final = re.compile(
    rb"//(?:\\\r?\n|[^\n])*|/\*.*?(?P<comment>\*/|\Z)|R\"(?P<word>[^()\\\s]{0,16})\((?P<raw>)"
    rb"|\"(?:\\.|[^\"\\\n])*\"?|(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])*'?",
    re.DOTALL,
)
_FINDERS: Final = (
    float_literals,
    reciprocals,
    kept_elements,
    both_sides,
    unrolls,
    restricts,
    grid_constants,
    launch_bounds,
    inlining,
)

_Range = tuple[int, int]


def edit_facts(path: str, text: str) -> EditFacts:
    """What can be edited in a source; the file name decides the language.

    A text with line ends that compilers and editors count differently gets none.
    """
    if _LONE_RETURN.search(text):
        return EditFacts()
    data = text.encode("utf-8", "replace")
    if path.lower().endswith(HASH_SUFFIXES):
        positions = TextPositions(data)
        spans = list(_texts(data, _JULIA_TEXT if path.lower().endswith(".jl") else _PYTHON_TEXT))
        no_trailing, no_above = _closed(positions, spans)
        return EditFacts(
            readable=True,
            comments=_comments(path, data, None, positions),
            no_trailing=no_trailing,
            no_above=no_above,
        )
    tree = None if _unclosed(data) else parse_cuda(path, data)
    if tree is None:
        return EditFacts()
    file = parsed_file(data, tree.root_node)
    no_trailing, no_above = _closed(file.positions, list(_cuda_texts(file)), _macro_lines(file))
    return EditFacts(
        readable=True,
        sites=tuple(_sites(file))[:MAX_EDIT_SITES],
        comments=_comments(path, data, tree, file.positions),
        no_trailing=no_trailing,
        no_above=no_above,
    )


def _unclosed(data: bytes) -> bool:
    """Whether a block comment or a raw string never ends, which the parser takes for something else."""
    offset = 0
    while (match := _CUDA_TEXT.search(data, offset)) is not None:
        offset = match.end()
        if match["comment"] == b"":
            return True
        if match["raw"] is not None:
            end = data.find(b")" + match["word"] + b'"', offset)
            if end < 0:
                return True
            offset = end + len(match["word"]) + 2
    return False


def _sites(file: ParsedFile) -> Iterator[EditSite]:
    for part in file.parts:
        for finder in _FINDERS:
            yield from filter(_short_enough, finder(part))
    yield from filter(_short_enough, block_sizes(file))


def _short_enough(site: EditSite) -> bool:
    texts = (
        site.name,
        *site.words,
        *site.more_words,
        *(replacement.text for replacement in site.replacements),
    )
    return all(len(text) <= MAX_EDIT_TEXT for text in texts)


def _cuda_texts(file: ParsedFile) -> Iterator[_Range]:
    """Byte ranges of comments and strings."""
    for node in (*file.comments, *file.raw_strings):
        yield node.start_byte, node.end_byte


def _macro_lines(file: ParsedFile) -> list[_Range]:
    """Lines of preprocessor directives, which take no comment of ours at all."""
    return [
        (file.positions.line(node.start_byte), file.positions.line(max(node.start_byte, node.end_byte - 2)))
        for node in file.directives
    ]


def _texts(data: bytes, token: re.Pattern[bytes]) -> Iterator[_Range]:
    """Byte ranges of strings and block comments of Python or Julia."""
    inside, begun, offset = b"", 0, 0
    while (match := token.search(data, offset)) is not None:
        word, offset = match.group(), match.end()
        if inside:
            if word == inside or (word == b"\n" and len(inside) == 1):
                yield begun, offset
                inside = b""
        elif word in {b'"', b"'", b'"""', b"'''", b"#="}:
            inside, begun = (b"=#" if word == b"#=" else word), match.start()
        elif word == b"#":
            end = data.find(b"\n", offset)
            offset = len(data) if end < 0 else end
    if inside:
        yield begun, len(data)


def _closed(
    positions: TextPositions, spans: list[_Range], directives: list[_Range] | None = None
) -> tuple[tuple[_Range, ...], tuple[_Range, ...]]:
    """Line ranges whose ends take no comment, and before which no comment line can stand."""
    no_trailing: list[_Range] = list(directives or ())
    no_above: list[_Range] = list(directives or ())
    for start, end in spans:
        first, end_line = positions.line(start), positions.line(max(start, end - 1))
        if end_line > first:
            no_trailing.append((first, end_line - 1))
            no_above.append((first + 1, end_line))
    for line in range(1, positions.lines + 1):
        if positions.continued(line):
            no_trailing.append((line, line))
            if line < positions.lines:
                no_above.append((line + 1, line + 1))
    return tuple(no_trailing[:MAX_RANGES]), tuple(no_above[:MAX_RANGES])


def _comments(
    path: str, data: bytes, tree: Tree | None, positions: TextPositions
) -> tuple[CommentPlace, ...]:
    """Where the codes of each suppression comment stand."""
    places = []
    spans = marked_comments(path, data, tree)
    for (_, _, match), comment in zip(spans, suppression_comments(path, data, tree), strict=False):
        brackets = match.group("codes") is not None
        start, end = match.span("codes") if brackets else (match.start("reason"), match.start("reason"))
        if len(comment.codes) <= MAX_NAMES - 2 and all(len(code) < 20 for code in comment.codes):
            places.append(
                CommentPlace(
                    line=comment.line,
                    first_line=comment.first_line,
                    last_line=comment.last_line,
                    start_column=positions.column(start),
                    end_column=positions.column(end),
                    codes=comment.codes,
                    brackets=brackets,
                )
            )
    return tuple(places[:MAX_EDIT_SITES])


def answer(request: bytes) -> bytes:
    """Where paths and texts (JSON) can be edited, for a child process."""
    return to_bytes([edit_facts(path, text) for path, text in from_bytes(request, list[tuple[str, str]])])
