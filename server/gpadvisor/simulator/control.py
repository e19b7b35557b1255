# SPDX-License-Identifier: Apache-2.0
"""What happens at a branch whose condition is not known: loops run a number of times, the rest is chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from itertools import takewhile
from typing import Final

from gpadvisor.evidence.patterns import slow_reductions
from gpadvisor.model.figures import percent
from gpadvisor.model.ids import INSTRUCTION_BYTES, BlockId, SourceLocation
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass, register_file
from gpadvisor.model.program import Function, FunctionKind, LineEntry, Loop, Program
from gpadvisor.model.sentence import line_mark
from gpadvisor.simulator.configuration import SimulationConfig
from gpadvisor.simulator.loop_guards import guards
from gpadvisor.simulator.unrolling import PREDICATES, LoopPart, Passes, parts, passes

_WAIT_LOOP: Final = 16
"""A loop no longer than this around something that waits is one that waits, not one that works."""
_SHOWN_PLACES: Final = 6
_WAITING: Final = frozenset({OpcodeClass.MBARRIER, OpcodeClass.SLEEP})
_WORKING: Final = frozenset({OpcodeClass.STORE, OpcodeClass.LOAD, OpcodeClass.REDUCTION, OpcodeClass.ATOMIC})
_RESULTS: Final = frozenset(
    {OpcodeClass.STORE, OpcodeClass.REDUCTION, OpcodeClass.ATOMIC, OpcodeClass.BARRIER}
)
_SYSTEM_CALLS: Final = "c[0x4]"
"""The bank of addresses that a call of printf, a failed assertion or malloc takes its target from."""


_SLOW: Final = "slow paths of math functions are not taken: {}"
_RARE: Final = "ways to traps, failed assertions, prints and allocations are not taken: {}"


class ControlRule(IntEnum):
    """How an unknown condition is decided."""

    CHANCE = 0
    TRIPS = 1
    GUARD = 2  # of an access: by chance, and the same for all that this condition guards


@dataclass(frozen=True, slots=True)
class Decision:
    """The rule of one conditional branch or exit, should its condition not be known."""

    rule: ControlRule
    taken: float  # of CHANCE; of TRIPS, 1 where taking it stays in the loop
    trips: int
    assumption: str  # with the place left open as {}, so that like ones can be told together
    place: str
    guessed: bool = False  # of TRIPS, where nobody stated them


def together(decisions: Iterable[Decision]) -> list[str]:
    """Sentences about decisions, like ones in one."""
    places: dict[str, list[str]] = {}
    for decision in decisions:
        places.setdefault(decision.assumption, []).append(decision.place)
    result = []
    for assumption, where in places.items():
        unique = list(dict.fromkeys(where))
        text = ", ".join(unique[:_SHOWN_PLACES])
        more = f" and {len(unique) - _SHOWN_PLACES} more" if len(unique) > _SHOWN_PLACES else ""
        result.append(assumption.format(text + more))
    return result


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
    rules = _Rules(program, function, config)
    result: dict[int, Decision] = {}
    for index, instruction in enumerate(function.instructions):
        opclass = instruction.info.opclass
        if opclass is OpcodeClass.EXIT and instruction.guard is not None:
            result[index] = rules.exit(index)
        elif (opclass is OpcodeClass.BRANCH or index in rules.like_branches) and is_conditional(instruction):
            result[index] = rules.branch(index)
        elif opclass is OpcodeClass.CALL and instruction.guard is not None:
            text = "the conditional calls of {} are not made"
            result[index] = Decision(ControlRule.CHANCE, 0.0, 0, text, _where(function, index))
    return result


def guarded_access(function: Function, index: int, config: SimulationConfig) -> Decision:
    """Of an access whose guard hangs on loaded words: as of a branch around it."""
    text = (
        f"of the warps {percent(config.branch_taken, 0)} do the accesses of {{}}, whose condition is loaded"
    )
    return Decision(ControlRule.GUARD, config.branch_taken, 0, text, _where(function, index))


def is_conditional(instruction: Instruction) -> bool:
    """Whether a branch may fall through."""
    return instruction.guard is not None or "," in instruction.operands


def _where(function: Function, index: int) -> str:
    entry = function.lines[index]
    pc = f"{int(function.instructions[index].pc):#x}"
    return pc if entry is None else f"{line_words(entry)} ({pc})"


def kernel_line(entry: LineEntry) -> SourceLocation:
    """The line in the kernel's own text: of what was inlined, where that was done last."""
    return entry.inline[-1].call_site if entry.inline else entry.location


def line_words(entry: LineEntry) -> str:
    """That line as a sentence names it."""
    return f"line {line_mark(kernel_line(entry), with_file=False)}"


class _Rules:
    """The rules of one function."""

    def __init__(self, program: Program, function: Function, config: SimulationConfig) -> None:
        self._program, self._function, self._config = program, function, config
        self.like_branches = jumps(function)
        self._counted = _counting_branches(function, self.like_branches)
        loop_parts = parts(function)
        self._passes = passes(function, loop_parts, config)
        self._guards = guards(function, loop_parts, self._passes)
        self._last_passes = _last_passes(function, loop_parts, self._passes, self._counted)
        self._skipped = {path.start - 1 for path in slow_reductions(function)}

    def exit(self, index: int) -> Decision:
        """Of a conditional EXIT."""
        stated = self._config.branch_taken_at.get(int(self._function.instructions[index].pc))
        for number in self._function.enclosing_loops(index) if stated is None else ():
            if self._counted.get(number) == index or index in self._last_passes:
                return self._loop_branch(index, self._function.loops[number], 0.0)
        if stated is None and index in self._guards:
            return self._guard(index)
        if stated is None and _is_rare(self._function, index + 1):
            return Decision(ControlRule.CHANCE, 1.0, 0, _RARE, _where(self._function, index))
        probability = stated or 0.0
        text = f"of the warps {percent(probability, 0)} end at the conditional exits of {{}}"
        return Decision(ControlRule.CHANCE, probability, 0, text, _where(self._function, index))

    def branch(self, index: int) -> Decision:
        """Of a conditional branch."""
        function, where = self._function, _where(self._function, index)
        instruction = function.instructions[index]
        stated = self._config.branch_taken_at.get(int(instruction.pc))
        if stated is not None:
            text = f"of the warps {percent(stated, 0)} take the branch of {{}}, as told"
            return Decision(ControlRule.CHANCE, stated, 0, text, where)
        target = None if instruction.target is None else function.index_of(instruction.target)
        behind = index + 1 if index + 1 < len(function.instructions) else None
        if target is None or behind is None or "DIV" in instruction.modifiers:
            return Decision(ControlRule.CHANCE, 0.0, 0, "the branches of {} are not taken", where)
        for number in function.enclosing_loops(index):
            loop = function.loops[number]
            inside = function.block_of[target] in loop.blocks
            if inside != (function.block_of[behind] in loop.blocks):
                return self._loop_branch(index, loop, 1.0 if inside else 0.0)
        if index in self._skipped:
            return Decision(ControlRule.CHANCE, 1.0, 0, _SLOW, where)
        if index in self._guards:
            return self._guard(index)
        for text, rare in ((_SLOW, partial(_calls_helper, self._program)), (_RARE, _is_rare)):
            target_is_rare, next_is_rare = (rare(function, start) for start in (target, behind))
            if target_is_rare != next_is_rare:
                return Decision(ControlRule.CHANCE, 0.0 if target_is_rare else 1.0, 0, text, where)
        # Conditions that are joined by && are one: all of them hold as often as one alone would.
        tests = self._joined_tests(index)
        probability = 1.0 - (1.0 - self._config.branch_taken) ** (1.0 / tests)
        return Decision(
            ControlRule.CHANCE,
            probability,
            0,
            f"of the warps {percent(probability, 0)} take the branches of {{}}",
            where,
        )

    def _joined_tests(self, index: int) -> int:
        """How many branches to one target follow each other with a further condition alone between them."""
        own = self._function.block_of[index]
        before = takewhile(lambda block: self._tests_further(block - 1, block), range(own, 0, -1))
        after = range(own + 1, len(self._function.blocks))
        following = takewhile(lambda block: self._tests_further(block - 1, block), after)
        return 1 + sum(1 for _ in before) + sum(1 for _ in following)

    def _tests_further(self, first: int, second: int) -> bool:
        function = self._function
        ends = [function.blocks[block].end - 1 for block in (first, second)]
        one, other = (function.instructions[end] for end in ends)
        code = function.instructions[function.blocks[second].start : ends[1]]
        return (
            one.info.opclass is other.info.opclass is OpcodeClass.BRANCH
            and is_conditional(one)
            and is_conditional(other)
            and one.target is not None
            and one.target == other.target
            and list(function.blocks[second].predecessors) == [first]
            and self._guards.keys().isdisjoint(ends)
            and self._skipped.isdisjoint(ends)
            and all(instruction.info.opclass not in _RESULTS for instruction in code)
        )

    def _loop_branch(self, index: int, loop: Loop, stays: float) -> Decision:
        """Of a branch that leaves a loop or stays in it."""
        function, where = self._function, _where(self._function, index)
        if self._counted.get(loop.id) != index and index not in self._last_passes:
            return Decision(
                ControlRule.CHANCE, stays, 0, "no loop is left early by the branches of {}", where
            )
        loop_passes = self._passes[loop.header]
        if loop_passes.told_at is None and _only_waits(_code(function, loop)):
            text = "the loops that end at {} run once, since they only wait or try again"
            return Decision(ControlRule.TRIPS, stays, 1, text, where)
        times = self._last_passes.get(index, max(1, loop_passes.passes))
        guessed = loop_passes.told_at is None
        return Decision(ControlRule.TRIPS, stays, times, _loop_text(loop_passes), where, guessed)

    def _guard(self, index: int) -> Decision:
        """Of a branch or exit that only decides whether a loop is come to."""
        guard = self._guards[index]
        text = (
            "the loops behind the branches of {} are entered"
            if guard.entered
            else "parts of unrolled loops are gone round at {}: no iteration is left for them"
        )
        return Decision(
            ControlRule.CHANCE, 1.0 if guard.taken else 0.0, 0, text, _where(self._function, index)
        )


def _loop_text(loop_passes: Passes) -> str:
    text = "" if loop_passes.told_at is None else f", as told for line {loop_passes.told_at}"
    if loop_passes.copies == 1 and loop_passes.passes == loop_passes.trips:
        return f"the loops that end at {{}} run {loop_passes.trips} times{text}"
    body = (
        "" if loop_passes.copies == 1 else f", {loop_passes.copies} of them in one pass of the machine code"
    )
    return (
        f"the loops that end at {{}} run {max(1, loop_passes.passes)} times: {loop_passes.trips}"
        " iterations of the source"
        f"{text}{body}"
    )


def _last_passes(
    function: Function,
    loop_parts: Sequence[LoopPart],
    planned: Mapping[BlockId, Passes],
    counted: Mapping[int, int],
) -> dict[int, int]:
    """The pass in which an unrolled loop is left by a way out between copies of its body, by instruction.

    Where there is no other loop for the rest, what is left of the iterations is part of a pass: it ends
    behind as many copies, and the branch that counts the passes comes to one more.
    """
    parts_of = Counter(part.source for part in loop_parts)
    result: dict[int, int] = {}
    for part in loop_parts:
        if part.loop is None or part.copies == 1 or parts_of[part.source] > 1:
            continue
        loop, latch = function.loops[part.loop], counted.get(part.loop)
        whole, rest = divmod(planned[part.entry].trips, part.copies)
        ways = [] if latch is None else [end for end in _ways_out(function, loop) if end != latch]
        same = [end for end in ways if function.lines[end] == function.lines[latch or 0]]
        if rest and latch is not None and len(same) == part.copies - 1:
            result[same[rest - 1]] = result[latch] = whole + 1
    return result


def _ways_out(function: Function, loop: Loop) -> list[int]:
    """Conditional branches that leave a loop, and conditional exits, in the order of the code."""
    result = []
    for end in sorted(function.blocks[block].end - 1 for block in loop.blocks):
        instruction = function.instructions[end]
        leaves = any(
            target not in loop.blocks for target, _ in function.blocks[function.block_of[end]].successors
        )
        is_exit = instruction.info.opclass is OpcodeClass.EXIT
        if is_conditional(instruction) and (leaves or is_exit):
            result.append(end)
    return result


def _counting_branches(function: Function, like_branches: frozenset[int]) -> dict[int, int]:
    """What counts the iterations of each loop: the branch of a latch, else the first way out, or EXIT."""
    result: dict[int, int] = {}
    for loop in function.loops:
        exits, ends = [], []
        for block in sorted(loop.blocks):
            end = function.blocks[block].end - 1
            instruction = function.instructions[end]
            leaves = any(target not in loop.blocks for target, _ in function.blocks[block].successors)
            branches = instruction.info.opclass is OpcodeClass.BRANCH or end in like_branches
            if leaves and branches and is_conditional(instruction):
                exits.append((not _to_header(function, block, loop), end))
            elif instruction.info.opclass is OpcodeClass.EXIT and instruction.guard is not None:
                ends.append((False, end))
        if exits or ends:
            result[loop.id] = min(exits or ends)[1]
    return result


def _to_header(function: Function, block: BlockId, loop: Loop) -> bool:
    return any(target == loop.header for target, _ in function.blocks[block].successors)


def _code(function: Function, loop: Loop) -> Sequence[Instruction]:
    return [
        instruction
        for block in loop.blocks
        for instruction in function.instructions[function.blocks[block].start : function.blocks[block].end]
    ]


def _only_waits(code: Sequence[Instruction]) -> bool:
    """Whether a loop polls memory, tries an atomic operation again, or gathers the lanes of its warp."""
    if len(code) > _WAIT_LOOP:
        return False
    if any(instruction.info.opclass in _WAITING for instruction in code):
        return True
    working = [
        instruction
        for instruction in code
        if instruction.info.opclass in _WORKING and instruction.info.space is not MemorySpace.CONSTANT
    ]
    defined = {register for instruction in code for register in instruction.defs}
    moving = {
        register for instruction in code if defined & {*instruction.uses} for register in instruction.defs
    }
    if not working:
        votes = any(instruction.info.opclass is OpcodeClass.VOTE for instruction in code)
        return votes and all(register_file(register) in PREDICATES for register in moving)
    return len(working) == 1 and (
        "CAS" in working[0].modifiers
        or (
            working[0].info.opclass is OpcodeClass.LOAD
            and "STRONG" in working[0].modifiers
            and not moving & {*working[0].uses}
        )
    )


def _is_rare(function: Function, index: int) -> bool:
    """Whether the straight code from an instruction on traps, or calls what is not of this program."""
    if index >= len(function.instructions):
        return False
    straight = range(index, function.blocks[function.block_of[index]].end)
    indirect = {call.index for call in function.calls if call.callee is None} & {*straight}
    code = [function.instructions[place] for place in straight]
    return any(instruction.opcode == "BPT" and "TRAP" in instruction.modifiers for instruction in code) or (
        bool(indirect)
        and any(_SYSTEM_CALLS in instruction.operands and instruction.opcode == "LDC" for instruction in code)
    )


def _calls_helper(program: Program, function: Function, index: int) -> bool:
    """Whether the straight code from an instruction on calls an out-of-line routine for rare arguments.

    The body of ``pow`` is out of line for all of them.
    """
    end = function.blocks[function.block_of[index]].end
    for call in function.calls:
        if index <= call.index < end and call.callee is not None:
            callee = program.functions[call.callee]
            return callee.kind is FunctionKind.MATH_HELPER and _WHOLE_FUNCTION not in callee.name
    return False


_WHOLE_FUNCTION: Final = "__internal_accurate_pow"


def indirect_targets(function: Function, index: int) -> list[int]:
    """Places in the section that an indirect branch may lead to."""
    first = function.start // INSTRUCTION_BYTES
    block = function.blocks[function.block_of[index]]
    return [first + function.blocks[target].start for target, _ in block.successors]
