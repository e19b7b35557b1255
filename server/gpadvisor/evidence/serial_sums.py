# SPDX-License-Identifier: Apache-2.0
"""Values of a block's threads that one of its threads adds up by itself, one pass of a loop for each."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from gpadvisor.evidence.accesses import is_shared
from gpadvisor.evidence.accumulators import is_recurrence
from gpadvisor.evidence.lanes import numbers_of
from gpadvisor.evidence.loops import is_counted, loop_facts
from gpadvisor.evidence.trees import ADDS, SELECTS
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import Instruction, OpcodeClass
from gpadvisor.model.machine import WARP, CodeForm
from gpadvisor.model.program import Function

_WORD: Final = 4
_COPIES: Final = frozenset(
    {"MOV", "UMOV", "IMAD", "IADD3", "UIADD3", "VIADD", "LOP3", "ULOP3", "LDC", "ULDC", "LDCU", "R2UR"}
)
"""What passes the size of a block on to a counter, and splits it for an unrolled loop."""
_CONSTANTS: Final = re.compile(r"c\[0x\w+\]\[\w+\]")
_LEAVING: Final = frozenset({OpcodeClass.BRANCH, OpcodeClass.EXIT})
_ONE: Final = frozenset({"EQ", "NE"})


@lru_cache(maxsize=64)
def serial_sums(function: Function, form: CodeForm) -> tuple[int, ...]:
    """The first load of each loop in which one thread adds up, from shared memory, what the others stored.

    The passes are as many as the block has threads, or those of more than a warp.
    """
    return tuple(
        loads[0]
        for loop in function.loops
        if (loads := _added_up(function, loop.id))
        and _is_of_one_thread(function, function.loops[loop.id].header)
        and _is_long(function, loop.id, loads, form)
    )


def _added_up(function: Function, loop: LoopId) -> list[int]:
    """The loads of a loop that does nothing but add up, or take the largest of, what they bring."""
    facts = loop_facts(function, loop)
    code = {index: function.instructions[index] for index in facts.indices}
    memory = [
        index
        for index, instruction in code.items()
        if instruction.info.opclass in _ACCESSES or is_shared(instruction)
    ]
    if facts.has_inner or not memory or not is_counted(function, loop):
        return []
    if not all(is_shared(code[index]) and code[index].info.opclass is OpcodeClass.LOAD for index in memory):
        return []
    loaded = {written for index in memory for written in code[index].defs}
    sums = [
        index
        for index, instruction in code.items()
        if instruction.opcode in ADDS | SELECTS and loaded & {*instruction.uses}
    ]
    plain = all(code[index].opcode in _PLAIN_SUMS for index in sums)
    return memory if sums and plain and all(is_recurrence(function, loop, index) for index in sums) else []


_ACCESSES: Final = frozenset(
    {OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION, OpcodeClass.BARRIER, OpcodeClass.CALL}
)
_PLAIN_SUMS: Final = SELECTS | {"FADD", "DADD", "HADD2", "IADD3", "IADD", "VIADD"}


def _is_of_one_thread(function: Function, block: int) -> bool:
    """Whether a block is reached only behind ``threadIdx == number``."""
    above = function.idom[block]
    ways = {block}  # all that dominate it
    while above is not None:
        index = function.blocks[above].end - 1
        branch = function.instructions[index]
        if branch.info.opclass in _LEAVING and branch.guard is not None and above + 1 in ways:
            leaves = "EQ" if branch.guard.negated else "NE"
            for definition in function.reaching.definitions(index, branch.guard.register):
                compare = function.instructions[definition]
                if leaves in compare.modifiers and _is_of_thread(function, definition, compare):
                    return True
        ways.add(above)
        above = function.idom[above]
    return False


def _is_of_thread(function: Function, index: int, compare: Instruction) -> bool:
    alone = "AND" in compare.modifiers and compare.operands.rstrip().endswith("PT")
    return (
        compare.opcode == "ISETP"
        and alone
        and not _ONE.isdisjoint(compare.modifiers)
        and numbers_of(function, index) == {"SR_TID"}
        and all(
            "SR_TID" in function.instructions[maker].operands
            for used in compare.uses
            for maker in function.reaching.definitions(index, used)
        )
    )


def _is_long(function: Function, loop: LoopId, loads: list[int], form: CodeForm) -> bool:
    """Whether a loop has a pass for each thread of the block, or more than two warps have."""
    facts = loop_facts(function, loop)
    values = sum((function.instructions[index].width_bytes or _WORD) // _WORD for index in loads)
    if facts.trips is not None:
        return facts.trips * values > 2 * WARP
    sizes = (f"c[0x0][0x{form.block_size_at:x}]", "c[0x0][RZ]" if form.block_size_at == 0 else "")
    latches = [
        function.blocks[block].end - 1
        for block in function.loops[loop].blocks
        if any(successor == function.loops[loop].header for successor, _ in function.blocks[block].successors)
    ]
    return any(
        _is_made_of(function, definition, {*filter(None, sizes)})
        for latch in latches
        for used in function.instructions[latch].uses
        for definition in function.reaching.definitions(latch, used)
    )


def _is_made_of(function: Function, compare: int, sizes: set[str]) -> bool:
    """Whether what ends a loop comes from the size of the block, by sums and masks alone."""
    pending, visited, has_constants = [compare], {compare}, False
    while pending:
        index = pending.pop()
        instruction = function.instructions[index]
        if index != compare and instruction.opcode not in _COPIES:
            return False
        constants = set(_CONSTANTS.findall(instruction.operands))
        if constants - sizes:
            return False
        has_constants = has_constants or bool(constants)
        for used in instruction.uses:
            more = function.reaching.definitions(index, used) - visited
            visited |= more
            pending += more
    return has_constants
