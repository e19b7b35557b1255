# SPDX-License-Identifier: Apache-2.0
"""Work in front of a barrier that few of a block's warps do, while the others wait for it."""

from __future__ import annotations

from collections.abc import Sequence

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.accesses import is_global, is_ordered
from gpadvisor.evidence.measured import executed_threads, executed_warps
from gpadvisor.evidence.queries import blocks_between, line_text
from gpadvisor.evidence.trees import in_level_loop
from gpadvisor.model.figures import percent
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import Instruction, OpcodeClass
from gpadvisor.model.machine import WARP
from gpadvisor.model.program import Function


def uneven_work(
    context: KernelContext, functions: tuple[Function, ...], barriers: set[tuple[FunctionId, int]]
) -> tuple[str, str, tuple[FunctionId, int] | None]:
    """The largest piece of work in front of some barriers that few of the warps do, its cure, and its place.

    The levels of a tree are no work to divide, whether the tree was recognised or not.
    """
    best: tuple[float, str, str, tuple[FunctionId, int]] | None = None
    for function in functions:
        executed = executed_warps(context.profile, function)
        if executed is None:
            continue
        for index in range(len(function.instructions)):
            if (function.id, index) not in barriers or executed[index] <= 0 or in_level_loop(function, index):
                continue
            block = function.block_of[index]
            before = function.idom[block]
            between = [] if before is None else blocks_between(function, before, block)
            for other in between:
                start, end = function.blocks[other].start, function.blocks[other].end
                part = float(executed[start] / executed[index])
                work = float(executed[start:end].sum())
                if constants.SMALL < part < constants.MAJORITY and (best is None or work > best[0]):
                    where = line_text(function, start)
                    text = f"Only {percent(part)} of the warps at the barrier run {where}."
                    few = [
                        block
                        for block in between
                        if executed[function.blocks[block].start] < constants.MAJORITY * executed[index]
                    ]
                    single = _is_one_for_each_lane(context, function, few, index)
                    cure = "" if single else _shared_out(function, few, where, part)
                    best = (work, text, cure, (function.id, start))
    return ("", "", None) if best is None else best[1:]


def _shared_out(function: Function, blocks: Sequence[int], where: str, part: float) -> str:
    """How the work of a part of the warps becomes that of more; empty where it waits for other blocks.

    What writes or adds to memory must not be done once for each warp.
    """
    code = _code(function, blocks)
    if any(is_ordered(instruction) for instruction in code if is_global(instruction)):
        return ""
    itself = "" if any(map(_writes_global, code)) else ", or every warp do it for itself"
    return (
        f"Let more warps share the work of {where}{itself}: only {percent(part)} of those at the barrier run "
        "it, and the others wait."
    )


def _code(function: Function, blocks: Sequence[int]) -> list[Instruction]:
    return [
        function.instructions[index]
        for block in blocks
        for index in range(function.blocks[block].start, function.blocks[block].end)
    ]


def _writes_global(instruction: Instruction) -> bool:
    return is_global(instruction) and instruction.info.opclass is not OpcodeClass.LOAD


def _is_one_for_each_lane(
    context: KernelContext, function: Function, blocks: Sequence[int], barrier: int
) -> bool:
    """Whether blocks write memory, once for each barrier and by most lanes of the warps that run them.

    Then there is no more to share: a diagonal of a table has as many elements as it has.
    """
    starts = [function.blocks[block].start for block in blocks]
    depth = len(function.enclosing_loops(barrier))
    warps, threads = executed_warps(context.profile, function), executed_threads(context.profile, function)
    looped = any(len(function.enclosing_loops(start)) > depth for start in starts)
    if warps is None or threads is None or looped or not any(map(_writes_global, _code(function, blocks))):
        return False
    return bool(threads[starts].sum() > constants.MAJORITY * WARP * warps[starts].sum())
