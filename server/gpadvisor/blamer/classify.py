# SPDX-License-Identifier: Apache-2.0
"""The class of a dependency by its source (GPA Fig. 5), and which stall reason a source can cause."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, auto
from typing import Final

from gpadvisor.model.blame import DependencyClass, DependencyKind
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass, Pipe
from gpadvisor.model.stalls import StallReason

_BY_SPACE: Final[Mapping[MemorySpace, DependencyClass]] = {
    MemorySpace.GLOBAL: DependencyClass.GLOBAL_MEMORY,
    MemorySpace.GENERIC: DependencyClass.GLOBAL_MEMORY,
    MemorySpace.LOCAL: DependencyClass.LOCAL_MEMORY,
    MemorySpace.CONSTANT: DependencyClass.CONSTANT_MEMORY,
    MemorySpace.TEXTURE: DependencyClass.TEXTURE,
    MemorySpace.SHARED: DependencyClass.SHARED_MEMORY,
    MemorySpace.DISTRIBUTED_SHARED: DependencyClass.SHARED_MEMORY,
    MemorySpace.TENSOR: DependencyClass.TENSOR,
}
_MEMORY: Final = frozenset(
    {
        OpcodeClass.LOAD,
        OpcodeClass.STORE,
        OpcodeClass.ATOMIC,
        OpcodeClass.REDUCTION,
        OpcodeClass.ASYNC_COPY,
        OpcodeClass.CACHE_CONTROL,
    }
)
_L1TEX: Final = frozenset({MemorySpace.GLOBAL, MemorySpace.LOCAL, MemorySpace.TEXTURE, MemorySpace.GENERIC})
_BY_OPCODE_CLASS: Final[Mapping[OpcodeClass, DependencyClass]] = {
    OpcodeClass.ASYNC_COPY: DependencyClass.ASYNC_COPY,
    OpcodeClass.DEPENDENCY_BARRIER: DependencyClass.ASYNC_COPY,  # LDGDEPBAR commits a group of copies
    OpcodeClass.TENSOR: DependencyClass.TENSOR,
    OpcodeClass.MBARRIER: DependencyClass.SYNCHRONIZATION,
    OpcodeClass.BARRIER: DependencyClass.SYNCHRONIZATION,
    OpcodeClass.CLUSTER_BARRIER: DependencyClass.SYNCHRONIZATION,
    OpcodeClass.MEMORY_BARRIER: DependencyClass.MEMORY_BARRIER,
}


class Scoreboard(Flag):
    """The stall reasons that a wait for an operation can be sampled as."""

    LONG = auto()
    SHORT = auto()


_EITHER: Final = Scoreboard.LONG | Scoreboard.SHORT
_EITHER_CLASSES: Final = frozenset({OpcodeClass.MEMORY_BARRIER, OpcodeClass.CACHE_CONTROL})
_EITHER_SPACES: Final = frozenset({MemorySpace.GENERIC, MemorySpace.DISTRIBUTED_SHARED, MemorySpace.TENSOR})


def is_memory(instruction: Instruction) -> bool:
    """Whether an instruction accesses memory of any kind."""
    return instruction.info.opclass in _MEMORY


def is_l1tex(instruction: Instruction) -> bool:
    """Whether an instruction goes through L1TEX: global, local, generic, texture or surface memory."""
    info = instruction.info
    return info.pipe is Pipe.TEX or (info.opclass in _MEMORY and info.space in _L1TEX)


def copies_into_shared(instruction: Instruction) -> bool:
    """Whether an instruction copies from global to shared memory, behind the back of its warp."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    return opcode in {"LDGSTS", "UTMALDG"} or (opcode == "UBLKCP" and modifiers[:1] == ("S",))


def stalls_as(instruction: Instruction, *, reads_only: bool) -> Scoreboard:
    """Which scoreboard stall a wait for an operation is.

    Args:
        instruction: the operation.
        reads_only: the wait is for its operands to be read, not for its result.
    """
    info = instruction.info
    if not info.known or info.opclass in _EITHER_CLASSES or info.space in _EITHER_SPACES:
        return _EITHER
    if instruction.opcode == "LDGDEPBAR":
        return Scoreboard.LONG
    if is_l1tex(instruction):
        # Operands are read before L1TEX is reached, in the queue that it shares with the short operations.
        return _EITHER if reads_only else Scoreboard.LONG
    return Scoreboard.SHORT


def scoreboard_of(reason: StallReason) -> Scoreboard:
    """Which operations a stall reason can be a wait for; all of them where it does not tell."""
    if reason.name == "short_scoreboard":
        return Scoreboard.SHORT
    return Scoreboard.LONG if reason.name == "long_scoreboard" else _EITHER


def dependency_class(source: Instruction, kind: DependencyKind) -> DependencyClass:
    """The class of a blamed stall by its source and by what links it to its use."""
    if kind is DependencyKind.WRITE_AFTER_READ:
        return DependencyClass.WRITE_AFTER_READ
    if kind is DependencyKind.STALL_COUNT:
        return DependencyClass.SCHEDULE
    result = _BY_OPCODE_CLASS.get(source.info.opclass)
    if result is not None:
        return result
    if is_memory(source):
        space = source.info.space
        return DependencyClass.GLOBAL_MEMORY if space is None else _BY_SPACE[space]
    return DependencyClass.ARITHMETIC
