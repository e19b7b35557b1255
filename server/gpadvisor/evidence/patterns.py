# SPDX-License-Identifier: Apache-2.0
"""Shapes of compiled code that optimizers look for: spills, integer division, doubles by accident, slow math.

Everything here reads the machine code alone, so that it also serves where there are no samples. The numbers
in the signatures are constants of the CUDA math library's algorithms as they stand in compiled code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from gpadvisor.model.instruction import (
    Instruction,
    MemorySpace,
    OpcodeClass,
    Pipe,
    Register,
    RegisterFile,
    register,
    register_file,
)
from gpadvisor.model.machine import MachineModel
from gpadvisor.model.program import Definitions, Function

_WINDOW: Final = 64
"""Instructions after its start within which a sequence is followed; the longest known has about 40."""

_STACK_SLOT: Final = re.compile(r"\[R1(?:\.\w+)?(?:\+?(?P<offset>-?0x[0-9a-f]+))?\]")
"""An address of the stack pointer and a constant."""
_STACK_POINTER: Final = register(RegisterFile.GPR, 1)


@lru_cache(maxsize=64)
def opcode_index(function: Function) -> MappingProxyType[str, tuple[int, ...]]:
    """The instruction indices of each opcode of a function, in order."""
    found: dict[str, list[int]] = {}
    for index, instruction in enumerate(function.instructions):
        found.setdefault(instruction.opcode, []).append(index)
    return MappingProxyType({opcode: tuple(at) for opcode, at in found.items()})


def is_memory(instruction: Instruction) -> bool:
    """Whether an instruction reads or writes memory through the load/store or texture unit."""
    return instruction.info.space is not None and instruction.info.opclass in _MEMORY


_MEMORY: Final = frozenset(
    {
        OpcodeClass.LOAD,
        OpcodeClass.STORE,
        OpcodeClass.ATOMIC,
        OpcodeClass.REDUCTION,
        OpcodeClass.ASYNC_COPY,
    }
)
DEVICE_SPACES: Final = frozenset({MemorySpace.GLOBAL, MemorySpace.GENERIC})
"""Where a global access may go; generic ones may turn out to be shared or local."""


def is_global(instruction: Instruction) -> bool:
    """Whether an instruction accesses global (or generic) memory."""
    return is_memory(instruction) and instruction.info.space in DEVICE_SPACES


def is_local(instruction: Instruction) -> bool:
    """Whether an instruction accesses local memory."""
    return is_memory(instruction) and instruction.info.space is MemorySpace.LOCAL


def is_shared(instruction: Instruction) -> bool:
    """Whether an instruction accesses shared memory."""
    return is_memory(instruction) and instruction.info.space is MemorySpace.SHARED


def is_ordered(instruction: Instruction) -> bool:
    """Whether a memory access is volatile or atomic by its scope, so that the compiler keeps its place."""
    return any(modifier in _SCOPED for modifier in instruction.modifiers)


_SCOPED: Final = frozenset({"STRONG", "ACQUIRE", "MMIO"})


def is_stack_slot(instruction: Instruction) -> bool:
    """Whether a local access names a fixed place of the frame, as register spills do.

    An array that is indexed at run time has its index in the address.
    """
    return is_local(instruction) and _STACK_SLOT.search(instruction.operands) is not None


def one_way_slots(function: Function, indices: Iterable[int]) -> set[int]:
    """Of accesses to fixed places of the frame, those to places that are only written or only read.

    A spilled register is both. What else is there was put for, or by, a function that is called: arguments of
    printf, results by address.
    """
    written: set[int] = set()
    read: set[int] = set()
    places = {}
    for index in indices:
        instruction = function.instructions[index]
        found = _STACK_SLOT.search(instruction.operands)
        if found is not None:
            offset = int(found.group("offset") or "0", 16)
            places[index] = range(offset, offset + (instruction.width_bytes or 4))
            (written if instruction.info.opclass is OpcodeClass.STORE else read).update(places[index])
    both = written & read
    return {index for index, place in places.items() if both.isdisjoint(place)}


def passes_stack_on(function: Function) -> bool:
    """Whether the address of the stack frame goes into another register than the pointer itself."""
    return any(
        _STACK_POINTER in one.uses
        and _STACK_POINTER not in one.defs
        and one.info.opclass in {OpcodeClass.INTEGER, OpcodeClass.INTEGER_MULTIPLY, OpcodeClass.MOVE}
        for one in function.instructions
    )


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


def _uses(instruction: Instruction, registers: set[Register]) -> bool:
    return any(used in registers for used in instruction.uses)


def double_excursions(function: Function) -> tuple[CodeSequence, ...]:
    """Single precision turned into double and back: mostly a literal without ``f``."""
    found = list(_float_sums(function))
    known = frozenset().union(*(one.indices for one in found))
    for start in opcode_index(function).get("F2F", ()):
        if start not in known and function.instructions[start].modifiers[:2] == _TO_DOUBLE:
            chain = _through_doubles(function, start)
            if chain is not None:
                added = all(_adds_registers(function.instructions[index]) for index in chain)
                found.append(CodeSequence(DOUBLE_SUM if added else "float to double and back", start, chain))
    return tuple(found)


DOUBLE_SUM: Final = "float added to a double"


_TO_DOUBLE: Final = ("F64", "F32")
_TO_FLOAT: Final = ("F32", "F64")


def _float_sums(function: Function) -> Iterator[CodeSequence]:
    """Sums that a loop carries in a double, into which only floats go and of which a float is made."""
    opcodes = opcode_index(function)
    ends = [at for at in opcodes.get("F2F", ()) if function.instructions[at].modifiers[:2] == _TO_FLOAT]
    if not ends or "DADD" not in opcodes:
        return
    reaching = function.reaching
    known: frozenset[int] = frozenset()
    for end in ends:
        web = _sum_of_floats(function, reaching, end)
        starts = [at for at in web if function.instructions[at].modifiers[:2] == _TO_DOUBLE]
        if any(function.innermost_loop(at) is not None for at in starts) and not web <= known:
            known |= web
            yield CodeSequence(DOUBLE_SUM, min(starts), web)


def _sum_of_floats(function: Function, reaching: Definitions, end: int) -> frozenset[int]:
    """The additions that a double comes from, with the conversions at both ends; empty if others go in."""
    taken, copies, pending = {end}, set[int](), [end]
    while pending:
        use = pending.pop()
        for read in function.instructions[use].uses:
            if register_file(read) is not RegisterFile.GPR:
                continue
            for at in reaching.definitions(use, read) - taken - copies:
                one = function.instructions[at]
                if one.opcode == "F2F" and one.modifiers[:2] == _TO_DOUBLE:
                    taken.add(at)
                elif one.opcode == "DADD" and _adds_registers(one):
                    taken.add(at)
                    pending.append(at)
                elif one.info.opclass is OpcodeClass.MOVE or one.operands.endswith("SRZ"):  # zero, at first
                    copies.add(at)
                    pending.append(at)
                else:
                    return frozenset()
    return frozenset(taken)


def _adds_registers(instruction: Instruction) -> bool:
    """Whether an instruction is no double arithmetic but that of a sum, which has no literal."""
    if instruction.info.opclass is not OpcodeClass.FLOAT64:
        return True
    return instruction.opcode == "DADD" and _TWO_REGISTERS.fullmatch(instruction.operands) is not None


_TWO_REGISTERS: Final = re.compile(r"R\d+, -?R\d+(?:\.reuse)?, -?R\d+(?:\.reuse)?")


def _through_doubles(function: Function, start: int) -> frozenset[int] | None:
    reached = set(function.instructions[start].defs)
    taken = {start}
    for index in range(start + 1, min(start + _WINDOW, len(function.instructions))):
        instruction = function.instructions[index]
        if not _uses(instruction, reached):
            reached.difference_update(() if instruction.guard else instruction.defs)
            continue
        if instruction.opcode == "F2F" and instruction.modifiers[:2] == _TO_FLOAT:
            return frozenset({*taken, index}) if len(taken) > 1 else None
        if instruction.info.opclass is OpcodeClass.FLOAT64:
            taken.add(index)
            reached.update(instruction.defs)
    return None


@dataclass(frozen=True, slots=True)
class _Signature:
    """How a library function's inline code is told: an opcode with a marker in its text."""

    kind: str
    opcode: str
    markers: tuple[str, ...]  # one of them stands in modifiers or operands
    last: str  # opcode that ends the chain
    last_markers: tuple[str, ...] = ()


_SIGNATURES: Final = (
    # 2/pi starts the argument reduction of sinf, cosf, tanf and sincosf.
    _Signature(
        "sinf/cosf", "FMUL", ("0.636619", "0x3f22f983"), "FFMA", ("-5.39030", "0xa7c234c5", "-0xa7c234c5")
    ),
    _Signature("expf", "FFMA", ("SAT",), "MUFU", ("EX2",)),
    _Signature("powf", "IADD3", ("0x3f3504f3", "0xc0cafb0d"), "FFMA", ("0.693147", "0x3f317218")),
    _Signature("powf", "VIADD", ("0x3f3504f3", "0xc0cafb0d"), "FFMA", ("0.693147", "0x3f317218")),
    _Signature("logf", "IADD3", ("0x3f2aaaab", "0xc0d55555"), "FFMA", ("0.693147", "0x3f317218")),
    _Signature("logf", "VIADD", ("0x3f2aaaab", "0xc0d55555"), "FFMA", ("0.693147", "0x3f317218")),
)


@lru_cache(maxsize=64)
def math_sequences(function: Function) -> tuple[CodeSequence, ...]:
    """Library math that the compiler expanded in place, with its corrections and slow paths."""
    found = [
        *_divisions(function),
        *_square_roots(function),
        *_reductions(function),
        *_doubles(function),
    ]
    for signature in _SIGNATURES:
        for start in opcode_index(function).get(signature.opcode, ()):
            if _marked(function.instructions[start], signature.markers):
                chain = _until(function, start, signature)
                if chain is not None:
                    found.append(CodeSequence(signature.kind, start, chain))
    return tuple(sorted(found, key=lambda sequence: (sequence.start, sequence.kind)))


def _marked(instruction: Instruction, markers: tuple[str, ...]) -> bool:
    if any(marker in instruction.modifiers for marker in markers):
        return True
    return any(marker in instruction.operands for marker in markers)


def _until(function: Function, start: int, signature: _Signature) -> frozenset[int] | None:
    """The chain of floating-point work from the start to the instruction that ends the operation."""
    reached = set(function.instructions[start].defs)
    taken = {start}
    for index in range(start + 1, min(start + _WINDOW, len(function.instructions))):
        instruction = function.instructions[index]
        if not _uses(instruction, reached):
            continue
        taken.add(index)
        reached.update(instruction.defs)
        if instruction.opcode == signature.last and (
            not signature.last_markers or _marked(instruction, signature.last_markers)
        ):
            return frozenset(taken)
    return None


def _divisions(function: Function) -> list[CodeSequence]:
    """IEEE division: a reciprocal, its refinement, a range check and a call for the rare cases."""
    found = []
    for check in opcode_index(function).get("FCHK", ()):
        start = check
        for index in range(check, max(check - _WINDOW, -1), -1):
            if _is(function.instructions[index], "MUFU", "RCP"):
                start = index
                break
        end = _next_call(function, check)
        if start == check:
            if end != check and not _VECTOR_REGISTER.search(_divisor(function.instructions[check])):
                found.append(_by_constant(function, check, end))
            continue
        reached = set(function.instructions[start].defs)
        taken = {start, check}
        for index in range(start + 1, end + 1):
            instruction = function.instructions[index]
            if _uses(instruction, reached) or index == end:
                taken.add(index)
                reached.update(instruction.defs)
        found.append(CodeSequence("float division", start, frozenset(taken)))
    return found


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


def _square_roots(function: Function) -> list[CodeSequence]:
    """IEEE square root: the check that its argument is in range, and the refinement."""
    found = []
    for opcode in ("IADD3", "VIADD"):
        for start in opcode_index(function).get(opcode, ()):
            if not _marked(function.instructions[start], ("-0xd000000", "0xf3000000")):
                continue
            end = _next_call(function, start)
            root = next(
                (
                    i
                    for i in range(max(start - 8, 0), end + 1)
                    if _is(function.instructions[i], "MUFU", "RSQ")
                ),
                None,
            )
            if root is not None:
                last = min(end + 8, len(function.instructions) - 1)
                taken = {start, root, end}
                reached = set(function.instructions[root].defs)
                for index in range(root + 1, last + 1):
                    if function.instructions[index].opcode in {"FMUL", "FFMA"} and _uses(
                        function.instructions[index], reached
                    ):
                        taken.add(index)
                        reached.update(function.instructions[index].defs)
                found.append(CodeSequence("square root", min(start, root), frozenset(taken)))
    return found


def _doubles(function: Function) -> list[CodeSequence]:
    """Double division and square root: a rough approximation refined by multiply-adds, with a call behind."""
    found = []
    for start in opcode_index(function).get("MUFU", ()):
        first = function.instructions[start]
        kind = next((_DOUBLE_KINDS[name] for name in first.modifiers if name in _DOUBLE_KINDS), None)
        end = _next_call(function, start, 2 * _WINDOW)  # some architectures pad doubles with NOPs
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
            if steps and _uses(instruction, reached):
                taken.add(index)
                reached.update(instruction.defs)
        divisor = _divisor(first)
        if kind == DOUBLE_DIVISION and not _VECTOR_REGISTER.search(divisor):
            kind = DIVISION_BY_CONSTANT
        found.append(CodeSequence(kind, start, frozenset(taken), divisor))
    return found


DOUBLE_DIVISION: Final = "double division"
FLOAT_BY_CONSTANT: Final = "float division by a constant"
DIVISION_BY_CONSTANT: Final = "double division by a constant"
_DOUBLE_KINDS: Final = {"RCP64H": DOUBLE_DIVISION, "RSQ64H": "double square root"}
_VECTOR_REGISTER: Final = re.compile(r"\bR\d")


def _called(function: Function, index: int) -> str:
    """The name of what a call goes to, where it is known."""
    return next((call.symbol or "" for call in function.calls if call.index == index), "")


def _reductions(function: Function) -> list[CodeSequence]:
    """The Payne-Hanek reduction of large arguments: a table, a loop and a double multiplication.

    A branch skips it for ordinary arguments; behind the branch stands a test for infinity, and at its end the
    conversion of a 64-bit fraction to double.
    """
    found: dict[int, CodeSequence] = {}
    for check in opcode_index(function).get("FSETP", ()):
        if "INF" not in function.instructions[check].operands:
            continue
        for index in range(check - 1, max(check - _BEHIND_BRANCH, 0) - 1, -1):
            end = _skips_to(function, index)
            if end is not None and _holds_fraction(function, check, end):
                kind = "sinf/cosf slow path"
                found[end] = CodeSequence(kind, index + 1, frozenset(range(index + 1, end)))
                break
    return list(found.values())


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


def _next_call(function: Function, start: int, within: int = _WINDOW // 2) -> int:
    """The next call after an index, where the rare cases are handled; the index itself where none is near."""
    for index in range(start + 1, min(start + within, len(function.instructions))):
        if function.instructions[index].info.opclass is OpcodeClass.CALL:
            return index
    return start
