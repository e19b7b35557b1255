# SPDX-License-Identifier: Apache-2.0
"""Kernels written as SASS text, with blamed samples, for the tests of the optimizers.

A listing is one function per ``.function NAME [kernel|device|math_helper]`` line. Every other line is a label
(``again:``) or an instruction, optionally with a tag in front (``load| LDG.E R2, [R4.64]``) by which samples
name it, and a source line behind (``// 12``, or ``// 12 in interpolate`` where it was inlined).
"""

from __future__ import annotations

import re
import struct
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from gpadvisor import machine
from gpadvisor.analyzer.defuse import ReachingDefinitions
from gpadvisor.analyzer.occupancy import occupancy
from gpadvisor.estimators.context import KernelContext
from gpadvisor.machine import code_form
from gpadvisor.model.blame import (
    CLASSES,
    NO_INDEX,
    Blame,
    BlameTable,
    CodeArea,
    Coverage,
    DependencyClass,
    Role,
)
from gpadvisor.model.ids import BlockId, FunctionId, LoopId, Pc, SourceLocation
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.profile import (
    Device,
    Evidence,
    KernelProfile,
    Launch,
    MetricValue,
    PcCounts,
    PcMetric,
    PcSamples,
    Sampling,
)
from gpadvisor.model.program import (
    Block,
    CallSite,
    EdgeKind,
    Function,
    FunctionKind,
    InlineFrame,
    KernelFacts,
    LineEntry,
    Loop,
    Program,
)
from gpadvisor.model.stalls import StallReason, stall_reason
from gpadvisor.sass import SassLine, decode

FILE = "kernel.cu"
_LINE = re.compile(
    r"^(?:(?P<tag>\w+)\| )?(?P<guard>@!?U?P\d )?(?P<opcode>[A-Z][\w.]*) ?(?P<operands>[^/]*?)"
    r"(?: W(?P<sets>\d))?(?: \?(?P<waits>\d))?(?:\s*// (?P<line>\d+)(?: in (?P<inlined>\w+))?)?$"
)
_NO_BARRIERS = 7 << 46 | 7 << 49 | 2 << 41
"""Control bits of an instruction that sets no scoreboard and stalls two cycles."""


@dataclass(frozen=True)
class Listing:
    """A program with the names its instructions were given."""

    program: Program
    tags: Mapping[str, tuple[FunctionId, int]]


@dataclass(frozen=True)
class Row:
    """Samples at one instruction, due to another one unless ``due_to`` is None."""

    reason: str
    at: str  # a tag
    samples: int
    latency: int = 0
    due_to: str | None = None
    kind: DependencyClass | None = None
    distance: int = NO_INDEX
    unattributed: bool = False


@dataclass
class _Text:
    name: str
    kind: FunctionKind
    lines: list[re.Match[str]] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


def listing(text: str, arch: str = "sm_86", facts: KernelFacts | None = None) -> Listing:
    """Decode a listing and give it its control flow."""
    parts = _parse(text)
    ids = {part.name: FunctionId(number) for number, part in enumerate(parts)}
    functions = tuple(_function(part, number, arch, ids) for number, part in enumerate(parts))
    tags = {
        match["tag"]: (FunctionId(number), index)
        for number, part in enumerate(parts)
        for index, match in enumerate(part.lines)
        if match["tag"]
    }
    kernel_facts = {} if facts is None else {parts[0].name: facts}
    form = code_form(arch)
    return Listing(Program(arch, functions, kernel_facts, has_line_info=True, problems=(), form=form), tags)


def _parse(text: str) -> list[_Text]:
    parts: list[_Text] = []
    for raw in text.splitlines():
        line = raw.strip()
        if not line:
            continue
        if line.startswith(".function"):
            _, name, *kind = line.split()
            parts.append(_Text(name, FunctionKind(kind[0] if kind else "kernel")))
            continue
        if not parts:
            parts.append(_Text("kernel", FunctionKind.KERNEL))
        if re.fullmatch(r"\w+:", line):
            parts[-1].labels[line[:-1]] = len(parts[-1].lines)
            continue
        match = _LINE.match(line)
        assert match is not None, f"not an instruction: {line}"
        parts[-1].lines.append(match)
    return parts


def _function(part: _Text, number: int, arch: str, ids: Mapping[str, FunctionId]) -> Function:
    lines, code = [], b""
    for match in part.lines:
        operands = re.sub(r"\b[a-z]\w*$", lambda name: _address(part, name[0]), match["operands"])
        guard = match["guard"]
        bits = 7 if guard is None else int(guard.strip()[-1]) | (8 if "!" in guard else 0)
        lines.append(SassLine(None if guard is None else guard.strip(), match["opcode"], operands))
        control = _NO_BARRIERS
        if match["sets"]:
            control ^= (7 ^ int(match["sets"])) << 46
        if match["waits"]:
            control |= 1 << 52 + int(match["waits"])
        code += struct.pack("<QQ", bits << 12, control)
    instructions, problems = decode(arch, code, lines)
    assert not problems, problems
    graph = _graph(instructions_targets(instructions))
    starts = sorted(graph)
    ends = [*starts[1:], len(instructions)]
    position = {start: BlockId(at) for at, start in enumerate(starts)}
    blocks = tuple(
        Block(
            position[start],
            start,
            end,
            tuple((position[to], EdgeKind.BRANCH) for to in sorted(graph[start])),
            tuple(position[of] for of in starts if start in graph[of]),
        )
        for start, end in zip(starts, ends, strict=True)
    )
    idom = nx.immediate_dominators(graph, 0)
    loops = _loops(graph, idom, position, [_entry(match) for match in part.lines])
    loop_of = [-1] * len(blocks)
    for loop in loops:  # outer loops come first
        for block in loop.blocks:
            loop_of[block] = loop.id
    calls = tuple(
        CallSite(index, ids.get(match["operands"].strip()), match["operands"].strip() or None)
        for index, match in enumerate(part.lines)
        if instructions[index].info.opclass is OpcodeClass.CALL
    )
    block_of = tuple(int(block.id) for block in blocks for _ in range(block.start, block.end))
    dominators = tuple(
        None if idom.get(start, start) in {None, start} else position[idom[start]] for start in starts
    )
    return Function(
        id=FunctionId(number),
        name=part.name,
        demangled=part.name,
        kind=part.kind,
        section=part.name,
        start=Pc(0),
        instructions=instructions,
        blocks=blocks,
        block_of=block_of,
        idom=dominators,
        loops=loops,
        loop_of=tuple(loop_of),
        lines=tuple(_entry(match) for match in part.lines),
        calls=calls,
        reaching=ReachingDefinitions(instructions, blocks, block_of, dominators),
    )


def _address(part: _Text, name: str) -> str:
    return f"{part.labels[name] * 16:#x}" if name in part.labels else name


def _entry(match: re.Match[str]) -> LineEntry | None:
    if match["line"] is None:
        return None
    chain = () if match["inlined"] is None else (InlineFrame(match["inlined"], SourceLocation(FILE, 1)),)
    return LineEntry(SourceLocation(FILE, int(match["line"])), chain)


_Flow = tuple[bool, int | None, bool]


def instructions_targets(instructions: Sequence[Any]) -> list[_Flow]:
    """Per instruction whether control may fall through, the index it may jump to, and if it ends a block."""
    found: list[_Flow] = []
    for instruction in instructions:
        opclass = instruction.info.opclass
        if opclass is OpcodeClass.BRANCH:
            found.append((instruction.guard is not None, instruction.target // 16, True))
        elif opclass in {OpcodeClass.EXIT, OpcodeClass.RETURN}:
            found.append((instruction.guard is not None, None, True))
        else:
            found.append((True, None, opclass is OpcodeClass.CALL))
    return found


def _graph(flow: Sequence[_Flow]) -> nx.DiGraph:
    leaders = {0} | {target for _, target, _ in flow if target is not None}
    leaders |= {index + 1 for index, (_, _, ends) in enumerate(flow) if ends}
    starts = sorted(leader for leader in leaders if leader < len(flow))
    graph = nx.DiGraph()
    graph.add_nodes_from(starts)
    for start, end in zip(starts, [*starts[1:], len(flow)], strict=True):
        falls, target, _ = flow[end - 1]
        if target is not None:
            graph.add_edge(start, target)
        if falls and end < len(flow):
            graph.add_edge(start, end)
    return graph


def _loops(
    graph: nx.DiGraph, idom: Mapping[int, int], position: Mapping[int, BlockId], lines: list[LineEntry | None]
) -> tuple[Loop, ...]:
    bodies: dict[int, set[int]] = {}
    for tail, head in graph.edges:
        node: int | None = tail
        while node is not None and node != head:
            node = idom[node] if idom.get(node) not in {None, node} else None
        if node == head:
            body = bodies.setdefault(head, {head})
            pending = [tail]
            while pending:
                block = pending.pop()
                if block not in body:
                    body.add(block)
                    pending.extend(graph.predecessors(block))
    ordered = sorted(bodies, key=lambda head: -len(bodies[head]))
    found: list[Loop] = []
    for number, head in enumerate(ordered):
        around = [other for other in range(number) if head in bodies[ordered[other]]]
        parent = LoopId(around[-1]) if around else None
        entry = lines[head]
        found.append(
            Loop(
                LoopId(number),
                position[head],
                frozenset(position[block] for block in bodies[head]),
                parent,
                len(around) + 1,
                reducible=True,
                location=None if entry is None else entry.location,
            )
        )
    return tuple(found)


DEVICE = Device(
    name="Test GPU",
    arch="sm_86",
    sms=80,
    clock_hz=1.4e9,
    max_warps_per_sm=48,
    schedulers_per_sm=4,
    registers_per_sm=65536,
    shared_bytes_per_sm=102400,
    l2_bytes=6 << 20,
)


def blame_of(code: Listing, rows: Sequence[Row]) -> Blame:
    """The rows as a blame table."""
    names = list(dict.fromkeys(row.reason for row in rows))
    reasons: tuple[StallReason, ...] = tuple(stall_reason(name) for name in names)
    at = [code.tags[row.at] for row in rows]
    causes = [NO_INDEX if row.due_to is None else code.tags[row.due_to][1] for row in rows]
    return Blame(
        reasons=reasons,
        rows=BlameTable(
            function=np.array([function for function, _ in at], dtype=np.uint16),
            reason=np.array([names.index(row.reason) for row in rows], dtype=np.uint8),
            role=np.array([_role(row).value for row in rows], dtype=np.uint8),
            dependency_class=np.array([CLASSES.index(_class(row)) for row in rows], dtype=np.uint8),
            place=np.full(len(rows), CodeArea.FUNCTION.value, dtype=np.uint8),
            def_index=np.array(causes, dtype=np.int32),
            use_index=np.array([index for _, index in at], dtype=np.int32),
            distance=np.array(
                [
                    row.distance if row.distance != NO_INDEX or cause == NO_INDEX else max(1, use - cause)
                    for row, (_, use), cause in zip(rows, at, causes, strict=True)
                ],
                dtype=np.int32,
            ),
            samples=np.array([row.samples for row in rows], dtype=np.int64),
            latency=np.array([row.latency for row in rows], dtype=np.int64),
        ),
        edges=(),
        coverage=Coverage(before=None, after=None),
        problems=(),
    )


def _role(row: Row) -> Role:
    if row.unattributed:
        return Role.UNATTRIBUTED
    return Role.SELF if row.due_to is None else Role.BLAMED


def _class(row: Row) -> DependencyClass:
    if row.kind is not None:
        return row.kind
    return DependencyClass.NONE if row.unattributed else DependencyClass.SELF


def context_of(
    code: Listing,
    rows: Sequence[Row] | None = None,
    *,
    grid: int = 4096,
    block: int = 256,
    registers: int = 40,
    static_shared: int = 0,
    dynamic_shared: int = 0,
    counts: Mapping[str, tuple[int, int]] | None = None,
    pc_metrics: Mapping[str, Mapping[str, float]] | None = None,
    metrics: Mapping[str, MetricValue] | None = None,
    device: Device = DEVICE,
) -> KernelContext:
    """A kernel with its samples; without rows it is a bare cubin.

    Args:
        code: the program; its first function is the kernel.
        rows: blamed samples.
        grid: number of blocks.
        block: threads of each.
        registers: for each thread.
        static_shared: bytes per block.
        dynamic_shared: bytes per block.
        counts: executed warps and threads by tag.
        pc_metrics: values by metric name, then by tag.
        metrics: scalars.
        device: the GPU.
    """
    model = machine.load(code.program.arch)
    found = occupancy(
        model.sm,
        threads_per_block=block,
        registers_per_thread=registers,
        shared_bytes=static_shared + dynamic_shared,
        blocks=grid,
        sms=device.sms,
    )
    sections = tuple(function.section for function in code.program.functions)
    profile = KernelProfile(
        launch=Launch(
            index=0,
            kernel=sections[0],
            demangled=sections[0],
            grid=(grid, 1, 1),
            block=(block, 1, 1),
            cluster=None,
            registers_per_thread=registers,
            static_shared_bytes=static_shared,
            dynamic_shared_bytes=dynamic_shared,
            driver_shared_bytes=None,
            carveout_shared_bytes=None,
            duration_ns=1e6,
            context=None,
            stream=None,
            failed=False,
        ),
        device=replace(device, arch=code.program.arch),
        evidence=Evidence.MEASURED,
        binary=None,
        sections=sections,
        reasons=(),
        samples=PcSamples(
            section=np.zeros(0, dtype=np.uint16),
            pc=np.zeros(0, dtype=np.uint64),
            reason=np.zeros(0, dtype=np.uint8),
            total=np.zeros(0, dtype=np.uint64),
            latency=np.zeros(0, dtype=np.uint64),
        ),
        counts=None if counts is None else _counts(code, counts),
        pc_metrics={name: _metric(code, name, values) for name, values in (pc_metrics or {}).items()},
        metrics=metrics or {},
        sampling=Sampling(
            interval_cycles=1024,
            buffer_bytes=None,
            dropped_samples=0,
            truncated=False,
            truncation_evidence=None,
            expected_samples=None,
        ),
        rules=(),
        call_stack=(),
        problems=(),
    )
    return KernelContext(
        kernel=sections[0],
        program=code.program,
        machine=model,
        occupancy=found,
        evidence=Evidence.STATIC if rows is None else Evidence.MEASURED,
        profile=None if rows is None else profile,
        blame=None if rows is None else blame_of(code, rows),
    )


def _places(code: Listing, tags: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    at = [code.tags[tag] for tag in tags]
    return (
        np.array([function for function, _ in at], dtype=np.uint16),
        np.array([index * 16 for _, index in at], dtype=np.uint64),
    )


def _counts(code: Listing, counts: Mapping[str, tuple[int, int]]) -> PcCounts:
    section, pc = _places(code, list(counts))
    return PcCounts(
        section=section,
        pc=pc,
        warps=np.array([warps for warps, _ in counts.values()], dtype=np.uint64),
        threads=np.array([threads for _, threads in counts.values()], dtype=np.uint64),
    )


def _metric(code: Listing, name: str, values: Mapping[str, float]) -> PcMetric:
    section, pc = _places(code, list(values))
    column = np.array(list(values.values()), dtype=np.float64)
    return PcMetric(name=name, section=section, pc=pc, value=column)


@dataclass(frozen=True)
class Case:
    """A rule fixture: a kernel, and what the rule must say about it."""

    context: KernelContext
    title: str | None  # part of the title, where the rule fires
    advice: tuple[str, ...]  # parts of the advice
    reason: str | None  # part of the reason, where it does not


def load_case(path: Path) -> Case:
    """Read a fixture of ``fixtures/rules``; its README describes the keys."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    facts = data.get("facts")
    code = listing(data["listing"], data.get("arch", "sm_86"), None if facts is None else _facts(facts))
    samples = data.get("samples")
    rows = None if samples is None else [_row(entry) for entry in samples]
    launch = {key: value for key, value in data.get("launch", {}).items() if key != "sms"}
    device = replace(DEVICE, sms=data.get("launch", {}).get("sms", DEVICE.sms))
    context = context_of(
        code,
        rows,
        counts={tag: tuple(pair) for tag, pair in data["counts"].items()} if "counts" in data else None,
        pc_metrics=data.get("pc_metrics"),
        metrics=data.get("metrics"),
        device=device,
        **launch,
    )
    expect = data["expect"]
    return Case(context, expect.get("title"), tuple(expect.get("advice", ())), expect.get("reason"))


def _facts(values: Mapping[str, Any]) -> KernelFacts:
    nothing = dict.fromkeys(KernelFacts.__dataclass_fields__)
    return KernelFacts(**{**nothing, **values})


def _row(entry: Mapping[str, Any]) -> Row:
    values = dict(entry)
    if "kind" in values:
        values["kind"] = DependencyClass(values["kind"])
    return Row(**values)
