# SPDX-License-Identifier: Apache-2.0
"""Counted loops whose loads could start a pass ahead and that nobody has unrolled, by the code alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from gpadvisor.evidence.accesses import DEVICE_SPACES, is_memory, is_ordered
from gpadvisor.evidence.accumulators import is_recurrence
from gpadvisor.evidence.library_code import library_loops
from gpadvisor.evidence.loops import every_pass, is_counted, loop_facts, loops_of_same_loads
from gpadvisor.evidence.patterns import math_sequences
from gpadvisor.evidence.queries import kernel_functions
from gpadvisor.model.advice import StaticSite
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.program import Function, FunctionKind, Loop, Program

UNROLL: Final = 4
"""The factor that room for registers and code is checked for."""
EXPOSED: Final = 32
"""A loop of more instructions covers much of a load's latency by itself."""


def rolled_loops(program: Program, kernel: str) -> tuple[StaticSite, ...]:
    """Short counted loops whose global loads could be in flight for several passes, and are not."""
    sites = []
    for function in kernel_functions(program, kernel):
        library = {index for sequence in math_sequences(function) for index in sequence.indices}
        for loop in function.loops if function.kind is not FunctionKind.MATH_HELPER else ():
            start = function.blocks[loop.header].start
            if (
                start in library
                or loop.id in library_loops(function)
                or not _could_overlap(function, loop.id)
            ):
                continue
            facts = loop_facts(function, loop.id)
            if facts.copies == 1 and not _remainder(function, loop):
                count = sum(_is_global_load(function, index) for index in facts.indices)
                loads = "a global load" if count == 1 else f"{count} global loads"
                detail = f"loop of {len(facts.indices)} instructions with {loads}, not unrolled"
                sites.append(StaticSite(function=function.id, index=start, detail=detail))
    return tuple(sites)


def _is_global_load(function: Function, index: int) -> bool:
    info = function.instructions[index].info
    return info.opclass is OpcodeClass.LOAD and info.space in DEVICE_SPACES


def _could_overlap(function: Function, loop: LoopId) -> bool:
    """Whether loads of a later pass may start before this pass ends, by its code alone."""
    facts = loop_facts(function, loop)
    loads = [index for index in facts.indices if _is_global_load(function, index)]
    if not loads or facts.has_inner or facts.barriers or len(facts.indices) > EXPOSED:
        return False
    if (facts.trips is not None and facts.trips < UNROLL) or not is_counted(function, loop):
        return False
    if len(function.loops[loop].blocks) > 1:
        return False  # what a pass does depends on conditions, and so may how many passes there are
    if any(index in loads for index in _makers(function, facts.indices)):
        return False  # a search: what a pass loads tells whether there is a next one
    lines = Counter(function.lines[index] for index in loads)
    if any(entry is not None and count > 1 for entry, count in lines.items()):
        return False  # one source line that loads several times: several passes, or several elements of one
    code = [function.instructions[index] for index in facts.indices]
    if any(instruction.guard is not None and is_memory(instruction) for instruction in code):
        return False  # accesses under a condition, without a branch around them
    infos = [instruction.info for instruction in code]
    if any(info.opclass in _HOLDS_ORDER for info in infos) or any(
        is_ordered(instruction) for instruction in code
    ):
        return False
    stores = any(info.opclass is OpcodeClass.STORE and info.space in DEVICE_SPACES for info in infos)
    return any(
        every_pass(function, loop, index)
        and not is_recurrence(function, loop, index)
        and (not stores or "CONSTANT" in function.instructions[index].modifiers)
        for index in loads
    )


def _makers(function: Function, indices: Sequence[int]) -> set[int]:
    """What the condition of a loop's last jump is made of, within the loop."""
    inside, pending, makers = {*indices}, [max(indices)], set[int]()
    while pending:
        index = pending.pop()
        instruction = function.instructions[index]
        guard = () if instruction.guard is None else (instruction.guard.register,)
        for used in (*instruction.uses, *guard):
            more = (function.reaching.definitions(index, used) & inside) - makers
            makers |= more
            pending += more
    return makers


_HOLDS_ORDER: Final = frozenset({OpcodeClass.ATOMIC, OpcodeClass.REDUCTION, OpcodeClass.CALL})


def _remainder(function: Function, loop: Loop) -> bool:
    """Whether a loop does the last passes of an unrolled one: the compiler gives both the same lines."""
    same = set(loops_of_same_loads(function, loop.id))
    if loop.location is not None:
        same.update(other_loop.id for other_loop in function.loops if other_loop.location == loop.location)
    else:
        same.update(
            other_loop.id for other_loop in function.loops if _is_multiple(function, other_loop.id, loop.id)
        )
    return any(loop_facts(function, loop_id).copies > 1 for loop_id in same - {loop.id})


def _is_multiple(function: Function, larger: LoopId, loop: LoopId) -> bool:
    """Whether a loop has each kind of load of another several times: all there is without lines."""
    several, once = (
        Counter(
            (function.instructions[index].opcode, function.instructions[index].modifiers)
            for index in loop_facts(function, loop_id).indices
            if _is_global_load(function, index)
        )
        for loop_id in (larger, loop)
    )
    times = {several[kind] / count for kind, count in once.items()}
    return several.keys() == once.keys() and len(times) == 1 and min(times) > 1
