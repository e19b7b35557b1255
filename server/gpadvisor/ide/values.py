# SPDX-License-Identifier: Apache-2.0
"""What an editor shows of an advice, as plain values by file and line; no LSP, no files, no processes.

Lines count from 1 and are those of the source as it was profiled or compiled (the *baseline*);
``ide.placing`` puts them into today's text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gpadvisor.model.advice import Estimate
from gpadvisor.model.profile import Evidence


class BaselineKind(Enum):
    """How well the text that the lines refer to is known."""

    EMBEDDED = "embedded"  # the profile carries the text
    COMPILED = "compiled"  # the text was compiled here, just now
    HASHED = "hashed"  # this machine's file when the profile was imported: unverified
    UNKNOWN = "unknown"  # nothing is known; lines are taken as they are, unverified


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
class Finding:
    """One suggestion (or tool note) on one line."""

    id: str  # fingerprint without line numbers: the same finding after a new analysis has the same one
    code: str
    slug: str
    title: str
    message: str  # the diagnostic's sentence, without the code
    advice: str
    line: int
    token: str | None  # the source expression that the finding is about, where one is known
    kernel: str  # mangled
    kernel_name: str  # short and demangled
    evidence: Evidence
    samples: int  # matched on this line
    importance: float | None  # share of the kernel's samples matched on this line; None without samples
    speedup: Estimate | None  # of the whole suggestion; None for static findings and notes
    related: tuple[Related, ...]  # most samples first, at most five
    suppressed: str | None = None  # the reason given in the source


@dataclass(frozen=True, slots=True, kw_only=True)
class StallShare:
    """One stall reason on one line."""

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
    share: float  # of the kernel's samples
    caused: int  # samples blamed on instructions of this line, its own included
    stalls: tuple[StallShare, ...]  # most samples first


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
    time_share: float | None
    samples: int
    latency: int
    suggestions: int
    best: str | None  # id of the finding with the best expected speedup
    together: Estimate | None  # joint estimate of the largest group
    verdict: str
    stalls: tuple[StallShare, ...]
    rejected: tuple[tuple[str, str], ...]  # code and failing condition
    assumptions: tuple[str, ...]  # of a model
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAnalysis:
    """Everything about one source file."""

    path: str  # as the line table has it
    local: str | None  # on this machine
    baseline: str | None  # the text that the lines refer to
    baseline_kind: BaselineKind
    findings: tuple[Finding, ...]
    lines: tuple[LineData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorAnalysis:
    """One profile, cubin or source, ready to be shown."""

    origin: str  # path of the input
    sha256: str
    collector: str | None
    collected_at: str | None  # ISO 8601, where the profile tells
    kernels: tuple[KernelView, ...]
    files: tuple[FileAnalysis, ...]
    problems: tuple[tuple[str, str], ...]  # code and message
