# SPDX-License-Identifier: Apache-2.0
"""Shapes of compiled code that optimizers look for: spills, integer division, doubles by accident, slow math.

Everything here reads the machine code alone, so that it also serves where there are no samples. The numbers
in the signatures are constants of the CUDA math library's algorithms as they stand in compiled code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from gpadvisor.evidence.library_parts import SPECIAL_CASES, around, polynomials, special_cases
from gpadvisor.model.instruction import (
    Instruction,
    OpcodeClass,
    Pipe,
    Register,
)
from gpadvisor.model.machine import MachineModel
from gpadvisor.model.program import Function

WINDOW: Final = 64
"""Instructions after its start within which a sequence is followed; the longest known has about 40."""


@lru_cache(maxsize=64)
def opcode_index(function: Function) -> MappingProxyType[str, tuple[int, ...]]:
    """The instruction indices of each opcode of a function, in order."""
    found: dict[str, list[int]] = {}
    for index, instruction in enumerate(function.instructions):
        found.setdefault(instruction.opcode, []).append(index)
    return MappingProxyType({opcode: tuple(at) for opcode, at in found.items()})


def is_slow_arithmetic(instruction: Instruction) -> bool:
    """Whether an instruction is arithmetic of the special-function, conversion or double-precision units."""
    return instruction.info.opclass in _SLOW or instruction.info.pipe in {Pipe.XU, Pipe.FP64}


def is_slow_on(machine: MachineModel, instruction: Instruction) -> bool:
    """Whether an architecture takes at least ten cycles for an arithmetic instruction.

    Ten is the line of GPA's code between ordinary arithmetic (4 to 6 cycles) and slow one. Double precision
    is on either side: 8 cycles where it runs at half rate, 40 and more where it runs at 1/64.
    """
    if instruction.info.opclass not in _ARITHMETIC:
        return False
    row = machine.latency(instruction.opcode, instruction.modifiers)
    return is_slow_arithmetic(instruction) if row is None else row.min_cycles >= _LONG_LATENCY_CYCLES


_LONG_LATENCY_CYCLES: Final = 10
_ARITHMETIC: Final = frozenset(
    {
        OpcodeClass.INTEGER,
        OpcodeClass.INTEGER_MULTIPLY,
        OpcodeClass.FLOAT64,
        OpcodeClass.TRANSCENDENTAL,
        OpcodeClass.CONVERSION,
    }
)
"""Half and single precision are left out: what is slow among them (HFMA2.MMA) mostly loads a constant."""
_SLOW: Final = frozenset({OpcodeClass.TRANSCENDENTAL, OpcodeClass.CONVERSION, OpcodeClass.FLOAT64})


@dataclass(frozen=True, slots=True)
class CodeSequence:
    """A compiled operation of several instructions."""

    kind: str  # "32-bit integer division", "sinf/cosf range reduction", ...
    start: int
    indices: frozenset[int]
    operand: str | None = None  # the divisor as SASS prints it
    wide: bool = False  # whether it works on 64-bit integers
    beside: frozenset[int] = frozenset()  # what goes with it: a polynomial, the way around a rare path

    @property
    def whole(self) -> frozenset[int]:
        """Everything that a fast form does without."""
        return self.indices | self.beside


def uses(instruction: Instruction, registers: set[Register]) -> bool:
    """Whether an instruction reads one of some registers."""
    return any(used in registers for used in instruction.uses)


@dataclass(frozen=True, slots=True)
class _Signature:
    """How a library function's inline code is told: an opcode with a marker in its text."""

    kind: str
    opcodes: tuple[str, ...]
    markers: tuple[str, ...]  # one of them stands in modifiers or operands
    last: str  # opcode that ends the chain
    last_markers: tuple[str, ...] = ()
    through: str = ""  # a modifier or number that an instruction of the chain has


SINE: Final = "sinf/cosf"
SLOW_PATH: Final = "sinf/cosf slow path"
TANH: Final = "tanhf"
POWF: Final = "powf"
_ADDITIONS: Final = ("IADD3", "VIADD", "IADD")
"""Of a number to a word: before sm_90, since then, and on sm_120."""
_SIGNATURES: Final = (
    # 2/pi starts the argument reduction of sinf, cosf, tanf and sincosf.
    _Signature(
        SINE, ("FMUL",), ("0.636619", "0x3f22f983"), "FFMA", ("-5.39030", "0xa7c234c5", "-0xa7c234c5")
    ),
    # Rounding down parts the exponent; without it what is clamped was meant to be, before a fast __powf.
    _Signature("expf", ("FFMA",), ("SAT",), "MUFU", ("EX2",), through="RM"),
    _Signature(POWF, _ADDITIONS, ("0x3f3504f3", "0xc0cafb0d"), "FFMA", ("0.693147", "0x3f317218")),
    _Signature(
        "log2f",
        _ADDITIONS,
        ("0x3f3504f3", "0xc0cafb0d"),
        "FFMA",
        ("1.44269", "0x3fb8aa3b"),
        through="-0.72134751",
    ),
    _Signature(TANH, ("FMUL",), ("2.88539",), "MUFU", ("RCP",), through="EX2"),
    _Signature("logf", _ADDITIONS, ("0x3f2aaaab", "0xc0d55555"), "FFMA", ("0.693147", "0x3f317218")),
)


@lru_cache(maxsize=64)
def math_sequences(function: Function) -> tuple[CodeSequence, ...]:
    """Library math that the compiler expanded in place, with its corrections and slow paths."""
    sequences = [
        *_divisions(function),
        *_range_checked(function, _SQUARE_ROOT),
        *_range_checked(function, _RECIPROCAL),
        *slow_reductions(function),
        *_doubles(function),
    ]
    for signature in _SIGNATURES:
        for start in _starts(function, signature.opcodes, signature.markers):
            chain = _until(function, start, signature)
            if chain is not None:
                sequences.append(CodeSequence(signature.kind, start, chain))
    sequences = _with_polynomials(
        function, [replace(sequence, beside=_way_around(function, sequence)) for sequence in sequences]
    )
    return tuple(sorted(sequences, key=lambda sequence: (sequence.start, sequence.kind)))


def _way_around(function: Function, sequence: CodeSequence) -> frozenset[int]:
    """What leads around the rare path of a sequence of floats, or stands for its special arguments."""
    if "double" in sequence.kind:
        return frozenset()
    if sequence.kind == SLOW_PATH:
        return around(function, sequence.start)
    if sequence.kind in SPECIAL_CASES:
        return special_cases(function, sequence.kind, sequence.indices)
    calls = [i for i in sequence.indices if function.instructions[i].info.opclass is OpcodeClass.CALL]
    return frozenset[int]().union(*(around(function, call) for call in calls))


def _with_polynomials(function: Function, sequences: list[CodeSequence]) -> list[CodeSequence]:
    """The sequences, with the polynomials that follow the reduction of a sine's argument beside that."""
    reductions = [sequence for sequence in sequences if sequence.kind in {SINE, SLOW_PATH}]
    starts = [reduction.start for reduction in reductions if reduction.kind == SINE]
    if not starts:
        return sequences
    taken = frozenset[int]().union(*(reduction.indices for reduction in reductions))
    parts: dict[int, set[int]] = {}
    for indices in polynomials(function, opcode_index(function).get("FSEL", ()), taken):
        before = [start for start in starts if start < max(indices)]
        if before:
            parts.setdefault(max(before), set()).update(indices)
    return [
        replace(sequence, beside=sequence.beside | parts[sequence.start])
        if sequence.kind == SINE and sequence.start in parts
        else sequence
        for sequence in sequences
    ]


def _starts(function: Function, opcodes: tuple[str, ...], markers: tuple[str, ...]) -> list[int]:
    """Instructions of some opcodes that have a marker."""
    index = opcode_index(function)
    places = (place for opcode in opcodes for place in index.get(opcode, ()))
    return [place for place in places if _marked(function.instructions[place], markers)]


def _marked(instruction: Instruction, markers: tuple[str, ...]) -> bool:
    if any(marker in instruction.modifiers for marker in markers):
        return True
    return any(marker in instruction.operands for marker in markers)


def _until(function: Function, start: int, signature: _Signature) -> frozenset[int] | None:
    """The chain of floating-point work from the start to the instruction that ends the operation."""
    reached = set(function.instructions[start].defs)
    taken = {start}
    for index in range(start + 1, min(start + WINDOW, len(function.instructions))):
        instruction = function.instructions[index]
        if not uses(instruction, reached):
            continue
        taken.add(index)
        reached.update(instruction.defs)
        if instruction.opcode == signature.last and (
            not signature.last_markers or _marked(instruction, signature.last_markers)
        ):
            passed = not signature.through or any(
                _marked(function.instructions[position], (signature.through,)) for position in taken
            )
            return frozenset(taken) if passed else None
    return None


def _divisions(function: Function) -> list[CodeSequence]:
    """IEEE division: a reciprocal, its refinement, a range check and a call for the rare cases."""
    sequences = []
    for check in opcode_index(function).get("FCHK", ()):
        divisor = _divisor(function.instructions[check])
        before = () if _NUMBER.match(divisor) else range(check, max(check - WINDOW, -1), -1)
        start = next((i for i in before if _is(function.instructions[i], "MUFU", "RCP")), check)
        end = _next_call(function, check)
        if start == check:
            if end != check and not _VECTOR_REGISTER.search(divisor):
                sequences.append(_by_constant(function, check, end))
            continue
        reached = set(function.instructions[start].defs)
        taken = {start, check}
        for index in range(start + 1, end + 1):
            instruction = function.instructions[index]
            if uses(instruction, reached) or index == end:
                taken.add(index)
                reached.update(instruction.defs)
        sequences.append(CodeSequence(FLOAT_DIVISION, start, frozenset(taken), divisor))
    return sequences


def _by_constant(function: Function, check: int, end: int) -> CodeSequence:
    """A float divided by a number: its reciprocal is a literal, and the refinement stands on its line."""
    line = function.lines[check]
    near = range(max(check - _STEPS, int(function.blocks[function.block_of[check]].start)), end)
    taken = {
        index
        for index in near
        if function.instructions[index].opcode == "FFMA" and function.lines[index] == line
    }
    return CodeSequence(
        FLOAT_BY_CONSTANT,
        min({*taken, check}),
        frozenset({*taken, check, end}),
        _divisor(function.instructions[check]),
    )


_STEPS: Final = 8
"""Instructions before a range check in which its division begins."""


def _divisor(instruction: Instruction) -> str:
    """The last operand."""
    return instruction.operands.rpartition(",")[2].strip()


def _range_checked(function: Function, signature: _RangeCheck) -> list[CodeSequence]:
    """What is computed in place once its argument is found in range: an approximation and its refinement."""
    sequences = []
    for start in _starts(function, _ADDITIONS, signature.markers):
        end = _next_call(function, start)
        near = range(max(start - _STEPS, 0), min(end + _STEPS, len(function.instructions)))
        root = next((i for i in near if _is(function.instructions[i], "MUFU", signature.rough)), None)
        if root is None:
            continue
        taken, reached = {start, root, end}, set(function.instructions[start].defs)
        for index in range(min(start, root), min(end + _STEPS + 1, len(function.instructions))):
            instruction = function.instructions[index]
            if instruction.opcode == "BSYNC" and index > root:
                break
            if index == root or (instruction.opcode in signature.steps and uses(instruction, reached)):
                taken.add(index)
                reached.update(instruction.defs)
        sequences.append(CodeSequence(signature.kind, min(start, root), frozenset(taken)))
    return sequences


@dataclass(frozen=True, slots=True)
class _RangeCheck:
    """How such an operation is told: what is added to its argument, and its approximation."""

    kind: str
    markers: tuple[str, ...]
    rough: str
    steps: frozenset[str]


ROOT: Final = "square root"
_SQUARE_ROOT: Final = _RangeCheck(ROOT, ("-0xd000000", "0xf3000000"), "RSQ", frozenset({"FMUL", "FFMA"}))
RECIPROCAL: Final = "float reciprocal"
"""1 / x in source, or ``__frcp_rn()``, which compiles to the same."""
_RECIPROCAL: Final = _RangeCheck(RECIPROCAL, ("0x1800000",), "RCP", frozenset({"LOP3", "FADD", "FFMA"}))


def _doubles(function: Function) -> list[CodeSequence]:
    """Double division and square root: a rough approximation refined by multiply-adds, with a call behind."""
    sequences = []
    for start in opcode_index(function).get("MUFU", ()):
        first = function.instructions[start]
        kind = next((_DOUBLE_KINDS[name] for name in first.modifiers if name in _DOUBLE_KINDS), None)
        end = _next_call(function, start, 2 * WINDOW)  # some architectures pad doubles with NOPs
        if kind is None or end == start:
            continue
        if "drsqrt" in (function.instructions[end].callee or _called(function, end)):
            kind = "double reciprocal square root"
        reached = set(first.defs)
        taken = {start, end}
        for index in range(start + 1, end):
            instruction = function.instructions[index]
            # The last steps test whether the result is in range.
            steps = instruction.info.opclass in {OpcodeClass.FLOAT64, OpcodeClass.BRANCH} or (
                instruction.opcode in {"FFMA", "FSETP"}
            )
            if steps and uses(instruction, reached):
                taken.add(index)
                reached.update(instruction.defs)
        divisor = _divisor(first)
        if kind == DOUBLE_DIVISION and not _VECTOR_REGISTER.search(divisor):
            kind = DIVISION_BY_CONSTANT
        sequences.append(CodeSequence(kind, start, frozenset(taken), divisor))
    return sequences


FLOAT_DIVISION: Final = "float division"
DOUBLE_DIVISION: Final = "double division"
FLOAT_BY_CONSTANT: Final = "float division by a constant"
DIVISION_BY_CONSTANT: Final = "double division by a constant"
_DOUBLE_KINDS: Final = {"RCP64H": DOUBLE_DIVISION, "RSQ64H": "double square root"}
_NUMBER: Final = re.compile(r"-?\d")
"""A divisor whose reciprocal is a number, too."""
_VECTOR_REGISTER: Final = re.compile(r"\bR\d")


def _called(function: Function, index: int) -> str:
    """The name of what a call goes to, where it is known."""
    return next((call.symbol or "" for call in function.calls if call.index == index), "")


def slow_reductions(function: Function) -> list[CodeSequence]:
    """The Payne-Hanek reduction of large arguments of sinf, cosf: a table, a loop, a double multiplication.

    A branch skips it for ordinary arguments; behind the branch stands a test for infinity, and at its end the
    conversion of a 64-bit fraction to double.
    """
    sequences: dict[int, CodeSequence] = {}
    for check in opcode_index(function).get("FSETP", ()):
        if "INF" not in function.instructions[check].operands:
            continue
        for index in range(check - 1, max(check - _BEHIND_BRANCH, 0) - 1, -1):
            end = _skips_to(function, index)
            if end is not None and _holds_fraction(function, check, end):
                sequences[end] = CodeSequence(SLOW_PATH, index + 1, frozenset(range(index + 1, end)))
                break
    return list(sequences.values())


_BEHIND_BRANCH: Final = 4
_LONGEST_PATH: Final = 256


def _skips_to(function: Function, index: int) -> int | None:
    """Where a conditional forward branch goes; None for everything else."""
    instruction = function.instructions[index]
    if instruction.info.opclass is not OpcodeClass.BRANCH or instruction.target is None:
        return None
    end = function.index_of(instruction.target)
    return end if end is not None and index < end <= index + _LONGEST_PATH else None


def _holds_fraction(function: Function, start: int, end: int) -> bool:
    return any(
        start < index < end and {"F64", "S64"} <= set(function.instructions[index].modifiers)
        for index in opcode_index(function).get("I2F", ())
    )


def _is(instruction: Instruction, opcode: str, modifier: str) -> bool:
    return instruction.opcode == opcode and modifier in instruction.modifiers


def _next_call(function: Function, start: int, within: int = WINDOW // 2) -> int:
    """The next call after an index, where the rare cases are handled; the index itself where none is near."""
    for index in range(start + 1, min(start + within, len(function.instructions))):
        if function.instructions[index].info.opclass is OpcodeClass.CALL:
            return index
    return start
