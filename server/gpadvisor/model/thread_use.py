# SPDX-License-Identifier: Apache-2.0
"""How a kernel divides its work among threads and blocks, as its machine code shows."""

from __future__ import annotations

from dataclasses import dataclass

from gpadvisor.model.ids import FunctionId

CodePlace = tuple[FunctionId, int]
"""A function of a program and an instruction of it, by index."""


@dataclass(frozen=True, slots=True)
class ThreadUse:
    """How a kernel divides its work among threads; a place is the first instruction that shows it."""

    axes: str  # of threadIdx that are read: "", "x", "xy", ...
    flat: bool  # blockIdx counts only as the product with blockDim: blocks and threads may be traded
    sized: bool  # blockDim is read
    sizes: frozenset[tuple[str, int]]  # constants that stand for it, by axis: blockIdx.x * 256 + threadIdx.x
    guarded: bool  # a global index is compared with something, as where the last block is not full
    grid_stride: CodePlace | None  # a loop whose step holds gridDim
    block_stride: CodePlace | None  # a loop whose step holds blockDim, and neither gridDim nor threadIdx
    tile: CodePlace | None  # shared memory addressed by threadIdx
    roles: CodePlace | None  # what a thread does depends on threadIdx without blockIdx
    waits_for_blocks: CodePlace | None  # spins on what another block writes: a grid barrier, a lookback
    teamwork: CodePlace | None  # tensor instructions, named barriers, mbarriers: warps have set parts
    cluster: CodePlace | None
    known: bool  # whether all of the code was looked at
    sums: bool  # what goes by threadIdx or blockIdx alone is a sum over the block, of any size
