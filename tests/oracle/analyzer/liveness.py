# SPDX-License-Identifier: Apache-2.0
"""Which registers hold a value that is still needed, from our reads and writes of each instruction."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from gpadvisor.graphs import whole_order
from gpadvisor.model.instruction import Register, RegisterFile
from gpadvisor.model.program import Function


def live_registers(
    function: Function, file: RegisterFile = RegisterFile.GPR, *, without: Register | None = None
) -> NDArray[np.int32]:
    """How many registers of a file are in use at each instruction: live ones, and those it writes.

    Calls are taken to read and write what they name; what a callee keeps in registers is not seen.

    Args:
        function: the code.
        file: the register file counted.
        without: a register left out, such as the stack pointer.
    """
    analysis = _Analysis(function, file, without)
    analysis.solve()
    return analysis.counts()


class _Analysis:
    """Backward data flow; a set of registers is an int with one bit each."""

    def __init__(self, function: Function, file: RegisterFile, without: Register | None) -> None:
        self._function = function
        first = file.value << 8
        counted = -1 if without is None else ~_bits((without,), first)
        self._defs = [_bits(one.defs, first) & counted for one in function.instructions]
        self._uses = [_bits(one.uses, first) & counted for one in function.instructions]
        # A guarded write leaves the old value where the guard is false.
        self._kills = [
            0 if one.guard is not None else bits
            for one, bits in zip(function.instructions, self._defs, strict=True)
        ]
        self._gen: list[int] = []
        self._kill: list[int] = []
        for block in function.blocks:
            live, killed = 0, 0
            for index in range(block.end - 1, block.start - 1, -1):
                live = live & ~self._kills[index] | self._uses[index]
                killed |= self._kills[index]
            self._gen.append(live)
            self._kill.append(killed)
        self._in = [0] * len(function.blocks)

    def solve(self) -> None:
        """Iterate until nothing changes, uses first."""
        blocks = self._function.blocks
        order = whole_order([[int(target) for target, _ in block.successors] for block in blocks])
        order.reverse()
        rank = {block: position for position, block in enumerate(order)}
        pending = list(range(len(order)))
        queued = set(pending)
        heapify(pending)
        while pending:
            position = heappop(pending)
            queued.discard(position)
            block = order[position]
            live = self._out(block) & ~self._kill[block] | self._gen[block]
            if live != self._in[block]:
                self._in[block] = live
                for source in blocks[block].predecessors:
                    if rank[source] not in queued:
                        queued.add(rank[source])
                        heappush(pending, rank[source])

    def counts(self) -> NDArray[np.int32]:
        """Registers in use at each instruction."""
        found = np.zeros(len(self._function.instructions), dtype=np.int32)
        for block in self._function.blocks:
            live = self._out(block.id)
            for index in range(block.end - 1, block.start - 1, -1):
                after = live | self._defs[index]
                live = live & ~self._kills[index] | self._uses[index]
                found[index] = (after | live).bit_count()
        return found

    def _out(self, block: int) -> int:
        live = 0
        for target, _ in self._function.blocks[block].successors:
            live |= self._in[target]
        return live


def _bits(registers: tuple[Register, ...], first: int) -> int:
    bits = 0
    for one in registers:
        if first <= one < first + 256:
            bits |= 1 << (one - first)
    return bits
