# SPDX-License-Identifier: Apache-2.0
"""Which addresses and guards hang on what was loaded, and which of the addresses can be drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from gpadvisor.model.instruction import Instruction, OpcodeClass
from gpadvisor.model.machine import WARP
from gpadvisor.simulator.addresses import is_uniform
from gpadvisor.simulator.meanings import IMMEDIATE, NOT_KNOWN, Meaning, Op, Special
from gpadvisor.simulator.semantics import RIGHT
from gpadvisor.simulator.slices import Bits, Relevance, SectionGraph, reads_of


class ByData(IntEnum):
    """What an address has to do with what was loaded."""

    NO = 0
    APART = 1  # each thread's is taken to lie in a sector of its own
    DRAWN = 2  # computed from drawn words as the code does it, without a number that is not known


@dataclass(frozen=True, slots=True)
class Loaded:
    """What loads decide."""

    addresses: Mapping[int, ByData]  # by place in the section
    draws: Mapping[int, int]  # bits that a load's words have, negative with a sign, by its place
    guards: frozenset[int]  # places of accesses whose guard is a condition on loaded words


_COMPUTED: Final = frozenset(
    {
        Op.ADD, Op.MUL_ADD, Op.MUL_ADD_WIDE, Op.MUL_ADD_HIGH, Op.LOGIC, Op.SHIFT, Op.SHIFT_ADD,
        Op.SHIFT_ADD_HIGH, Op.COMPARE, Op.SELECT, Op.PREDICATE_LOGIC, Op.PERMUTE, Op.ADD_WIDE, Op.SELECT_WIDE,
    }
)  # fmt: skip
"""Of words that are evenly drawn; a minimum of one would be the bound it is held against nearly always."""
_GUARDED: Final = frozenset({OpcodeClass.LOAD, OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION})
_BITS: Final = {"U8": 8, "S8": -8, "U16": 16, "S16": -16}


class _Sets(NamedTuple):
    """Registers that differ among a warp's threads, that hang on loaded words, on what else is not known."""

    differ: int
    loaded: int
    vague: int
    counted: int  # what an instruction adds to itself, or is made of that: a condition of a loop


class _Step(NamedTuple):
    """One instruction for this analysis; registers as bits."""

    read: int
    written: int
    kept: int  # of these, what is not one for the whole warp
    differs: bool | None  # whether its results do among threads; None: if what is read does
    is_load: bool
    is_vague: bool  # beside what it reads
    is_computed: bool
    counts: bool  # whether it changes what it reads


def follow_loaded(graph: SectionGraph, followed: Relevance, block: tuple[int, int, int]) -> Loaded:
    """Follow loaded words forward to the addresses of further accesses, until nothing changes.

    Of loads only those count whose own addresses differ among the threads of a warp: a word that all share
    moves none away from its neighbours.

    Args:
        graph: of the section.
        followed: its slice of addresses.
        block: size of the launch's blocks.
    """
    bits = Bits()
    steps = {place: _step(graph, followed, place, bits, block) for place in graph.instructions}
    entries = [_Sets(0, 0, 0, 0) for _ in graph.ranges]
    pending = dict.fromkeys(range(len(graph.ranges)))
    while pending:
        number = next(iter(pending))
        del pending[number]
        sets = entries[number]
        for place in range(*graph.ranges[number]):
            sets = _behind(steps[place], sets)
        for target in graph.successors[number]:
            joined = _joined(entries[target], sets)
            if joined != entries[target]:
                entries[target] = joined
                pending[target] = None
    addresses, draws, guards = {}, {}, set()
    for (start, end), entry in zip(graph.ranges, entries, strict=True):
        sets = entry
        for place in range(start, end):
            base = bits.mask(register for register, _ in followed.bases.get(place, ((), 0))[0])
            if base & sets.loaded:
                addresses[place] = ByData.APART if base & sets.vague else ByData.DRAWN
            if bits.mask(_guard_of_access(graph.instructions[place])) & sets.loaded & ~sets.counted:
                guards.add(place)
            sets = _behind(steps[place], sets)
            if steps[place].is_load and steps[place].written & sets.loaded and place in followed.meanings:
                draws[place] = _width(graph.instructions[place])
    return Loaded(addresses, draws, frozenset(guards))


def _guard_of_access(instruction: Instruction) -> tuple[int, ...]:
    guard = instruction.guard
    if guard is None or instruction.info.opclass not in _GUARDED or is_uniform(int(guard.register)):
        return ()
    return (int(guard.register),)


def _step(
    graph: SectionGraph, followed: Relevance, place: int, bits: Bits, block: tuple[int, int, int]
) -> _Step:
    instruction, meaning = graph.instructions[place], followed.meanings.get(place)
    written = graph.written(place)
    if meaning is None or meaning.op is Op.UNKNOWN:
        meaning, read = Meaning(Op.UNKNOWN), [*map(int, instruction.uses)]
    else:
        read = [*reads_of(meaning)]
    is_unknown, opclass = meaning.op is Op.UNKNOWN, instruction.info.opclass
    if instruction.guard is not None and opclass is OpcodeClass.MOVE:  # a choice of two
        read.append(int(instruction.guard.register))
    differs = True if opclass is OpcodeClass.ATOMIC else None
    if meaning.op is Op.SPECIAL:
        differs = _is_of_thread(meaning.table, block)
    elif _drops_lanes(meaning):
        differs = False
    return _Step(
        read=bits.mask(read),
        written=bits.mask(written),
        kept=bits.mask(register for register in written if not is_uniform(register)),
        differs=differs,
        is_load=is_unknown and opclass is OpcodeClass.LOAD,
        is_vague=is_unknown or any(source.kind == NOT_KNOWN for source in meaning.sources),
        is_computed=meaning.op in _COMPUTED,
        counts=opclass is not OpcodeClass.LOAD and not {*map(int, instruction.uses)}.isdisjoint(written),
    )


def _is_of_thread(special: int, block: tuple[int, int, int]) -> bool:
    """Whether a special register differs among the threads of a warp."""
    rows = {Special.TID_X: 1, Special.TID_Y: block[0], Special.TID_Z: block[0] * block[1], Special.LANE: 1}
    return special in rows and rows[Special(special)] % WARP != 0


def _drops_lanes(meaning: Meaning) -> bool:
    """Whether a number loses the bits that the threads of a warp differ in."""
    amount = meaning.sources[1] if meaning.op is Op.SHIFT else None
    return (
        amount is not None
        and amount.kind == IMMEDIATE
        and 1 << amount.value >= WARP
        and meaning.mode & RIGHT != 0
    )


def _behind(step: _Step, sets: _Sets) -> _Sets:
    """What is so behind an instruction."""
    hangs = step.read & sets.loaded != 0
    differs = step.read & sets.differ != 0 if step.differs is None else step.differs or hangs
    vague = step.is_vague or step.read & sets.vague != 0 or (hangs and not step.is_computed)
    if step.is_load:
        hangs, vague = differs, not differs
    before, kept = step.written, step.kept
    counted = not step.is_load and (step.counts or step.read & sets.counted != 0)
    return _Sets(
        sets.differ & ~before | (kept if differs else 0),
        sets.loaded & ~before | (kept if hangs else 0),
        sets.vague & ~before | (step.written if vague else 0),
        sets.counted & ~before | (step.written if counted else 0),
    )


def _joined(one: _Sets, other: _Sets) -> _Sets:
    return _Sets(*(left | right for left, right in zip(one, other, strict=True)))


def _width(instruction: Instruction) -> int:
    return next((_BITS[name] for name in instruction.modifiers if name in _BITS), 32)
