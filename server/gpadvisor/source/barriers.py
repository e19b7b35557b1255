# SPDX-License-Identifier: Apache-2.0
"""A source without some of its barriers, to see what they cost."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_BARRIER: Final = re.compile(r"\b__syncthreads[ \t]*\([ \t]*\)[ \t]*;")


def without_barriers(text: str, lines: Iterable[int]) -> str | None:
    """The text without the barrier of each line; None where one of them has not just one."""
    rows = text.splitlines(keepends=True)
    for line in sorted({*lines}):
        changed, count = _BARRIER.subn(";", rows[line - 1]) if 0 < line <= len(rows) else ("", 0)
        if count != 1:
            return None
        rows[line - 1] = changed
    return "".join(rows)
