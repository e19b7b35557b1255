# SPDX-License-Identifier: Apache-2.0
"""Where memory instructions and branches point: bases, words of the frame, second conditions."""

from __future__ import annotations

from typing import Final

from gpadvisor.model.instruction import (
    Instruction,
    MemorySpace,
    OpcodeClass,
    Register,
    RegisterFile,
    register,
)
from gpadvisor.sass.tokens import OperandKind, parse_operand
from gpadvisor.simulator.meanings import (
    operands_of,
    predicate_of,
)

_STACK_WORD: Final = 1 << 20


_STACK_STEP: Final = 512


_MAX_FRAME: Final = 1 << 16


def stack_words(instruction: Instruction, frame: int | None) -> list[int]:
    """The words of a function's own frame that a local access at a fixed offset covers, as register numbers.

    Spilled counters and addresses are followed through them; R1 is taken to stay where the prologue put it.
    Frames are told apart by their numbers; those of functions that call themselves have none, and are not
    followed.
    """
    info = instruction.info
    if (
        frame is None
        or info.space is not MemorySpace.LOCAL
        or info.opclass not in {OpcodeClass.LOAD, OpcodeClass.STORE}
    ):
        return []
    base = address_base(instruction)
    if base is None or base[0] != [(_STACK_POINTER, 0)] or not 0 <= base[1] < _MAX_FRAME or base[1] % 4:
        return []
    words = max(1, (instruction.width_bytes or 4) // 4)
    first = (frame * _MAX_FRAME + base[1]) // 4
    return [_STACK_WORD + _STACK_STEP * (first + word) for word in range(words)]


_STACK_POINTER: Final = register(RegisterFile.GPR, 1)


def is_in_frame(instruction: Instruction, base: tuple[list[tuple[Register, int]], int]) -> bool:
    """Whether a local access has the same place in every thread: of its frame, or by uniform registers."""
    return instruction.info.space is MemorySpace.LOCAL and all(
        register == _STACK_POINTER or is_uniform(register) for register, _ in base[0]
    )


def written_by(instruction: Instruction, frame: int | None) -> list[int]:
    """Registers, predicates and words of the frame that an instruction writes."""
    written = [int(written_register) for written_register in instruction.defs]
    if instruction.info.opclass is OpcodeClass.STORE:
        written += stack_words(instruction, frame)
    return written


_SCALES: Final = {"X4": 2, "X8": 3, "X16": 4}


def address_base(instruction: Instruction) -> tuple[list[tuple[Register, int]], int] | None:
    """Registers whose low words, each shifted, add up to the address of a memory access, and its offset.

    None where the address is not understood.
    """
    operands = operands_of(instruction.operands)
    # A copy names its place in shared memory first.
    for text in reversed(operands) if instruction.opcode == "LDGSTS" else operands:
        operand = parse_operand(text)
        if operand.kind is not OperandKind.MEMORY:
            continue
        inner = text[text.rfind("[") + 1 : text.rfind("]")]
        registers: list[tuple[Register, int]] = []
        offset = 0
        for part in inner.replace("-", "+-").split("+"):
            term = parse_operand(part.split(".")[0].strip())
            if term.is_register:
                if term.first is not None:
                    scale = next((bits for name, bits in _SCALES.items() if part.endswith("." + name)), 0)
                    registers.append((term.first, scale))
            elif term.value is not None:
                offset += term.value
            elif part.strip():
                return None
        return None if len(registers) > 2 else (registers, offset)
    return None


def branch_predicate(instruction: Instruction) -> tuple[int, bool] | None:
    """The second condition of ``@P0 BRA P1, 0x80`` or ``BRA.U !UP0, 0x80``; None where there is none."""
    if instruction.info.opclass is not OpcodeClass.BRANCH:
        return None
    for text in operands_of(instruction.operands):
        operand = parse_operand(text)
        if operand.is_predicate and operand.first is not None:
            return predicate_of(operand)
    return None


def is_uniform(value: int) -> bool:
    """Whether a register holds one value for the whole warp."""
    return value >> 8 in {RegisterFile.UNIFORM.value, RegisterFile.UNIFORM_PREDICATE.value}
