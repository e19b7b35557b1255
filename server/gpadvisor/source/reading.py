# SPDX-License-Identifier: Apache-2.0
"""Everything that advice takes from a source, by one parse.

The parser is native code: a source that may come from elsewhere is read in a child process, by
``pipeline.sources.facts``.
"""

from __future__ import annotations

from gpadvisor.sandbox.codec import from_bytes, to_bytes
from gpadvisor.source.comments import suppression_comments
from gpadvisor.source.facts import SourceFacts
from gpadvisor.source.launch_reading import launch_places
from gpadvisor.source.patterns import find_patterns
from gpadvisor.source.syntax import parse_cuda


def source_facts(path: str, text: str) -> SourceFacts:
    """The facts of a source; the file name decides the language."""
    data = text.encode("utf-8", "replace")
    tree = parse_cuda(path, data)
    comments = suppression_comments(path, data, tree)
    if tree is None:
        return SourceFacts(comments=comments)
    patterns = find_patterns(data, tree)
    return SourceFacts(
        comments=comments,
        double_literals=tuple(patterns.double_literals),
        divisions=patterns.divisions(),
        loops=tuple(patterns.loops),
        kernels=tuple(patterns.kernels),
        launches=launch_places(tree) if b"<<<" in data else (),
    )


def answer(request: bytes) -> bytes:
    """The facts of paths and texts (JSON), for a child process."""
    return to_bytes([source_facts(path, text) for path, text in from_bytes(request, list[tuple[str, str]])])
