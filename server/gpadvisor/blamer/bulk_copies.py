# SPDX-License-Identifier: Apache-2.0
"""Copies that arrive at an mbarrier: what a warp waits for that tries one.

Differs from GPA: its GPUs had none. The instruction that tries an mbarrier only looks; the time is that of
the copies, which another warp may have issued.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpadvisor.blamer.classify import copies_into_shared
from gpadvisor.blamer.graph import Candidates, Edge, FunctionGraph
from gpadvisor.model.blame import DependencyKind, PruneRule
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass

_MAX_BLOCKS: Final = 64


def arriving_copies(graph: FunctionGraph, edges: Sequence[Edge], candidates: Candidates) -> list[Edge]:
    """The edges, with those from a trial of an mbarrier replaced by edges from the copies waited for there.

    Args:
        graph: of the function.
        edges: into one use.
        candidates: of that use; takes the new edges.
    """
    found: dict[int, Edge] = {}
    for edge in edges:
        copies = _awaited(graph, edge.definition)
        if not copies:
            found[edge.definition] = edge
            continue
        edge.cut(PruneRule.BARRIER, "it tries an mbarrier, and the copies that arrive there are waited for")
        for copy in copies:
            if copy not in candidates:
                candidates.add(Edge(copy, edge.use, DependencyKind.BARRIER, ()))
            found[copy] = candidates.edge(copy)
    return [found[definition] for definition in sorted(found)]


def _awaited(graph: FunctionGraph, index: int) -> list[int]:
    """The copies that may arrive at the mbarrier that is tried; none where the wait is not for copies.

    A warp that goes on to copy waits for room, which no copy makes; one that goes on to read waits for data.
    """
    instruction = graph.instructions[index]
    if instruction.info.opclass is not OpcodeClass.MBARRIER or "TRYWAIT" not in instruction.modifiers:
        return []
    copies = [
        position for position, instruction in enumerate(graph.instructions) if copies_into_shared(instruction)
    ]
    executed = [copy for copy in copies if graph.issue_counts[copy]]
    return (executed or copies) if _reads_next(graph, index) else []


def _reads_next(graph: FunctionGraph, index: int) -> bool:
    """Whether shared memory is read behind an instruction before anything is copied there."""
    blocks = graph.function.blocks
    home = graph.block_of[index]
    visited: set[int] = set()
    pending = [(index + 1, blocks[home].end, home)]
    while pending and len(visited) < _MAX_BLOCKS:
        start, end, block = pending.pop(0)
        met = next(
            (
                instruction
                for instruction in graph.instructions[start:end]
                if _reads(instruction) or copies_into_shared(instruction)
            ),
            None,
        )
        if met is not None:
            return _reads(met)
        for successor in (int(target) for target, _ in blocks[block].successors):
            if successor not in visited:
                visited.add(successor)
                pending.append((blocks[successor].start, blocks[successor].end, successor))
    return False


def _reads(instruction: Instruction) -> bool:
    info = instruction.info
    if info.opclass is OpcodeClass.TENSOR:
        return "gdesc" in instruction.operands  # a matrix in shared memory, named by a descriptor
    return info.opclass is OpcodeClass.LOAD and info.space in {MemorySpace.SHARED, MemorySpace.GENERIC}
