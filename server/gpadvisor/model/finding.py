# SPDX-License-Identifier: Apache-2.0
"""What an editor shows of an advice, as plain values by file and line; no LSP, no files, no processes.

Lines count from 1 and are those of the source as it was profiled or compiled (the *baseline*);
``editor.place`` puts them into today's text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum

from gpadvisor.model.estimate import Estimate, Evidence
from gpadvisor.model.remedy import Remedy
from gpadvisor.model.sentence import NOTHING, Sentence


class BaselineKind(Enum):
    """How well the text that the lines refer to is known."""

    EMBEDDED = "embedded"  # the profile carries the text
    COMPILED = "compiled"  # the text was compiled here, just now
    HASHED = "hashed"  # this machine's file when the profile was read here first: unverified
    UNKNOWN = "unknown"  # nothing is known; lines are taken as they are, unverified


class NoteCode(StrEnum):
    """What a tool diagnostic is about, as settings and pages name it; other codes are those of rules."""

    OTHER = "GPA900"  # what has no code of its own
    NO_LINES = "GPA901"
    STALE = "GPA902"
    FEW_SAMPLES = "GPA903"
    LOWER_EVIDENCE = "GPA904"
    UNUSED_SUPPRESSION = "GPA905"
    OTHER_SOURCE = "GPA906"  # its lines are not those that were compiled
    UNCOVERED_TIME = "GPA907"
    NOT_ANALYSED = "GPA908"


class Freshness(Enum):
    """How a line of the baseline stands in today's text."""

    FRESH = "fresh"  # unchanged, perhaps moved
    UNVERIFIED = "unverified"  # nothing says that the text is what was profiled
    EDITED = "edited"  # the line was changed or deleted since


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line of a file as the line table names it."""

    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """Another place that a finding or a line's stall comes from."""

    place: Place
    message: str  # "LDG.E R2 loads it here, 26 instructions before: 13 % of the samples, long scoreboard"


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingPart:
    """What one kernel contributes to a finding; template instantiations share their lines."""

    kernel: str  # mangled
    kernel_name: str  # short and demangled, with template arguments
    samples: int  # matched on this line
    importance: float | None  # share of this kernel's samples; None without samples
    speedup: Estimate | None  # of the whole suggestion for this kernel; None for static findings and notes
    program_speedup: Estimate | None  # of the whole profile, or of the traced run, by Amdahl's law
    run: str = ""  # name of the trace where it is of a traced run


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One suggestion (or tool note) on one line; kernels that share the line share the finding."""

    id: str  # fingerprint without line numbers: the same finding after a new analysis has the same one
    code: str
    slug: str
    name: str  # of the rule, "Strength Reduction"
    title: str  # the pattern found on this line
    message: str  # how much waits for what here, and what else has its part in it
    advice: Sentence  # what to change, of the whole suggestion
    leads: bool  # the heaviest line of its suggestion, which the advice is about first
    line: int
    token: str | None  # the source expression that the finding is about, where one is known
    kernel: str  # mangled; of the part that takes most of the GPU's time here
    kernel_name: str  # short and demangled
    evidence: Evidence
    samples: int  # matched on this line, over all parts
    importance: float | None  # share of the first part's samples matched on this line; None without samples
    matched: float | None  # the same on all lines of the suggestion
    speedup: Estimate | None  # of the whole suggestion, all its lines together; None for static ones, notes
    parts: tuple[FindingPart, ...]  # most of the GPU's time first, the first one is ``kernel``
    related: tuple[Related, ...]  # most samples first, at most five
    scope: Place | None  # head of the loop that the suggestion is about
    suppressed: str | None = None  # the reason given in the source
    cure: Sentence = NOTHING  # the whole change with its conditions; empty where only ``advice`` has it
    remedies: tuple[Remedy, ...] = ()  # what the words ask for, where a fix goes with it
    lead: Place | None = None  # the heaviest line of its suggestion, where that is not this one
    run: str = ""  # name of the trace, of host code that leaves a GPU idle: of the run and of no kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class StallShare:
    """One stall reason on one line, or of one kernel."""

    reason: str
    plain: str  # in words
    samples: int
    latency: int
    cause: Related | None  # the instruction that most of these samples are blamed on


@dataclass(frozen=True, slots=True, kw_only=True)
class LineData:
    """Samples of one line in one kernel."""

    line: int
    kernel: str  # mangled
    samples: int
    latency: int
    share: float  # of the kernel's samples; without any, of the instructions that it executed
    caused: int  # samples blamed on instructions of this line, its own included
    instructions: int  # of the machine code on this line
    stalls: tuple[StallShare, ...]  # most samples first


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestionView:
    """One suggestion for a kernel as a whole, whether or not its lines are known."""

    code: str
    slug: str
    name: str
    title: str
    advice: str
    importance: float | None  # share of the kernel's samples; None without samples
    speedup: Estimate | None
    suppressed: str | None  # the reason given in the source


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelView:
    """One analysed kernel."""

    kernel: str  # mangled
    name: str  # short and demangled, with template arguments
    base_name: str  # without them: instantiations of one template share it
    place: Place | None  # of its definition
    evidence: Evidence
    evidence_reason: str
    device: str
    launch: str | None  # "launch 3 of 8: 4096 x 256 threads"
    launch_index: int | None  # what a request for this launch names
    duration_ns: float | None
    time_share: float | None
    samples: int
    latency: int
    unplaced: int  # samples on no source line
    suggestions: tuple[SuggestionView, ...]  # ranked
    best: str | None  # id of the finding with the best expected speedup
    best_code: str | None
    best_speedup: Estimate | None
    together: Estimate | None  # joint estimate of the largest group
    together_codes: tuple[str, ...]
    verdict: Sentence
    stalls: tuple[StallShare, ...]
    hidden: int  # suggestions below the thresholds
    rejected: tuple[tuple[str, str], ...]  # code and failing condition
    assumptions: tuple[Sentence, ...]  # of a model
    problems: tuple[str, ...]
    arch: str | None = None  # "sm_90", of the code
    run: str = ""  # name of the trace that its share of the time is of
    run_busy: float = 0.0  # share of that run in which a GPU works


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchView:
    """One launch of the profile, for choosing."""

    index: int
    kernel: str  # mangled
    name: str  # short and demangled
    label: str  # "4096 x 256 threads, 1.2 ms"
    duration_ns: float | None
    analysed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAnalysis:
    """Everything about one source file."""

    path: str  # as the line table has it
    local: str | None  # on this machine, absolute
    baseline: str | None  # the text that the lines refer to
    baseline_kind: BaselineKind
    findings: tuple[Finding, ...]
    lines: tuple[LineData, ...]
    remarks: str = ""  # of the text whose comments were followed: see ``editor.place.remarks``


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolNote:
    """A tool diagnostic: what the numbers lack."""

    code: str  # a NoteCode
    message: str
    place: Place | None  # None: no line of any source is known for it
    quiet: bool = False  # whether the numbers stand all the same: then it is a hint
    rule: str = ""  # GPA202: the one that a comment ignores for nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorAnalysis:
    """One profile, cubin or source, ready to be shown."""

    origin: str  # path of the input
    sha256: str
    collector: str | None
    collected_at: str | None  # ISO 8601, where the profile tells
    kernels: tuple[KernelView, ...]  # by share of GPU time
    launches: tuple[LaunchView, ...]
    files: tuple[FileAnalysis, ...]  # every file that a line with samples or a finding is in
    problems: tuple[ToolNote, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SassInstruction:
    """One instruction of the machine code beside its source."""

    pc: int
    text: str
    stall_cycles: int
    yields: bool
    write_barrier: int | None
    read_barrier: int | None
    waits: tuple[int, ...]  # scoreboards
    samples: int
    latency: int
    caused: int  # samples of other instructions that wait for this one
    share: float | None  # of the kernel's samples; None without samples
    reason: str | None  # the stall with the most samples
    waits_for: int | None  # row of the instruction that most of these samples are blamed on
    place: Place | None
    inline: tuple[Place, ...]  # call sites, innermost first


@dataclass(frozen=True, slots=True, kw_only=True)
class SassView:
    """The machine code of one kernel and of what it calls."""

    kernel: str  # mangled
    name: str
    arch: str
    evidence: Evidence
    samples: int
    functions: tuple[tuple[str, int], ...]  # name and first row
    rows: tuple[SassInstruction, ...]
    truncated: int  # rows left out, of very large kernels


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedLine:
    """One source line of the second of two runs."""

    place: Place
    change_ns: float  # time gained (negative) or lost (positive), over all kernels


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One prediction beside what came of it."""

    kernel: str  # mangled, as it is now
    kernel_name: str
    code: str
    predicted: Estimate
    achieved: float | None  # time before / time now, of the whole kernel
    still_found: bool  # whether the suggestion is made again
    comparable: str | None  # why the two times cannot be compared; None where they can
