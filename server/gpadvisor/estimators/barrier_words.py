# SPDX-License-Identifier: Apache-2.0
"""What to say of barriers that need not be, or need not hold the whole block."""

from __future__ import annotations

from typing import Final

import numpy as np

from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.barriers import Needless, is_barrier, needless_barriers
from gpadvisor.evidence.common_loads import last_barrier
from gpadvisor.evidence.divisions import integer_divisions
from gpadvisor.evidence.exchanges import exchange_barriers
from gpadvisor.evidence.lanes import active_share
from gpadvisor.evidence.queries import RowIndices, by_role, by_stall, line_text, loop_indices, share
from gpadvisor.evidence.serial_sums import serial_sums
from gpadvisor.evidence.trees import has_few_elements, joins_doubles, leaves_by_remainder, tree_barriers
from gpadvisor.machine.timing import SLOW_DOUBLES, times_as_slow
from gpadvisor.model.advice import StaticSite
from gpadvisor.model.blame import NO_INDEX, Blame, Role
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.program import Function
from gpadvisor.model.sentence import capitalised, uncapitalised
from gpadvisor.model.stalls import StallClass

SHOWN: Final = 4
"""Barriers that a sentence names."""
_NEEDLESS: Final = {
    Needless.OWN: "barrier behind which each thread reads what it wrote itself",
    Needless.NOTHING_SHARED: "barrier that orders no access of one thread before one of another",
    Needless.ONLY_STORES: "barrier between stores to shared memory, which nobody reads in between",
}


_FEW: Final = 4
"""Where more barriers than these are passed once, a single one that can go is nothing to mend."""
_EXCHANGE: Final = "barrier of the block in each step of an exchange whose distance halves"


def needless_sites(context: KernelContext, functions: tuple[Function, ...]) -> tuple[StaticSite, ...]:
    """Barriers that can go, of the surest kind: own values, nothing shared, or those with a condition."""
    ids = {function.id for function in functions}
    found = sorted(
        (
            ([*_NEEDLESS].index(kind), place, kind)
            for place, kind in needless_barriers(context.program, context.others).items()
        ),
    )
    sites = tuple(
        StaticSite(function=function, index=index, detail=_NEEDLESS[kind])
        for _, (function, index), kind in found
        if function in ids
    )
    surest = _surest(sites) or _exchanges(context, functions)
    return surest if context.blame is not None or stages_own(surest) else _often_passed(functions, surest)


def _exchanges(context: KernelContext, functions: tuple[Function, ...]) -> tuple[StaticSite, ...]:
    """Without samples: barriers of which only those between far partners are needed."""
    if context.blame is not None or (context.profile is not None and context.profile.has_blocks_of_one_warp):
        return ()
    return tuple(
        StaticSite(function=function.id, index=index, detail=_EXCHANGE)
        for function in functions
        for index in exchange_barriers(function)
    )


def _often_passed(functions: tuple[Function, ...], sites: tuple[StaticSite, ...]) -> tuple[StaticSite, ...]:
    """Without samples: of what is passed once nothing beside a barrier of a loop, nor one beside several."""
    barriers = [
        (function, index)
        for function in functions
        for index in range(len(function.instructions))
        if is_barrier(function, index)
    ]
    in_loop = {
        (function.id, index) for function, index in barriers if function.innermost_loop(index) is not None
    }
    if not in_loop and len(sites) == 1 and len(barriers) > _FEW:
        return ()
    return tuple(site for site in sites if not in_loop or (site.function, site.index) in in_loop)


def _surest(redundant: tuple[StaticSite, ...]) -> tuple[StaticSite, ...]:
    """Needless barriers of the kind that the words are about."""
    for kind in (Needless.OWN, Needless.NOTHING_SHARED):
        if sites := tuple(site for site in redundant if site.detail == _NEEDLESS[kind]):
            return sites
    return redundant


def redundant_title(redundant: tuple[StaticSite, ...]) -> str:
    """What is told of barriers without samples."""
    if redundant[0].detail == _EXCHANGE:
        return "barrier of the block where threads of one warp exchange elements"
    return "barrier without anything to protect"


def stages_own(redundant: tuple[StaticSite, ...]) -> bool:
    """Whether barriers are those behind which each thread reads only what it wrote itself."""
    return bool(redundant) and redundant[0].detail == _NEEDLESS[Needless.OWN]


def redundant_advice(context: KernelContext, redundant: tuple[StaticSite, ...]) -> str:
    """What can be removed, and what to see to before: the code shows one build of the source."""
    kind = redundant[0].detail
    places = list(dict.fromkeys(site_text(context, site) for site in redundant))
    several = len(places) > 1
    where = f"barrier{'s' if several else ''} at {', '.join(places[:SHOWN])}"
    cure = f"Remove the {where}{in_all_uses(context, redundant[0])}"
    them = "them" if several else "it"
    if kind == _EXCHANGE:
        warp, block = (term.of(context.language) for term in (terms.WARP_BARRIER, terms.BLOCK_BARRIER))
        return (
            f"Use {warp} at {', '.join(places[:SHOWN])} in steps whose distance is 16 or less, and "
            f"{block} in the others and once behind the loop: thread t then meets thread t ^ distance "
            "of its own warp, before and after."
        )
    if kind == _NEEDLESS[Needless.NOTHING_SHARED]:
        return f"{cure}: no access of one thread needs {them} before one of another."
    return (
        f"{cure}, unless two threads write the same element: on both sides threads only write shared memory, "
        "and nobody reads it until the next barrier."
    )


def one_warp_advice(context: KernelContext) -> str:
    """What a block of one warp does without."""
    block, warp = (term.of(context.language) for term in (terms.BLOCK_BARRIER, terms.WARP_BARRIER))
    return f"Replace {block} by {warp}: a block is one warp here."


def in_all_uses(context: KernelContext, site: StaticSite) -> str:
    """Of a template, other instantiations may be in other files, as other callers of an inlined function."""
    function = context.program.functions[site.function]
    entry = function.lines[site.index]
    if entry is not None and entry.inline:
        name = (entry.inline[0].function or "that function").partition("(")[0]
        return f", if this holds for all callers of {name}"
    return ", if this holds for every instantiation" if "<" in function.demangled else ""


def waited_barriers(context: KernelContext, blame: Blame, rows: RowIndices) -> set[tuple[FunctionId, int]]:
    """The barriers that warps wait at; a warp is sampled some instructions behind its barrier."""
    places = {(int(blame.rows.function[row]), int(blame.rows.use_index[row])) for row in rows.tolist()}
    barriers = {
        (FunctionId(function), last_barrier(context.program.functions[function], index))
        for function, index in places
        if index != NO_INDEX
    }
    return {(function, barrier) for function, barrier in barriers if barrier is not None}


def is_scattered(context: KernelContext, number: FunctionId, barrier: int) -> bool:
    """Whether a tree's active threads are apart, the report has counted them, and it saves work to mend that.

    Neighbours need no division for who takes part, and whole warps of them branch around a level. They save
    nothing where a mask tells who does, and all of a level stands under that predicate, which a warp without
    threads executes as well.
    """
    function = context.program.functions[number]
    loop = function.innermost_loop(barrier)
    counted = context.profile is not None and active_share(context.profile, function) is not None
    if loop is None or not counted or not leaves_by_remainder(function, loop):
        return False
    divided = {index for sequence in integer_divisions(function) for index in sequence.indices}
    return len(function.loops[loop].blocks) > 1 or not divided.isdisjoint(loop_indices(function, loop))


def trees_for_shuffles(context: KernelContext, function: Function) -> tuple[int, ...]:
    """The barriers of trees that shuffles make shorter.

    By shuffles all warps add their five levels up, where one warp did: three times the additions for a block
    of 128. Where doubles are slow those set the pace; a tree of three arrays simulates at 0.9x then. Without
    samples one that is written out behind the loops of a kernel is nothing beside them, and neither is one
    that is passed once and has fewer instructions than a pass of another loop.
    """
    slow = times_as_slow(context.program.arch) >= SLOW_DOUBLES
    levels = tree_barriers(function)
    if context.blame is None and function.loops:
        levels = tuple(
            index
            for index in levels
            if function.innermost_loop(index) is not None and not _is_beside_longer_loop(function, index)
        )
    return tuple(index for index in levels if not (slow and joins_doubles(function, index)))


_MOST_LEVELS: Final = 10
"""Of a tree over the 1024 threads that a block can have."""


def _is_beside_longer_loop(function: Function, level: int) -> bool:
    loops = function.enclosing_loops(level)
    tree = _MOST_LEVELS * len(loop_indices(function, loops[0]))
    return len(loops) == 1 and any(
        tree <= len(loop_indices(function, loop.id)) for loop in function.loops if loop.id != loops[0]
    )


def waits_for_levels(context: KernelContext, blame: Blame, function: Function) -> bool:
    """Whether warps wait at the levels of a function's tree, so that shuffles in their place are told."""
    levels = {(function.id, index) for index in trees_for_shuffles(context, function)}
    waits = by_stall(blame, {StallClass.SYNCHRONIZATION}) & by_role(blame, Role.BLAMED, Role.SELF)
    waits &= blame.rows.function == function.id
    return (
        share(blame, waits) >= constants.NOTABLE
        and not levels.isdisjoint(waited_barriers(context, blame, np.flatnonzero(waits)))
        and not any(is_scattered(context, *place) for place in levels)
    )


def tree_advice(context: KernelContext, trees: tuple[StaticSite, ...]) -> str:
    """How a tree gets along without holding the block at every level."""
    return (
        f"Let each warp combine its 32 values by shuffles{terms.SHUFFLES_AND_SCAN.of(context.language)}, "
        "so that only one value of each warp goes through shared memory: the barrier at "
        f"{site_text(context, trees[0])} holds the whole block at every level of a tree."
    )


def static_tree_advice(context: KernelContext, trees: tuple[StaticSite, ...]) -> str:
    """The same without samples: what comes before shuffles goes by the code and the launch alone."""
    function = context.program.functions[trees[0].function]
    loop = function.innermost_loop(trees[0].index)
    first = []
    if loop is not None and leaves_by_remainder(function, loop):
        first.append(
            "let the active threads be neighbours, so that whole warps skip a level: by a remainder some of "
            "every warp take part"
        )
    sms = None if context.profile is None else context.profile.device.sms
    spare = context.profile is not None and sms and context.profile.launch.blocks >= _MANY_BLOCKS * sms
    if spare and has_few_elements(function):
        first.append("give each thread more elements, which it joins before the tree")
    if not first:
        return tree_advice(context, trees)
    text = "; ".join(first)
    shuffles = tree_advice(context, trees)
    return f"{capitalised(text)}. Then {uncapitalised(shuffles)}"


_MANY_BLOCKS: Final = 8
"""Blocks for each SM of which half may go without SMs going empty."""


def serial_sites(context: KernelContext, functions: tuple[Function, ...]) -> tuple[StaticSite, ...]:
    """Where one thread adds up what the block's threads stored; nowhere in a block of one warp."""
    if context.profile is not None and context.profile.has_blocks_of_one_warp:
        return ()
    return tuple(
        StaticSite(function=function.id, index=index, detail="one thread adds up the values of the block")
        for function in functions
        for index in serial_sums(function, context.program.form)
    )


def serial_advice(context: KernelContext, serial: tuple[StaticSite, ...]) -> str:
    """How a block adds up its values together."""
    return (
        f"Let each warp combine its 32 values by shuffles{terms.SHUFFLES.of(context.language)}, and one warp "
        f"the results: one thread of the block does it alone at {site_text(context, serial[0])}, in a pass "
        "for each value."
    )


def site_text(context: KernelContext, site: StaticSite) -> str:
    """Where a place in the code comes from."""
    return line_text(context.program.functions[site.function], site.index)
