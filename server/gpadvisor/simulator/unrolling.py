# SPDX-License-Identifier: Apache-2.0
"""From iterations of a source loop to passes of its machine code: how often the body stands in each loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from statistics import median
from typing import Final, TypeAlias

from gpadvisor.model.ids import BlockId, LoopId
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass, RegisterFile, register_file
from gpadvisor.model.program import Block, Function, LineEntry, Loop
from gpadvisor.simulator.configuration import SimulationConfig

_WORK: Final = frozenset(
    {
        *(OpcodeClass.LOAD, OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION, OpcodeClass.TENSOR),
        *(OpcodeClass.FLOAT16, OpcodeClass.FLOAT32, OpcodeClass.FLOAT64, OpcodeClass.TRANSCENDENTAL),
    }
)
"""What a copy of a loop's body repeats; integer code for addresses is shared among copies."""
_ADDITIONS: Final = frozenset({"IADD3", "IADD", "UIADD3", "UIADD", "VIADD"})
PREDICATES: Final = frozenset({RegisterFile.PREDICATE, RegisterFile.UNIFORM_PREDICATE})
_INNER: Final = "loop"
_MOST: Final = 2 / 3

LineOpcode: TypeAlias = tuple[object, str]  # line with its inline chain, opcode


@dataclass(frozen=True, slots=True)
class Passes:
    """How often one part of a source loop is run through, each time it is come to."""

    passes: int  # 0: what is left of a source loop after its unrolled part, where that leaves nothing
    copies: int  # of the source loop's body in it
    trips: int  # of the source loop
    told_at: int | None  # source line for which these were told; None: the default


@dataclass(frozen=True, slots=True)
class LoopPart:
    """Machine code of a source loop: one of its loops, or copies of its body that are run at most once."""

    entry: BlockId
    loop: LoopId | None
    copies: int
    size: int  # instructions
    source: int  # parts of one source loop have the same number


def parts(function: Function) -> list[LoopPart]:
    """The parts of every loop of the source."""
    loop_parts: list[LoopPart] = []
    copies: dict[LoopId, int] = {}
    for same_line in sorted(_source_loops(function), key=lambda loops: loops[0].depth):
        outer = same_line[0].parent
        by_copy = _by_copy(same_line, 1 if outer is None else copies.get(outer, 1))
        behind = 0
        for loops in by_copy:
            first, behind = behind, 1 + max(max(loop.blocks) for loop in loops)
            beside = function.blocks[first:] if loops is by_copy[-1] else function.blocks[first:behind]
            copies |= _copies(function, loops)
            most, before = max(copies[loop.id] for loop in loops), len(loop_parts)
            for loop in loops:
                size = sum(function.blocks[block].end - function.blocks[block].start for block in loop.blocks)
                loop_parts.append(LoopPart(loop.header, loop.id, copies[loop.id], size, before))
            for part in _straight_parts(function, loops, beside, copies, before) if most > 1 else ():
                # What is longer than a pass of this loop is the rest of the copy in front.
                is_rest = part.copies >= most and loops is not by_copy[0]
                loop_parts.append(replace(part, source=loop_parts[before - 1].source) if is_rest else part)
    return loop_parts


def _by_copy(loops: list[Loop], copies: int) -> list[list[Loop]]:
    """The loops of each copy of the body that they stand in, where all copies have as many."""
    size, rest = divmod(len(loops), copies)
    if rest or copies == 1:
        return [loops]
    in_order = sorted(loops, key=lambda loop: loop.header)
    return [in_order[start : start + size] for start in range(0, len(loops), size)]


def passes(function: Function, parts: Sequence[LoopPart], config: SimulationConfig) -> dict[BlockId, Passes]:
    """Share the iterations of each source loop out among its parts, by their entries.

    The most unrolled loop takes as many as it can, then the next; copies outside of loops run once at most.
    """
    shared: dict[BlockId, Passes] = {}
    for number in dict.fromkeys(part.source for part in parts):
        loop_parts = [part for part in parts if part.source == number]
        loops = [function.loops[part.loop] for part in loop_parts if part.loop is not None]
        stated_line = next(
            (line for loop in loops for line in _lines(function, loop) if line in config.loop_trips), None
        )
        trips = config.default_trips if stated_line is None else config.loop_trips[stated_line]
        times = _times(loop_parts, trips)
        shared.update(
            {part.entry: Passes(times[part.entry], part.copies, trips, stated_line) for part in loop_parts}
        )
        if not any(shared[part.entry].passes for part in loop_parts):
            # Fewer iterations than copies, and no loop for the rest: one pass, part of it for nothing.
            least = min((part for part in loop_parts if part.loop is not None), key=lambda part: part.copies)
            shared[least.entry] = Passes(1, least.copies, trips, stated_line)
    return shared


def _times(loop_parts: Sequence[LoopPart], trips: int) -> dict[BlockId, int]:
    """Passes of the parts of one source loop."""
    result: dict[BlockId, int] = {}
    for copies in sorted({part.copies for part in loop_parts}, reverse=True):
        # As many copies in several loops are versions of the code, of which one is come to.
        loops = [part.entry for part in loop_parts if part.copies == copies and part.loop is not None]
        result.update(dict.fromkeys(loops, trips // copies))
        trips -= trips // copies * copies if loops else 0
        for part in loop_parts:
            if part.copies == copies and part.loop is None:
                result[part.entry] = min(1, trips // copies)
                trips -= result[part.entry] * copies
    return result


def _straight_parts(
    function: Function,
    loops: Sequence[Loop],
    beside: Sequence[Block],
    copies: Mapping[LoopId, int],
    source: int,
) -> list[LoopPart]:
    """Blocks outside of the loops that hold the whole body, and that a branch may pass by."""
    least = min(loops, key=lambda loop: copies[loop.id])
    smallest = _work(function, least)
    parent = -1 if loops[0].parent is None else loops[0].parent
    loop_parts = []
    for block in beside:
        if function.loop_of[block.id] != parent or not smallest:
            continue
        counts = _work_of(function, [block.id])
        guarded = any(len(function.blocks[before].successors) > 1 for before in block.predecessors)
        if guarded and smallest.keys() <= counts.keys():
            ratio = median(counts[place] / smallest[place] for place in smallest)
            times = max(1, round(ratio * copies[least.id]))
            loop_parts.append(LoopPart(block.id, None, times, block.end - block.start, source))
    return loop_parts


def _source_loops(function: Function) -> list[list[Loop]]:
    """Loops of the machine code that stand for one loop of the source: the unrolled part, and the rest."""
    groups: dict[object, list[Loop]] = {}
    for loop in function.loops:
        if not _ends(function, loop):
            continue
        entry = function.lines[latch(function, loop)]
        key: object = loop.id if entry is None else (loop.parent, entry.location, entry.inline)
        groups.setdefault(key, []).append(loop)
    return list(groups.values())


def _ends(function: Function, loop: Loop) -> bool:
    """Whether there is a way out of a loop: the jump to itself behind the end of the code has none."""
    return any(
        target not in loop.blocks for block in loop.blocks for target, _ in function.blocks[block].successors
    ) or any(
        function.instructions[function.blocks[block].end - 1].info.opclass is OpcodeClass.EXIT
        for block in loop.blocks
    )


def lines_of_loops(function: Function) -> set[int]:
    """Source lines by which a function's loops are told."""
    return {line for loop in function.loops for line in _lines(function, loop)}


def latch(function: Function, loop: Loop) -> int:
    """The last instruction that jumps back to the header."""
    return max(
        function.blocks[block].end - 1
        for block in loop.blocks
        if any(target == loop.header for target, _ in function.blocks[block].successors)
    )


def _lines(function: Function, loop: Loop) -> list[int]:
    """Lines of the branch back and of the header, the smallest first; then those they were inlined at."""
    header = function.blocks[loop.header]
    line_entries = (function.lines[latch(function, loop)], *function.lines[header.start : header.end])
    entries = [entry for entry in line_entries if entry is not None]
    inlined = {frame.call_site.line for entry in entries for frame in entry.inline}
    return [*sorted({entry.location.line for entry in entries}), *sorted(inlined)]


def _copies(function: Function, loops: list[Loop]) -> dict[LoopId, int]:
    """How often the source loop's body stands in each of its machine loops."""
    work = {loop.id: _work(function, loop) for loop in loops}
    smallest = min(loops, key=lambda loop: sum(work[loop.id].values()))
    # The rest of an unrolled loop comes with it: where most loops are as the smallest, that is no rest.
    alike = sum(counts == work[smallest.id] for counts in work.values())
    repeats = _repeats if 2 * alike > len(loops) else _counted_copies
    base = repeats(function, smallest, work[smallest.id]) or 1
    result = {smallest.id: base}
    for loop in loops:
        if loop is smallest:
            continue
        common = work[loop.id].keys() & work[smallest.id].keys()
        ratio = median(work[loop.id][place] / work[smallest.id][place] for place in common) if common else 1
        result[loop.id] = max(1, round(ratio * base))
    return result


def _work(function: Function, loop: Loop) -> Counter[LineOpcode]:
    """Instructions of a loop by line and opcode; a loop inside it is one piece of work."""
    counts = _work_of(function, [block for block in loop.blocks if function.loop_of[block] == loop.id])
    return counts + Counter(_inner_loops(function, loop))


def _inner_loops(function: Function, loop: Loop) -> dict[LineOpcode, int]:
    """How often each loop of the source stands inside another: once for its unrolled part and its rest."""
    sizes: dict[object, Counter[int]] = {}
    for inner in function.loops:
        entry = function.lines[latch(function, inner)] if inner.parent == loop.id else None
        if entry is not None and _ends(function, inner):
            sizes.setdefault(_place(entry), Counter())[sum(_work(function, inner).values())] += 1
    return {
        (place, _INNER): max(counts.values()) if len({*counts.values()}) == 1 else sum(counts.values())
        for place, counts in sizes.items()
    }


def _work_of(function: Function, blocks: Sequence[BlockId]) -> Counter[LineOpcode]:
    counts: Counter[LineOpcode] = Counter()
    for block in blocks:
        for index in range(function.blocks[block].start, function.blocks[block].end):
            instruction, entry = function.instructions[index], function.lines[index]
            info = instruction.info
            works = info.opclass in _WORK and info.space is not MemorySpace.CONSTANT
            # Floating-point instructions without a source only move constants.
            if entry is not None and works and instruction.uses:
                counts[_place(entry), instruction.opcode] += 1
    return counts


def _place(entry: LineEntry) -> object:
    return (entry.location.file, entry.location.line, entry.inline)


def _repeats(function: Function, loop: Loop, work: Counter[LineOpcode]) -> int:
    """Copies in the only loop: its counter's step if most of the work fits it, else a divisor of all."""
    inner = [count for (_, opcode), count in work.items() if opcode == _INNER]
    if inner:
        return gcd(*inner)
    if len(work) < 2:
        return 1
    return _counted_copies(function, loop, work) or gcd(*work.values(), _step(function, loop) or 0)


def _counted_copies(function: Function, loop: Loop, work: Counter[LineOpcode]) -> int | None:
    """The step of a loop's counter, where most of the work stands in it as often or a multiple of that."""
    step = abs(_step(function, loop) or 0)
    if step < 2 or len(work) < 2:
        return None
    return step if sum(count % step == 0 for count in work.values()) >= _MOST * len(work) else None


def _step(function: Function, loop: Loop) -> int | None:
    """The constant that the register behind the loop's condition grows by; None where none is seen."""
    registers = {
        use for use in function.instructions[latch(function, loop)].uses if register_file(use) in PREDICATES
    }
    inside = [
        function.instructions[index]
        for block in sorted(loop.blocks)
        for index in range(function.blocks[block].start, function.blocks[block].end)
    ]
    compared = {
        register
        for instruction in inside
        if registers & set(instruction.defs) and instruction.opcode in {"ISETP", "UISETP"}
        for register in instruction.uses
    }
    steps = [
        step
        for instruction in inside
        if compared & set(instruction.defs) & set(instruction.uses)
        and instruction.opcode in _ADDITIONS
        and (step := _constant(instruction)) is not None
    ]
    return steps[0] if len(steps) == 1 else None


def _constant(instruction: Instruction) -> int | None:
    """The only constant of an addition."""
    tokens = instruction.operand_texts
    values = [int(token, 16) for token in tokens if token.lstrip("-").startswith("0x")]
    signed = [value - (1 << 32) if value >= 1 << 31 else value for value in values if value]
    return signed[0] if len(signed) == 1 else None
