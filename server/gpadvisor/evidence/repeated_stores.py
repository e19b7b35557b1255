# SPDX-License-Identifier: Apache-2.0
"""Stores to global memory that each pass of a loop makes to the same elements, where the last would do."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gpadvisor.evidence.accesses import is_atomic, is_global, is_ordered
from gpadvisor.evidence.arrays import address_registers, has_parameters, same_array
from gpadvisor.evidence.loops import every_pass
from gpadvisor.evidence.measured import Floats, executed_warps
from gpadvisor.evidence.queries import kernel_functions, location_text, loop_indices
from gpadvisor.evidence.traffic import Traffic, counted_sectors, kernel_traffic, most_first
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function, Program
from gpadvisor.model.thread_use import CodePlace

_SEEN_BY_OTHERS: Final = frozenset(
    {OpcodeClass.MEMORY_BARRIER, OpcodeClass.CALL, OpcodeClass.INDIRECT_BRANCH}
)


def traffic_with_repeats(
    program: Program, kernel: str, profile: KernelProfile
) -> tuple[Traffic | None, dict[CodePlace, str]]:
    """Traffic with what all passes but one store taken for waste, and by place what to do about that."""
    traffic = kernel_traffic(program, kernel, profile)
    if traffic is None:
        return None, {}
    wasted, requested, cures = dict(traffic.scattered), dict(traffic.requested), dict[CodePlace, str]()
    for function in kernel_functions(program, kernel):
        executed, sectors = executed_warps(profile, function), counted_sectors(profile, function)
        if executed is None or sectors is None:
            continue
        for index in range(len(function.instructions)):
            loop = _loop_of_repeated(function, index)
            passes = 0.0 if loop is None else _passes(function, loop, executed, index)
            if loop is None or passes < 2:
                continue
            place = function.id, index
            requested[place] = float(sectors[index])
            wasted[place] = max(wasted.get(place, 0.0), (1 - 1 / passes) * float(sectors[index]))
            cures[place] = _cure(function, loop, passes)
    more = sum(wasted.values(), 0.0) - sum(traffic.scattered.values(), 0.0)
    reduced = replace(
        traffic,
        scattered=most_first(wasted),
        requested=requested,
        ideal_sectors=traffic.ideal_sectors - more,
    )
    return reduced, cures


def _cure(function: Function, loop: LoopId, passes: float) -> str:
    location = function.loops[loop].location
    where = "" if location is None else f" at {location_text(location)}"
    return (
        f"store behind the loop{where}: each of its {passes:.0f} passes stores to the same elements, which "
        "nothing in it reads"
    )


def _loop_of_repeated(function: Function, index: int) -> LoopId | None:
    """The outermost loop in which a store goes to one element that nothing in it reads."""
    store, loop_id = function.instructions[index], None
    if store.info.opclass is not OpcodeClass.STORE or not is_global(store) or store.guard is not None:
        return None
    for loop in function.enclosing_loops(index):
        inside = set(loop_indices(function, loop))
        moved = any(
            inside & function.reaching.definitions(index, register)
            for register in address_registers(function, index)
        )
        if moved or not every_pass(function, loop, index) or _is_seen(function, inside, index):
            break
        loop_id = loop
    return loop_id


def _is_seen(function: Function, inside: set[int], store: int) -> bool:
    """Whether something in a loop may read what a store writes, or tell others that it is there."""
    for index in inside:
        instruction = function.instructions[index]
        if instruction.info.opclass in _SEEN_BY_OTHERS or is_atomic(instruction):
            return True
        loads = is_global(instruction) and instruction.info.opclass is not OpcodeClass.STORE
        if (is_global(instruction) and is_ordered(instruction)) or (
            loads and _may_read(function, index, store)
        ):
            return True
    return False


def _may_read(function: Function, load: int, store: int) -> bool:
    return not has_parameters(function, load, store) or same_array(function, load, store)


def _passes(function: Function, loop: LoopId, executed: Floats, index: int) -> float:
    """How often the loop runs each time that it is entered."""
    before = function.idom[function.loops[loop].header]
    entered = 0.0 if before is None else float(executed[function.blocks[before].end - 1])
    return float(executed[index]) / entered if entered else 0.0
