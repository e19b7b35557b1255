# SPDX-License-Identifier: Apache-2.0
"""Syntax trees of CUDA sources by tree-sitter, which takes broken and half-written code too."""

from __future__ import annotations

from functools import cache
from typing import Final

import tree_sitter_cuda
from tree_sitter import Language, Parser, Tree

MAX_PARSED_BYTES: Final = 1 << 20
"""Larger files are generated. The worst text of this size takes seconds and hundreds of megabytes."""


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_cuda.language()))


def parse_cuda(source: bytes) -> Tree:
    """The syntax tree of a source of at most ``MAX_PARSED_BYTES``."""
    return _parser().parse(source)
