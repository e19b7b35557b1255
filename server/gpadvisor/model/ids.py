# SPDX-License-Identifier: Apache-2.0
"""Names for the integers that identify things, so that a checker can tell them apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

Pc = NewType("Pc", int)
"""Byte offset of an instruction inside its ``.text`` section (a multiple of 16)."""
FunctionId = NewType("FunctionId", int)
"""Index into ``Program.functions``."""
BlockId = NewType("BlockId", int)
"""Index into ``Function.blocks``."""
LoopId = NewType("LoopId", int)
"""Index into ``Function.loops``."""

INSTRUCTION_BYTES = 16
"""Size of one instruction on sm_70 and newer."""


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A line of a source file, as the line table names it."""

    file: str
    line: int
