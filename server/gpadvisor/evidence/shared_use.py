# SPDX-License-Identifier: Apache-2.0
"""How much of its shared memory a block writes: nobody reads there what nobody wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from gpadvisor.evidence.lanes import counted_threads
from gpadvisor.evidence.measured import Floats, executed_warps
from gpadvisor.evidence.queries import kernel_functions
from gpadvisor.model.instruction import (
    COMPUTING,
    Instruction,
    MemorySpace,
    OpcodeClass,
    RegisterFile,
    register_file,
)
from gpadvisor.model.machine import WARP
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function, Program

_ADDRESS: Final = re.compile(r"\[([^\[\]]*)\]")
_REGISTER: Final = re.compile(r"\bU?R\d+")
_FILES: Final = {RegisterFile.GPR: "R", RegisterFile.UNIFORM: "UR"}
_MOST: Final = 256
"""Instructions behind an address that are followed."""
_WRITERS: Final = frozenset(
    {OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION, OpcodeClass.ASYNC_COPY}
)
_UNSEEN: Final = frozenset({OpcodeClass.MBARRIER, OpcodeClass.CLUSTER_BARRIER})
"""Where these are, copies of the hardware or another block may write as well."""
_SHARED: Final = frozenset({MemorySpace.SHARED, MemorySpace.GENERIC})


@dataclass(frozen=True, slots=True)
class WrittenBytes:
    """What a block writes of its shared memory."""

    most: float  # bytes, on average over the blocks
    by_thread: bool  # each thread writes places of its own number alone, so that larger blocks write more


def written_bytes(program: Program, kernel: str, profile: KernelProfile) -> WrittenBytes | None:
    """The bytes of shared memory that a block writes at most; None where that is not known.

    A store whose address is the same in every pass writes as many bytes as the block has threads for it, any
    other as many as its threads were counted to write.
    """
    launch = profile.launch
    bytes_by_address: dict[tuple[str, frozenset[int]], int] = {}  # bytes, by address
    counts: dict[tuple[str, frozenset[int]], float] = {}
    moving, moves = 0.0, False
    for function in kernel_functions(program, kernel):
        threads = _working(profile, function)
        for index, instruction in enumerate(function.instructions):
            written = _writes(instruction)
            if written is None:
                return None
            if not written:
                continue
            makers = _makers(function, index)
            counted = None if threads is None else float(threads[index]) * written / max(1, launch.blocks)
            if makers is None and counted is None:
                return None
            if makers is None:
                moving, moves = moving + (counted or 0.0), moves or bool(counted)
                continue
            key = _bracket(instruction), makers
            bytes_by_address[key] = max(
                bytes_by_address.get(key, 0), written * (launch.threads_per_block if makers else 1)
            )
            counts[key] = counts.get(key, 0.0) + (float("inf") if counted is None else counted)
    held = sum(min(most, counts[key]) for key, most in bytes_by_address.items())
    return WrittenBytes(most=held + moving, by_thread=bool(bytes_by_address) and not moves)


def _working(profile: KernelProfile, function: Function) -> Floats | None:
    """Threads that execute each instruction; whole warps where nobody counted threads."""
    result = counted_threads(profile, function)
    warps = executed_warps(profile, function)
    return WARP * warps if result is None and warps is not None else result


def _writes(instruction: Instruction) -> int | None:
    """Bytes of shared memory that a thread writes by an instruction; None where that is not known."""
    kind, space = instruction.info.opclass, instruction.info.space
    if kind in _UNSEEN or space is MemorySpace.DISTRIBUTED_SHARED:
        return None
    copies = kind is OpcodeClass.ASYNC_COPY
    if kind not in _WRITERS or not (copies or space in _SHARED):
        return 0
    return None if copies and instruction.opcode != "LDGSTS" else instruction.width_bytes


def _bracket(instruction: Instruction) -> str:
    """The address in shared memory: the first of a copy's two."""
    match = _ADDRESS.search(instruction.operands)
    return "" if match is None else match[1]


def _makers(function: Function, index: int) -> frozenset[int] | None:
    """What an address is computed by, where each pass computes the same; None where that may change."""
    names = set(_REGISTER.findall(_bracket(function.instructions[index])))
    uses = function.instructions[index].uses
    pending = [(index, use) for use in uses if _FILES.get(register_file(use), "") + str(use & 255) in names]
    visited: set[int] = set()
    while pending:
        position, register = pending.pop()
        writers = function.reaching.definitions(position, register)
        if len(writers) != 1 or len(visited) > _MOST:
            return None  # another pass, another way, or a caller's
        (writer,) = writers
        if writer in visited:
            continue
        visited.add(writer)
        maker = function.instructions[writer]
        same = maker.info.opclass in COMPUTING or maker.info.opclass is OpcodeClass.SPECIAL_REGISTER
        if not same and maker.info.space is not MemorySpace.CONSTANT:
            return None
        pending += [(writer, used) for used in maker.uses]
    return frozenset(visited)
