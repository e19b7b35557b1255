# SPDX-License-Identifier: Apache-2.0
"""Source lines for code without a line table, from the same source compiled again with one.

Where both codes are the same but for constants, the one line table is the other's. Else blocks are paired by
the instructions that both codes have in the same order, or only once, and an instruction takes the line that
all those it may be have in common; where they differ in line and are as many as here, each takes its own in
order.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from gpadvisor.analyzer.build import with_lines
from gpadvisor.model.instruction import Instruction, OpcodeClass, Register
from gpadvisor.model.program import Function, LineEntry, Program
from gpadvisor.source.line_map import match_in_order

Key: TypeAlias = Hashable
KeyInBlock: TypeAlias = tuple[int, Key]  # a block and what an instruction of it looks like

_ADDRESS: Final = re.compile(r"`\([^)]*\)|0x[0-9a-f]+")
_REGISTER: Final = re.compile(r"\b(U?R|U?P|B)\d+")
_CONSTANT: Final = re.compile(
    r"(?<![\w\[.])-?(?:0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?|[+-]?(?:INF|QNAN))(?![\w\]])"
)
_JUMPS: Final = frozenset({OpcodeClass.BRANCH, OpcodeClass.CALL, OpcodeClass.WARP_SYNC})
_ANONYMOUS: Final = re.compile(r"\(anonymous namespace\)|<unnamed>")
_DONE: Final = frozenset(
    {
        *(OpcodeClass.LOAD, OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION),
        *(OpcodeClass.ASYNC_COPY, OpcodeClass.BARRIER, OpcodeClass.SHUFFLE, OpcodeClass.VOTE),
        *(OpcodeClass.FLOAT16, OpcodeClass.FLOAT32, OpcodeClass.FLOAT64, OpcodeClass.TENSOR),
        *(OpcodeClass.TRANSCENDENTAL, OpcodeClass.CONVERSION),
    }
)
"""What a source asks for, and no compiler leaves out; addresses and moves are up to the compiler."""
_SUPPORT: Final = 2
"""A block is paired with those that have at least one in so many of the votes of the best one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """A program with the lines that were found for it."""

    program: Program
    same: frozenset[str]  # names of functions whose code is the other's, instruction by instruction
    differing: Mapping[str, float]  # of functions aligned in part, with the likeness of what both codes do

    @property
    def names(self) -> frozenset[str]:
        """Every function that has lines now."""
        return self.same.union(self.differing)


def recover_lines(program: Program, compiled: Program) -> Recovery:
    """Lines for the functions of a program that have none, from another program of the same source.

    Time grows with the number of instructions; where many of them look alike, less is aligned.
    """
    counterparts = _Counterparts(compiled)
    functions = list(program.functions)
    same: set[str] = set()
    differing: dict[str, float] = {}
    for index, function in enumerate(functions):
        counterpart = None if any(function.lines) else counterparts.of(function)
        if counterpart is None:
            continue
        lines, exact = _recovered(function, counterpart)
        if any(lines):
            functions[index] = with_lines(function, lines)
            if exact:
                same.add(function.name)
            else:
                differing[function.name] = _likeness(function, counterpart)
    result = replace(
        program, functions=tuple(functions), has_line_info=program.has_line_info or bool(same or differing)
    )
    return Recovery(program=result, same=frozenset(same), differing=differing)


class _Counterparts:
    """Functions with lines, by what they are called."""

    def __init__(self, compiled: Program) -> None:
        self._by_name: dict[str, Function] = {}
        self._by_words: dict[str, list[Function]] = defaultdict(list)
        for function in compiled.functions:
            if any(function.lines):
                self._by_name[function.name] = function
                self._by_words[_plain(function.demangled)].append(function)

    def of(self, function: Function) -> Function | None:
        """The same function: by its symbol, else the most alike of those with its name."""
        namesake = self._by_name.get(function.name)
        if namesake is not None:
            return namesake
        alike = [word for word in self._by_words[_plain(function.demangled)] if word.kind is function.kind]
        if not alike:
            return None
        counts = Counter(map(_shape, function.instructions))
        return max(
            alike, key=lambda candidate: _overlap(counts, Counter(map(_shape, candidate.instructions)))
        )


def _plain(demangled: str) -> str:
    """What stands before the parameters and template arguments, without namespaces and a return type."""
    head = _ANONYMOUS.sub("", demangled).partition("(")[0].partition("<")[0]
    return head.rpartition(" ")[2].rpartition("::")[2]


def _overlap(counts: Counter[str], other_counts: Counter[str]) -> float:
    return (counts & other_counts).total() / max(counts.total(), other_counts.total(), 1)


def _likeness(function: Function, counterpart: Function) -> float:
    """The share of accesses, barriers and floating-point operations that two codes have in common."""
    here, counts = (
        Counter(
            (instruction.opcode, instruction.modifiers)
            for instruction in code.instructions
            if instruction.info.opclass in _DONE
        )
        for code in (function, counterpart)
    )
    most = max(here.total(), counts.total())
    return (here & counts).total() / most if most else 1.0


def _recovered(function: Function, counterpart: Function) -> tuple[tuple[LineEntry | None, ...], bool]:
    """A line or None for each instruction, and whether the code is the same."""
    here, there = function.instructions, counterpart.instructions
    if len(here) == len(there) and [*map(_fixed, here)] == [*map(_fixed, there)]:
        return counterpart.lines, True
    return _Alignment(function, counterpart).lines(), False


def _fixed(instruction: Instruction) -> str:
    """All of an instruction that neither linking nor an edit of a constant changes."""
    return _CONSTANT.sub("#", _text(instruction))


def _shape(instruction: Instruction) -> str:
    """All of an instruction but which registers it uses, and where it jumps."""
    return _REGISTER.sub(r"\1", _text(instruction))


def _text(instruction: Instruction) -> str:
    text = instruction.text.replace(".reuse", "")
    if instruction.target is not None or instruction.callee is not None or instruction.info.opclass in _JUMPS:
        return _ADDRESS.sub("#", text)
    return text


def _operation(instruction: Instruction) -> str:
    """The operation; a multiplier is used for moves, additions and shifts as well."""
    if instruction.opcode == "IMAD" and instruction.modifiers:
        return f"IMAD.{instruction.modifiers[0]}"
    return instruction.opcode


def _values(function: Function, shapes: Sequence[str]) -> list[Key]:
    """What each instruction computes, as far as its block says: its shape, and those of what it reads."""
    result: list[Key] = [None] * len(shapes)
    for block in function.blocks:
        written: dict[Register, int] = {}
        for index in range(block.start, block.end):
            instruction = function.instructions[index]
            value = hash((shapes[index], tuple(written.get(use, 0) for use in instruction.uses)))
            result[index] = value
            written.update(
                (register, hash((value, position))) for position, register in enumerate(instruction.defs)
            )
    return result


class _Alignment:
    """One function beside another one with lines."""

    def __init__(self, function: Function, counterpart: Function) -> None:
        self._function, self._other = function, counterpart
        shapes = [_shape(instruction) for instruction in function.instructions]
        other_shapes = [_shape(instruction) for instruction in counterpart.instructions]
        # From the most telling to the least; only the first is unique where values are computed alike.
        self._keys: tuple[tuple[Sequence[Key], Sequence[Key]], ...] = (
            (_values(function, shapes), _values(counterpart, other_shapes)),
            (shapes, other_shapes),
            ([*map(_operation, function.instructions)], [*map(_operation, counterpart.instructions)]),
        )
        self._partners = self._paired(shapes, other_shapes)

    def lines(self) -> tuple[LineEntry | None, ...]:
        """The line of each instruction, None where that is not decided."""
        entries: dict[int, LineEntry | None] = {}
        blocks = self._function.block_of
        for level, (here, there) in enumerate(self._keys):
            candidates = self._candidates(there)
            alike: dict[tuple[frozenset[int], Key], list[int]] = defaultdict(list)
            for index, block in enumerate(blocks):
                if block in self._partners:
                    alike[self._partners[block], here[index]].append(index)
            for (partners, key), indices in alike.items():
                may_be = [
                    position for block in sorted(partners) for position in candidates.get((block, key), ())
                ]
                lines = [self._other.lines[position] for position in may_be]
                if len(set(lines)) == 1:
                    lines = lines[:1] * len(indices)
                elif not level or len(lines) != len(indices):
                    continue
                for index, line in zip(indices, lines, strict=True):
                    entries.setdefault(index, line)
        return tuple(entries.get(position) for position in range(len(blocks)))

    def _candidates(self, keys: Sequence[Key]) -> Mapping[KeyInBlock, Sequence[int]]:
        result: dict[KeyInBlock, list[int]] = defaultdict(list)
        for index, (block, key) in enumerate(zip(self._other.block_of, keys, strict=True)):
            result[block, key].append(index)
        return result

    def _paired(self, shapes: Sequence[str], other_shapes: Sequence[str]) -> Mapping[int, frozenset[int]]:
        """The blocks that each block may have become; none where nothing speaks for any."""
        votes: dict[int, Counter[int]] = defaultdict(Counter)
        for index, partner in (*match_in_order(shapes, other_shapes).items(), *_once(*self._keys[0])):
            votes[self._function.block_of[index]][self._other.block_of[partner]] += 1
        return {
            block: frozenset(
                partner for partner, count in counts.items() if _SUPPORT * count >= max(counts.values())
            )
            for block, counts in votes.items()
        }


def _once(here: Sequence[Key], there: Sequence[Key]) -> list[tuple[int, int]]:
    """What both have exactly once."""
    counts, counts_there = Counter(here), Counter(there)
    places = {key: index for index, key in enumerate(there) if counts_there[key] == 1}
    return [
        (position, places[key]) for position, key in enumerate(here) if counts[key] == 1 and key in places
    ]
