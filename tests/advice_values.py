# SPDX-License-Identifier: Apache-2.0
"""Advice values built by hand: one for every situation that a report has to show."""

from __future__ import annotations

from gpadvisor.model.advice import (
    Advice,
    Category,
    CodeRef,
    Estimate,
    Group,
    Hotspot,
    KernelAdvice,
    LaunchSummary,
    Occupancy,
    Rejection,
    RuleComparison,
    SampleSummary,
    Scope,
    ScopeKind,
    ScopeSummary,
    SourceMatch,
    StallSummary,
    Suggestion,
    Suppression,
    Utilisation,
)
from gpadvisor.model.blame import Coverage, DependencyClass
from gpadvisor.model.estimate import EstimateCap
from gpadvisor.model.ids import Pc, SourceLocation
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import Device, Evidence, Launch, RuleResult
from gpadvisor.model.program import InlineFrame
from gpadvisor.model.stalls import stall_reason

GATHER_FILE = "/home/kim/spmv/src/gather.cu"
GATHER_SOURCE = """#include "load.cuh"

template <int N>
__global__ void gather(float *out, const float *in, const int *idx, int n)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    float acc = 0.0f;
    for (int k = t; k < n; k += gridDim.x * blockDim.x) {
        int j = idx[k];
        acc += load(in, j) * 0.5;
    }
    out[t] = acc;
}
"""
LOAD_FILE = "/home/kim/spmv/src/load.cuh"
LOAD_SOURCE = """#pragma once
__device__ inline float load(const float *in, int j)
{
    return in[j];
}
"""
SOURCES = {GATHER_FILE: GATHER_SOURCE, LOAD_FILE: LOAD_SOURCE}

A100 = Device(
    name="NVIDIA A100-SXM4-40GB",
    arch="sm_80",
    sms=108,
    clock_hz=1.41e9,
    max_warps_per_sm=64,
    schedulers_per_sm=4,
    registers_per_sm=65536,
    shared_bytes_per_sm=167936,
    l2_bytes=41943040,
)
UNKNOWN_DEVICE = Device(
    name=None,
    arch="sm_90a",
    sms=None,
    clock_hz=None,
    max_warps_per_sm=None,
    schedulers_per_sm=None,
    registers_per_sm=None,
    shared_bytes_per_sm=None,
    l2_bytes=None,
)
NO_OCCUPANCY = Occupancy(
    theoretical=None, achieved=None, limiter=None, blocks_per_sm=None, warps_per_sm=None, limits=()
)
NO_SAMPLES = SampleSummary(
    total=0,
    latency=0,
    active=0,
    blamed=0,
    self=0,
    unattributed=0,
    external=0,
    after_exit=0,
    truncated=False,
    expected=None,
)
GATHER = "void gather<1>(float *, const float *, const int *, int)"
GATHER_MANGLED = "_Z6gatherILi1EEvPfPKfPKii"
CUTLASS = (
    "void cutlass::Kernel2<cutlass_80_wmma_tensorop_f16_s161616gemm_f16_16x16_128x1_nn_align8<cutlass::"
    "gemm::GemmShape<16, 16, 128>, cutlass::layout::RowMajor>>(cutlass_80_wmma_tensorop_f16_s161616gemm_"
    "f16_16x16_128x1_nn_align8<cutlass::gemm::GemmShape<16, 16, 128>, cutlass::layout::RowMajor>::Params)"
)


def launch(index: int = 0, kernel: str = GATHER, mangled: str = GATHER_MANGLED, **changes: object) -> Launch:
    """A launch of 4096 blocks of 256 threads."""
    values: dict[str, object] = {
        "index": index,
        "kernel": mangled,
        "demangled": kernel,
        "grid": (4096, 1, 1),
        "block": (256, 1, 1),
        "cluster": None,
        "registers_per_thread": 40,
        "static_shared_bytes": 0,
        "dynamic_shared_bytes": 4096,
        "driver_shared_bytes": 1024,
        "carveout_shared_bytes": 32768,
        "duration_ns": 1_234_567.0,
        "context": 1,
        "stream": 7,
        "failed": False,
    }
    return Launch(**{**values, **changes})  # type: ignore[arg-type]  # keywords by name


def stall(name: str, samples: int, latency: int, *, blamed: int = 0, unattributed: int = 0) -> StallSummary:
    """A stall reason; latency samples are split in the proportion of the samples, the rest is self."""
    blamed_latency = latency * blamed // samples
    unattributed_latency = latency * unattributed // samples
    return StallSummary(
        reason=name,
        plain=stall_reason(name).plain,
        samples=samples,
        latency=latency,
        blamed=blamed,
        self=samples - blamed - unattributed,
        unattributed=unattributed,
        blamed_latency=blamed_latency,
        self_latency=latency - blamed_latency - unattributed_latency,
        unattributed_latency=unattributed_latency,
    )


def summary(stalls: tuple[StallSummary, ...], **changes: object) -> SampleSummary:
    """The sums of the stall reasons."""
    total, latency = sum(s.samples for s in stalls), sum(s.latency for s in stalls)
    values: dict[str, object] = {
        "total": total,
        "latency": latency,
        "active": total - latency,
        "blamed": sum(s.blamed for s in stalls),
        "self": sum(s.self for s in stalls),
        "unattributed": sum(s.unattributed for s in stalls),
        "external": 0,
        "after_exit": 0,
        "truncated": False,
        "expected": None,
    }
    return SampleSummary(**{**values, **changes})  # type: ignore[arg-type]  # keywords by name


def at(line: int, file: str = GATHER_FILE) -> SourceLocation:
    """A line of the gather kernel."""
    return SourceLocation(file, line)


def code(pc: int, text: str, location: SourceLocation | None, *inline: InlineFrame) -> CodeRef:
    """An instruction of the gather kernel."""
    return CodeRef(
        pc=Pc(pc),
        function=GATHER,
        opcode=text.partition(" ")[0],
        text=text,
        location=location,
        inline=inline,
    )


STALLS = (
    stall("long_scoreboard", 6_991, 6_800, blamed=6_700, unattributed=291),
    stall("short_scoreboard", 1_530, 1_402, blamed=1_530),
    stall("wait", 1_204, 310, blamed=1_204),
    stall("selected", 1_100, 0),
    stall("not_selected", 700, 0),
    stall("lg_throttle", 421, 318),
    stall("branch_resolving", 63, 41),
    stall("no_instructions", 25, 21),
)

LOAD_CHAIN = InlineFrame("load(const float *, int)", at(10))

MEMORY_HOTSPOT = Hotspot(
    reason="long_scoreboard",
    dependency_class=DependencyClass.GLOBAL_MEMORY,
    samples=4_020,
    latency=3_950,
    importance=4_020 / 12_034,
    speedup=1.27,
    distance_instructions=2,
    definition=code(0x120, "LDG.E R2, [R2.64]", at(4, LOAD_FILE), LOAD_CHAIN),
    use=code(0x150, "F2F.F64.F32 R4, R2", at(10)),
)
INDEX_HOTSPOT = Hotspot(
    reason="long_scoreboard",
    dependency_class=DependencyClass.GLOBAL_MEMORY,
    samples=2_610,
    latency=2_500,
    importance=2_610 / 12_034,
    speedup=1.15,
    distance_instructions=1,
    definition=code(0xE0, "LDG.E R2, [R6.64]", at(9)),
    use=code(0x110, "IMAD.WIDE R2, R2, R9, c[0x0][0x168]", at(10)),
)
CONVERSION_HOTSPOT = Hotspot(
    reason="short_scoreboard",
    dependency_class=DependencyClass.ARITHMETIC,
    samples=1_530,
    latency=1_402,
    importance=1_530 / 12_034,
    speedup=1.15,
    distance_instructions=1,
    definition=code(0x150, "F2F.F64.F32 R4, R2", at(10)),
    use=code(0x170, "DFMA R4, R4, 0.5, R6", at(10)),
)
SELF_HOTSPOT = Hotspot(
    reason="lg_throttle",
    dependency_class=DependencyClass.SELF,
    samples=421,
    latency=318,
    importance=421 / 12_034,
    speedup=1.04,
    distance_instructions=None,
    definition=None,
    use=code(0x120, "LDG.E R2, [R2.64]", at(4, LOAD_FILE), LOAD_CHAIN),
)
STORE_HOTSPOT = Hotspot(
    reason="drain",
    dependency_class=DependencyClass.STORE_IN_FLIGHT,
    samples=12,
    latency=12,
    importance=12 / 12_034,
    speedup=1.0,
    distance_instructions=3,
    definition=code(0x200, "STG.E [R4.64], R9", at(12)),
    use=None,
)

LOOP = Scope(kind=ScopeKind.LOOP, name=GATHER, location=at(8))
LINE = Scope(kind=ScopeKind.LINE, name=GATHER, location=at(10))
KERNEL = Scope(kind=ScopeKind.KERNEL, name=GATHER, location=at(4))


def estimate(low: float, expected: float, high: float, paper: float | None, **changes: str) -> Estimate:
    """An estimate by Eq. 2 unless said otherwise."""
    words = {
        "equation": "GPA Eq. 2: T / (T - M) with T = 12034, M = 1530",
        "reason": "the double literal is the only reason for the conversions",
        **changes,
    }
    return Estimate(
        low=low,
        expected=expected,
        high=high,
        paper=paper,
        equation=words["equation"],
        reasons=(words["reason"],),
    )


STRENGTH_REDUCTION = Suggestion(
    code="GPA102",
    slug="strength-reduction",
    name="Strength Reduction",
    title="float expression evaluated in double precision",
    category=Category.STALL_ELIMINATION,
    evidence=Evidence.MEASURED,
    importance=1_530 / 12_034,
    matched_samples=1_530,
    matched_latency=1_402,
    speedup=estimate(1.07, 1.146, 1.16, 1.146),
    program_speedup=estimate(1.05, 1.10, 1.11, 1.10, equation="Amdahl: 1 / (1 - p + p / s)", reason=""),
    scope=LINE,
    advice=(
        "Write 0.5f instead of 0.5: the double literal makes the compiler convert to double and back "
        "(F2F.F64.F32, DFMA, F2F.F32.F64) where one FFMA would do."
    ),
    hotspots=(CONVERSION_HOTSPOT,),
)
LOOP_UNROLLING = Suggestion(
    code="GPA201",
    slug="loop-unrolling",
    name="Loop Unrolling",
    title="long-latency load used inside the same loop",
    category=Category.LATENCY_HIDING,
    evidence=Evidence.MEASURED,
    importance=6_630 / 12_034,
    matched_samples=6_630,
    matched_latency=6_450,
    speedup=estimate(
        0.98,
        1.21,
        1.34,
        1.62,
        equation="GPA Eq. 5: T / (T - min(A, M_L)) with T = 12034, A = 2100, M_L = 6450",
        reason="the trip count is not known, and DRAM at 71 % of its peak allows 1.41x",
    ),
    program_speedup=estimate(0.99, 1.14, 1.22, 1.40, equation="Amdahl: 1 / (1 - p + p / s)", reason=""),
    scope=LOOP,
    advice=(
        "Put #pragma unroll 4 before the loop at gather.cu:8 so that four loads of in[j] are in flight at "
        "once; 40 of 64 registers that keep the occupancy are used."
    ),
    hotspots=(MEMORY_HOTSPOT, INDEX_HOTSPOT, SELF_HOTSPOT, STORE_HOTSPOT, CONVERSION_HOTSPOT, SELF_HOTSPOT),
)
CODE_REORDERING = Suggestion(
    code="GPA202",
    slug="code-reordering",
    name="Code Reordering",
    title="load used two instructions later",
    category=Category.LATENCY_HIDING,
    evidence=Evidence.MEASURED,
    importance=6_630 / 12_034,
    matched_samples=6_630,
    matched_latency=6_450,
    speedup=estimate(
        1.0,
        1.12,
        1.2,
        1.62,
        equation="GPA Eq. 4: T / (T - min(A, M_L)) with T = 12034, A = 4600, M_L = 6450",
        reason="only two independent instructions could move between load and use",
    ),
    program_speedup=None,
    scope=LINE,
    advice="Load idx[k] of the next iteration before in[j] is used.",
    hotspots=(MEMORY_HOTSPOT,),
)
THREAD_INCREASE = Suggestion(
    code="GPA302",
    slug="thread-increase",
    name="Thread Increase",
    title="registers limit the resident warps",
    category=Category.PARALLEL,
    evidence=Evidence.MEASURED,
    importance=0.0,
    matched_samples=0,
    matched_latency=0,
    speedup=estimate(
        1.0,
        1.04,
        1.09,
        1.09,
        equation="GPA Eq. 10: C_W x C_I x f with W = 12, W_new = 16, R_I = 0.32, f = 1",
        reason="DRAM at 71 % of its peak leaves little",
    ),
    program_speedup=None,
    scope=KERNEL,
    advice="Add __launch_bounds__(256, 8): 32 registers per thread allow 8 blocks per SM instead of 6.",
    hotspots=(),
)
UNCOVERED = Suggestion(
    code="GPA401",
    slug="uncovered-stalls",
    name="Uncovered Stalls",
    title="stalls that no rule covers",
    category=Category.NOTE,
    evidence=Evidence.MEASURED,
    importance=421 / 12_034,
    matched_samples=421,
    matched_latency=318,
    speedup=None,
    program_speedup=None,
    scope=KERNEL,
    advice="lg_throttle (3.5 % of samples, mostly LDG).",
    hotspots=(),
)
GROUP = Group(
    suggestions=("GPA201", "GPA202"),
    samples=6_630,
    shared_samples=6_630,
    speedup=estimate(
        0.98,
        1.23,
        1.36,
        1.62,
        equation="GPA Eq. 4 over the union: T = 12034, A = 4600, M_L = 6450",
        reason="both hide the latency of the same loads",
    ),
)
REJECTED = (
    Rejection(code="GPA101", reason="no local memory traffic: no LDL or STL in the kernel"),
    Rejection(code="GPA104", reason="no special function and no call of a math helper"),
    Rejection(
        code="GPA106",
        reason="lg_throttle holds 3.5 % of the samples, and sectors per request are ideal (4.02 of 4.00)",
    ),
)
RULES = (
    RuleComparison(
        rule=RuleResult(
            identifier="CPIStall",
            name="CPI Stall 'Long Scoreboard'",
            section="WarpStateStats",
            kind="optimization",
            message=(
                "On average, each warp of this workload spends 14.2 cycles being stalled waiting for a "
                "scoreboard dependency on a L1TEX operation. See the @url:documentation:https://docs.example"
                ".org/ncu#scoreboard@ for more details."
            ),
            estimated_speedup=1.41,
        ),
        agreement="agrees",
        ours=("GPA201", "GPA202"),
        explanation="both see the wait for global loads; ours names the loop",
    ),
    RuleComparison(
        rule=RuleResult(
            identifier="SOLBottleneck",
            name="Bottleneck",
            section="SpeedOfLight",
            kind="ok",
            message="Compute and memory are well balanced.",
            estimated_speedup=None,
        ),
        agreement="not comparable",
        ours=(),
        explanation="",
    ),
)
LINE_SCOPES = (
    ScopeSummary(
        scope=LINE,
        samples=7_912,
        latency=7_100,
        caused=3_260,
        executed_warps=131_072,
        dominant_reason="long_scoreboard",
    ),
    ScopeSummary(
        scope=Scope(kind=ScopeKind.LINE, name=GATHER, location=at(9)),
        samples=702,
        latency=300,
        caused=2_700,
        executed_warps=131_072,
        dominant_reason="wait",
    ),
    ScopeSummary(
        scope=Scope(kind=ScopeKind.LINE, name=GATHER, location=at(4, LOAD_FILE)),
        samples=521,
        latency=318,
        caused=4_441,
        executed_warps=131_072,
        dominant_reason="lg_throttle",
    ),
    ScopeSummary(
        scope=LOOP,
        samples=11_800,
        latency=8_800,
        caused=11_700,
        executed_warps=None,
        dominant_reason="long_scoreboard",
    ),
)


def kernel(**changes: object) -> KernelAdvice:
    """The measured gather kernel, with everything a kernel can have."""
    values: dict[str, object] = {
        "name": GATHER,
        "mangled": GATHER_MANGLED,
        "evidence": Evidence.MEASURED,
        "evidence_reason": "12,034 PC samples, one every 4,096 cycles",
        "device": A100,
        "launch": launch(3),
        "merged_launches": 1,
        "duration_ns": 1_234_567.0,
        "time_share": 0.714,
        "registers_per_thread": 40,
        "shared_bytes": 4096,
        "occupancy": Occupancy(
            theoretical=0.75,
            achieved=0.713,
            limiter="registers",
            blocks_per_sm=6,
            warps_per_sm=48,
            limits=(("registers", 6), ("shared memory", 20), ("warps", 8), ("blocks", 32)),
        ),
        "utilisations": (
            Utilisation(
                name="DRAM", percent=71.2, metric="dram__throughput.avg.pct_of_peak_sustained_elapsed"
            ),
            Utilisation(name="L2", percent=44.0, metric="lts__t_sectors.avg.pct_of_peak_sustained_elapsed"),
            Utilisation(
                name="issue", percent=28.7, metric="sm__inst_issued.avg.pct_of_peak_sustained_active"
            ),
        ),
        "samples": summary(STALLS),
        "stalls": STALLS,
        "coverage": Coverage(before=0.58, after=0.93),
        "scopes": LINE_SCOPES,
        "suggestions": (STRENGTH_REDUCTION, LOOP_UNROLLING, CODE_REORDERING, THREAD_INCREASE),
        "notes": (UNCOVERED,),
        "hidden": 1,
        "groups": (GROUP,),
        "rejected": REJECTED,
        "limit": "latency",
        "limited_by": "latency: waiting for data from global, local or texture memory (58 % of the samples)",
        "verdict": "The kernel waits for global loads (58 % of its samples); more in flight would help.",
        "rules": RULES,
        "problems": (
            Problem(ProblemCode.INDIRECT_BRANCH, "one BRX at 0x0340 has targets that are not known"),
        ),
    }
    return KernelAdvice(**{**values, **changes})  # type: ignore[arg-type]  # keywords by name


def advice(*kernels: KernelAdvice, **changes: object) -> Advice:
    """A report with these kernels, one launch each."""
    launches = tuple(LaunchSummary(launch=k.launch, analysed=True) for k in kernels if k.launch is not None)
    values: dict[str, object] = {
        "path": "profiles/spmv.ncu-rep",
        "sha256": "5f" * 32,
        "collector": "ncu",
        "collector_version": "2025.3.1",
        "kernels": kernels,
        "launches": launches,
        "sources": (
            SourceMatch(report_path=GATHER_FILE, local_path="src/gather.cu", method="content hash"),
            SourceMatch(report_path=LOAD_FILE, local_path=None, method="ambiguous"),
        ),
        "problems": (),
    }
    return Advice(**{**values, **changes})  # type: ignore[arg-type]  # keywords by name


def measured() -> Advice:
    """One measured kernel with line information, groups and NVIDIA's rules."""
    return advice(kernel())


def suppressed() -> Advice:
    """The same, with one suggestion ignored in the source and one comment without effect."""
    ignored = _replace(
        STRENGTH_REDUCTION,
        suppressed=Suppression(location=at(10), reason="the reference needs double"),
    )
    return advice(
        kernel(suggestions=(ignored, LOOP_UNROLLING), groups=()),
        problems=(
            Problem(
                ProblemCode.UNUSED_SUPPRESSION,
                f"{GATHER_FILE}:12 ignores GPA104, which says nothing there: remove the comment",
            ),
        ),
    )


def _replace(suggestion: Suggestion, **changes: object) -> Suggestion:
    names = Suggestion.__dataclass_fields__
    return Suggestion(**{**{n: getattr(suggestion, n) for n in names}, **changes})  # type: ignore[arg-type]  # keywords by name


def without_lines() -> Advice:
    """A measured kernel without line information, from a full sample buffer."""
    use = CodeRef(
        pc=Pc(0x1F30),
        function=CUTLASS,
        opcode="HMMA.16816.F32",
        text="HMMA.16816.F32 R4, R8, R12, R4",
        location=None,
        inline=(),
    )
    definition = CodeRef(
        pc=Pc(0x1E00),
        function=CUTLASS,
        opcode="LDSM.16.M88.4",
        text="LDSM.16.M88.4 R8, [R20+UR4+0x1800]",
        location=None,
        inline=(),
    )
    hotspot = Hotspot(
        reason="short_scoreboard",
        dependency_class=DependencyClass.SHARED_MEMORY,
        samples=3_000,
        latency=2_900,
        importance=0.5,
        speedup=1.4,
        distance_instructions=None,
        definition=definition,
        use=use,
    )
    stalls = (stall("short_scoreboard", 4_000, 3_900, blamed=4_000), stall("weird_new_reason", 2_000, 0))
    reorder = _replace(
        CODE_REORDERING,
        scope=Scope(kind=ScopeKind.FUNCTION, name=CUTLASS, location=None),
        hotspots=(hotspot,),
    )
    return advice(
        kernel(
            name=CUTLASS,
            mangled="_ZN7cutlass7Kernel2I",
            launch=launch(0, CUTLASS, "_ZN7cutlass7Kernel2I", grid=(64, 32, 2), cluster=(2, 1, 1)),
            time_share=1.0,
            stalls=stalls,
            samples=summary(stalls, truncated=True, expected=48_211.7, external=12, after_exit=3),
            scopes=(),
            suggestions=(reorder,),
            groups=(),
            hidden=0,
            rules=(),
            merged_launches=4,
            problems=(
                Problem(
                    ProblemCode.NO_LINE_INFO,
                    "the cubin has no line table: places are addresses; compile with -lineinfo",
                ),
            ),
        ),
        sources=(),
    )


def static() -> Advice:
    """A bare cubin: findings, no estimates."""
    finding = _replace(
        STRENGTH_REDUCTION,
        evidence=Evidence.STATIC,
        importance=0.0,
        matched_samples=0,
        matched_latency=0,
        speedup=None,
        program_speedup=None,
        hotspots=(
            Hotspot(
                reason="static",
                dependency_class=DependencyClass.ARITHMETIC,
                samples=0,
                latency=0,
                importance=0.0,
                speedup=1.0,
                distance_instructions=None,
                definition=None,
                use=code(0x150, "F2F.F64.F32 R4, R2", at(10)),
            ),
        ),
    )
    return advice(
        kernel(
            evidence=Evidence.STATIC,
            evidence_reason="the input is a cubin, which has no samples",
            device=UNKNOWN_DEVICE,
            launch=None,
            duration_ns=None,
            time_share=None,
            occupancy=NO_OCCUPANCY,
            utilisations=(),
            samples=NO_SAMPLES,
            stalls=(),
            coverage=Coverage(before=None, after=None),
            scopes=(),
            suggestions=(finding,),
            notes=(),
            limit="",
            limited_by="",
            hidden=0,
            groups=(),
            rules=(),
            problems=(),
            verdict="Without samples it is not known what limits this kernel.",
        ),
        path="build/gather.cubin",
        collector=None,
        collector_version=None,
        sources=(),
    )


def counted() -> Advice:
    """Executed counts without samples, and nothing to suggest."""
    return advice(
        kernel(
            evidence=Evidence.COUNTED,
            evidence_reason="the report has executed counts but no PC samples",
            samples=NO_SAMPLES,
            stalls=(),
            coverage=Coverage(before=None, after=None),
            scopes=(),
            suggestions=(),
            notes=(),
            limit="",
            limited_by="",
            hidden=0,
            groups=(),
            rules=(),
            problems=(
                Problem(
                    ProblemCode.NO_SAMPLES,
                    "no PC samples: collect them with ncu --section SourceCounters --section WarpStateStats",
                ),
            ),
            verdict="Nothing helps that can be seen from counts.",
        )
    )


def several() -> Advice:
    """Three kernels of one report, with launches that were not analysed and one that failed."""
    gather = kernel()
    tensor = without_lines().kernels[0]
    tensor = KernelAdvice(
        **{name: getattr(tensor, name) for name in KernelAdvice.__dataclass_fields__} | {"time_share": 0.201}
    )
    fill = "fill(float *, int)"
    idle = kernel(
        name=fill,
        mangled="_Z4fillPfi",
        launch=launch(9, fill, "_Z4fillPfi", block=(32, 4, 2)),
        time_share=0.085,
        suggestions=(),
        notes=(),
        groups=(),
        hidden=0,
        rules=(),
        scopes=(),
        problems=(),
        limit="DRAM throughput",
        limited_by="DRAM throughput at 96 % of its peak",
        verdict="DRAM is at 96 % of its peak: the kernel is as fast as its traffic allows.",
    )
    launches = [LaunchSummary(launch=launch(index), analysed=index == 3) for index in range(4)]
    launches += [
        LaunchSummary(launch=launch(4, CUTLASS, "_ZN7cutlass7Kernel2I", grid=(64, 32, 2)), analysed=True),
        LaunchSummary(launch=launch(5, duration_ns=None, failed=True), analysed=False),
        LaunchSummary(
            launch=launch(6, fill, "_Z4fillPfi", duration_ns=811.0, grid=(1, 1, 1)), analysed=False
        ),
        LaunchSummary(launch=launch(9, fill, "_Z4fillPfi", block=(32, 4, 2)), analysed=True),
    ]
    return advice(gather, tensor, idle, launches=tuple(launches))


def hostile() -> Advice:
    """Names that try to colour the terminal, break a table, inject markup, and are not valid Unicode."""
    name = "evil\x1b[31m<img src=x onerror=y>|[x](http://e)`` @all\u202e\ud800{0}\n# head\x9b2J"
    path = "C:\\Users\\a b\\|evil\x1b]0;t\x07.cu"
    hotspot = Hotspot(
        reason="long_scoreboard",
        dependency_class=DependencyClass.GLOBAL_MEMORY,
        samples=10,
        latency=9,
        importance=0.5,
        speedup=float("inf"),
        distance_instructions=1,
        definition=CodeRef(
            pc=Pc(0),
            function=name,
            opcode="LDG\x1b[0m",
            text="LDG\x1b[0m R0, [R1]",
            location=SourceLocation(path, 0),
            inline=(InlineFrame(name, SourceLocation(path, 7)),),
        ),
        use=None,
    )
    bad = _replace(
        CODE_REORDERING,
        title=name,
        advice=name,
        hotspots=(hotspot,),
        scope=Scope(kind=ScopeKind.FUNCTION, name=name, location=SourceLocation(path, 3)),
        speedup=Estimate(
            low=float("nan"),
            expected=float("inf"),
            high=float("inf"),
            paper=float("-inf"),
            equation=name,
            reasons=(name,),
            cap=EstimateCap(limit=name, speedup=float("inf"), before=float("nan"), reason=name),
        ),
    )
    return advice(
        kernel(name=name, mangled=name, suggestions=(bad,), groups=(), time_share=float("nan")),
        path=path,
        sources=(SourceMatch(report_path=path, local_path=path, method="exact path"),),
    )
