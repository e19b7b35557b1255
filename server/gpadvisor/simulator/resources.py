# SPDX-License-Identifier: Apache-2.0
"""Which unit an instruction occupies, for how long, and how its latency is known."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from gpadvisor.machine.timing import CycleRange, Timing
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass, Pipe
from gpadvisor.model.machine import MachineModel


class Unit(IntEnum):
    """What takes an instruction; the first six are pipes of a scheduler."""

    ALU = 0
    FMA = 1
    FP16 = 2
    FP64 = 3
    TENSOR = 4
    UNIFORM = 5
    NONE = 6  # control flow: nothing that is ever busy
    MIO = 7  # through the queue to shared memory, shuffles, special functions
    LG = 8  # through the queue to local and global memory
    TEX = 9
    XU = 10  # special functions, behind the MIO queue


PIPES: Final = 6


class Access(IntEnum):
    """What an instruction does to memory, or which kind of variable latency it has."""

    NONE = 0
    LOAD = 1  # global, local or generic
    STORE = 2
    SHARED_LOAD = 3
    SHARED_STORE = 4
    ATOMIC = 5
    REDUCTION = 6
    SHARED_ATOMIC = 7
    TEXTURE = 8
    ASYNC_COPY = 9  # LDGSTS
    BULK_COPY = 10  # completes through an mbarrier
    VARIABLE = 11  # a latency drawn from a range


@dataclass(frozen=True, slots=True)
class Use:
    """One instruction's use of the machine."""

    unit: Unit
    interval: int  # cycles the pipe, or the unit behind the queue, is busy
    access: Access
    latency: CycleRange  # of what sets a scoreboard without going to the caches
    long: bool  # stalls on it are long_scoreboard
    operation: float  # cycles of L2 for each lane on the same line


_PIPE_UNITS: Final = {
    Pipe.ALU: Unit.ALU,
    Pipe.FMA: Unit.FMA,
    Pipe.FP16: Unit.FP16,
    Pipe.FP64: Unit.FP64,
    Pipe.TENSOR: Unit.TENSOR,
    Pipe.UNIFORM: Unit.UNIFORM,
    Pipe.XU: Unit.XU,
    Pipe.LSU: Unit.MIO,
    Pipe.TEX: Unit.TEX,
}
_GLOBAL: Final = frozenset({MemorySpace.GLOBAL, MemorySpace.GENERIC, MemorySpace.LOCAL})
_FLOATS: Final = frozenset({"F32", "F64", "F16x2", "BF16_V2", "F16x2_V2", "F16", "BF16"})
_ACCESSES: Final = {
    OpcodeClass.LOAD: (Access.LOAD, Access.SHARED_LOAD),
    OpcodeClass.STORE: (Access.STORE, Access.SHARED_STORE),
    OpcodeClass.ATOMIC: (Access.ATOMIC, Access.SHARED_ATOMIC),
    OpcodeClass.REDUCTION: (Access.REDUCTION, Access.SHARED_ATOMIC),
}


def use_of(instruction: Instruction, timing: Timing, machine: MachineModel) -> Use:
    """How one instruction uses the machine."""
    access = _access(instruction)
    info = instruction.info
    unit = _PIPE_UNITS.get(info.pipe, Unit.NONE)
    if access in {
        Access.LOAD,
        Access.STORE,
        Access.ATOMIC,
        Access.REDUCTION,
        Access.ASYNC_COPY,
        Access.BULK_COPY,
    }:
        unit = Unit.LG
    elif access in {Access.SHARED_LOAD, Access.SHARED_STORE, Access.SHARED_ATOMIC}:
        unit = Unit.MIO
    elif access is Access.TEXTURE:
        unit = Unit.TEX
    elif info.opclass is OpcodeClass.UNKNOWN:
        unit = Unit.ALU
    latency = _latency(instruction, access, timing, machine)
    long = unit in {Unit.LG, Unit.TEX}
    floats = not _FLOATS.isdisjoint(instruction.modifiers)
    operation = timing.float_atomic_cycles if floats else timing.atomic_cycles
    return Use(unit, _interval(instruction, timing), access, latency, long, operation)


def _access(instruction: Instruction) -> Access:
    info = instruction.info
    if info.space is MemorySpace.TEXTURE:
        return Access.TEXTURE
    if info.space is MemorySpace.CONSTANT:
        return Access.VARIABLE if info.variable_latency else Access.NONE
    pair = _ACCESSES.get(info.opclass)
    if pair is not None and info.space is not None:
        return pair[0] if info.space in _GLOBAL else pair[1]
    if info.opclass is OpcodeClass.ASYNC_COPY:
        return Access.ASYNC_COPY if instruction.opcode == "LDGSTS" else Access.BULK_COPY
    return Access.VARIABLE if info.variable_latency else Access.NONE


def _latency(instruction: Instruction, access: Access, timing: Timing, machine: MachineModel) -> CycleRange:
    info = instruction.info
    if access in {Access.SHARED_LOAD, Access.SHARED_STORE}:
        return timing.shared_cycles
    if access is Access.SHARED_ATOMIC:
        return timing.shared_atomic_cycles
    if access is Access.TEXTURE:
        return timing.texture_cycles
    if info.space is MemorySpace.CONSTANT:
        return timing.constant_cycles
    by_class: dict[OpcodeClass, CycleRange] = {
        OpcodeClass.SHUFFLE: timing.shuffle_cycles,
        OpcodeClass.SPECIAL_REGISTER: timing.special_register_cycles,
        OpcodeClass.TRANSCENDENTAL: timing.xu_cycles,
        OpcodeClass.CONVERSION: timing.xu_cycles,
        OpcodeClass.FLOAT64: timing.fp64_cycles,
    }
    latency = by_class.get(info.opclass)
    if latency is not None:
        return latency
    row = machine.latency(instruction.opcode, instruction.modifiers)
    if row is None:
        return timing.other_cycles
    # The upper end of a variable latency is a bound for pruning, not something that is often seen.
    return row.min_cycles, max(row.min_cycles, min(row.max_cycles, 2 * row.min_cycles))


def _interval(instruction: Instruction, timing: Timing) -> int:
    pipe, opclass = instruction.info.pipe, instruction.info.opclass
    if opclass is OpcodeClass.SHUFFLE:
        return timing.shuffle_interval
    if pipe is Pipe.FMA:
        return timing.ffma_interval if opclass is OpcodeClass.FLOAT32 else timing.imad_interval
    by_pipe = {
        Pipe.ALU: timing.alu_interval,
        Pipe.FP16: timing.fp16_interval,
        Pipe.FP64: timing.fp64_interval,
        Pipe.XU: timing.xu_interval,
        Pipe.TENSOR: timing.tensor_interval,
        Pipe.UNIFORM: timing.uniform_interval,
    }
    return by_pipe.get(pipe, timing.alu_interval)
