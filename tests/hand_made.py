# SPDX-License-Identifier: Apache-2.0
"""Programs, profiles, blame and contexts made by hand, for the tests of estimators and advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpadvisor import machine
from gpadvisor.analyzer.defuse import ReachingDefinitions
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import Region, Scope, ScopeKind
from gpadvisor.model.blame import (
    CLASSES,
    NO_FUNCTION,
    NO_INDEX,
    Blame,
    BlameTable,
    CodeArea,
    Coverage,
    DependencyClass,
    Role,
)
from gpadvisor.model.ids import BlockId, FunctionId, LoopId, Pc, SourceLocation
from gpadvisor.model.instruction import ControlCode, Instruction, OpcodeClass, OpcodeInfo, Pipe
from gpadvisor.model.occupancy import Occupancy
from gpadvisor.model.problem import Problem
from gpadvisor.model.profile import (
    Device,
    Evidence,
    KernelProfile,
    Launch,
    MetricValue,
    PcCounts,
    PcSamples,
    RuleResult,
    Sampling,
)
from gpadvisor.model.program import (
    Block,
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

KERNEL = "_Z6kernelPf"
FILE = "kernel.cu"
_INFO = OpcodeInfo(OpcodeClass.INTEGER, Pipe.ALU, None, variable_latency=False, queue=None, known=True)
_CONTROL = ControlCode(
    stall_cycles=4, yield_flag=True, write_barrier=None, read_barrier=None, wait_mask=0, reuse=0
)


def instruction(index: int, opcode: str = "IADD3", operands: str = "R0, R1, R2, RZ") -> Instruction:
    """An instruction without dependencies."""
    return Instruction(
        pc=Pc(index * 16), opcode=opcode, modifiers=(), operands=operands, guard=None, defs=(), uses=(),
        info=_INFO, control=_CONTROL, target=None, callee=None, partial_wait=None, width_bytes=None,
    )  # fmt: skip


def function(
    count: int = 16,
    *,
    number: int = 0,
    name: str = KERNEL,
    section: str = KERNEL,
    kind: FunctionKind = FunctionKind.KERNEL,
    lines: Mapping[int, tuple[int, str | None]] | None = None,
) -> Function:
    """A function of four blocks; blocks 1 and 2 are an outer loop, block 2 a loop inside it.

    Args:
        count: instructions, at least four.
        number: its place in the program.
        name: mangled; the demangled name is the part behind the length.
        section: its section.
        kind: how it is entered.
        lines: source line by instruction index, with the name of an inlined function or None.
    """
    quarter = count // 4
    starts = [0, quarter, 2 * quarter, 3 * quarter, count]
    edges = {0: (1,), 1: (2,), 2: (2, 1, 3), 3: ()}
    blocks = tuple(
        Block(
            id=BlockId(at),
            start=starts[at],
            end=starts[at + 1],
            successors=tuple((BlockId(to), EdgeKind.BRANCH) for to in edges[at]),
            predecessors=tuple(BlockId(of) for of in edges if at in edges[of]),
        )
        for at in range(4)
    )
    loops = (
        Loop(
            LoopId(0), BlockId(1), frozenset({BlockId(1), BlockId(2)}), None, 1, True, SourceLocation(FILE, 5)
        ),
        Loop(LoopId(1), BlockId(2), frozenset({BlockId(2)}), LoopId(0), 2, True, SourceLocation(FILE, 7)),
    )
    entries: list[LineEntry | None] = [None] * count
    for index, (line, inlined) in (lines or {}).items():
        chain = () if inlined is None else (InlineFrame(inlined, SourceLocation(FILE, 99)),)
        entries[index] = LineEntry(SourceLocation(FILE, line), chain)
    code = tuple(instruction(index) for index in range(count))
    block_of = tuple(np.repeat(np.arange(4), np.diff(starts)).tolist())
    idom = (None, BlockId(0), BlockId(1), BlockId(2))
    return Function(
        id=FunctionId(number), name=name, demangled=name.removeprefix("_Z6"), kind=kind, section=section,
        start=Pc(0), instructions=code, blocks=blocks, block_of=block_of, idom=idom, loops=loops,
        loop_of=(-1, 0, 1, -1), lines=tuple(entries), calls=(),
        reaching=ReachingDefinitions(code, blocks, block_of, idom),
    )  # fmt: skip


def program(*functions: Function, facts: KernelFacts | None = None) -> Program:
    """A program of the given functions, or of one."""
    return Program(
        arch="sm_86",
        functions=functions or (function(),),
        facts={} if facts is None else {KERNEL: facts},
        has_line_info=True,
        problems=(),
        form=machine.code_form("sm_86"),
    )


@dataclass(frozen=True, kw_only=True)
class Row:
    """One blame row."""

    samples: int
    latency: int = 0
    reason: str = "long_scoreboard"
    role: Role = Role.BLAMED
    dependency: DependencyClass = DependencyClass.GLOBAL_MEMORY
    function: int = 0
    definition: int = 0
    use: int = 1
    distance: int = 1
    place: CodeArea = CodeArea.FUNCTION


def selected(samples: int, use: int = 1) -> Row:
    """Samples of a warp that issued."""
    return Row(
        samples=samples, reason="selected", role=Role.SELF, dependency=DependencyClass.SELF,
        definition=NO_INDEX, use=use, distance=NO_INDEX,
    )  # fmt: skip


def external(samples: int, latency: int = 0) -> Row:
    """Samples in code outside the cubin."""
    return Row(
        samples=samples, latency=latency, role=Role.UNATTRIBUTED, dependency=DependencyClass.NONE,
        function=NO_FUNCTION, definition=NO_INDEX, use=NO_INDEX, distance=NO_INDEX, place=CodeArea.EXTERNAL,
    )  # fmt: skip


def blame(*rows: Row, problems: tuple[Problem, ...] = ()) -> Blame:
    """Blame with exactly these rows."""
    names = list(dict.fromkeys(row.reason for row in rows))
    reasons: tuple[StallReason, ...] = tuple(stall_reason(name) for name in names)
    table = BlameTable(
        function=np.array([row.function for row in rows], dtype=np.uint16),
        reason=np.array([names.index(row.reason) for row in rows], dtype=np.uint8),
        role=np.array([row.role.value for row in rows], dtype=np.uint8),
        dependency_class=np.array([CLASSES.index(row.dependency) for row in rows], dtype=np.uint8),
        place=np.array([row.place.value for row in rows], dtype=np.uint8),
        def_index=np.array([row.definition for row in rows], dtype=np.int32),
        use_index=np.array([row.use for row in rows], dtype=np.int32),
        distance=np.array([row.distance for row in rows], dtype=np.int32),
        samples=np.array([row.samples for row in rows], dtype=np.int64),
        latency=np.array([row.latency for row in rows], dtype=np.int64),
    )
    return Blame(
        reasons=reasons, rows=table, edges=(), coverage=Coverage(before=0.5, after=0.9), problems=problems
    )


def device(sms: int | None = 82) -> Device:
    """A GPU with 82 SMs."""
    return Device(
        name="GPU", arch="sm_86", sms=sms, clock_hz=1.4e9, max_warps_per_sm=48, schedulers_per_sm=4,
        registers_per_sm=65536, shared_bytes_per_sm=102400, l2_bytes=6 << 20,
    )  # fmt: skip


def launch(index: int = 0, **changes: object) -> Launch:
    """A launch of 4096 blocks of 256 threads."""
    values: dict[str, object] = {
        "index": index, "kernel": KERNEL, "demangled": "kernel(float*)", "grid": (4096, 1, 1),
        "block": (256, 1, 1), "cluster": None, "registers_per_thread": 32, "static_shared_bytes": 0,
        "dynamic_shared_bytes": 0, "driver_shared_bytes": 1024, "carveout_shared_bytes": None,
        "duration_ns": 1e6, "context": 1, "stream": 7, "failed": False,
    }  # fmt: skip
    return Launch(**{**values, **changes})  # type: ignore[arg-type]  # keywords by name


def samples(rows: Sequence[tuple[int, int, int, int, int]] = ()) -> PcSamples:
    """Columns from rows of (section, pc, reason, total, latency)."""
    columns = [np.array([row[at] for row in rows]) for at in range(5)]
    return PcSamples(
        section=columns[0].astype(np.uint16), pc=columns[1].astype(np.uint64),
        reason=columns[2].astype(np.uint8), total=columns[3].astype(np.uint64),
        latency=columns[4].astype(np.uint64),
    )  # fmt: skip


def counts(rows: Sequence[tuple[int, int, int]]) -> PcCounts:
    """Columns from rows of (section, pc, warps); 32 threads a warp."""
    columns = [np.array([row[at] for row in rows]) for at in range(3)]
    return PcCounts(
        section=columns[0].astype(np.uint16), pc=columns[1].astype(np.uint64),
        warps=columns[2].astype(np.uint64), threads=columns[2].astype(np.uint64) * 32,
    )  # fmt: skip


def profile(
    metrics: Mapping[str, MetricValue] | None = None,
    *,
    of: Launch | None = None,
    evidence: Evidence = Evidence.MEASURED,
    truncated: bool = False,
    rules: tuple[RuleResult, ...] = (),
    counted: PcCounts | None = None,
    rows: Sequence[tuple[int, int, int, int, int]] = (),
    reasons: Sequence[str] = ("long_scoreboard", "selected"),
    sms: int | None = 82,
) -> KernelProfile:
    """One launch with the given metrics."""
    return KernelProfile(
        launch=of or launch(),
        device=device(sms),
        evidence=evidence,
        binary=None,
        sections=(KERNEL,),
        reasons=tuple(stall_reason(name) for name in reasons),
        samples=samples(rows),
        counts=counted,
        pc_metrics={},
        metrics=dict(metrics or {}),
        sampling=Sampling(
            interval_cycles=1024, buffer_bytes=None, dropped_samples=None, truncated=truncated,
            truncation_evidence="3.67 M samples fill 32 MiB" if truncated else None, expected_samples=None,
        ),
        rules=rules,
        call_stack=(),
        problems=(),
    )  # fmt: skip


NO_OCCUPANCY = Occupancy(
    theoretical=None, achieved=None, limiter=None, blocks_per_sm=None, warps_per_sm=None, limits=()
)


def context(
    blamed: Blame | None = None,
    *,
    of: Program | None = None,
    measured: KernelProfile | None = None,
    evidence: Evidence = Evidence.MEASURED,
) -> KernelContext:
    """A kernel with this blame and profile."""
    return KernelContext(
        kernel=KERNEL,
        program=of or program(),
        machine=machine.load("sm_86"),
        occupancy=NO_OCCUPANCY,
        evidence=evidence,
        profile=measured,
        blame=blamed,
    )


def region(rows: Sequence[int], active: int = 0, loop: int | None = None, function: int = 0) -> Region:
    """Rows in a loop of a function, or in the kernel as a whole."""
    scope = Scope(
        kind=ScopeKind.KERNEL if loop is None else ScopeKind.LOOP,
        name="kernel",
        location=SourceLocation(FILE, 5),
        function=FunctionId(function),
        loop=None if loop is None else LoopId(loop),
    )
    return Region(scope=scope, rows=np.array(rows, dtype=np.intp), active_samples=active)
