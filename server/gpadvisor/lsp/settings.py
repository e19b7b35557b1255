# SPDX-License-Identifier: Apache-2.0
"""Every setting of the editor, once: the client's manifest and ``settings-editor.md`` are made from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Final, Literal

SECTION: Final = "gpadvisor"

Kind = Literal["boolean", "integer", "number", "string", "strings", "map"]
Scope = Literal["resource", "window", "machine-overridable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting as users write it."""

    name: str  # without the section: "codeLens.enable"
    kind: Kind
    default: object
    doc: str
    scope: Scope = "resource"
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
_PATTERNS: Final = ("**/*.gpadvisor", "**/*.ncu-rep", "**/*.ncu-repz")

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
        default=_PATTERNS,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorSettings:
    """The server's settings for one folder, checked."""

    enable: bool = True
    run: str = "onSave"
    debounce_milliseconds: int = 300
    annotations: str = "normal"
    code_lens_enable: bool = True
    inlay_hints_enable: bool = True
    inlay_hints_min_share: float = 0.03
    hover_enable: bool = True
    gutter_enable: bool = True
    gutter_min_share: float = 0.01
    stale: str = "dim"
    report_min_speedup: float = 1.05
    report_max_per_file: int = 20
    severity: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    rules_select: tuple[str, ...] = ()
    rules_ignore: tuple[str, ...] = ()
    profiles_enable: bool = True
    profiles_patterns: tuple[str, ...] = _PATTERNS
    profiles_max: int = 10
    analysis_arch: str = ""
    analysis_flags: tuple[str, ...] = ()
    analysis_model: str = "onSave"
    analysis_timeout_seconds: int = 300
    analysis_memory_mib: int = 8192
    analysis_workers: int = 2
    profile_command: tuple[str, ...] = ()
    profile_on_save: bool = False
    profile_timeout_seconds: int = 900
    nvcc_path: str = ""
    nvdisasm_path: str = ""
    log_level: str = "info"


def read_settings(section: object, *, trusted: bool) -> tuple[EditorSettings, tuple[str, ...]]:
    """Settings from the client's section, and a sentence on each value that is not used.

    A wrong value costs that value, never the others: the default takes its place.
    """
    values: dict[str, object] = {}
    wrong: list[str] = []
    known = {entry.name for entry in fields(EditorSettings)}
    for setting in SETTINGS:
        given = _lookup(section, setting.name)
        if given is None or setting.field not in known:
            continue
        if setting.restricted and not trusted:
            continue
        checked, complaint = _checked(setting, given)
        if complaint is not None:
            wrong.append(complaint)
        else:
            values[setting.field] = checked
    return EditorSettings(**values), tuple(wrong)  # type: ignore[arg-type] # each value was checked for its field


def _lookup(section: object, name: str) -> object:
    """A value by its dotted name: nested, flat, or with the section in front."""
    if not isinstance(section, Mapping):
        return None
    for flat in (name, f"{SECTION}.{name}"):
        if flat in section:
            found: object = section[flat]
            return found
    place: object = section
    for part in name.split("."):
        if not isinstance(place, Mapping):
            return None
        place = place.get(part)
    return place


def _checked(setting: Setting, value: object) -> tuple[object, str | None]:
    """The value as its field wants it, or a complaint."""
    name = f"{SECTION}.{setting.name}"
    if setting.kind == "boolean":
        return value, None if isinstance(value, bool) else f"{name} must be true or false"
    if setting.kind in {"integer", "number"}:
        return _number(setting, value, name)
    if setting.kind == "string":
        if not isinstance(value, str) or (setting.choices and value not in setting.choices):
            wanted = f"one of {', '.join(setting.choices)}" if setting.choices else "a string"
            return None, f"{name} must be {wanted}"
        return value, None
    if setting.kind == "strings":
        if isinstance(value, str) or not isinstance(value, Sequence):
            return None, f"{name} must be a list of strings"
        if not all(isinstance(entry, str) for entry in value):
            return None, f"{name} must be a list of strings"
        return tuple(value), None
    if not isinstance(value, Mapping):
        return None, f"{name} must be an object"
    bad = [str(key) for key, entry in value.items() if entry not in setting.choices]
    if bad:
        return None, f"{name}: the value of {bad[0]} must be one of {', '.join(setting.choices)}"
    return MappingProxyType({str(key): str(entry) for key, entry in value.items()}), None


def _number(setting: Setting, value: object, name: str) -> tuple[object, str | None]:
    whole = setting.kind == "integer"
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        return None, f"{name} must be {'an integer' if whole else 'a number'}"
    low, high = setting.minimum, setting.maximum
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        limits = f"at least {low:g}" if high is None else f"between {low or 0:g} and {high:g}"
        return None, f"{name} must be {limits}"
    return value if whole else float(value), None
