# SPDX-License-Identifier: Apache-2.0
"""Numbers about an architecture, each with the source it was taken from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from gpadvisor.model.kind import Kind

T = TypeVar("T")

WARP: Final = 32
SECTOR_BYTES: Final = 32
SECTORS_PER_LINE: Final = 4
LINE_BYTES: Final = SECTORS_PER_LINE * SECTOR_BYTES
BANKS: Final = 32
BANK_BYTES: Final = 4
BANK_ROW_BYTES: Final = BANKS * BANK_BYTES
WIDEST_BYTES: Final = 16
GRID_LIMITS: Final = ((1 << 31) - 1, 65535, 65535)
BLOCK_LIMITS: Final = (1024, 1024, 64)
CONVERGENCE_BARRIERS: Final = 16
NAMED_BARRIERS: Final = 16
"""Threads of a warp; what L2 and DRAM are asked for at once, and L1 has tags for; shared memory's banks and
their words; the most that one access of a thread moves; the most blocks of a grid, and threads of a block,
along x, y and z; registers B0 to B15, at which a warp's lanes meet; barriers of a block. The same for every
architecture with a table (CUDA C++ Programming Guide, compute capabilities; PTX ISA, bar; Nsight Compute,
memory tables; nvdisasm's listings)."""


def sm_number(arch: str) -> int:
    """The number of an architecture: 90 of ``sm_90a``; 0 where there is none."""
    match = re.search(r"\d+", arch)
    return int(match[0]) if match else 0


class Feature(Kind):
    """What code of an architecture can say."""

    TENSOR_HALF = "tensor half"
    TENSOR_TF32 = "tensor tf32"  # bfloat16, too
    TENSOR_DOUBLE = "tensor double"
    ASYNCHRONOUS_COPY = "asynchronous copy"
    TANH = "tanh"  # as one instruction
    PACKED_SINGLE = "packed single"  # two FP32 operations in one instruction


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeForm:
    """How the machine code of an architecture is made."""

    parameters_at: int  # offset of the kernel's parameters in c[0x0]
    block_size_at: int  # of the block's three sizes
    grid_size_at: int  # of the grid's three sizes
    stack_at: int  # of the end of a thread's local memory, where R1 starts
    branch_offset_at: int  # bit of a branch's offset, which counts from the next instruction
    branch_offset_bits: int
    branch_short_bits: int  # of the offset of BSSY
    branch_low_at: int
    branch_low_bits: int  # of a branch's offset that stand below the others
    branch_unit_bytes: int  # that the offset counts
    hides_descriptors: bool  # whether the text leaves out the pair that describes a 64-bit address
    features: frozenset[Feature]
    newest_toolkit: str  # of CUDA, that compiles for it; empty where all newer ones do
    read_as: str  # an architecture with all of its instructions, where tools have dropped it; else empty


@dataclass(frozen=True, slots=True)
class Sourced(Generic[T]):
    """A value and the key of its source in ``MachineModel.sources``."""

    value: T
    source: str


@dataclass(frozen=True, slots=True)
class Latency:
    """Cycles from issue to result of an opcode."""

    pattern: str  # "IMAD.WIDE": opcode, then modifiers in order; the longest match wins
    min_cycles: int
    max_cycles: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SmLimits:
    """What one SM holds (occupancy inputs of NVIDIA's cuda_occupancy.h)."""

    schedulers: Sourced[int]
    warp_size: Sourced[int]
    max_warps: Sourced[int]
    max_blocks: Sourced[int]
    max_threads: Sourced[int]
    max_threads_per_block: Sourced[int]
    registers: Sourced[int]
    max_registers_per_thread: Sourced[int]
    register_allocation_unit: Sourced[int]  # per warp
    shared_bytes: Sourced[int]
    shared_bytes_per_block: Sourced[int]  # with opt-in
    reserved_shared_bytes_per_block: Sourced[int]
    shared_allocation_unit_bytes: Sourced[int]
    shared_carveouts_bytes: Sourced[tuple[int, ...]]
    instruction_cache_l0_bytes: Sourced[int]
    instruction_cache_l1_bytes: Sourced[int]
    load_store_lanes: Sourced[int]  # threads whose access goes to L1 in a cycle
    special_function_lanes: Sourced[int]  # threads whose MUFU or conversion starts in a cycle
    queued_double_lanes: Sourced[int]  # the same of double precision, where it goes through a queue
    barrier_cycles: Sourced[int]  # that a barrier takes when all warps come at once
    other_pipe_cycles: Sourced[int]  # how much later another pipe gets a result than the one that made it
    operands_read_cycles: Sourced[tuple[int, ...]]  # until an operation's operands may be overwritten
    unknown_latency_cycles: Sourced[tuple[int, ...]]  # of an operation that has no row; both least and most
    block_barriers: Sourced[int] | None = None  # of all blocks of an SM; None: no limit

    @property
    def register_step(self) -> int:
        """The step in which registers are given to a thread."""
        return self.register_allocation_unit.value // self.warp_size.value


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineModel:
    """One architecture's table."""

    arch: str  # "sm_86"
    sm: SmLimits
    latencies: tuple[Latency, ...]
    memory_latency_bound_cycles: Mapping[str, Sourced[int]]  # upper bounds by MemorySpace value
    sources: Mapping[str, str]
    _rows: Mapping[str, list[tuple[frozenset[str], Latency]]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Sort the rows by opcode, those with the most modifiers first."""
        rows: dict[str, list[tuple[frozenset[str], Latency]]] = {}
        for row in self.latencies:
            base, *required = row.pattern.split(".")
            rows.setdefault(base, []).append((frozenset(required), row))
        for of_one in rows.values():
            of_one.sort(key=lambda entry: -entry[1].pattern.count("."))
        object.__setattr__(self, "_rows", rows)

    def latency(self, opcode: str, modifiers: tuple[str, ...]) -> Latency | None:
        """The most specific row for an opcode with its modifiers; None where the table has none."""
        return next(
            (row for required, row in self._rows.get(opcode, ()) if required.issubset(modifiers)), None
        )
