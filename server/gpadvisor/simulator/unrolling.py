# SPDX-License-Identifier: Apache-2.0
"""From iterations of a source loop to passes of its machine code: how often the body stands in each loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
_HOPS: Final = 16
"""Blocks between a branch and the loop that it guards."""
_MOST: Final = 2 / 3
_ROUNDS: Final = 8
"""Guards of guards are looked at this often."""

Place: TypeAlias = tuple[object, str]  # line with its inline chain, opcode


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


@dataclass(frozen=True, slots=True)
class LoopGuard:
    """A branch or exit that only decides whether a part is come to."""

    taken: bool
    entered: bool  # a part with passes left is entered, one without is gone round


def parts(function: Function) -> list[LoopPart]:
    """The parts of every loop of the source."""
    loop_parts: list[LoopPart] = []
    for source, loops in enumerate(_source_loops(function)):
        copies = _copies(function, loops)
        for loop in loops:
            size = sum(function.blocks[block].end - function.blocks[block].start for block in loop.blocks)
            loop_parts.append(LoopPart(loop.header, loop.id, copies[loop.id], size, source))
        if max(copies.values()) > 1:
            loop_parts += _straight_parts(function, loops, copies, source)
    return loop_parts


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


def guards(
    function: Function, loop_parts: Sequence[LoopPart], planned: Mapping[BlockId, Passes]
) -> dict[int, LoopGuard]:
    """Branches and exits by instruction index that only decide whether a part of a loop is come to."""
    search = _GuardSearch(function, loop_parts, planned)
    for _ in range(_ROUNDS):
        before = len(search.decided)
        for block in reversed(function.blocks):
            search.look_at(block)
        if len(search.decided) == before:
            break
    return search.decided


class _GuardSearch:
    """Round by round, since the way from one guard to a loop may lead over others."""

    def __init__(
        self, function: Function, loop_parts: Sequence[LoopPart], planned: Mapping[BlockId, Passes]
    ) -> None:
        self._function, self._planned = function, planned
        self._parts = {part.entry: part for part in loop_parts}
        self._lines = {
            part.source: function.lines[_latch(function, function.loops[part.loop])] or part.source
            for part in loop_parts
            if part.loop is not None
        }
        self.decided: dict[int, LoopGuard] = {}

    def look_at(self, block: Block) -> None:
        """Decide the branch at the end of a block, if it is a guard."""
        end = block.end - 1
        opclass = self._function.instructions[end].info.opclass
        sides = self._sides(block)
        if end in self.decided or opclass not in {OpcodeClass.BRANCH, OpcodeClass.EXIT} or sides is None:
            return
        ways = [(jumps, self._leads_to(target, block.id)) for jumps, target in sides.items()]
        sides_of = [(jumps, part) for jumps, part in ways if part is not None]
        reached = [
            (jumps, part)
            for jumps, part in sides_of
            if not any(self._is_past(sides[jumps], other, part) for _, other in sides_of)
        ]
        if not reached or len({part.entry for _, part in reached}) < len(reached):
            return
        unrolled = [side for side in reached if self._planned[side[1].entry].passes]
        if len({self._lines[part.source] for _, part in unrolled}) > 1:
            return  # different loops on either side: a choice of the program
        if unrolled:
            jumps, _ = max(unrolled, key=lambda side: (side[1].copies, side[1].size))
            self.decided[end] = LoopGuard(jumps, entered=True)
        elif len(reached) == 1:
            self.decided[end] = LoopGuard(not reached[0][0], entered=False)

    def _is_past(self, block: BlockId, part: LoopPart, to: LoopPart) -> bool:
        """Whether a block, on the way to another source loop, is where the loop of a part ends."""
        if part.loop is None or self._lines[part.source] == self._lines[to.source]:
            return False
        loop = self._function.loops[part.loop].blocks
        return block not in loop and any(
            target == block for inside in loop for target, _ in self._function.blocks[inside].successors
        )

    def _sides(self, block: Block) -> dict[bool, BlockId] | None:
        """Where a branch leads by whether it is taken; of an exit only where it is not."""
        behind = [
            target for target, _ in block.successors if self._function.blocks[target].start == block.end
        ]
        forward = [target for target, _ in block.successors if target not in behind]
        if len(behind) != 1 or len(forward) > 1:
            return None
        return {False: behind[0], True: forward[0]} if forward else {False: behind[0]}

    def _leads_to(self, block: BlockId, source: BlockId) -> LoopPart | None:
        """The part that code from a block runs into from outside, over guards that are decided.

        What comes behind the loop that the branch is in comes whatever the branch does.
        """
        around = self._function.loop_of[source]
        within = self._function.loops[around].blocks if around >= 0 else None
        for _ in range(_HOPS):
            if within is not None and block not in within:
                return None
            part = self._parts.get(block)
            if part is not None:
                inside = part.loop is not None and source in self._function.loops[part.loop].blocks
                return None if inside else part
            following = self._following(self._function.blocks[block])
            if following is None:
                return None
            block = following
        return None

    def _following(self, block: Block) -> BlockId | None:
        guard = self.decided.get(block.end - 1)
        if guard is not None:
            return (self._sides(block) or {}).get(guard.taken)
        return block.successors[0][0] if len(block.successors) == 1 else None


def _straight_parts(
    function: Function, loops: Sequence[Loop], copies: Mapping[LoopId, int], source: int
) -> list[LoopPart]:
    """Blocks outside of the loops that hold the whole body, and that a branch may pass by."""
    least = min(loops, key=lambda loop: copies[loop.id])
    smallest = _work(function, least)
    parent = -1 if loops[0].parent is None else loops[0].parent
    loop_parts = []
    for block in function.blocks:
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
        entry = function.lines[_latch(function, loop)]
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


def _latch(function: Function, loop: Loop) -> int:
    """The last instruction that jumps back to the header."""
    return max(
        function.blocks[block].end - 1
        for block in loop.blocks
        if any(target == loop.header for target, _ in function.blocks[block].successors)
    )


def _lines(function: Function, loop: Loop) -> list[int]:
    """Lines of the branch back and of the header, the smallest first; then those they were inlined at."""
    header = function.blocks[loop.header]
    line_entries = (function.lines[_latch(function, loop)], *function.lines[header.start : header.end])
    entries = [entry for entry in line_entries if entry is not None]
    inlined = {frame.call_site.line for entry in entries for frame in entry.inline}
    return [*sorted({entry.location.line for entry in entries}), *sorted(inlined)]


def _copies(function: Function, loops: list[Loop]) -> dict[LoopId, int]:
    """How often the source loop's body stands in each of its machine loops."""
    work = {loop.id: _work(function, loop) for loop in loops}
    smallest = min(loops, key=lambda loop: sum(work[loop.id].values()))
    # The rest of an unrolled loop comes with it: where most loops are as the smallest, that is no rest.
    alike = sum(counts == work[smallest.id] for counts in work.values())
    base = _repeats(function, smallest, work[smallest.id]) if 2 * alike > len(loops) else 1
    result = {smallest.id: base}
    for loop in loops:
        if loop is smallest:
            continue
        common = work[loop.id].keys() & work[smallest.id].keys()
        ratio = median(work[loop.id][place] / work[smallest.id][place] for place in common) if common else 1
        result[loop.id] = max(1, round(ratio * base))
    return result


def _work(function: Function, loop: Loop) -> Counter[Place]:
    """Instructions of a loop by line and opcode; a loop inside it is one piece of work."""
    counts = _work_of(function, [block for block in loop.blocks if function.loop_of[block] == loop.id])
    return counts + Counter(_inner_loops(function, loop))


def _inner_loops(function: Function, loop: Loop) -> dict[Place, int]:
    """How often each loop of the source stands inside another: once for its unrolled part and its rest."""
    sizes: dict[object, Counter[int]] = {}
    for inner in function.loops:
        entry = function.lines[_latch(function, inner)] if inner.parent == loop.id else None
        if entry is not None and _ends(function, inner):
            sizes.setdefault(_place(entry), Counter())[sum(_work(function, inner).values())] += 1
    return {
        (place, _INNER): max(counts.values()) if len({*counts.values()}) == 1 else sum(counts.values())
        for place, counts in sizes.items()
    }


def _work_of(function: Function, blocks: Sequence[BlockId]) -> Counter[Place]:
    counts: Counter[Place] = Counter()
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


def _repeats(function: Function, loop: Loop, work: Counter[Place]) -> int:
    """Copies in the only loop: its counter's step if most of the work fits it, else a divisor of all."""
    inner = [count for (_, opcode), count in work.items() if opcode == _INNER]
    if inner:
        return gcd(*inner)
    if len(work) < 2:
        return 1
    step = abs(_step(function, loop) or 0)
    if step > 1 and sum(count % step == 0 for count in work.values()) >= _MOST * len(work):
        return step
    return gcd(*work.values(), step)


def _step(function: Function, loop: Loop) -> int | None:
    """The constant that the register behind the loop's condition grows by; None where none is seen."""
    latch = _latch(function, loop)
    registers = {use for use in function.instructions[latch].uses if register_file(use) in PREDICATES}
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
