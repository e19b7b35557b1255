# SPDX-License-Identifier: Apache-2.0
"""Whether a source line can be what an instruction was made of, where the text may be another version."""

from __future__ import annotations

import re
from typing import Final

_NOTHING: Final = re.compile(
    r"\s*(?:[{}()\[\];,\s]*|#(?!\s*pragma\s+(?:omp|acc)\b).*|//.*|/\*.*|(?:else|do|try)\b[\s{]*)$"
)
"""Brackets, a directive, a comment: no line that makes an instruction with an effect. OpenMP's do."""
_SYNC: Final = re.compile(r"\w\s*(?:<[^<>]*>)?\s*\(|sync|barrier", re.IGNORECASE)
_DECLARED: Final = r"\w+(?:\s*=\s*[-+]?\.?\d[\w.]*)?"
_DECLARATION: Final = re.compile(
    r"\s*(?!return\b|throw\b|co_)(?:const\s+|volatile\s+|unsigned\s+|signed\s+|static\s+)*"
    r"[A-Za-z_][\w:<>]*(?:\s+const)?[\s*&]+(?:__restrict__\s+|const\s+)*"
    rf"{_DECLARED}(?:\s*,\s*{_DECLARED})*\s*[,;)]*\s*(?://.*)?$"
)
"""Without a value, or with a number for one: nothing is read, and nothing computed."""
_ACCESSES: Final = frozenset(
    {"LD", "LDG", "LDS", "LDL", "LDSM", "ST", "STG", "STS", "STL", "ATOM", "ATOMG", "ATOMS", "RED"}
)
_COMPUTING: Final = frozenset({"FFMA", "FMUL", "DFMA", "DMUL", "HMMA", "IMMA", "MUFU", "I2F", "F2I"})
"""Opcodes that no constant is set by."""
_JUMPS: Final = frozenset({"BRA", "EXIT", "RET", "BSYNC", "BSSY", "NOP", "WARPSYNC"})


def can_be(text: str, opcode: str) -> bool:
    """Whether a line may be where an instruction comes from; in doubt it may.

    Args:
        text: The line.
        opcode: With or without modifiers, ``BAR.SYNC``.
    """
    name = opcode.partition(".")[0]
    if name in _JUMPS:
        return not text.lstrip().startswith("#")
    if _NOTHING.match(text):
        return False
    if name == "BAR":
        return _SYNC.search(text) is not None
    return name not in _ACCESSES | _COMPUTING or _DECLARATION.match(text) is None


_LOOKS: Final = (
    (_ACCESSES, re.compile(r"[\[*]|->")),
    (frozenset({"FFMA", "FMUL", "DFMA", "DMUL", "HFMA2", "HMUL2"}), re.compile(r"\*")),
    (frozenset({"BAR"}), _SYNC),
)


def shows(text: str, opcode: str) -> bool:
    """Whether a line looks like what an instruction is made of: an index, a product, a barrier."""
    name = opcode.partition(".")[0]
    return any(name in names and look.search(text) is not None for names, look in _LOOKS)
