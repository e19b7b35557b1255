# SPDX-License-Identifier: Apache-2.0
"""Integer divisions by values that the compiler does not know: all that belongs to one, by what uses what.

A division is a reciprocal in floating point (round-up conversion of the divisor, ``MUFU.RCP``, conversion
back), one step that makes it an integer reciprocal, and for each number divided a high product with one or
two corrections. The compiler moves the parts that need the divisor alone out of loops, and shares them
between divisions by the same value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gpadvisor.evidence.accesses import is_memory
from gpadvisor.evidence.patterns import CodeSequence, opcode_index
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.instruction import Guard, Instruction, Register, RegisterFile, register_file
from gpadvisor.model.program import Function

_BEFORE: Final = 32
"""Instructions before a conversion in which its operand's sign is taken off."""
_REACH: Final = 4096
"""Instructions that a reciprocal is followed over; it stays in registers for a whole loop."""
_CORRECTING: Final = frozenset(
    {"IMAD", "UIMAD", "IADD3", "UIADD3", "IADD", "VIADD", "ISETP", "UISETP", "LOP3", "ULOP3", "SEL", "USEL"}
)
_PRODUCTS: Final = frozenset({"IMAD", "UIMAD"})
_ZERO: Final = frozenset({"RZ", "URZ"})
_MOVES: Final = frozenset({"MOV", "UMOV", "R2UR"})
_LOGIC: Final = frozenset({"LOP3", "ULOP3"})
_TESTS: Final = frozenset({"ISETP", "UISETP"})
_EITHER, _INVERTED = "0x3c", "0x33"
"""What LOP3 does with two signs, and with a divisor of zero."""
_ABSOLUTE: Final = frozenset({"IABS", "UIABS"})
_WIDE_CALL: Final = re.compile(r"__cuda_sm\d+_(?:div|rem)_[us]64")
_PREDICATES: Final = frozenset({RegisterFile.PREDICATE, RegisterFile.UNIFORM_PREDICATE})


@lru_cache(maxsize=64)
def integer_divisions(function: Function) -> tuple[CodeSequence, ...]:
    """All divisions and remainders, one for each reciprocal."""
    return tuple(web.sequence for web in _webs(function))


@dataclass(frozen=True, slots=True)
class DivisionSteps:
    """The high products of divisions."""

    reciprocals: Mapping[int, int]  # what makes 2^32 / divisor, and where that divisor is converted
    quotients: frozenset[int]  # that times the number divided, up to two less than what comes out


@lru_cache(maxsize=64)
def division_steps(function: Function) -> DivisionSteps:
    """The high products of all 32-bit divisions: that of a reciprocal has an addend, the others have none."""
    reciprocals: dict[int, int] = {}
    quotients: set[int] = set()
    for web in _webs(function):
        code, steps = function.instructions, web.sequence
        products = {index for index in steps.whole if _is_high_product(code[index])}
        added = {index for index in products if code[index].operand_texts[-1] not in _ZERO}
        if added and not steps.wide:
            reciprocals.update(dict.fromkeys(added, web.start))
            quotients |= products - added
    return DivisionSteps(reciprocals, frozenset(quotients))


@lru_cache(maxsize=64)
def written_divisions(function: Function) -> tuple[CodeSequence, ...]:
    """Divisions of the source, not those that the compiler adds to count passes or for a collapsed loop."""
    return tuple(
        web.sequence for web in _webs(function) if not (web.counts_passes() or web.divides_collapsed_loop())
    )


_OF_DIRECTIVE: Final = re.compile(r"_\d+_gpu$|^nvkernel_|^__omp_offloading_")
"""How the NVIDIA HPC compilers and Clang name the kernels of OpenACC and OpenMP loops."""


def division_calls(function: Function) -> frozenset[int]:
    """Calls for 64-bit divisions of the source, without those that a shorter way stands beside."""
    beside = set(_short_ways(function).values())
    statements = _statements(function)
    return frozenset(
        call.index
        for call in function.calls
        if call.index not in beside
        and not (
            function.innermost_loop(call.index) is None and _location(function, call.index) in statements
        )
    )


@lru_cache(maxsize=64)
def _webs(function: Function) -> tuple[_Web, ...]:
    starts = opcode_index(function)
    converted = sorted((*starts.get("I2F", ()), *starts.get("UI2F", ())))
    rounded_up = [index for index in converted if "RP" in function.instructions[index].modifiers]
    short = _short_ways(function) if rounded_up else {}
    webs = [_Web(function, start, short=start in short) for start in rounded_up]
    return tuple(web for web in webs if web.is_division)


def _short_ways(function: Function) -> dict[int, int]:
    """Conversions that start the short way of a 64-bit division, with the call for the other numbers.

    Its operands take the short way if they fit in 32 bits; both ways leave the same basic block.
    """
    result = {}
    for call in function.calls:
        if call.symbol is None or not _WIDE_CALL.search(call.symbol):
            continue
        block = function.block_of[call.index]
        above = function.idom[block]
        for block_id, _ in () if above is None else function.blocks[above].successors:
            if block_id != block:
                bounds = function.blocks[block_id]
                for index in range(bounds.start, bounds.end):
                    if function.instructions[index].opcode in {"I2F", "UI2F"}:
                        result[index] = call.index
    return result


@lru_cache(maxsize=64)
def _statements(function: Function) -> frozenset[SourceLocation | None]:
    """Lines of loop statements."""
    return frozenset(loop.location for loop in function.loops if loop.location is not None)


def _location(function: Function, index: int) -> SourceLocation | None:
    entry = function.lines[index]
    return None if entry is None else entry.location


class _Web:
    """The instructions of the divisions by one reciprocal."""

    def __init__(self, function: Function, start: int, *, short: bool) -> None:
        self._function = function
        self._code = function.instructions
        self._taken = {start}
        self._short = short
        self.start = start
        first = self._code[start]
        self._divisor = set(first.uses)
        self._text = _operand(first, 1)
        self._users: list[int] = []  # of quotients and remainders, outside
        self._copies: set[int] = set()  # of the divisor, which steps of the division may use
        self.is_division = False
        self._look_back(start)
        self._follow(start)
        self._add_signs()

    @property
    def sequence(self) -> CodeSequence:
        """The division with its kind and its place, which is the line that most of it has."""
        wide = self._short or any("64" in modifier for modifier in self._code[self.start].modifiers)
        kind = f"{64 if wide else 32}-bit integer division"
        return CodeSequence(kind, self._place(), frozenset(self._taken), self._text, wide=wide)

    def _look_back(self, start: int) -> None:
        """The absolute value of a signed divisor, and the divisor itself."""
        for index in range(start - 1, max(start - _BEFORE, -1), -1):
            instruction = self._code[index]
            if self._divisor.intersection(instruction.defs):
                if instruction.opcode in _ABSOLUTE:
                    self._taken.add(index)
                    self._divisor.update(instruction.uses)
                    self._text = _operand(instruction, 1)
                    self._absolute_again(index)
                return

    def _absolute_again(self, first: int) -> None:
        """The divisor's absolute value is computed once more to be negated."""
        for index in range(first + 1, self.start):
            instruction = self._code[index]
            if instruction.opcode in _ABSOLUTE and _operand(instruction, 1) == self._text:
                self._taken.add(index)
                self._divisor.update(instruction.defs)

    def _follow(self, start: int) -> None:
        reached = set(self._code[start].defs)
        stages = ["MUFU", "F2I"]
        anew: set[tuple[Guard, Register]] = set()  # written again under a condition, and read under it
        for index in range(start + 1, min(start + _REACH, len(self._code))):
            instruction = self._code[index]
            guard = instruction.guard
            if any(
                guard is None or (guard, used) not in anew for used in reached.intersection(instruction.uses)
            ):
                if stages and instruction.opcode == stages[0]:
                    stages.pop(0)
                    self.is_division = not stages
                if stages or instruction.opcode == "F2I" or self._belongs(instruction, reached):
                    self._taken.add(index)
                    reached.update(instruction.defs)
                    continue
                self._users.append(index)
            elif self._is_of_divisor(instruction):
                (self._taken if instruction.opcode in _ABSOLUTE else self._copies).add(index)
                self._divisor.update(instruction.defs)
                reached.difference_update(instruction.defs)
                continue
            if guard is None:
                reached.difference_update(instruction.defs)
                self._divisor.difference_update(instruction.defs)
                anew = {
                    (where, register) for where, register in anew if where.register not in instruction.defs
                }
            else:
                anew.update((guard, written) for written in instruction.defs)
            if not reached or (stages and index - start > _BEFORE):
                return

    def _belongs(self, instruction: Instruction, reached: set[Register]) -> bool:
        """Whether an instruction that uses a result is a step of a division and not what it is for."""
        if self._is_move(instruction):
            return True
        if instruction.opcode not in _CORRECTING:
            return False
        if "SEL" in instruction.opcode or _is_high_product(instruction):
            return True
        if instruction.guard is not None and instruction.guard.register in reached:
            return True
        if self._divisor.intersection(instruction.uses):
            return True
        text = self._text
        if text is not None and not text.startswith("R") and text in instruction.operands:
            return True
        return _negates(instruction) and not reached.isdisjoint(instruction.uses)

    def _is_of_divisor(self, instruction: Instruction) -> bool:
        """Whether an instruction computes the divisor's absolute value again, or negates it."""
        if instruction.opcode in _ABSOLUTE:
            return _operand(instruction, 1) == self._text
        moves = self._is_move(instruction) or _negates(instruction)
        return moves and not self._divisor.isdisjoint(instruction.uses)

    @staticmethod
    def _is_move(instruction: Instruction) -> bool:
        return instruction.opcode in _MOVES or "MOV" in instruction.modifiers

    def _add_signs(self) -> None:
        """What stands beside the chain: absolute values, the sign of the result, the answer for zero."""
        last = max(self._taken)
        for index in range(last + 1, min(last + _BEFORE, len(self._code))):
            instruction = self._code[index]
            answers = instruction.opcode in _LOGIC and _INVERTED in instruction.operand_texts
            if answers and instruction.guard is not None and self._divisor.intersection(instruction.uses):
                self._taken.add(index)
                break
        waiting = sorted(self._taken)
        while waiting:
            index = waiting.pop()
            instruction = self._code[index]
            guard = () if instruction.guard is None else (instruction.guard.register,)
            for register in (*instruction.uses, *guard):
                for writer in self._function.reaching.definitions(index, register):
                    near = self.start - _BEFORE <= writer < last + _BEFORE and writer not in self._taken
                    if near and self._is_beside(writer, is_guard=register in guard):
                        self._taken.add(writer)
                        waiting.append(writer)

    def _is_beside(self, index: int, *, is_guard: bool) -> bool:
        """The negated divisor, an absolute value, the test of a sign or of zero, the signs put together."""
        instruction = self._code[index]
        signs = instruction.opcode in _LOGIC and _EITHER in instruction.operand_texts
        tests = is_guard and instruction.opcode in _TESTS and not _ZERO.isdisjoint(instruction.operand_texts)
        return index in self._copies or instruction.opcode in _ABSOLUTE or signs or tests

    def counts_passes(self) -> bool:
        """Whether what comes out only decides how often a loop runs.

        It is outside of loops, on the line of a loop's statement, and no address or value in memory.
        """
        if any(self._function.innermost_loop(index) is not None for index in self._taken):
            return False
        accessed = any(is_memory(self._code[index]) for index in self._users)
        return _location(self._function, self._place()) in _statements(self._function) and not accessed

    def divides_collapsed_loop(self) -> bool:
        """Whether it takes the numbers of several loops out of one: a directive's, on the loops' own line."""
        places = {_location(self._function, index) for index in (self._place(), self.start)}
        return bool(_OF_DIRECTIVE.search(self._function.name)) and not places.isdisjoint(
            _statements(self._function)
        )

    def _place(self) -> int:
        """An instruction of the line that most of the division has.

        The short way of a 64-bit division has the line of what stands before it, such as an early exit: there
        it is the first use on another line.
        """
        if self._short:
            before = _location(self._function, self.start)
            behind = [index for index in sorted((*self._taken, *self._users)) if index > self.start]
            return next((index for index in behind if _location(self._function, index) != before), self.start)
        lines = Counter(_location(self._function, index) for index in sorted(self._taken))
        line = lines.most_common(1)[0][0]
        on_line = [index for index in sorted(self._taken) if _location(self._function, index) == line]
        return next(
            (index for index in on_line if self._function.innermost_loop(index) is not None), on_line[0]
        )


def _is_high_product(instruction: Instruction) -> bool:
    return instruction.opcode in _PRODUCTS and "HI" in instruction.modifiers


def _negates(instruction: Instruction) -> bool:
    """Whether an instruction changes the sign of a register."""
    registers = [used for used in instruction.uses if register_file(used) not in _PREDICATES]
    operands = instruction.operands
    return (
        instruction.opcode in _CORRECTING
        and len(registers) == 1
        and ("-R" in operands or "-UR" in operands)
        and "RZ" in operands
    )


def _operand(instruction: Instruction, number: int) -> str | None:
    operands = instruction.operand_texts
    return operands[number].removesuffix(".reuse") if len(operands) > number else None
