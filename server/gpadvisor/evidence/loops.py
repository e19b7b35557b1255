# SPDX-License-Identifier: Apache-2.0
"""What can be told about a loop from its code and its executed counts: trips, unrolling, recurrences."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Final

import numpy as np

from gpadvisor.evidence.measured import Floats
from gpadvisor.evidence.queries import loop_indices
from gpadvisor.model.ids import INSTRUCTION_BYTES, LoopId, SourceLocation
from gpadvisor.model.instruction import (
    Instruction,
    MemorySpace,
    OpcodeClass,
    Register,
    RegisterFile,
    register_file,
)
from gpadvisor.model.program import Function, LineEntry
from gpadvisor.model.sentence import line_mark

ADDITIONS: Final = frozenset({"IADD3", "IADD", "UIADD3", "VIADD", "UIADD", "VIADDMNMX"})
_COMPARES: Final = frozenset({"ISETP", "UISETP"})
_REPEATED: Final = frozenset(
    {
        OpcodeClass.LOAD,
        OpcodeClass.STORE,
        OpcodeClass.FLOAT16,
        OpcodeClass.FLOAT32,
        OpcodeClass.FLOAT64,
        OpcodeClass.TENSOR,
        OpcodeClass.TRANSCENDENTAL,
    }
)


_COUNTER_DEPTH: Final = 3
"""Instructions between a loop's counter and its comparison: the end is often a difference of two values."""
_LARGEST_UNROLL: Final = 64


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """One loop, as far as its code tells."""

    indices: tuple[int, ...]
    step: int | None  # what the counter grows by per pass, where it is a constant
    trips: int | None  # passes, where start, bound and step are constants
    copies: int  # how often the body stands in the code: an unroll factor of 1 or more
    copies_reason: str | None
    barriers: int  # block-wide barriers inside
    loads: int  # memory loads inside
    has_inner: bool

    @property
    def size_bytes(self) -> int:
        """Machine code of the loop."""
        return len(self.indices) * INSTRUCTION_BYTES


@lru_cache(maxsize=256)
def loop_facts(function: Function, loop: LoopId) -> LoopFacts:
    """Look at a loop."""
    indices = loop_indices(function, loop)
    instructions = [function.instructions[index] for index in indices]
    counter = _counter(function, loop, indices)
    step = None if counter is None else counter.step
    has_inner = any(candidate.parent == loop for candidate in function.loops)
    copies, reason = _copies(function, indices, step, has_inner=has_inner)
    if copies == 1 and not has_inner:
        copies, reason = _beside_remainder(function, loop)
    return LoopFacts(
        indices=tuple(indices),
        step=step,
        trips=_constant_trips(function, loop, counter) if counter is not None and counter.direct else None,
        copies=copies,
        copies_reason=reason,
        barriers=sum(instruction.info.opclass is OpcodeClass.BARRIER for instruction in instructions),
        loads=sum(instruction.info.opclass is OpcodeClass.LOAD for instruction in instructions),
        has_inner=has_inner,
    )


def loop_overhead(function: Function, loop: LoopId) -> frozenset[int]:
    """Instructions that only run the loop: its counter, the comparison, the jump back, steps of addresses.

    An address that steps by a constant becomes an offset of the accesses of an unrolled body. A loop with a
    second way out has none: its copies all count, compare and jump, as nvcc compiles them.
    """
    indices = loop_indices(function, loop)
    counter = _counter(function, loop, indices)
    if counter is None or _is_left_early(function, loop):
        return frozenset()
    steps = [index for index in indices if counter.register in function.instructions[index].defs]
    compare = next(index for index in indices if function.instructions[index] is counter.compare)
    return frozenset({*steps, *_address_steps(function, indices), compare, *_latches(function, loop)})


def _is_left_early(function: Function, loop: LoopId) -> bool:
    """Whether a block leads out of a loop without being one that jumps back to its beginning."""
    region = function.loops[loop]
    closing = {function.block_of[latch] for latch in _latches(function, loop)}
    return any(
        successor not in region.blocks
        for block in region.blocks - closing
        for successor, _ in function.blocks[block].successors
    )


def _address_steps(function: Function, indices: list[int]) -> list[int]:
    """The only instruction that writes a register of an address, where it adds a constant to it."""
    code = function.instructions
    writers = Counter(register for index in indices for register in code[index].defs)
    used = {use for index in indices if code[index].info.space is not None for use in code[index].uses}
    return [
        index
        for index in indices
        for register in code[index].defs
        if code[index].guard is None
        and register in used
        and writers[register] == 1
        and _step(function, [index], register) is not None
    ]


def is_counted(function: Function, loop: LoopId) -> bool:
    """Whether a comparison with a register that steps by a constant ends the loop."""
    return _counter(function, loop, loop_indices(function, loop)) is not None


def every_pass(function: Function, loop: LoopId, index: int) -> bool:
    """Whether an instruction is reached on every pass: its block dominates every jump back."""
    block = function.block_of[index]
    return all(dominates(function, block, function.block_of[latch]) for latch in _latches(function, loop))


def dominates(function: Function, block: int, dominated: int) -> bool:
    """Whether every way to the other block leads through this one; a block dominates itself."""
    index: int | None = dominated
    while index is not None and index != block:
        index = function.idom[index]
    return index == block


def _latches(function: Function, loop: LoopId) -> list[int]:
    """The last instructions of the blocks that jump back to the header."""
    region = function.loops[loop]
    return [
        function.blocks[block].end - 1
        for block in sorted(region.blocks)
        if any(successor == region.header for successor, _ in function.blocks[block].successors)
    ]


_PREDICATES: Final = frozenset({RegisterFile.PREDICATE, RegisterFile.UNIFORM_PREDICATE})


@dataclass(frozen=True, slots=True)
class _Counter:
    """What ends a loop."""

    compare: Instruction
    step: int
    register: Register
    direct: bool  # the stepping register itself is compared


def _counter(function: Function, loop: LoopId, indices: list[int]) -> _Counter | None:
    """The comparison that ends the loop, with a register behind it that steps by a constant."""
    for compare in loop_comparisons(function, loop):
        visited = {compare}
        pending = [(compare, 0)]
        while pending:
            index, depth = pending.pop(0)
            for register in function.instructions[index].uses:
                step = _step(function, indices, register)
                if step is not None:
                    return _Counter(function.instructions[compare], step, register, direct=depth == 0)
                writer = last_writer(function, indices, register, index)
                # What a pass loads is no count: the loop ends where the data say so.
                counts = writer is not None and function.instructions[writer].info.space is None
                if writer is not None and counts and writer not in visited and depth < _COUNTER_DEPTH:
                    visited.add(writer)
                    pending.append((writer, depth + 1))
    return None


@lru_cache(maxsize=256)
def loop_comparisons(function: Function, loop: LoopId) -> tuple[int, ...]:
    """The comparisons that decide at a loop's end whether it goes on."""
    indices = loop_indices(function, loop)
    result = []
    for latch in _latches(function, loop):
        deciding = [use for use in function.instructions[latch].uses if register_file(use) in _PREDICATES]
        # A guard, or the operand of a branch on a predicate of the whole warp (``BRA.U UP0, ...``).
        compare = last_writer(function, indices, deciding[0], latch) if deciding else None
        if compare is not None and function.instructions[compare].opcode in _COMPARES:
            result.append(compare)
    return tuple(result)


def last_writer(function: Function, indices: list[int], register: Register, before: int) -> int | None:
    """The last of some instructions before another that writes a register."""
    return next(
        (
            index
            for index in reversed(indices)
            if index < before and register in function.instructions[index].defs
        ),
        None,
    )


def _step(function: Function, indices: list[int], register: Register) -> int | None:
    """The constant added to a register once per pass."""
    steps = [
        immediate(function.instructions[index])
        for index in indices
        if register in function.instructions[index].defs
        and register in function.instructions[index].uses
        and function.instructions[index].opcode in ADDITIONS
    ]
    return steps[0] if len(steps) == 1 else None


def _immediates(instruction: Instruction) -> list[int]:
    result = []
    for token in instruction.operand_texts:
        if token.lstrip("-").startswith("0x"):
            value = int(token, 16)
            result.append(value - (1 << 32) if value >= 1 << 31 else value)
    return result


def immediate(instruction: Instruction) -> int | None:
    """The one number of an instruction that is not zero; None where there are several or none."""
    values = [value for value in _immediates(instruction) if value]
    return values[0] if len(values) == 1 else None


def _constant_trips(function: Function, loop: LoopId, counter: _Counter) -> int | None:
    """Passes of a loop whose counter starts, steps and ends at constants."""
    compare, step = counter.compare, counter.step
    if not step:
        return None
    bounds = _immediates(compare)
    names_zero = "RZ" in compare.operands
    bound = bounds[0] if bounds else (0 if names_zero else None)
    start = _start_value(function, loop, counter.register)
    if bound is None or start is None:
        return None
    passes, rest = divmod(bound - start, step)
    passes += bool(rest)
    return passes if passes > 0 else None


def _start_value(function: Function, loop: LoopId, register: Register) -> int | None:
    """The constant a register holds where the loop is entered."""
    block = function.idom[function.loops[loop].header]
    for _ in range(4):
        if block is None:
            return None
        for index in range(function.blocks[block].end - 1, function.blocks[block].start - 1, -1):
            instruction = function.instructions[index]
            if register in instruction.defs:
                return _constant(instruction)
        block = function.idom[block]
    return None


def _constant(instruction: Instruction) -> int | None:
    """The value of a move of a constant."""
    if instruction.guard is not None or instruction.opcode not in {"MOV", "IMAD", "CS2R", "UMOV"}:
        return None
    if instruction.opcode == "IMAD" and "MOV" not in instruction.modifiers:
        return None
    sources = instruction.operand_texts[1:]
    values = _immediates(instruction)
    if values:
        return values[-1]
    return 0 if all(source in {"RZ", "URZ", "SRZ"} for source in sources) else None


def _copies(
    function: Function, indices: list[int], step: int | None, *, has_inner: bool
) -> tuple[int, str | None]:
    """How often the compiler (or the author) has written the body out already.

    Told by what stands several times: everything, if the body was copied; a line, if a loop inside it was.
    """
    by_line: dict[tuple[str, int, object] | None, Counter[str]] = {}
    for index in indices:
        entry = function.lines[index]
        instruction = function.instructions[index]
        info = instruction.info
        if info.opclass in _REPEATED and info.space is not MemorySpace.CONSTANT:
            key = None if entry is None else (entry.location.file, entry.location.line, entry.inline)
            by_line.setdefault(key, Counter())[instruction.opcode] += 1
    counts = [count for counter in by_line.values() for count in counter.values()]
    whole = gcd(*counts) if len(counts) > 1 and not has_inner else 1
    steps = abs(step) if step is not None and 1 < abs(step) <= _LARGEST_UNROLL else 1
    if steps > 1 and counts and not has_inner and all(count % steps == 0 for count in counts):
        return steps, f"its body stands {steps} times in it, and its counter steps by {step}"
    if whole > 1:
        return whole, f"its body stands {whole} times in it"
    repeated, line = 1, SourceLocation("", 0)
    for place, counter in by_line.items():
        factor = gcd(*counter.values())
        if place is not None and len(counter) > 1 and factor > repeated:  # one opcode may repeat by itself
            repeated, line = factor, SourceLocation(place[0], place[1])
    if repeated == 1:
        return 1, None
    return repeated, f"line {line_mark(line, with_file=False)} stands {repeated} times in it"


def _beside_remainder(function: Function, loop: LoopId) -> tuple[int, str | None]:
    """How often a loop loads what another loop of the same lines, the one for the last passes, loads once."""
    loads = _loads_by_line(function)
    counts = loads[loop]
    for load in loops_of_same_loads(function, loop):
        factors = {divmod(counts[line], loads[load][line]) for line in counts}
        copies, rest = min(factors)
        if len(factors) == 1 and copies > 1 and not rest:
            return copies, f"its loads stand {copies} times in it, and once in a loop for the last passes"
    return 1, None


def loops_of_same_loads(function: Function, loop: LoopId) -> tuple[LoopId, ...]:
    """Other loops whose loads have the same source lines and inline chains, as copies of one loop have."""
    own_lines = _loads_by_line(function)[loop].keys()
    same = _loops_by_lines(function).get(frozenset(own_lines), ()) if own_lines else ()
    return tuple(loop_id for loop_id in same if loop_id != loop)


@lru_cache(maxsize=64)
def _loops_by_lines(function: Function) -> dict[frozenset[LineEntry], list[LoopId]]:
    result: dict[frozenset[LineEntry], list[LoopId]] = {}
    for loop, loads in _loads_by_line(function).items():
        result.setdefault(frozenset(loads), []).append(loop)
    return result


@lru_cache(maxsize=64)
def _loads_by_line(function: Function) -> dict[LoopId, Counter[LineEntry]]:
    """The loads of each loop from memory other than constants, counted by source line and inline chain."""
    result: dict[LoopId, Counter[LineEntry]] = {loop.id: Counter() for loop in function.loops}
    for index, instruction in enumerate(function.instructions):
        entry, info = function.lines[index], instruction.info
        if info.opclass is OpcodeClass.LOAD and info.space is not MemorySpace.CONSTANT and entry is not None:
            for loop in function.enclosing_loops(index):
                result[loop][entry] += 1
    return result


def measured_trips(function: Function, loop: LoopId, executed: Floats) -> float | None:
    """Mean passes per entry by executed counts: of the header, over those of the block that enters it."""
    header = function.loops[loop].header
    before = function.idom[header]
    if before is None or before in function.loops[loop].blocks:
        return None
    inside = float(executed[function.blocks[header].start])
    entering = float(executed[function.blocks[before].end - 1])
    return inside / entering if entering > 0 and inside >= entering else None


def divergence(executed: Floats | None, threads: Floats | None, indices: tuple[int, ...]) -> float | None:
    """Mean threads per executed warp instruction over some instructions."""
    if executed is None or threads is None:
        return None
    positions = np.array(indices, dtype=np.intp)
    warps = float(executed[positions].sum())
    return float(threads[positions].sum()) / warps if warps else None


@lru_cache(maxsize=64)
def versions_without_inner(function: Function) -> frozenset[LoopId]:
    """Loops that stand in for another one where its inner loop has no pass: all their lines are its, too."""
    bodies = {loop.id: frozenset(loop_indices(function, loop.id)) for loop in function.loops}
    lines = {loop: {function.lines[index] for index in body} - {None} for loop, body in bodies.items()}
    outer = {loop.parent for loop in function.loops if loop.parent is not None}
    return frozenset(
        loop
        for loop in bodies.keys() - outer
        if lines[loop]
        and any(lines[loop] <= lines[other] and bodies[loop].isdisjoint(bodies[other]) for other in outer)
    )
