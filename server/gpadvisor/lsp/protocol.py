# SPDX-License-Identifier: Apache-2.0
"""What the server and our own client say beyond LSP; other clients see none of it.

A client asks for it with ``capabilities.experimental.gpadvisor = true``. Fields travel in camelCase; lines
count from 0, as everywhere in LSP. The client's types are generated from this module.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from gpadvisor.lsp.page_protocol import CompareParams, CompareResult, PageParams, PageResult

HEAT: Final = "gpadvisor/heat"
STATUS: Final = "gpadvisor/status"
FIX_CHECKED: Final = "gpadvisor/fixChecked"
SASS: Final = "gpadvisor/sass"
KERNELS: Final = "gpadvisor/kernels"
EXPLAIN: Final = "gpadvisor/explain"
OVERVIEW: Final = "gpadvisor/overview"
OVERVIEW_CHANGED: Final = "gpadvisor/overviewChanged"
COMPARE: Final = "gpadvisor/compare"
PAGE: Final = "gpadvisor/page"
DEBUG_INFORMATION: Final = "gpadvisor/debugInformation"
TOOL: Final = "gpadvisor/tool"

StatusState = Literal["idle", "stale", "busy", "error", "noKernel", "noProfile", "untrusted", "disabled"]
"""``idle``: advice is shown, of a profile or, where ``profile`` is null, of the code or a model; ``stale``:
of a profile, some of whose lines were edited since; ``noKernel``: the file has no code for the GPU, which is
nothing to worry about; ``noProfile``: nothing is known of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitializationOptions:
    """``initializationOptions``; every part may be missing."""

    trusted: bool = False  # else nothing of the workspace is compiled, disassembled, read or run
    settings: dict[str, object] = field(default_factory=dict)  # the section ``gpadvisor``, nested
    sample_folder: str | None = None  # of the walkthrough: may be read without trust


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatLine:
    """One line with samples."""

    line: int
    share: float  # of the chosen kernel's samples, 0 to 1
    level: int  # 1 (least) to 5, of the line with most samples
    stale: bool  # edited since the profile
    text: str  # for the tooltip: Markdown


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatParams:
    """Notification to the client: all heat of a document; replaces what was sent before."""

    uri: str
    version: int | None  # of the document that the lines are in; None: not open
    lines: list[HeatLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """What to do in a state: a command of our client, or of VS Code's."""

    title: str
    command: str
    argument: str | None  # its only one


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusParams:
    """Notification to the client: what the status bar and the language status item say."""

    state: StatusState
    uri: str | None  # of the document that the rest is about; None: the workspace
    bar: str  # for the status bar, 40 letters at most: "GPA: 3 findings, best 4.5x"
    text: str  # short, for the language status item
    detail: str  # lines: what is wrong, the profile, its kernels, what the numbers lack
    next: list[NextStep]  # the first is what a click does
    device: str | None
    profile: str | None  # path
    collected_at: str | None  # ISO 8601
    evidence: str | None  # "measured", "counted", "modelled", "static"
    kernel: str | None  # short name of the chosen kernel
    findings: int  # suggestions with a line in the document
    stale_share: float  # of the profile's samples in this document, on lines edited since


@dataclass(frozen=True, slots=True, kw_only=True)
class FixCheckedParams:
    """Notification to the client: what a quick fix has done to the machine code."""

    uri: str
    line: int
    code: str
    title: str  # of the quick fix
    outcome: Literal["gone", "fewer", "remains", "unknown", "notCompiled", "cancelled"]
    text: str  # "F2F x2 and DFMA gone, 1 FFMA added, registers unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class SassParams:
    """Request to the server."""

    uri: str
    line: int | None = None  # prefer the kernel that has code for this line
    kernel: str | None = None  # mangled name; None: the chosen one


@dataclass(frozen=True, slots=True, kw_only=True)
class SassRow:
    """One instruction."""

    address: int
    text: str  # "LDG.E R2, desc[UR4][R2.64]"
    control: str  # decoded: "stall 4, yield, write B0, wait B1"
    samples: int
    share: float | None  # of the kernel's samples; None: nothing was sampled
    reason: str | None  # the stall with most samples
    causes: int  # samples of other instructions that wait for this one
    waits_for: int | None  # row of the instruction that most of the samples are blamed on
    uri: str | None  # of the source
    line: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SassFunction:
    """Where a function begins."""

    name: str
    row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SassResult:
    """The machine code of one kernel."""

    title: str
    kernel: str | None
    arch: str | None
    evidence: str | None
    functions: list[SassFunction]
    rows: list[SassRow]
    truncated: int  # rows left out
    message: str | None  # why there is nothing, in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelsParams:
    """Request to the server."""

    uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelChoice:
    """One kernel with lines in the document."""

    kernel: str  # mangled name
    name: str  # short, with template arguments
    description: str  # "41 % of GPU time, launch 3 of 8"
    detail: str  # evidence, origin
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelsResult:
    """Kernels to pick from, most GPU time first."""

    choices: list[KernelChoice]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainParams:
    """Request to the server."""

    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainResult:
    """A rule's page."""

    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewChangedParams:
    """Notification to the client: an overview asked for now may be another one."""

    inputs: int  # that are read, being read, or could not be read
    best: str | None  # the most that one of their kernels could gain, "4.5x"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewParams:
    """Request to the server."""

    uri: str | None = None  # of the only input that is asked about


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewPlace:
    """A line of today's text."""

    uri: str
    line: int
    stale: bool  # edited since the profile


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewFinding:
    """One suggestion for a kernel."""

    code: str
    name: str  # of the rule
    title: str  # the pattern found
    gain: str | None  # "4.5x"; None without an estimate
    gain_and_range: str | None  # "4.5x (3.8-4.9)"
    share: float | None  # of the kernel's samples, where that explains the gain
    change: str  # what to do
    suppressed: str | None  # the reason given in the source
    place: OverviewPlace | None  # the line with most of it; None: no line on this machine


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewKernel:
    """One kernel of an input."""

    kernel: str  # mangled name
    name: str  # short, with template arguments
    verdict: str  # what limits it, in a sentence
    evidence: str  # "measured", "counted", "modelled", "static"
    device: str
    launch: str | None  # "launch 3 of 8: 4096 x 256 threads"
    duration_ns: float | None
    time_share: float | None  # of the GPU's time, 0 to 1
    place: OverviewPlace | None  # of its definition
    findings: list[OverviewFinding]  # most gain first
    problems: list[str]  # what its numbers lack


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewEntry:
    """One input: a profile, or a source whose machine code was looked at."""

    path: str
    name: str  # of the file
    profile: bool
    reading: bool  # now, perhaps again
    error: str | None  # why it could not be read, in a sentence
    collected_at: str | None  # ISO 8601
    problems: list[str]  # what all of it lacks
    kernels: list[OverviewKernel]  # most GPU time first
    left: int  # kernels left out


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewResult:
    """Profiles newest first, then sources with what no profile tells of."""

    entries: list[OverviewEntry]


@dataclass(frozen=True, slots=True, kw_only=True)
class DebugInformationResult:
    """What a bug report needs: versions, settings, tools, profiles, workers. No source text."""

    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolParams:
    """Request to the server: a tool for coding agents (docs/agents.md) by its name."""

    name: str
    arguments: dict[str, object]
    agreed: bool = False  # the user has seen the program that it runs, and agreed


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """Its answer: JSON, as ``gpadvisor mcp`` gives it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of ``workspace/executeCommand``."""

    id: str
    arguments: str  # in words
    does: str


ANALYZE_FILE: Final = "gpadvisor.server.analyzeFile"
MODEL_FILE: Final = "gpadvisor.server.modelFile"
IMPORT_PROFILE: Final = "gpadvisor.server.importProfile"
PROFILE: Final = "gpadvisor.server.profile"
SELECT_KERNEL: Final = "gpadvisor.server.selectKernel"
EXPLAIN_COMMAND: Final = "gpadvisor.server.explain"
TOGGLE_ANNOTATIONS: Final = "gpadvisor.server.toggleAnnotations"
APPLY_FIX: Final = "gpadvisor.server.applyFix"
CHECK_FIX: Final = "gpadvisor.server.checkFix"
DOCTOR: Final = "gpadvisor.server.doctor"
CANCEL: Final = "gpadvisor.server.cancel"

COMMANDS: Final = (
    Command(id=ANALYZE_FILE, arguments="uri", does="compile and analyse now, whatever `gpadvisor.run` says"),
    Command(
        id=MODEL_FILE,
        arguments="uri",
        does="simulate the kernels whose launch is stated, and show the model's findings",
    ),
    Command(
        id=IMPORT_PROFILE,
        arguments="path or uri of a report or snapshot",
        does="read a profile, wherever it lies, and show it in the files it names",
    ),
    Command(
        id=PROFILE,
        arguments="uri",
        does="run the user's `gpadvisor.profile.command` and show the profile that it writes",
    ),
    Command(
        id=SELECT_KERNEL,
        arguments="uri, mangled name or nothing",
        does="choose the kernel (launch, instantiation) that colours a document; without a name the user "
        "is asked",
    ),
    Command(
        id=EXPLAIN_COMMAND,
        arguments="rule or stall reason",
        does="return its page; show it, where that helps",
    ),
    Command(
        id=TOGGLE_ANNOTATIONS,
        arguments="nothing",
        does="switch hints, lenses and heat off and on for the session",
    ),
    Command(
        id=APPLY_FIX,
        arguments="uri, fix id (sent by quick fixes), true if the user has agreed",
        does="make a quick fix that asks first, or that changes a settings file; then check it",
    ),
    Command(
        id=CHECK_FIX,
        arguments="uri, fix id (sent by quick fixes)",
        does="rebuild with and without a quick fix, and say what changed in the machine code",
    ),
    Command(id=DOCTOR, arguments="nothing", does="return what is installed here and what is missing"),
    Command(id=CANCEL, arguments="nothing", does="stop everything that runs"),
)

CLIENT_SELECT_KERNEL: Final = "gpadvisor.selectKernel"
CLIENT_EXPLAIN: Final = "gpadvisor.explainAdvice"
CLIENT_OPEN_SASS: Final = "gpadvisor.openSass"
CLIENT_SHOW_LOCATION: Final = "gpadvisor.showLocation"
CLIENT_APPLY_FIX: Final = "gpadvisor.applyFix"
CLIENT_IMPORT_PROFILE: Final = "gpadvisor.importProfile"
CLIENT_MODEL_FILE: Final = "gpadvisor.modelFile"
CLIENT_PROFILE: Final = "gpadvisor.profile"
CLIENT_CANCEL: Final = "gpadvisor.cancel"
CLIENT_SERVER_LOGS: Final = "gpadvisor.showServerLogs"
CLIENT_SETTINGS: Final = "workbench.action.openSettings"
CLIENT_TRUST: Final = "workbench.trust.manage"
CLIENT_PROBLEMS: Final = "workbench.actions.view.problems"
CLIENT_FINDINGS: Final = "gpadvisor.findings.focus"
"""Commands of our client, and some of VS Code's, that lenses, actions and the status name there. Arguments of
the first five: (uri), (code), (uri, line), (uri, line, character), (uri, fix id, question, what changes)."""

NOTIFICATIONS: Final = {
    HEAT: HeatParams,
    STATUS: StatusParams,
    FIX_CHECKED: FixCheckedParams,
    OVERVIEW_CHANGED: OverviewChangedParams,
}
REQUESTS: Final = {
    SASS: (SassParams, SassResult),
    KERNELS: (KernelsParams, KernelsResult),
    EXPLAIN: (ExplainParams, ExplainResult),
    OVERVIEW: (OverviewParams, OverviewResult),
    COMPARE: (CompareParams, CompareResult),
    PAGE: (PageParams, PageResult),
    DEBUG_INFORMATION: (None, DebugInformationResult),
    TOOL: (ToolParams, ToolResult),
}
