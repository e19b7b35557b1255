# SPDX-License-Identifier: Apache-2.0
"""What a text says to gpadvisor in comments: an analysis made of other remarks is to be made again."""

from __future__ import annotations

from hashlib import sha256

from gpadvisor.source.facts import MARKER
from gpadvisor.source.line_map import split_lines


def remarks(text: str) -> str:
    """A digest of each line with a comment to gpadvisor and of the code below it; empty where there is none.

    Comments that move along with what they are about are the same ones.
    """
    if MARKER not in text:
        return ""
    digest = sha256()
    lines = split_lines(text)
    below = ""
    for line in reversed(lines):
        if MARKER in line:
            digest.update(f"{line.strip()}\0{below}\0".encode("utf-8", "replace"))
        elif line.strip():
            below = line.strip()
    return digest.hexdigest()
