# SPDX-License-Identifier: Apache-2.0
"""What happens at a branch whose condition is not known: loops run a number of times, the rest is chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from gpadvisor.model.ids import INSTRUCTION_BYTES, BlockId
from gpadvisor.model.instruction import Instruction, OpcodeClass
from gpadvisor.model.program import Function, FunctionKind, LineEntry, Loop, Program
from gpadvisor.simulator.configuration import SimulationConfig

_WAIT_LOOP: Final = 8
"""A loop no longer than this around a try-wait or a sleep is one that waits, not one that works."""
_SHOWN_PLACES: Final = 6
_WAITING: Final = frozenset({OpcodeClass.MBARRIER, OpcodeClass.SLEEP})


class Rule(IntEnum):
    """How an unknown condition is decided."""

    CHANCE = 0
    TRIPS = 1


@dataclass(frozen=True, slots=True)
class Decision:
    """The rule of one conditional branch or exit, should its condition not be known."""

    rule: Rule
    taken: float  # of CHANCE; of TRIPS, 1 where taking it stays in the loop
    trips: int
    assumption: str  # with the place left open as {}, so that like ones can be told together
    place: str


def together(decisions: Iterable[Decision]) -> list[str]:
    """Sentences about decisions, like ones in one."""
    places: dict[str, list[str]] = {}
    for decision in decisions:
        places.setdefault(decision.assumption, []).append(decision.place)
    found = []
    for assumption, where in places.items():
        unique = list(dict.fromkeys(where))
        shown = ", ".join(unique[:_SHOWN_PLACES])
        more = f" and {len(unique) - _SHOWN_PLACES} more" if len(unique) > _SHOWN_PLACES else ""
        found.append(assumption.format(shown + more))
    return found


def jumps(function: Function) -> frozenset[int]:
    """Calls that only leave a loop: without a return address, to code of the function itself."""
    calls = {call.index for call in function.calls}
    return frozenset(
        index
        for index, instruction in enumerate(function.instructions)
        if instruction.info.opclass is OpcodeClass.CALL
        and index not in calls
        and instruction.target is not None
        and function.index_of(instruction.target) is not None
    )


def decisions(program: Program, function: Function, config: SimulationConfig) -> dict[int, Decision]:
    """The rules of a function's conditional branches and exits by instruction index."""
    like_branches = jumps(function)
    counted = _counting_branches(function, like_branches)
    found: dict[int, Decision] = {}
    for index, instruction in enumerate(function.instructions):
        opclass = instruction.info.opclass
        where = _where(function, index)
        if opclass is OpcodeClass.EXIT and instruction.guard is not None:
            taken = config.branch_taken_at.get(int(instruction.pc), 0.0)
            text = f"of the warps {taken:.0%} end at the conditional exits of {{}}"
            found[index] = Decision(Rule.CHANCE, taken, 0, text, where)
        elif (opclass is OpcodeClass.BRANCH or index in like_branches) and is_conditional(instruction):
            found[index] = _branch(program, function, index, config, counted, where)
        elif opclass is OpcodeClass.CALL and instruction.guard is not None:
            found[index] = Decision(Rule.CHANCE, 0.0, 0, "the conditional calls of {} are not made", where)
    return found


def is_conditional(instruction: Instruction) -> bool:
    """Whether a branch may fall through."""
    return instruction.guard is not None or "," in instruction.operands


def _where(function: Function, index: int) -> str:
    line = function.lines[index]
    pc = f"{int(function.instructions[index].pc):#x}"
    return pc if line is None else f"line {line.location.line} ({pc})"


def _branch(
    program: Program,
    function: Function,
    index: int,
    config: SimulationConfig,
    counted: dict[int, int],
    where: str,
) -> Decision:
    instruction = function.instructions[index]
    given = config.branch_taken_at.get(int(instruction.pc))
    if given is not None:
        text = f"of the warps {given:.0%} take the branch of {{}}, as told"
        return Decision(Rule.CHANCE, given, 0, text, where)
    target = None if instruction.target is None else function.index_of(instruction.target)
    behind = index + 1 if index + 1 < len(function.instructions) else None
    if target is None or behind is None or "DIV" in instruction.modifiers:
        return Decision(Rule.CHANCE, 0.0, 0, "the branches of {} are not taken", where)
    for number in function.enclosing_loops(index):
        loop = function.loops[number]
        inside = int(function.block_of[target]) in loop.blocks
        if inside == (int(function.block_of[behind]) in loop.blocks):
            continue
        stays = 1.0 if inside else 0.0
        if counted.get(number) != index:
            return Decision(Rule.CHANCE, stays, 0, "no loop is left early by the branches of {}", where)
        trips, why = _trips(function, loop, index, config)
        text = f"the loops that end at {{}} run {trips} times{why}"
        return Decision(Rule.TRIPS, stays, trips, text, where)
    helper = _calls_helper(program, function, target), _calls_helper(program, function, behind)
    if helper[0] != helper[1]:
        text = "slow paths of math functions are not taken: {}"
        return Decision(Rule.CHANCE, 0.0 if helper[0] else 1.0, 0, text, where)
    text = f"of the warps {config.branch_taken:.0%} take the branches of {{}}"
    return Decision(Rule.CHANCE, config.branch_taken, 0, text, where)


def _counting_branches(function: Function, like_branches: frozenset[int]) -> dict[int, int]:
    """The branch of each loop that counts its iterations: that of a latch, else the first way out."""
    found: dict[int, int] = {}
    for loop in function.loops:
        exits = []
        for block in sorted(loop.blocks):
            last = function.blocks[block].end - 1
            instruction = function.instructions[last]
            leaves = any(target not in loop.blocks for target, _ in function.blocks[block].successors)
            branches = instruction.info.opclass is OpcodeClass.BRANCH or last in like_branches
            if leaves and branches and is_conditional(instruction):
                exits.append((not _to_header(function, block, loop), last))
        if exits:
            found[loop.id] = min(exits)[1]
    return found


def _to_header(function: Function, block: BlockId, loop: Loop) -> bool:
    return any(target == loop.header for target, _ in function.blocks[block].successors)


def _trips(function: Function, loop: Loop, index: int, config: SimulationConfig) -> tuple[int, str]:
    lines = {line.location.line for line in _lines(function, loop, index)}
    for line in sorted(lines):
        if line in config.loop_trips:
            return config.loop_trips[line], f", as told for line {line}"
    size = sum(function.blocks[block].end - function.blocks[block].start for block in loop.blocks)
    if size <= _WAIT_LOOP and any(one.info.opclass in _WAITING for one in _code(function, loop)):
        return 1, ", since it only waits"
    return config.default_trips, ""


def _lines(function: Function, loop: Loop, index: int) -> Sequence[LineEntry]:
    header = function.blocks[loop.header]
    found = (function.lines[index], *function.lines[header.start : header.end])
    return [line for line in found if line is not None]


def _code(function: Function, loop: Loop) -> Sequence[Instruction]:
    return [
        instruction
        for block in loop.blocks
        for instruction in function.instructions[function.blocks[block].start : function.blocks[block].end]
    ]


def _calls_helper(program: Program, function: Function, index: int) -> bool:
    """Whether the straight code from an instruction on calls an out-of-line math routine."""
    end = function.blocks[function.block_of[index]].end
    for call in function.calls:
        if index <= call.index < end and call.callee is not None:
            return program.functions[call.callee].kind is FunctionKind.MATH_HELPER
    return False


def indirect_targets(function: Function, index: int) -> list[int]:
    """Places in the section that an indirect branch may lead to."""
    first = function.start // INSTRUCTION_BYTES
    block = function.blocks[function.block_of[index]]
    return [first + function.blocks[target].start for target, _ in block.successors]
