# SPDX-License-Identifier: Apache-2.0
"""Functions of a code section: a kernel, and device functions that the compiler put behind it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpadvisor.analyzer.flow import Flow, JumpTables, may_fall_through
from gpadvisor.cubin import CodeSection
from gpadvisor.model.ids import INSTRUCTION_BYTES
from gpadvisor.model.instruction import Instruction, OpcodeClass
from gpadvisor.model.program import FunctionKind

_MATH_HELPER_MARKS: Final = ("__cuda_sm", "__internal_")
"""How ptxas names its out-of-line routines: ``$kernel$__cuda_sm20_div_rn_f64_full``."""


@dataclass(frozen=True, slots=True)
class Part:
    """One function's place in its section, as instruction indices ``[start, end)``."""

    name: str
    kind: FunctionKind
    start: int
    end: int


def split_section(
    section: CodeSection, instructions: Sequence[Instruction], flows: dict[int, Flow]
) -> tuple[Part, ...]:
    """The functions of a section by its symbols, and by call targets that have none.

    Calls that only leave a loop are turned into branches in ``flows``.
    """
    count = len(instructions)
    if not count:
        return ()
    starts: dict[int, tuple[str, FunctionKind]] = {}
    for symbol in section.symbols:
        start = symbol.offset // INSTRUCTION_BYTES
        if 0 <= start < count and start not in starts:
            starts[start] = symbol.name, _kind(symbol.name, is_entry=symbol.is_entry)
    if 0 not in starts:
        starts[0] = section.name, FunctionKind.KERNEL if not starts else FunctionKind.DEVICE
    for start in _without_symbol(instructions, flows, starts, section.indirect_targets):
        starts[start] = f"{section.name}+{start * INSTRUCTION_BYTES:#x}", FunctionKind.DEVICE
    ordered = sorted(starts)
    return tuple(
        Part(*starts[start], start, end) for start, end in zip(ordered, [*ordered[1:], count], strict=True)
    )


def _without_symbol(
    instructions: Sequence[Instruction],
    flows: dict[int, Flow],
    starts: Mapping[int, tuple[str, FunctionKind]],
    tables: JumpTables,
) -> set[int]:
    """Starts of functions that only calls tell of; calls that never return become branches in ``flows``.

    ptxas also writes ``@!P0 CALL.REL.NOINC 0x5dc0`` to leave a loop for good: no return address is made, and
    the code behind the target ends the thread. A kernel itself has no RET, so in its code a target from which
    one is reached is a function of its own.
    """
    result: set[int] = set()
    ordered = sorted(starts)
    for index, flow in list(flows.items()):
        target = instructions[index].target
        start = -1 if target is None else target // INSTRUCTION_BYTES
        if flow is not Flow.CALL or not 0 <= start < len(instructions) or start in starts:
            continue
        owner = ordered[bisect_right(ordered, start) - 1]
        if (
            starts[owner][1] is FunctionKind.KERNEL
            and not may_fall_through(instructions[start - 1], flows.get(start - 1))
            and _returns(instructions, flows, start, tables)
        ):
            result.add(start)
        elif bisect_right(ordered, index) == bisect_right(ordered, start):
            flows[index] = Flow.BRANCH
    return result


def _returns(
    instructions: Sequence[Instruction], flows: Mapping[int, Flow], start: int, tables: JumpTables
) -> bool:
    """Whether a RET can be reached without passing a call's target."""
    visited: set[int] = set()
    pending = [start]
    while pending:
        index = pending.pop()
        while index < len(instructions) and index not in visited:
            visited.add(index)
            flow = flows.get(index)
            instruction = instructions[index]
            if instruction.info.opclass is OpcodeClass.RETURN:
                return True
            if flow is Flow.BRANCH and instruction.target is not None:
                pending.append(instruction.target // INSTRUCTION_BYTES)
            elif flow is Flow.INDIRECT:
                pending.extend(offset // INSTRUCTION_BYTES for offset in tables.get(instruction.pc, ()))
            if not may_fall_through(instruction, flow):
                break
            index += 1
    return False


def _kind(name: str, *, is_entry: bool) -> FunctionKind:
    if is_entry:
        return FunctionKind.KERNEL
    if any(mark in name for mark in _MATH_HELPER_MARKS):
        return FunctionKind.MATH_HELPER
    return FunctionKind.DEVICE
