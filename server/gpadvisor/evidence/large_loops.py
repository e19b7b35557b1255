# SPDX-License-Identifier: Apache-2.0
"""What makes a loop large: its unrolling, or a function that is inlined in it several times."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from gpadvisor.evidence.accesses import is_global
from gpadvisor.evidence.loops import LoopFacts, loop_facts
from gpadvisor.evidence.reordering import may_write
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.program import Function, InlineFrame

_LEAST_CALLED: Final = 16
"""Instructions of a copy: call, return and what moves the address and the arguments are half as many."""
_BY_REFERENCE: Final = re.compile(r"(?<!const)(?<!&)&(?!&)")
"""Behind the first parenthesis of a demangled function a parameter that it may write through."""
NOTABLE_PART: Final = 4
"""Less than a quarter of a loop is not what makes it too large."""


def unrolled(function: Function, loop: LoopId) -> LoopFacts | None:
    """The largest of a loop and those in it, where it has its body several times and is much of the loop."""
    inner = (one.id for one in function.loops if one.blocks <= function.loops[loop].blocks)
    facts = [loop_facts(function, number) for number in inner]
    largest = max(facts, key=lambda one: 0 if one.has_inner else one.size_bytes)
    notable = len(largest.indices) * NOTABLE_PART >= len(loop_facts(function, loop).indices)
    return largest if largest.copies > 1 and notable else None


def repeated(function: Function, inside: set[int]) -> tuple[str, int] | None:
    """The function that is inlined in several places and has the most code there; at least a quarter.

    None that a call would cost more than it has instructions, or that changes its caller's variables by
    reference: in a call they are in local memory, and no longer in registers.
    """
    sizes: Counter[str] = Counter()
    places: dict[str, set[tuple[InlineFrame, ...]]] = {}
    for index in inside:
        entry = function.lines[index]
        for depth, frame in enumerate(() if entry is None else entry.inline):
            if entry is not None and frame.function is not None:
                sizes[frame.function] += 1
                places.setdefault(frame.function, set()).add(entry.inline[depth:])
    copied = [
        (name, size)
        for name, size in sizes.most_common()
        if len(places[name]) > 1
        and size >= _LEAST_CALLED * len(places[name])
        and not _BY_REFERENCE.search(name.partition("(")[2])
    ]
    if not copied or copied[0][1] * NOTABLE_PART < len(inside):
        return None
    return copied[0][0], len(places[copied[0][0]])


def is_inlining(function: Function, loop: LoopId, inside: set[int]) -> bool:
    """Whether a function makes a loop large by itself, and not the unrolling of a loop that calls it.

    An array that the counter of such a loop indexes is in registers only while the loop is unrolled.
    """
    function_inlined, copied = repeated(function, inside), unrolled(function, loop)
    if function_inlined is None or copied is None:
        return function_inlined is not None
    entry = function.lines[copied.indices[0]]
    return entry is not None and any(frame.function == function_inlined[0] for frame in entry.inline)


def carries_memory(function: Function, inside: set[int]) -> bool:
    """Whether passes may read what earlier ones wrote to global memory, as the steps of a simulation do."""
    code = [function.instructions[index] for index in inside]
    store = next(
        (
            instruction
            for instruction in code
            if is_global(instruction) and instruction.info.opclass is OpcodeClass.STORE
        ),
        None,
    )
    return store is not None and any(is_global(load) and may_write(load, store) for load in code)
