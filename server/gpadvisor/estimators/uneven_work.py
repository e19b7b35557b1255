# SPDX-License-Identifier: Apache-2.0
"""Work in front of a barrier that few of a block's warps do, while the others wait for it."""

from __future__ import annotations

from collections.abc import Sequence

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.accesses import is_global, is_ordered
from gpadvisor.evidence.barriers import blocks_between
from gpadvisor.evidence.measured import executed_warps
from gpadvisor.evidence.queries import line_text, percent
from gpadvisor.evidence.trees import in_level_loop
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import OpcodeClass
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
            block = int(function.block_of[index])
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
                        one
                        for one in between
                        if executed[function.blocks[one].start] < constants.MAJORITY * executed[index]
                    ]
                    cure = _shared_out(function, few, where, part)
                    best = (work, text, cure, (function.id, start))
    return ("", "", None) if best is None else best[1:]


def _shared_out(function: Function, blocks: Sequence[int], where: str, part: float) -> str:
    """How the work of a part of the warps becomes that of more; empty where it waits for other blocks.

    What writes or adds to memory must not be done once for each warp.
    """
    code = [
        function.instructions[index]
        for block in blocks
        for index in range(function.blocks[block].start, function.blocks[block].end)
    ]
    if any(is_ordered(instruction) for instruction in code if is_global(instruction)):
        return ""
    writes = any(is_global(one) and one.info.opclass is not OpcodeClass.LOAD for one in code)
    itself = "" if writes else ", or every warp do it for itself"
    return (
        f"Let more warps share the work of {where}{itself}: only {percent(part)} of those at the barrier run "
        "it, and the others wait."
    )
