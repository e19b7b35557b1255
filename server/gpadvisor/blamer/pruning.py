# SPDX-License-Identifier: Apache-2.0
"""The rules that cut cold edges (GPA section IV, "Prune cold edges"), and what newer hardware adds.

Each rule returns why an edge is cut, in words, or None where it stays.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from gpadvisor.analyzer.scoreboards import Link
from gpadvisor.blamer.classify import Scoreboard, stalls_as
from gpadvisor.blamer.graph import Edge, FunctionGraph
from gpadvisor.blamer.rules import BlameRules
from gpadvisor.blamer.survivors import PathRules, SurvivingPaths, surviving_paths
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass, RegisterFile, register_file
from gpadvisor.model.stalls import StallClass


def opcode_rule(source: Instruction, observed: Collection[StallClass], rules: BlameRules) -> str | None:
    """Memory stalls come from memory instructions only, synchronization stalls from synchronizing ones.

    Args:
        source: the def.
        observed: classes of the dependency stalls at the use.
        rules: whether constant loads and atomics cause memory stalls as well.
    """
    memory = StallClass.MEMORY in observed
    execution = bool({StallClass.EXECUTION, StallClass.FIXED_LATENCY} & set(observed))
    in_memory_pool = is_memory_source(source, rules)
    constant = source.info.space is MemorySpace.CONSTANT
    if memory and in_memory_pool:
        return None
    if execution and (not in_memory_pool or constant):
        return None
    if memory:
        return f"{source.opcode} does not cause memory stalls, and the use has no other dependency stall"
    return f"{source.opcode} causes memory stalls, and the use has none"


def is_memory_source(source: Instruction, rules: BlameRules) -> bool:
    """Whether a def competes for memory stalls: loads and atomics, but shared memory is execution."""
    if source.info.opclass is OpcodeClass.ATOMIC and not rules.atomics_are_memory:
        return False
    if source.info.opclass not in _READS:
        return False
    if source.info.space is MemorySpace.CONSTANT:
        return rules.constants_are_memory
    return source.info.space is not MemorySpace.SHARED


_READS: Final = frozenset({OpcodeClass.LOAD, OpcodeClass.ATOMIC, OpcodeClass.ASYNC_COPY})


def both_barriers_rule(source: Instruction, use: Instruction) -> str | None:
    """The released code's barrier rule: it needs a def that sets both barriers."""
    write, read = source.control.write_barrier, source.control.read_barrier
    if write is None or read is None:
        return None
    waits = use.control.waits
    if write in waits or read in waits:
        return None
    return f"the use waits on neither SB{write} nor SB{read} of the def"


def dominator_rule(paths: SurvivingPaths) -> str | None:
    """Another instruction that reads the same operand stands on every path: it would have stalled first."""
    if paths.exists or paths.reader is None:
        return None
    return f"the operand is read before, at {paths.reader:#x}, on every path"


def latency_rule(paths: SurvivingPaths, budget: int) -> str | None:
    """Every path is longer than the def takes."""
    if paths.exists or paths.reader is not None:
        return None
    return f"every path is longer than its latency, {budget}"


def path_rules(graph: FunctionGraph, edge: Edge, rules: PathRules) -> SurvivingPaths:
    """The paths of an edge that neither a reader nor the latency ends, over all registers that link it."""
    readable = [
        register for register in edge.registers if register_file(register) is not RegisterFile.BARRIER
    ]
    return surviving_paths(graph, edge, tuple(readable), rules)


def reason_rule(source: Instruction, edge: Edge, scoreboard: Scoreboard) -> str | None:
    """The finer stall reasons: a long scoreboard stall is a wait for L1TEX, a short one for the rest."""
    reads_only = edge.links == {Link.READ}
    if stalls_as(source, reads_only=reads_only) & scoreboard:
        return None
    if scoreboard is Scoreboard.LONG:
        return f"long_scoreboard is a wait for L1TEX, and {source.opcode} does not go there"
    return f"short_scoreboard is no wait for L1TEX, where {source.opcode} goes"


def barrier_rule(source: Instruction, use: Instruction) -> str:
    """A scoreboard stall comes only from what the waited scoreboards count."""
    set_by_def = [
        f"SB{barrier}"
        for barrier in (source.control.write_barrier, source.control.read_barrier)
        if barrier is not None
    ]
    waits = ", ".join(f"SB{wait}" for wait in use.control.waits) or "no scoreboard"
    if not set_by_def:
        return f"the def sets no scoreboard; the use waits on {waits}"
    return f"the def sets {', '.join(set_by_def)}, released before; the use waits on {waits}"
