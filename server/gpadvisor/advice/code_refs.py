# SPDX-License-Identifier: Apache-2.0
"""Instructions as a reader sees them: address, text, source line and inline chain."""

from __future__ import annotations

from gpadvisor.model.advice import CodeRef
from gpadvisor.model.blame import NO_INDEX
from gpadvisor.model.program import Function, FunctionKind, LineEntry, Program


def own_line(function: Function, index: int) -> LineEntry | None:
    """The source line of an instruction; the compiler's own routines have none, whatever the table says."""
    if function.kind is FunctionKind.MATH_HELPER or not 0 <= index < len(function.lines):
        return None
    return function.lines[index]


def code_ref(function: Function, index: int) -> CodeRef:
    """One instruction of a function."""
    instruction = function.instructions[index]
    line = own_line(function, index)
    return CodeRef(
        pc=instruction.pc,
        function=function.demangled,
        opcode=".".join((instruction.opcode, *instruction.modifiers)),
        text=instruction.text,
        location=None if line is None else line.location,
        inline=() if line is None else line.inline,
    )


def code_ref_at(program: Program, function: int, index: int) -> CodeRef | None:
    """The instruction that a blame row names; None for NO_INDEX or outside the program."""
    if index == NO_INDEX or not 0 <= function < len(program.functions):
        return None
    return code_ref(program.functions[function], index)
