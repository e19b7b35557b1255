# SPDX-License-Identifier: Apache-2.0
"""CUDA, Python and Julia sources: suppression comments, patterns, and which file of this machine is meant."""

from __future__ import annotations

from gpadvisor.source.comments import SuppressionComment, suppression_comments
from gpadvisor.source.matching import (
    LocalFile,
    PathMapping,
    mapped_paths,
    match_sources,
    parse_mapping,
    path_parts,
)
from gpadvisor.source.naming import name_source_tokens
from gpadvisor.source.suppression import apply_suppressions

__all__ = [
    "LocalFile",
    "PathMapping",
    "SuppressionComment",
    "apply_suppressions",
    "mapped_paths",
    "match_sources",
    "name_source_tokens",
    "parse_mapping",
    "path_parts",
    "suppression_comments",
]
