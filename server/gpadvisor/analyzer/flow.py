# SPDX-License-Identifier: Apache-2.0
"""Control-flow graph of one function from its decoded instructions (GPA section III)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import auto
from typing import Final

from gpadvisor.model.ids import INSTRUCTION_BYTES, BlockId
from gpadvisor.model.instruction import Instruction, OpcodeClass
from gpadvisor.model.kind import Kind
from gpadvisor.model.program import Block, EdgeKind

_TARGET: Final = re.compile(r"0x[0-9a-f]+$", re.IGNORECASE)
_LISTED_TARGETS: Final = re.compile(r"0x[0-9a-f]+", re.IGNORECASE)
_MAX_INDIRECT_EDGES: Final = 1 << 16


class Flow(Kind):
    """What an instruction does to control."""

    BRANCH = auto()
    INDIRECT = auto()
    CALL = auto()
    LEAVE = auto()  # returns, or ends the thread
    CONVERGE = auto()  # BSYNC: goes on at the place that a BSSY names
    MARK = auto()  # BSSY: names that place


_FLOW_OF_CLASS: Final[Mapping[OpcodeClass, Flow]] = {
    OpcodeClass.BRANCH: Flow.BRANCH,
    OpcodeClass.INDIRECT_BRANCH: Flow.INDIRECT,
    OpcodeClass.CALL: Flow.CALL,
    OpcodeClass.RETURN: Flow.LEAVE,
    OpcodeClass.EXIT: Flow.LEAVE,
}
_FLOW_OF_OPCODE: Final[Mapping[str, Flow]] = {
    "BSSY": Flow.MARK,
    "BSYNC": Flow.CONVERGE,
}

FlowEdge = tuple[int, EdgeKind]
JumpTables = Mapping[int, Sequence[int]]
"""Targets of indirect branches by the offset of the branch, all in bytes from the start of the section."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Basic blocks of one function."""

    blocks: tuple[Block, ...]
    block_of: tuple[int, ...]  # instruction index -> BlockId
    guessed_branches: int  # indirect branches whose targets no table named


def control_transfers(instructions: Sequence[Instruction]) -> dict[int, Flow]:
    """What each instruction that matters to control does, by instruction index."""
    flows: dict[int, Flow | None] = {}
    result: dict[int, Flow] = {}
    for index, instruction in enumerate(instructions):
        key = id(instruction.info)
        if key not in flows:
            opclass = instruction.info.opclass
            flows[key] = Flow.CONVERGE if opclass is OpcodeClass.WARP_SYNC else _FLOW_OF_CLASS.get(opclass)
        flow = flows[key]
        if flow is Flow.CONVERGE:
            flow = _FLOW_OF_OPCODE.get(instruction.opcode)
        if flow is not None:
            result[index] = flow
    return result


def may_fall_through(instruction: Instruction, flow: Flow | None) -> bool:
    """Whether the next instruction may run after this one without a jump."""
    if flow is Flow.BRANCH:
        # "BRA.U !UP0, 0x80" and "BRA.DIV UR4, 0x80" hold their condition in an operand.
        return instruction.guard is not None or "," in instruction.operands
    return flow not in {Flow.INDIRECT, Flow.LEAVE} or instruction.guard is not None


def build_graph(
    instructions: Sequence[Instruction], flows: Mapping[int, Flow], tables: JumpTables | None = None
) -> Graph:
    """Split a function into basic blocks and join them.

    Args:
        instructions: of one function, in address order.
        flows: what ``control_transfers`` says about them.
        tables: where indirect branches go, as far as the cubin tells.
    """
    edges, leaders = _direct_edges(instructions, flows)
    guessed = _add_indirect_edges(instructions, flows, edges, leaders, tables or {})
    starts = sorted(leaders)
    ends = [*starts[1:], len(instructions)]
    block_of = tuple(
        block for block, (start, end) in enumerate(zip(starts, ends, strict=True)) for _ in range(start, end)
    )
    successors: list[tuple[tuple[BlockId, EdgeKind], ...]] = []
    predecessors: list[list[BlockId]] = [[] for _ in starts]
    for block, end in enumerate(ends):
        last = end - 1
        out = edges.get(last)
        if out is None:  # the next leader cuts a straight run
            out = [(end, EdgeKind.FALL_THROUGH)] if end < len(instructions) else []
        targets: dict[BlockId, EdgeKind] = {}
        for target, kind in out:
            targets.setdefault(BlockId(block_of[target]), kind)
        successors.append(tuple(targets.items()))
        for target in targets:
            predecessors[target].append(BlockId(block))
    blocks = tuple(
        Block(BlockId(block), start, end, successors[block], tuple(predecessors[block]))
        for block, (start, end) in enumerate(zip(starts, ends, strict=True))
    )
    return Graph(blocks, block_of, guessed)


def _direct_edges(
    instructions: Sequence[Instruction], flows: Mapping[int, Flow]
) -> tuple[dict[int, list[FlowEdge]], set[int]]:
    """Edges by the instruction they leave from, and the first instructions of blocks."""
    count = len(instructions)
    base = instructions[0].pc
    marks = _convergence_points(instructions, flows)
    leaders = {0}
    edges: dict[int, list[FlowEdge]] = {}
    for index, flow in flows.items():
        instruction = instructions[index]
        out: list[FlowEdge] = []
        following = index + 1
        if flow is Flow.CONVERGE:
            out = [(target, EdgeKind.BRANCH) for target in _resumes_at(instruction, following, marks)]
            if not out:
                continue
        if flow is Flow.MARK:
            continue
        if flow is Flow.BRANCH and instruction.target is not None:
            target = (instruction.target - base) // INSTRUCTION_BYTES
            # A jump into another function is a tail call: control leaves.
            out.append((target, EdgeKind.BRANCH))
        if may_fall_through(instruction, flow):
            kind = EdgeKind.CALL_RETURN if flow is Flow.CALL else EdgeKind.FALL_THROUGH
            out.append((following, kind))
        edges[index] = [(target, kind) for target, kind in out if 0 <= target < count]
        leaders.update(target for target, _ in edges[index])
        if following < count:
            leaders.add(following)
    return edges, leaders


def _convergence_points(
    instructions: Sequence[Instruction], flows: Mapping[int, Flow]
) -> dict[str, set[int]]:
    """Where threads go on after each convergence barrier, ``BSSY B0, 0x1d0``, as instruction indices."""
    base = instructions[0].pc
    points: dict[str, set[int]] = {}
    for index, flow in flows.items():
        if flow is Flow.MARK:
            barrier, _, place = instructions[index].operands.partition(",")
            if _TARGET.match(place.strip()) and (offset := int(place.strip(), 16) - base) >= 0:
                points.setdefault(barrier.strip(), set()).add(offset // INSTRUCTION_BYTES)
    return points


def _resumes_at(instruction: Instruction, following: int, marks: Mapping[str, set[int]]) -> list[int]:
    """Instruction indices other than the next one at which a convergence may go on."""
    resumed = marks.get(instruction.operands.partition(",")[0].strip(), set[int]())
    return [] if following in resumed else sorted(resumed)


def _add_indirect_edges(
    instructions: Sequence[Instruction],
    flows: Mapping[int, Flow],
    edges: dict[int, list[FlowEdge]],
    leaders: set[int],
    tables: JumpTables,
) -> int:
    """Join indirect branches to their targets; returns how many were joined by guess."""
    branches = [index for index, flow in flows.items() if flow is Flow.INDIRECT]
    if not branches:
        return 0
    guessed = []
    for index in branches:
        listed = _listed_targets(instructions, index, tables)
        if listed:
            edges[index].extend((target, EdgeKind.INDIRECT) for target in listed)
            leaders.update(listed)
        else:
            guessed.append(index)
    if guessed:
        orphans = _orphans(instructions, flows, edges, leaders)
        for index in guessed:
            claimed = orphans
            if len(guessed) * len(orphans) > _MAX_INDIRECT_EDGES:
                after = next((start for start in guessed if start > index), len(instructions))
                claimed = [orphan for orphan in orphans if index < orphan < after]
            edges[index].extend((orphan, EdgeKind.INDIRECT) for orphan in claimed)
    return len(guessed)


def _listed_targets(instructions: Sequence[Instruction], index: int, tables: JumpTables) -> list[int]:
    """Targets that the cubin records, else those that the disassembler lists where it prints offsets."""
    offsets = tables.get(instructions[index].pc, ())
    if not offsets:
        _, _, text = instructions[index].operands.partition("BRANCH_TARGETS")
        offsets = [int(place, 16) for place in _LISTED_TARGETS.findall(text)]
    base = instructions[0].pc
    places = {(offset - base) // INSTRUCTION_BYTES for offset in offsets if offset % INSTRUCTION_BYTES == 0}
    return sorted(place for place in places if 0 <= place < len(instructions))


def _orphans(
    instructions: Sequence[Instruction],
    flows: Mapping[int, Flow],
    edges: Mapping[int, list[FlowEdge]],
    leaders: set[int],
) -> list[int]:
    """Blocks that nothing else leads to: what an indirect branch can be for."""
    reached = {0, *(target for out in edges.values() for target, _ in out)}
    padding = padding_start(instructions, flows)
    return sorted(
        leader
        for leader in leaders
        if leader not in reached
        and leader < padding
        and not may_fall_through(instructions[leader - 1], flows.get(leader - 1))
    )


def padding_start(instructions: Sequence[Instruction], flows: Mapping[int, Flow]) -> int:
    """Index of the filling behind the last instruction that runs: NOPs and a branch to itself."""
    end = len(instructions)
    while end > 1:
        instruction = instructions[end - 1]
        itself = flows.get(end - 1) is Flow.BRANCH and instruction.target == instruction.pc
        if not itself and instruction.info.opclass is not OpcodeClass.NOP:
            break
        end -= 1
    return end
