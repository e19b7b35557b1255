# SPDX-License-Identifier: Apache-2.0
"""The static structure of a cubin: functions, blocks, loops, lines, inline chains (GPA section III)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, Protocol

from gpadvisor.model.ids import INSTRUCTION_BYTES, BlockId, FunctionId, LoopId, Pc, SourceLocation
from gpadvisor.model.instruction import Instruction, Register
from gpadvisor.model.kind import Kind
from gpadvisor.model.machine import CodeForm
from gpadvisor.model.problem import Problem

_LAUNCHED: Final = re.compile(r"^(?:void )?(?:cub|thrust)::")
"""Kernels of templates whose blocks and grids the library chooses, whatever functions of a user they call."""


def is_launched_by_library(kernel: str) -> bool:
    """Whether a demangled name is of a library's template: launch, loops and barriers are not its user's."""
    return _LAUNCHED.match(kernel) is not None


class FunctionKind(Kind):
    """How a function is entered."""

    KERNEL = "kernel"  # launched from the host (STO_CUDA_ENTRY)
    DEVICE = "device"  # called from device code
    MATH_HELPER = "math_helper"  # a compiler's out-of-line routine such as __cuda_sm20_div_rn_f64_full


class EdgeKind(Kind):
    """How control passes between blocks of one function."""

    FALL_THROUGH = "fall_through"
    BRANCH = "branch"
    INDIRECT = "indirect"
    CALL_RETURN = "call_return"  # from a call to the instruction after it


@dataclass(frozen=True, slots=True)
class InlineFrame:
    """One level of an inline chain: the inlined callee, and the place in the caller it was inlined at."""

    function: str | None  # name of the inlined function, where the line info has it
    call_site: SourceLocation  # where it was inlined


@dataclass(frozen=True, slots=True)
class LineEntry:
    """The source of one instruction: innermost location, then the inline chain outwards."""

    location: SourceLocation  # of a Program: the innermost one outside of libraries, where there is one
    inline: tuple[InlineFrame, ...] = ()
    library: tuple[SourceLocation, ...] = ()  # library code at the location, innermost first


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block: instruction indices ``[start, end)`` of its function."""

    id: BlockId
    start: int
    end: int
    successors: tuple[tuple[BlockId, EdgeKind], ...]
    predecessors: tuple[BlockId, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop, or an irreducible region reported as one (then ``reducible`` is False)."""

    id: LoopId
    header: BlockId
    blocks: frozenset[BlockId]  # nested loops included
    parent: LoopId | None
    depth: int  # 1 = outermost
    reducible: bool
    location: SourceLocation | None  # best source line: smallest line of the header's own file


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call instruction; ``callee`` is None for an indirect call."""

    index: int  # instruction index in the caller
    callee: FunctionId | None
    symbol: str | None


class Definitions(Protocol):
    """Which instructions may have written what an instruction of a function reads, found when asked for."""

    @property
    def complete(self) -> bool:
        """Whether every search so far came to its end."""

    def definitions(self, use: int, read: Register) -> AbstractSet[int]:
        """Instructions whose write of ``read`` may reach ``use``."""


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """One function of a ``.text`` section with its control-flow graph."""

    id: FunctionId
    name: str  # mangled
    demangled: str
    kind: FunctionKind
    section: str  # ".text.<kernel>" without the prefix
    start: Pc  # offset of its first instruction in the section
    instructions: tuple[Instruction, ...]
    blocks: tuple[Block, ...]
    block_of: tuple[int, ...]  # instruction index -> BlockId
    idom: tuple[BlockId | None, ...]  # immediate dominators; None for entries and unreachable blocks
    loops: tuple[Loop, ...]
    loop_of: tuple[int, ...]  # BlockId -> innermost LoopId, -1 outside any loop
    lines: tuple[LineEntry | None, ...]  # per instruction
    calls: tuple[CallSite, ...]
    reaching: Definitions

    def index_of(self, pc: Pc) -> int | None:
        """The instruction index of a section offset, or None outside this function."""
        index = (pc - self.start) // INSTRUCTION_BYTES
        return index if 0 <= index < len(self.instructions) else None

    def innermost_loop(self, index: int) -> LoopId | None:
        """The innermost loop around an instruction."""
        loop = int(self.loop_of[self.block_of[index]])
        return None if loop < 0 else LoopId(loop)

    def enclosing_loops(self, index: int) -> tuple[LoopId, ...]:
        """All loops around an instruction, innermost first."""
        loop_ids: list[LoopId] = []
        loop = self.innermost_loop(index)
        while loop is not None:
            loop_ids.append(loop)
            loop = self.loops[loop].parent
        return tuple(loop_ids)


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """Launch facts that the ELF states about one kernel."""

    registers_per_thread: int | None
    static_shared_bytes: int | None
    stack_bytes: int | None  # per thread: frame size, spills and local arrays
    max_threads_per_block: int | None  # from __launch_bounds__
    required_block: tuple[int, int, int] | None
    min_blocks_per_sm: int | None
    uses_barriers: int | None
    spills: frozenset[int] | None = None  # section offsets of what spills or refills; None where not told
    register_limit: int | None = None  # that the compiler was held to, of itself 255; None where not told


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """One analysed cubin (or the part of it that was asked for)."""

    arch: str  # "sm_86"
    functions: tuple[Function, ...]
    facts: Mapping[str, KernelFacts]  # by mangled kernel name
    has_line_info: bool
    problems: tuple[Problem, ...]
    form: CodeForm
    address_taken: frozenset[FunctionId] = frozenset()  # what calls through registers may reach
    compiler: str | None = None  # version of ptxas, "13.0"; None where the code does not tell
    debug_build: bool = False  # compiled with -G: what the optimizer would do is not done

    def at(self, section: str, pc: Pc) -> tuple[Function, int] | None:
        """The function and instruction index at an offset of a section."""
        for function in self.functions:
            if function.section == section:
                index = function.index_of(pc)
                if index is not None:
                    return function, index
        return None
