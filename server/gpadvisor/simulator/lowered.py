# SPDX-License-Identifier: Apache-2.0
"""A program as arrays that the engine runs on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.instruction import Instruction
from gpadvisor.model.program import Function
from gpadvisor.simulator.control import Decision
from gpadvisor.simulator.resources import Access, Unit
from gpadvisor.simulator.values import Slice


class LoweredFlow(IntEnum):
    """What an instruction does to control or to waiting warps."""

    PLAIN = 0
    BRANCH = 1
    EXIT = 2
    CALL = 3
    RETURN = 4
    BARRIER = 5
    ARRIVE = 6
    MARK = 7  # BSSY
    CONVERGE = 8  # BSYNC
    FENCE = 9
    PARTIAL_WAIT = 10
    ASYNC_GROUP = 11  # LDGDEPBAR
    SLEEP = 12
    INDIRECT = 13
    BREAK = 14
    TRY_WAIT = 15
    MATRIX_WAIT = 16  # WARPGROUP.DEPBAR
    NOT_CODE = 17  # outside of every function


class LoweredCode(NamedTuple):
    """What the inner loop knows of each instruction."""

    flow: NDArray[np.int8]
    target: NDArray[np.int32]
    targets: NDArray[np.int32]  # of indirect branches: first and behind the last in ``listed``
    listed: NDArray[np.int32]
    guard: NDArray[np.int16]  # predicate slot, -1 = PT, -3 = not followed
    guard_negated: NDArray[np.bool_]
    second: NDArray[np.int16]
    second_negated: NDArray[np.bool_]
    conditional: NDArray[np.bool_]
    stall: NDArray[np.int16]
    yields: NDArray[np.bool_]
    wait_mask: NDArray[np.int16]
    write_barrier: NDArray[np.int8]  # -1 = none
    read_barrier: NDArray[np.int8]
    keep: NDArray[np.int16]  # of a partial wait
    barrier: NDArray[np.int8]  # number of a CTA, convergence or partial-wait barrier
    barrier_warps: NDArray[np.int16]  # 0 = all of the block
    unit: NDArray[np.int8]
    interval: NDArray[np.int32]
    access: NDArray[np.int8]
    latency: NDArray[np.int32]  # [n, 2]
    long: NDArray[np.bool_]
    width: NDArray[np.int16]  # bytes per lane
    sectors: NDArray[np.float64]  # per request; negative: by address, else by width
    ways: NDArray[np.float64]
    l1_hit: NDArray[np.float64]
    l2_hit: NDArray[np.float64]
    base: NDArray[np.int32]  # [n, 2] register slots of the address, -1 = none
    base_shift: NDArray[np.int32]  # [n, 2] how far each is shifted
    base_offset: NDArray[np.int64]
    followed: NDArray[np.bool_]  # the address can be followed
    looked_up: NDArray[np.int8]  # where hits are found by address: nowhere, in L2, in L1 and L2
    by_data: NDArray[np.int8]  # ByData: whether what was loaded decides the address
    rule: NDArray[np.int8]
    taken: NDArray[np.float64]
    operation: NDArray[np.float64]  # cycles that L2 takes for one lane's atomic operation on a word
    trips: NDArray[np.int32]
    counter: NDArray[np.int32]
    fixed: NDArray[np.int16]  # [n, 2] fixed latency to the same pipe, to a memory operand; 0 = not fixed
    defs: NDArray[np.int32]  # ranges in ``registers``: [n, 2]
    uses: NDArray[np.int32]
    registers: NDArray[np.int32]
    fence: NDArray[np.int32]  # cycles of a fence, nanoseconds of a sleep


FACTS: Final = (
    "flow", "target", "guard", "guard_negated", "second", "second_negated", "conditional", "stall", "yields",
    "wait_mask", "write_barrier", "read_barrier", "keep", "barrier", "barrier_warps", "unit", "interval",
    "access", "long", "width", "base_offset", "followed", "rule", "trips", "counter", "fence", "looked_up",
    "by_data", "targets", "latency", "base", "fixed", "defs", "uses", "base_shift",
)  # fmt: skip
"""Order of the columns of ``packed``; the last seven take two columns each."""
RATES: Final = ("sectors", "ways", "l1_hit", "l2_hit", "taken", "operation")


class Packed(NamedTuple):
    """The same in four arrays: compiled functions pass few arrays faster than many."""

    fact: NDArray[np.int64]  # [n, columns of FACTS]
    rate: NDArray[np.float64]  # [n, RATES]
    registers: NDArray[np.int32]
    listed: NDArray[np.int32]


def packed(code: LoweredCode) -> Packed:
    """Put the columns side by side."""
    columns = [getattr(code, name).reshape(len(code.flow), -1).astype(np.int64) for name in FACTS]
    rates = [getattr(code, name) for name in RATES]
    return Packed(np.hstack(columns), np.stack(rates, axis=1), code.registers, code.listed)


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """One section, ready to run."""

    code: LoweredCode
    slice: Slice
    entry: int
    functions: tuple[Function, ...]
    instructions: Mapping[int, Instruction]
    decisions: Mapping[int, Decision]  # by place in the section
    slots: int
    flags: int
    counters: int
    notes: tuple[str, ...]  # what is not modelled in this code
    unknown: Mapping[str, int]  # opcodes without an entry in the table


def empty_code(n: int) -> LoweredCode:
    """Code of n instructions that do nothing yet."""
    return LoweredCode(
        flow=np.full(n, LoweredFlow.NOT_CODE, dtype=np.int8),
        target=np.full(n, -1, dtype=np.int32),
        targets=np.zeros((n, 2), dtype=np.int32),
        listed=np.zeros(1, dtype=np.int32),
        guard=np.full(n, -1, dtype=np.int16),
        guard_negated=np.zeros(n, dtype=np.bool_),
        second=np.full(n, -1, dtype=np.int16),
        second_negated=np.zeros(n, dtype=np.bool_),
        conditional=np.zeros(n, dtype=np.bool_),
        stall=np.ones(n, dtype=np.int16),
        yields=np.zeros(n, dtype=np.bool_),
        wait_mask=np.zeros(n, dtype=np.int16),
        write_barrier=np.full(n, -1, dtype=np.int8),
        read_barrier=np.full(n, -1, dtype=np.int8),
        keep=np.zeros(n, dtype=np.int16),
        barrier=np.zeros(n, dtype=np.int8),
        barrier_warps=np.zeros(n, dtype=np.int16),
        unit=np.full(n, Unit.NONE, dtype=np.int8),
        interval=np.ones(n, dtype=np.int32),
        access=np.full(n, Access.NONE, dtype=np.int8),
        latency=np.zeros((n, 2), dtype=np.int32),
        long=np.zeros(n, dtype=np.bool_),
        width=np.full(n, 4, dtype=np.int16),
        sectors=np.full(n, -1.0),
        ways=np.full(n, -1.0),
        l1_hit=np.zeros(n),
        l2_hit=np.zeros(n),
        base=np.full((n, 2), -1, dtype=np.int32),
        base_shift=np.zeros((n, 2), dtype=np.int32),
        base_offset=np.zeros(n, dtype=np.int64),
        followed=np.zeros(n, dtype=np.bool_),
        looked_up=np.zeros(n, dtype=np.int8),
        by_data=np.zeros(n, dtype=np.int8),
        rule=np.zeros(n, dtype=np.int8),
        taken=np.zeros(n),
        operation=np.zeros(n),
        trips=np.zeros(n, dtype=np.int32),
        counter=np.zeros(n, dtype=np.int32),
        fixed=np.zeros((n, 2), dtype=np.int16),
        defs=np.zeros((n, 2), dtype=np.int32),
        uses=np.zeros((n, 2), dtype=np.int32),
        registers=np.zeros(1, dtype=np.int32),
        fence=np.zeros(n, dtype=np.int32),
    )


def empty_slice(n: int, results: int) -> Slice:
    """A slice of n instructions that compute nothing yet."""
    return Slice(
        op=np.zeros(n, dtype=np.int16),
        source_kind=np.zeros((n, 4), dtype=np.int8),
        source_value=np.zeros((n, 4), dtype=np.int64),
        source_how=np.zeros((n, 4), dtype=np.int8),
        read=np.full((n, 3), -2, dtype=np.int16),
        read_negated=np.zeros((n, 3), dtype=np.bool_),
        result=np.full((n, results), -1, dtype=np.int16),
        flag=np.full((n, 8), -1, dtype=np.int16),
        uniform=np.zeros(n, dtype=np.bool_),
        mode=np.zeros(n, dtype=np.int64),
        table=np.zeros(n, dtype=np.int64),
        signed=np.zeros(n, dtype=np.bool_),
        drawn=np.zeros(n, dtype=np.int8),
        guard=np.full(n, -1, dtype=np.int16),
        guard_negated=np.zeros(n, dtype=np.bool_),
    )
