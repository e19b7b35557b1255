# SPDX-License-Identifier: Apache-2.0
"""Syntax trees of CUDA sources by tree-sitter, which takes broken and half-written code too."""

from __future__ import annotations

from functools import cache
from typing import Final

import tree_sitter_cuda
from tree_sitter import Language, Parser, Tree

from gpadvisor.source.facts import HASH_SUFFIXES

MAX_PARSED_BYTES: Final = 1 << 20
"""Larger files are generated. The worst text of this size takes seconds and hundreds of megabytes."""


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_cuda.language()))


def parse_cuda(path: str, source: bytes) -> Tree | None:
    """The syntax tree of a source; None for one of another language, or of many megabytes."""
    if path.lower().endswith(HASH_SUFFIXES) or len(source) > MAX_PARSED_BYTES:
        return None
    return _parser().parse(source)
