# SPDX-License-Identifier: Apache-2.0
"""What the advisor says: suggestions with evidence, estimates with equations, and what it rejected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpadvisor.model.blame import Coverage, DependencyClass
from gpadvisor.model.estimate import Estimate as Estimate  # noqa: PLC0414 of this module, too
from gpadvisor.model.ids import FunctionId, LoopId, Pc, SourceLocation
from gpadvisor.model.kind import Kind
from gpadvisor.model.occupancy import Occupancy as Occupancy  # noqa: PLC0414 of this module, too
from gpadvisor.model.problem import Problem
from gpadvisor.model.profile import Device, Evidence, Launch, RuleResult, SlowestRank, first_share
from gpadvisor.model.program import InlineFrame
from gpadvisor.model.remedy import Remedy
from gpadvisor.model.sentence import keeps_sentences
from gpadvisor.model.timeline import RunFinding, RunPart

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Category(Kind):
    """Groups of Table II; also the first digit of a rule code."""

    STALL_ELIMINATION = "stall_elimination"  # GPA1xx
    LATENCY_HIDING = "latency_hiding"  # GPA2xx
    PARALLEL = "parallel"  # GPA3xx
    NOTE = "note"  # GPA4xx, GPA9xx: limits and profile quality, no estimate of Table II


class ScopeKind(Kind):
    """The hierarchy of places advice is given for (GPA section III)."""

    KERNEL = "kernel"
    FUNCTION = "function"
    LOOP = "loop"
    LINE = "line"
    INLINED = "inlined"  # an inlined function's body


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A place; ``location`` is None without line information."""

    kind: ScopeKind
    name: str  # kernel or function name; for a loop the function it is in
    location: SourceLocation | None
    function: FunctionId | None = None
    loop: LoopId | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Region:
    """Matched blame rows that share a scope."""

    scope: Scope
    rows: NDArray[np.intp]  # indices into Blame.rows
    active_samples: int  # A summed over the scope and the scopes nested in it (Eq. 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """A reason to expect less or more than the equation says: factors of the matched samples at each end."""

    low: float
    expected: float
    high: float
    reason: str  # "a barrier stands between the load and its use", with the numbers that say so


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBound:
    """What counters say a cure gives, in place of the equation; of the time in which warps are there."""

    low: float  # speedups of the kernel
    expected: float
    high: float
    reason: str  # "sectors fall from 1109 M to 168 M; then L1 requests limit", with the numbers
    elapsed: bool = False  # of the whole launch already: its last blocks are as fast as the others


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducedLoad:
    """The share of a unit's load that a cure leaves; what was measured of the unit caps less then."""

    resource: str  # Utilisation.name: "DRAM", "L2", "L1", "L1 data", "L1 requests", "issue", ...
    remaining: float  # share of that load expected to be left, in (0, 1]
    remaining_best: float  # share left at the high end of the range, in [0, remaining]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelTarget:
    """What a parallel optimizer proposes, in numbers (Eqs. 6 to 10)."""

    warps_now: float  # active warps per scheduler, W
    warps_new: float  # W_new
    issue_ratio: float  # R_I
    factor: float  # f
    factor_reason: str
    blocks_now: int
    blocks_new: int
    threads_now: int
    threads_new: int
    limiter: str | None
    busy_sms_now: int | None
    busy_sms_new: int | None
    held_now: float | None = None  # warps per scheduler as counted; the limits of the launch where not
    held_low: float | None = None  # of the new launch at the low end of the range
    lanes: float = 1.0  # how many times as many lanes of a warp work
    outside_new: float | None = None  # share of the elapsed time without warps that stays; as now where None
    block_new: tuple[int, int, int] | None = None  # the shape of the new block, where it is proposed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
@keeps_sentences("title", "advice", "cure")
class Match:
    """An optimizer's pattern, found."""

    title: str  # the pattern found, "long-latency load used inside the same loop"
    advice: str  # what to change, concretely, for this kernel
    regions: tuple[Region, ...]  # disjoint rows; empty for parallel optimizers
    adjustments: tuple[Adjustment, ...] = ()
    parallel: ParallelTarget | None = None
    static_sites: tuple[StaticSite, ...] = ()  # where the pattern stands in the code, samples or not
    measured_bound: MeasuredBound | None = None
    reduced_loads: tuple[ReducedLoad, ...] = ()  # other resources cap the estimate as measured
    titles: Mapping[tuple[FunctionId, int], str] = field(default_factory=dict)  # where it has several kinds
    actionable: bool = True  # False where no change of the source would bring it about: then it is a note
    cure: str = ""  # the whole change with what must be seen to, a verb first, nothing counted; never cut
    from_dram: float | None = None  # of the waits for as many loads of fewer sectors; None: not as many loads
    leads: bool = False  # told before all others, whatever it gains: without it they gain little
    alone: bool = False  # ... and others are not told beside it
    place: tuple[FunctionId, int] | None = None  # that the words speak of; the heaviest one where None
    counted: bool = False  # the report's counters prove it, where nobody sampled
    replaced_by: str = ""  # code of the rule that makes this change needless, where it is not the optimizer's
    remedies: tuple[Remedy, ...] = ()  # what the words ask for, where a fix or a name goes with it


@dataclass(frozen=True, slots=True, kw_only=True)
@keeps_sentences("detail")
class StaticSite:
    """A place in the machine code that shows a pattern; all there is without samples."""

    function: FunctionId
    index: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
@keeps_sentences("reason")
class Rejection:
    """Why an optimizer does not apply."""

    code: str
    reason: str
    looked: bool = True  # False where what it looks at is not there
    name: str = ""  # of a rule that could not look, and would propose a change


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRef:
    """One instruction, with its source."""

    pc: Pc
    function: str
    opcode: str
    text: str
    location: SourceLocation | None
    inline: tuple[InlineFrame, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hotspot:
    """One def-to-use dependency (or one instruction) that a suggestion rests on."""

    reason: str  # stall reason name
    dependency_class: DependencyClass
    samples: int
    latency: int
    importance: float  # share of the kernel's samples
    speedup: float | None  # the paper's equation for this hotspot alone; None where nothing is estimated
    distance_instructions: int | None
    definition: CodeRef | None  # None where the cause is the use itself, or was not found
    use: CodeRef | None  # None where the sample lies outside the program


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """``// gpadvisor: ignore[GPA102] reason`` that applies to a suggestion."""

    location: SourceLocation
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
@keeps_sentences("title", "advice", "cure")
class Suggestion:
    """One optimizer's advice for one kernel."""

    code: str  # "GPA201"
    slug: str  # "loop-unrolling"
    name: str  # "Loop Unrolling", as in Table II
    title: str
    category: Category
    evidence: Evidence
    importance: float  # matched samples / T
    matched_samples: int
    matched_latency: int
    speedup: Estimate | None  # None for static findings
    program_speedup: Estimate | None  # for the whole report, or the traced run, by Amdahl's law
    scope: Scope
    advice: str
    hotspots: tuple[Hotspot, ...]
    cure: str = ""  # the whole change with its conditions, a verb first; empty where only ``advice`` has it
    next_limit: str = ""  # what would limit the kernel after it, "DRAM throughput"; empty where no unit would
    suppressed: Suppression | None = None
    leads: bool = False  # told before those that are expected to give something
    slowest_speedup: Estimate | None = None  # for the slowest rank of a sum over ranks, by Amdahl's law
    instead_of: str = ""  # the code of another change of the launch, which gives more: a launch has one
    remedies: tuple[Remedy, ...] = ()  # what the words ask for, where a fix or a name goes with it


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Suggestions that share samples, with the estimate for doing all of them."""

    suggestions: tuple[str, ...]  # codes
    samples: int  # union of the matched samples
    shared_samples: int  # matched by more than one
    speedup: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSummary:
    """Where a kernel's samples went; blamed + self + unattributed = total."""

    total: int
    latency: int
    active: int  # total - latency
    blamed: int
    self: int
    unattributed: int
    external: int  # in code outside the cubin, contained in the above
    after_exit: int  # behind an EXIT, contained in the above
    truncated: bool
    expected: float | None

    @property
    def first_share(self) -> float | None:
        """Of the run, that these samples are the first of; None where they are of all of it, or not known."""
        return first_share(self.total, self.expected, truncated=self.truncated)


@dataclass(frozen=True, slots=True, kw_only=True)
class StallSummary:
    """One stall reason of a kernel."""

    reason: str
    plain: str
    samples: int
    latency: int
    blamed: int
    self: int
    unattributed: int
    blamed_latency: int
    self_latency: int
    unattributed_latency: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeSummary:
    """Samples of one line, loop or function, by where they were taken and by what they are blamed on."""

    scope: Scope
    samples: int  # taken here
    latency: int
    caused: int  # blamed on instructions here, plus self
    executed_warps: int | None
    dominant_reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation:
    """A measured throughput as a share of its peak; it caps what an estimate may promise."""

    name: str  # "DRAM", "L2", "L1", "issue", ...
    percent: float
    metric: str  # the tool's metric name
    is_pipe: bool = False  # whether instructions are executed in it


@dataclass(frozen=True, slots=True, kw_only=True)
@keeps_sentences("explanation")
class RuleComparison:
    """One of NVIDIA's rule results beside ours."""

    rule: RuleResult
    agreement: str  # "agrees", "disagrees", "not comparable"
    ours: tuple[str, ...]  # codes of our suggestions it was compared with
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSummary:
    """One launch of the report, analysed or not."""

    launch: Launch
    analysed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
@keeps_sentences("limited_by", "verdict")
class KernelAdvice:
    """Everything said about one kernel."""

    name: str  # demangled
    mangled: str
    evidence: Evidence
    evidence_reason: str  # why not more than that, in words
    device: Device
    launch: Launch | None  # None for a bare cubin
    merged_launches: int  # 1 unless --merge added equal configurations up
    duration_ns: float | None
    time_share: float | None  # of all kernel time in the profile, or of a traced run's busy time
    registers_per_thread: int | None
    shared_bytes: int | None
    occupancy: Occupancy
    utilisations: tuple[Utilisation, ...]
    samples: SampleSummary
    stalls: tuple[StallSummary, ...]
    coverage: Coverage
    scopes: tuple[ScopeSummary, ...]
    suggestions: tuple[Suggestion, ...]  # ranked by expected speedup
    notes: tuple[Suggestion, ...]  # what names no change that a programmer could make, heaviest first
    hidden: int  # suggestions below the thresholds
    groups: tuple[Group, ...]
    rejected: tuple[Rejection, ...]
    limit: str  # "L1 throughput": the name of what limits it; empty without samples
    limited_by: str  # all that is known of it: "L1 throughput at 99 % of its peak"
    verdict: str  # one sentence: what limits this kernel, and whether anything helps
    rules: tuple[RuleComparison, ...]
    problems: tuple[Problem, ...]
    has_code: bool = True  # whether its machine code could be read
    faster: str = ""  # another launch of the report that does the same work in less time
    in_run: RunPart | None = None  # its part of the traced run that was given
    slowest: SlowestRank | None = None  # of a sum over ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMatch:
    """How a path of the report was found on this machine."""

    report_path: str
    local_path: str | None
    method: str  # "content hash", "path suffix", "source map", "exact path", "code", "embedded", ...
    today: tuple[
        tuple[int, int | None], ...
    ] = ()  # of another version: named lines, each with its text's now
    is_unsure: bool = False  # whether nothing says that the file is the version that was profiled
    by_name: bool = False  # whether not even a folder of its path is the report's
    odd_lines: int = 0  # of an unsure file: lines that cannot be what the instructions named there do
    differs: bool = False  # whether both contents are known and not equal: lines may have moved since

    @property
    def how(self) -> str:
        """The method, with what is known of the content."""
        return f"{self.method}, content differs" if self.differs else self.method


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The whole answer to ``gpadvisor advise``."""

    path: str  # the input as the user named it
    sha256: str
    collector: str | None  # None for a bare cubin or source
    collector_version: str | None
    kernels: tuple[KernelAdvice, ...]  # by share of GPU time
    launches: tuple[LaunchSummary, ...]
    sources: tuple[SourceMatch, ...]
    problems: tuple[Problem, ...]
    run_findings: tuple[RunFinding, ...] = ()  # of the host code of a traced run
