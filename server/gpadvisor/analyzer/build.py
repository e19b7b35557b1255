# SPDX-License-Identifier: Apache-2.0
"""From a cubin and its listing to the Program that all later stages look at (GPA section III)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import replace

from gpadvisor.analyzer.defuse import ReachingDefinitions
from gpadvisor.analyzer.dominators import DominatorTree
from gpadvisor.analyzer.flow import Flow, Graph, JumpTables, build_graph, control_transfers
from gpadvisor.analyzer.loops import LoopNest, find_loops
from gpadvisor.analyzer.partition import Part, split_section
from gpadvisor.analyzer.places import called_lines, loop_location, user_lines
from gpadvisor.cubin import CodeSection, Cubin, Lines, decode_lines, demangle
from gpadvisor.graphs import immediate_dominators, reverse_postorder
from gpadvisor.machine import code_form
from gpadvisor.model.ids import INSTRUCTION_BYTES, BlockId, FunctionId, LoopId, Pc
from gpadvisor.model.instruction import Instruction
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.program import (
    Block,
    CallSite,
    Function,
    FunctionKind,
    LineEntry,
    Loop,
    Program,
    is_launched_by_library,
)
from gpadvisor.sass import decode
from gpadvisor.sass.listing import Listing


def build_program(
    cubin: Cubin,
    listing: Listing,
    sections: Collection[str] | None = None,
    lines: Lines | None = None,
) -> Program:
    """Analyse the code sections of a cubin, or only those named.

    Raises SassError where the listing is not the disassembly of this cubin.

    Args:
        cubin: the image.
        listing: its disassembly by section name.
        sections: names without ``.text.``; all of them where None.
        lines: those of these sections, where they were decoded before; else they are here.
    """
    builder = _ProgramBuilder(cubin, decode_lines(cubin, sections) if lines is None else lines)
    # Older compilers leave each kernel its own copy of a static function; profile and listing know one name.
    for section in {section.name: section for section in cubin.sections}.values():
        if sections is None or section.name in sections:
            builder.add(section, listing)
    return builder.finish()


class _ProgramBuilder:
    """Collects functions until all callees are known."""

    def __init__(self, cubin: Cubin, lines: Lines) -> None:
        self._cubin = cubin
        self._lines = lines.sections
        self._functions: list[Function] = []
        self._flows: list[dict[int, Flow]] = []
        self._problems: list[Problem] = []

    def add(self, section: CodeSection, listing: Listing) -> None:
        """Decode a section and analyse its functions."""
        text = listing.get(section.name)
        if text is None:
            message = f"section .text.{section.name} has no disassembly, its code is left out"
            self._problems.append(Problem(ProblemCode.NO_DISASSEMBLY, message))
            return
        instructions, problems = decode(self._cubin.arch, section.code, text)
        self._problems.extend(problem for problem in problems if problem not in self._problems)
        lines: Sequence[LineEntry | None] = [None] * len(instructions)
        if section.name in self._lines:
            lines = user_lines(self._lines[section.name])
        flows = control_transfers(instructions)
        jumps = sorted(flows)
        for part in split_section(section, instructions, flows):
            inside = jumps[bisect_left(jumps, part.start) : bisect_left(jumps, part.end)]
            own = {index - part.start: flows[index] for index in inside}
            own_lines = lines[part.start : part.end]
            self._flows.append(own)
            self._functions.append(
                build_function(
                    FunctionId(len(self._functions)),
                    section.name,
                    part,
                    instructions[part.start : part.end],
                    called_lines(own_lines, is_kernel=_is_own_kernel(part)),
                    own,
                    self._problems,
                    tables=section.indirect_targets,
                )
            )

    def finish(self) -> Program:
        """Join calls to their callees."""
        by_symbol = {function.name: function.id for function in self._functions}
        by_start = {(function.section, function.start): function.id for function in self._functions}
        functions = []
        for function, flows in zip(self._functions, self._flows, strict=True):
            calls = []
            for index, flow in flows.items():
                if flow is not Flow.CALL:
                    continue
                call = function.instructions[index]
                callee = None if call.callee is None else by_symbol.get(call.callee)
                if callee is None and call.target is not None:
                    callee = by_start.get((function.section, call.target))
                symbol = call.callee if callee is None else self._functions[callee].name
                calls.append(CallSite(index, callee, symbol))
            functions.append(replace(function, calls=tuple(calls)) if calls else function)
        if not self._cubin.has_line_info:
            message = "the cubin has no line table: compile with -lineinfo to see source lines"
            self._problems.append(Problem(ProblemCode.NO_LINE_INFO, message))
        return Program(
            arch=self._cubin.arch,
            functions=tuple(functions),
            facts=self._cubin.facts,
            has_line_info=self._cubin.has_line_info,
            problems=tuple(self._problems),
            form=code_form(self._cubin.arch),
            address_taken=frozenset(
                function.id for function in functions if function.name in self._cubin.address_taken
            ),
            compiler=self._cubin.compiler,
            debug_build=any(problem.code is ProblemCode.DEBUG_BUILD for problem in self._cubin.problems),
        )


def build_function(
    function: FunctionId,
    section: str,
    part: Part,
    instructions: tuple[Instruction, ...],
    lines: tuple[LineEntry | None, ...],
    flows: dict[int, Flow],
    problems: list[Problem],
    *,
    tables: JumpTables | None = None,
) -> Function:
    """Blocks, dominators and loops of one function; what is uncertain is added to ``problems``.

    Args:
        function: its place in the program.
        section: its section without ``.text.``.
        part: its name and place.
        instructions: its code.
        lines: per instruction.
        flows: control transfers by instruction index.
        problems: collects what is uncertain.
        tables: where indirect branches go, as far as the cubin tells.
    """
    graph = build_graph(instructions, flows, tables)
    successors = [[int(target) for target, _ in block.successors] for block in graph.blocks]
    predecessors = [[int(source) for source in block.predecessors] for block in graph.blocks]
    order = reverse_postorder(successors)
    idom = immediate_dominators(order, predecessors)
    dominators = tuple(None if block is None else BlockId(block) for block in idom)
    nest = find_loops(successors, predecessors, order, DominatorTree(idom))
    problems.extend(_uncertainties(part.name, graph, nest))
    return Function(
        id=function,
        name=part.name,
        demangled=_demangled(part),
        kind=part.kind,
        section=section,
        start=Pc(part.start * INSTRUCTION_BYTES),
        instructions=instructions,
        blocks=graph.blocks,
        block_of=graph.block_of,
        idom=dominators,
        loops=_loops(nest, graph, lines),
        loop_of=nest.innermost,
        lines=lines,
        calls=(),
        reaching=ReachingDefinitions(instructions, graph.blocks, graph.block_of, dominators),
    )


def _is_own_kernel(part: Part) -> bool:
    return part.kind is FunctionKind.KERNEL and not is_launched_by_library(_demangled(part))


def _demangled(part: Part) -> str:
    """``$_Z6kernelPf$_Z6helperfi`` is ``helper(float, int)``."""
    return demangle(part.name if part.kind is FunctionKind.KERNEL else part.name.rsplit("$", 1)[-1])


def with_lines(function: Function, lines: tuple[LineEntry | None, ...]) -> Function:
    """The function with other lines, and its loops where these say that they are."""
    return replace(function, lines=lines, loops=_on_lines(function.loops, function.blocks, lines))


def _loops(nest: LoopNest, graph: Graph, lines: Sequence[LineEntry | None]) -> tuple[Loop, ...]:
    loops = [
        Loop(
            id=LoopId(index),
            header=BlockId(loop.header),
            blocks=frozenset(BlockId(block) for block in loop.blocks),
            parent=None if loop.parent is None else LoopId(loop.parent),
            depth=loop.depth,
            reducible=loop.reducible,
            location=None,
        )
        for index, loop in enumerate(nest.loops)
    ]
    return _on_lines(loops, graph.blocks, lines)


def _on_lines(
    loops: Sequence[Loop], blocks: Sequence[Block], lines: Sequence[LineEntry | None]
) -> tuple[Loop, ...]:
    result = []
    for loop in loops:
        header = blocks[loop.header]
        latches = [blocks[block].end - 1 for block in header.predecessors if block in loop.blocks]
        place = loop_location(range(header.start, header.end), latches, lines)
        result.append(replace(loop, location=place))
    return tuple(result)


def _uncertainties(name: str, graph: Graph, nest: LoopNest) -> list[Problem]:
    problems = []
    if graph.guessed_branches:
        message = (
            f"{name} has {graph.guessed_branches} indirect branches whose targets the cubin does not "
            "record; they are taken to lead to every block that nothing else leads to"
        )
        problems.append(Problem(ProblemCode.INDIRECT_BRANCH, message))
    irreducible = sum(not loop.reducible for loop in nest.loops)
    if irreducible:
        message = f"{name} has {irreducible} loops with several entries, shown as regions"
        problems.append(Problem(ProblemCode.IRREDUCIBLE_REGION, message))
    if not nest.complete:
        message = f"the loops of {name} are nested too deeply to be followed; some are left out"
        problems.append(Problem(ProblemCode.NOT_ANALYSED, message))
    return problems
