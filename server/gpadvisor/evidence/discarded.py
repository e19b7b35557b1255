# SPDX-License-Identifier: Apache-2.0
"""Work of threads that store nothing of it: what only stores behind a condition use, computed by all threads.

An instruction counts if no thread without such a store needs it: neither another store, an exchange with
other threads, nor a branch around those uses what it computes. It is found as a compiler finds dead code,
with the stores behind the condition taken away (Cytron et al., TOPLAS 1991, section 7.1).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gpadvisor.evidence.accesses import is_ordered
from gpadvisor.evidence.lanes import comparisons, counted_threads, is_order, numbers_of, threads_per_warp
from gpadvisor.evidence.measured import Floats, executed_warps
from gpadvisor.evidence.queries import loop_indices
from gpadvisor.graphs import post_dominators
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass
from gpadvisor.model.kind import Kind
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function

EFFECTS: Final = frozenset(
    {
        OpcodeClass.STORE,
        OpcodeClass.ATOMIC,
        OpcodeClass.REDUCTION,
        OpcodeClass.ASYNC_COPY,
        OpcodeClass.SHUFFLE,
        OpcodeClass.VOTE,
        OpcodeClass.TENSOR,
        OpcodeClass.BARRIER,
        OpcodeClass.MEMORY_BARRIER,
        OpcodeClass.MBARRIER,
        OpcodeClass.CLUSTER_BARRIER,
        OpcodeClass.CACHE_CONTROL,
        OpcodeClass.INDIRECT_BRANCH,
        OpcodeClass.CALL,
        OpcodeClass.RETURN,
        OpcodeClass.SLEEP,
        OpcodeClass.UNKNOWN,
    }
)
"""What these do or get, other threads or the host may see."""
_RARE: Final = 0.05
"""Executions of a call, of those of the loops: less is the slow path of a division."""
_LARGEST: Final = 30_000
"""Instructions of a function that is looked at."""


class KeptOut(Kind):
    """Which threads store nothing."""

    BEYOND = "beyond"  # those whose index of the grid, which no loop moves on, is beyond the last result
    LOADERS = "loaders"  # those that a block has for loading its tile alone
    OTHERS = "others"


@dataclass(frozen=True, slots=True, kw_only=True)
class Discarded:
    """Instructions whose results some of the threads throw away."""

    shares: dict[int, float]  # by instruction, of its threads those that store nothing of it
    warps: dict[int, float]  # of its warps those in which no thread does, where it was counted
    stores: tuple[int, ...]
    conditions: frozenset[int]  # branches and predicated stores that decide
    stored: float  # share of the threads that store a result, where most of it is computed
    worst: int  # the instruction where most is thrown away
    keeps_out: KeptOut
    has_barriers: bool  # in a loop around that instruction


@dataclass(frozen=True, slots=True)
class _Counted:
    """Executions of each instruction."""

    warps: Floats
    threads: Floats
    full: float  # threads of a warp as launched


def discarded(profile: KernelProfile, function: Function, *, edge: float) -> Discarded | None:
    """What threads compute and then do not store; None where there is nothing or nothing was counted.

    With ``edge`` or more of the threads storing, the others are what any problem's edge has.
    """
    warps, threads = executed_warps(profile, function), counted_threads(profile, function)
    if warps is None or threads is None or len(function.instructions) > _LARGEST:
        return None
    if any(warps[call.index] > _RARE * warps.max() for call in function.calls):
        return None  # what is handed over in registers is not followed
    discardeds = (
        _of_level(function, level, stores, _Counted(warps, threads, threads_per_warp(profile)), edge)
        for level, stores in _few(function, threads, edge).items()
    )
    return max(
        (candidate for candidate in discardeds if candidate is not None),
        key=lambda candidate: sum(share * warps[index] for index, share in candidate.shares.items()),
        default=None,
    )


def _few(function: Function, threads: Floats, edge: float) -> dict[LoopId | None, list[int]]:
    """Stores to global memory that few of the threads come to that were there before, by the loop around."""
    by_loop: dict[LoopId | None, list[int]] = defaultdict(list)
    for index, instruction in enumerate(function.instructions):
        if (
            instruction.info.opclass is OpcodeClass.STORE
            and instruction.info.space is MemorySpace.GLOBAL
            and threads[index]
        ):
            by_loop[function.innermost_loop(index)].append(index)
    return {
        level: stores
        for level, stores in by_loop.items()
        if _together(function, stores, threads) < edge * _before(function, stores[0], threads)
    }


def _together(function: Function, stores: Iterable[int], threads: Floats) -> float:
    """Threads at stores, those behind one condition once; those of different conditions may be others."""
    most: dict[object, float] = defaultdict(float)
    for index in stores:
        key = function.block_of[index], function.instructions[index].guard
        most[key] = max(most[key], float(threads[index]))
    return sum(most.values())


def _before(function: Function, index: int, threads: Floats) -> float:
    """The most threads at any place of the same loop, or outside of all, that leads to an instruction."""
    level, most = function.innermost_loop(index), 0.0
    block: int | None = function.block_of[index]
    while block is not None:
        inside = function.blocks[block]
        if function.innermost_loop(inside.start) == level:
            most = max(most, _most(function, block, threads))
        block = function.idom[block]
    return most


def _of_level(
    function: Function, level: LoopId | None, stores: list[int], counted: _Counted, edge: float
) -> Discarded | None:
    warps, threads = counted.warps, counted.threads
    conditions = frozenset(
        {branch for index in stores for branch in deciding(function)[function.block_of[index]]}
        | {index for index in stores if function.instructions[index].guard is not None}
    )
    visited = {
        index
        for index, instruction in enumerate(function.instructions)
        if index not in stores and (instruction.info.opclass in EFFECTS or _is_ordered_load(instruction))
    }
    needed = _needed(function, visited | conditions, keep=frozenset(stores))
    only = _needed(function, stores, keep=frozenset()) - needed - set(stores)
    storing = _together(function, stores, threads)
    guarded = any(function.instructions[index].guard is not None for index in stores)
    warps_storing = float(warps[stores].max())
    shares, whole = {}, {}
    for index in only:
        passes = _passes(function, index, level, threads), _passes(function, index, level, warps)
        if passes[0] is None or passes[1] is None or not warps[index]:
            continue
        shares[index] = 1 - min(1.0, storing * passes[0] / counted.full / float(warps[index]))
        whole[index] = 0.0 if guarded else 1 - min(1.0, warps_storing * passes[1] / float(warps[index]))
    shares = {index: share for index, share in shares.items() if share > 1 - edge}
    if not shares:
        return None
    worst = max(shares, key=lambda index: shares[index] * warps[index])
    has_barriers = any(
        function.instructions[index].info.opclass is OpcodeClass.BARRIER
        for loop in function.enclosing_loops(worst)
        for index in loop_indices(function, loop)
    )
    return Discarded(
        shares=shares,
        warps={index: min(whole[index], shares[index]) for index in shares},
        stores=tuple(stores),
        conditions=conditions,
        stored=storing / _before(function, stores[0], threads),
        worst=worst,
        keeps_out=_kept_out(function, conditions, level, has_barriers=has_barriers),
        has_barriers=has_barriers,
    )


def _kept_out(
    function: Function, conditions: Collection[int], level: LoopId | None, *, has_barriers: bool
) -> KeptOut:
    """By what the comparisons behind the conditions are computed from."""
    numbers = [
        numbers_of(function, comparison)
        for comparison in comparisons(function, conditions)
        if is_order(function, comparison)
    ]
    if {"SR_TID"} in numbers and has_barriers:
        return KeptOut.LOADERS
    return KeptOut.BEYOND if level is None and {"SR_TID", "SR_CTAID"} in numbers else KeptOut.OTHERS


def _is_ordered_load(instruction: Instruction) -> bool:
    return instruction.info.opclass is OpcodeClass.LOAD and is_ordered(instruction)


def _passes(function: Function, index: int, level: LoopId | None, counts: Floats) -> float | None:
    """How often who comes to a store executes an instruction at most: in all passes of its loops."""
    loops = function.enclosing_loops(index)
    if level is not None and level not in loops:
        return None
    passes = 1.0
    for loop in loops[: loops.index(level)] if level is not None else loops:
        header, before = function.loops[loop].header, function.idom[function.loops[loop].header]
        entered = 0.0 if before is None else _most(function, before, counts)
        if not entered:
            return None
        passes *= _most(function, header, counts) / entered
    return passes


def _most(function: Function, block: int, counts: Floats) -> float:
    inside = function.blocks[block]
    return float(counts[inside.start : inside.end].max())


def _needed(function: Function, targets: Collection[int], *, keep: frozenset[int]) -> set[int]:
    """Instructions that others need, for what they read and to be come to; themselves included.

    ``keep`` is followed for its way only.
    """
    pending = [*targets]
    result = set(pending)
    while pending:
        index = pending.pop()
        instruction = function.instructions[index]
        read = (
            (instruction.guard.register,)
            if index in keep and instruction.guard
            else ()
            if index in keep
            else instruction.uses
        )
        for register in read:
            more = set(function.reaching.definitions(index, register)) - result
            result |= more
            pending += more
        more = set(deciding(function)[function.block_of[index]]) - result
        result |= more
        pending += more
    return result


@lru_cache(maxsize=32)
def deciding(function: Function) -> tuple[tuple[int, ...], ...]:
    """By block the branches that decide whether it is come to: its control dependences."""
    end = len(function.blocks)
    ways: list[list[int]] = []
    for block in function.blocks:
        last_class = function.instructions[block.end - 1].info.opclass
        leads_to = [int(to) for to, _ in block.successors]
        if not block.successors or last_class in {OpcodeClass.EXIT, OpcodeClass.RETURN}:
            leads_to.append(end)
        ways.append(list(dict.fromkeys(leads_to)))
    above = post_dominators(ways)
    by_block: list[list[int]] = [[] for _ in function.blocks]
    for number, block in enumerate(function.blocks):
        branch = block.end - 1
        for to in ways[number] if len(ways[number]) > 1 else ():
            index: int | None = to
            while index is not None and index not in {end, above[number]} and above[index] is not None:
                if branch not in by_block[index]:
                    by_block[index].append(branch)
                index = above[index]
    return tuple(map(tuple, by_block))
