# SPDX-License-Identifier: Apache-2.0
"""Every setting of the editor, once: the client's manifest and ``settings-editor.md`` are made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

SECTION: Final = "gpadvisor"

SettingKind = Literal["boolean", "integer", "number", "string", "strings", "map"]
SettingScope = Literal["resource", "window", "machine-overridable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting as users write it."""

    name: str  # without the section: "codeLens.enable"
    kind: SettingKind
    default: object
    doc: str
    scope: SettingScope = "resource"
    choices: tuple[str, ...] = ()  # of a string, or of a map's values
    choice_docs: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    restricted: bool = False  # ignored in a workspace that is not trusted
    client: bool = False  # read by the client alone

    @property
    def field(self) -> str:
        """The name of its field in ``EditorSettings``."""
        words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in self.name)
        return words.replace(".", "_")


_SEVERITIES: Final = ("warning", "information", "hint", "off")
PROFILE_PATTERNS: Final = ("**/*.gpadvisor", "**/*.ncu-rep", "**/*.ncu-repz")
TIMELINE_PATTERNS: Final = ("**/*.sqlite", "**/*.pt.trace.json", "**/*.pt.trace.json.gz", "**/trace.db")

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(name="enable", kind="boolean", default=True, doc="Show anything at all."),
    Setting(
        name="run",
        kind="string",
        default="onSave",
        choices=("onSave", "manual"),
        choice_docs=(
            "Compile and analyse a CUDA source when it is opened and saved.",
            "Only when asked by the command.",
        ),
        doc="When the machine code is looked at. Profiles are read in both cases.",
    ),
    Setting(
        name="debounceMilliseconds",
        kind="integer",
        default=300,
        minimum=0,
        maximum=10_000,
        doc="How long to wait after a save for another one.",
    ),
    Setting(
        name="annotations",
        kind="string",
        default="normal",
        choices=("off", "minimal", "normal", "all"),
        choice_docs=(
            "Nothing but diagnostics.",
            "Heat in the gutter; neither lenses nor hints.",
            "Heat, one lens line per kernel, hints on lines with a notable share.",
            "Hints on every line with samples.",
        ),
        doc="How much is drawn into the editor beside diagnostics.",
    ),
    Setting(name="codeLens.enable", kind="boolean", default=True, doc="A summary above each kernel."),
    Setting(
        name="inlayHints.enable", kind="boolean", default=True, doc="Share and stall at the end of hot lines."
    ),
    Setting(
        name="inlayHints.minShare",
        kind="number",
        default=0.03,
        minimum=0,
        maximum=1,
        doc="Share of a kernel's samples below which a line gets no hint.",
    ),
    Setting(name="hover.enable", kind="boolean", default=True, doc="Stalls and evidence of a line on hover."),
    Setting(
        name="gutter.enable", kind="boolean", default=True, doc="Heat in the gutter and the overview ruler."
    ),
    Setting(
        name="gutter.minShare",
        kind="number",
        default=0.01,
        minimum=0,
        maximum=1,
        doc="Share of a kernel's samples below which a line is not coloured.",
    ),
    Setting(
        name="stale",
        kind="string",
        default="dim",
        choices=("remap", "dim", "hide"),
        choice_docs=(
            "Edited lines keep their findings, which say so.",
            "Edited lines keep their findings, faded.",
            "What was measured on lines edited since is not shown.",
        ),
        doc="What becomes of measured findings on lines that were edited since the profile.",
    ),
    Setting(
        name="report.minSpeedup",
        kind="number",
        default=1.05,
        minimum=1,
        doc="A finding that is measured and fresh is a warning where the run gains this at the low end.",
    ),
    Setting(
        name="report.maxPerFile",
        kind="integer",
        default=20,
        minimum=1,
        maximum=1000,
        doc="Findings shown in one file, those with most to gain first.",
    ),
    Setting(
        name="severity",
        kind="map",
        default={},
        choices=_SEVERITIES,
        doc='Severity by rule code or name, such as `{"GPA102": "warning", "loop-unrolling": "off"}`.',
    ),
    Setting(
        name="rules.select",
        kind="strings",
        default=(),
        doc="Codes, or beginnings of codes, of the only rules to show; empty: all.",
    ),
    Setting(
        name="rules.ignore", kind="strings", default=(), doc="Codes, or beginnings of codes, not to show."
    ),
    Setting(
        name="profiles.enable",
        kind="boolean",
        default=True,
        doc="Find, read and watch profiles in the workspace.",
    ),
    Setting(
        name="profiles.patterns",
        kind="strings",
        default=PROFILE_PATTERNS,
        doc="Which files of the workspace are profiles.",
    ),
    Setting(
        name="profiles.max",
        kind="integer",
        default=10,
        minimum=1,
        maximum=100,
        doc="How many profiles of a folder are read, the newest first.",
    ),
    Setting(
        name="profiles.ledger",
        kind="string",
        default="",
        restricted=True,
        doc="File of the folder, such as .gpadvisor-ledger.jsonl, that gets a line for each fix that was "
        "applied and profiled again: what was predicted, and what came. None where it is empty.",
    ),
    Setting(
        name="timeline.file",
        kind="string",
        default="",
        restricted=True,
        doc="Timeline of a run, absolute or below the folder: a SQLite export of Nsight Systems, a Chrome "
        "trace as PyTorch's, or an HPCToolkit database (its folder). Empty: the newest that the patterns "
        "find.",
    ),
    Setting(
        name="timeline.patterns",
        kind="strings",
        default=TIMELINE_PATTERNS,
        doc="Which files of the workspace may be timelines; empty: none is looked for.",
    ),
    Setting(
        name="analysis.arch",
        kind="string",
        default="",
        doc="Architecture to compile for, such as `sm_90`, where no profile names the source; empty: that of "
        "`gpadvisor.toml`, of the compile command, or of this machine's GPU.",
    ),
    Setting(
        name="analysis.flags",
        kind="strings",
        default=(),
        restricted=True,
        doc="Compiler flags for sources that no `compile_commands.json` names.",
    ),
    Setting(
        name="analysis.model",
        kind="string",
        default="onSave",
        choices=("onSave", "manual"),
        choice_docs=(
            "Simulate kernels whose launch `gpadvisor.toml` states, whenever the source is analysed.",
            "Simulate only when asked by the command.",
        ),
        doc="When kernels without a profile are simulated.",
    ),
    Setting(
        name="analysis.timeoutSeconds",
        kind="integer",
        default=300,
        minimum=5,
        maximum=86_400,
        doc="Time limit of one analysis, compiler and disassembler included.",
    ),
    Setting(
        name="analysis.memoryMib",
        kind="integer",
        default=8192,
        minimum=512,
        scope="window",
        doc="Memory limit of one analysis.",
    ),
    Setting(
        name="analysis.workers",
        kind="integer",
        default=2,
        minimum=1,
        maximum=16,
        scope="window",
        doc="Analyses that may run at the same time.",
    ),
    Setting(
        name="profile.command",
        kind="strings",
        default=(),
        scope="machine-overridable",
        restricted=True,
        doc="Command that writes a profile, word by word, run without a shell in the workspace folder; "
        "`${file}`, `${workspaceFolder}` and `${profile}` (the path to write) are replaced.",
    ),
    Setting(
        name="profile.onSave",
        kind="boolean",
        default=False,
        restricted=True,
        doc="Run the profile command after each save.",
    ),
    Setting(
        name="profile.timeoutSeconds",
        kind="integer",
        default=900,
        minimum=1,
        maximum=86_400,
        doc="Time limit of the profile command.",
    ),
    Setting(
        name="nvcc.path",
        kind="string",
        default="",
        scope="machine-overridable",
        restricted=True,
        doc="nvcc to use; empty: the toolkit's, else NVRTC.",
    ),
    Setting(
        name="nvdisasm.path",
        kind="string",
        default="",
        scope="machine-overridable",
        restricted=True,
        doc="nvdisasm to use; empty: the newest that is found.",
    ),
    Setting(
        name="interpreter",
        kind="strings",
        default=(),
        scope="machine-overridable",
        restricted=True,
        client=True,
        doc="Python (3.11 or newer) to run the server with, and its arguments; empty: found or set up.",
    ),
    Setting(
        name="importStrategy",
        kind="string",
        default="fromEnvironment",
        choices=("fromEnvironment", "useBundled"),
        choice_docs=(
            "An installed gpadvisor, if it is not older than the bundled one; else the bundled one.",
            "The private environment of the extension.",
        ),
        scope="window",
        restricted=True,
        client=True,
        doc="Which gpadvisor is run.",
    ),
    Setting(
        name="wheelFolder",
        kind="string",
        default="",
        scope="machine-overridable",
        restricted=True,
        client=True,
        doc="Folder of wheels to set up the private environment from, without network.",
    ),
    Setting(
        name="logLevel",
        kind="string",
        default="info",
        choices=("error", "warning", "info", "debug"),
        scope="window",
        doc="What the server writes into its log.",
    ),
    Setting(
        name="trace.server",
        kind="string",
        default="off",
        choices=("off", "messages", "verbose"),
        scope="window",
        client=True,
        doc="Log the messages between client and server.",
    ),
)
