# SPDX-License-Identifier: Apache-2.0
"""What keeps loads of a loop behind the pass before, however often its body stands in the code."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gpadvisor.evidence.accesses import DEVICE_SPACES
from gpadvisor.evidence.arrays import address_makers, is_indexed_by_data, same_element
from gpadvisor.evidence.loops import ADDITIONS, every_pass, last_writer, loop_comparisons, loop_facts
from gpadvisor.evidence.reordering import may_write
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import Instruction, OpcodeClass, Register, register_name
from gpadvisor.model.machine import CodeForm
from gpadvisor.model.program import Function

_AXES: Final = 3


@dataclass(frozen=True, slots=True)
class Held:
    """What loads of the next pass do not move over; the author may load before it."""

    index: int
    is_store: bool  # of the element that the pass has loaded; else a branch inside the pass


@lru_cache(maxsize=256)
def held_by(function: Function, loop: LoopId) -> Held | None:
    """The store or the branch behind which each pass loads; None where copies of the body load together.

    The compiler keeps a load behind a store that may write what it reads. It moves none into another basic
    block, and the way around a library routine for rare arguments ends one, too. Passes that each read and
    write an element of their own need no such order, nor do loads behind a branch that all of them reach.
    """
    facts = loop_facts(function, loop)
    loads = [
        index
        for index in facts.indices
        if function.instructions[index].info.opclass is OpcodeClass.LOAD
        and function.instructions[index].info.space in DEVICE_SPACES
        and every_pass(function, loop, index)
    ]
    if not loads or facts.barriers:
        return None
    stores = [
        index for index in facts.indices if function.instructions[index].info.opclass is OpcodeClass.STORE
    ]
    for load in loads:
        if not address_makers(function, load).intersection(facts.indices) or is_indexed_by_data(
            function, load
        ):
            continue  # passes may share an element
        for store in stores:
            if may_write(function.instructions[load], function.instructions[store]) and same_element(
                function, load, store
            ):
                return Held(store, is_store=True)
    return branch_between(function, loop)


def branch_between(function: Function, loop: LoopId) -> Held | None:
    """The first branch of a pass after which the pass goes on; of copies also one that ends the loop."""
    region, copies = function.loops[loop], loop_facts(function, loop).copies
    for block in sorted(region.blocks):
        targets = {successor for successor, _ in function.blocks[block].successors}
        onward = targets & region.blocks - {region.header}
        if len(onward) > 1 or (onward and copies > 1 and len(targets) > 1):
            return Held(function.blocks[block].end - 1, is_store=False)
    return None


def is_stepped_by_launch(function: Function, loop: LoopId, form: CodeForm, *, products: bool = False) -> bool:
    """Whether the counter of a loop steps by a size of the block or the grid, which CUDA gives unsigned.

    A counter that may wrap lets the compiler not count the passes ahead.

    Args:
        function: the code.
        loop: the loop.
        form: where the launch's sizes are.
        products: whether a product of such sizes counts as well.
    """
    indices = list(loop_facts(function, loop).indices)
    offsets = [at + 4 * axis for at in (form.block_size_at, form.grid_size_at) for axis in range(_AXES)]
    sizes = {f"c[0x0][{at}]" for offset in offsets for at in (f"{offset:#x}", *(() if offset else ("RZ",)))}
    for compare in loop_comparisons(function, loop):
        for counter in function.instructions[compare].uses:
            step = last_writer(function, indices, counter, compare)
            instruction = None if step is None else function.instructions[step]
            if instruction is None or step is None or counter not in instruction.uses:
                continue
            if not _adds_to(instruction, counter, products=products):
                continue
            makers = {
                maker
                for register in instruction.uses
                if register != counter
                for maker in _factors(function, step, register, products=products)
            }
            if any(
                size in function.instructions[index].operands for index in (step, *makers) for size in sizes
            ):
                return True
    return False


def _factors(function: Function, index: int, register: Register, *, products: bool) -> set[int]:
    """What a register comes from, and of a product what that comes from."""
    makers = set(function.reaching.definitions(index, register))
    for maker in tuple(makers) if products else ():
        if function.instructions[maker].opcode in {"IMAD", "UIMAD"}:
            for used in function.instructions[maker].uses:
                makers |= set(function.reaching.definitions(maker, used))
    return makers


def _adds_to(instruction: Instruction, counter: Register, *, products: bool) -> bool:
    """Whether an instruction adds to a register: a product of two sizes may be added at once."""
    added = instruction.operand_texts[-1].partition(".")[0] == register_name(counter)
    return (
        instruction.opcode in ADDITIONS
        or "IADD" in instruction.modifiers
        or (products and instruction.opcode == "IMAD" and added)
    )


def stands_at_an_end(function: Function, loop: LoopId, index: int) -> bool:
    """Whether an instruction is in a block that a pass begins or ends with: there copies of the body join."""
    block, header = function.block_of[index], function.loops[loop].header
    return block == header or any(successor == header for successor, _ in function.blocks[block].successors)
