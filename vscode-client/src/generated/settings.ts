// SPDX-License-Identifier: Apache-2.0
// Generated from server/gpadvisor/lsp by `make docs`; do not edit.

export const SECTION = "gpadvisor";

export interface Settings {
  /** Show anything at all. */
  readonly "enable": boolean;
  /** When the machine code is looked at. Profiles are read in both cases. */
  readonly "run": "onSave" | "manual";
  /** How long to wait after a save for another one. */
  readonly "debounceMilliseconds": number;
  /** How much is drawn into the editor beside diagnostics. */
  readonly "annotations": "off" | "minimal" | "normal" | "all";
  /** A summary above each kernel. */
  readonly "codeLens.enable": boolean;
  /** Share and stall at the end of hot lines. */
  readonly "inlayHints.enable": boolean;
  /** Share of a kernel's samples below which a line gets no hint. */
  readonly "inlayHints.minShare": number;
  /** Stalls and evidence of a line on hover. */
  readonly "hover.enable": boolean;
  /** Heat in the gutter and the overview ruler. */
  readonly "gutter.enable": boolean;
  /** Share of a kernel's samples below which a line is not coloured. */
  readonly "gutter.minShare": number;
  /** What becomes of measured findings on lines that were edited since the profile. */
  readonly "stale": "remap" | "dim" | "hide";
  /** A finding that is measured and fresh is a warning where the run gains this at the low end. */
  readonly "report.minSpeedup": number;
  /** Findings shown in one file, those with most to gain first. */
  readonly "report.maxPerFile": number;
  /** Severity by rule code or name, such as `{"GPA102": "warning", "loop-unrolling": "off"}`. */
  readonly "severity": Readonly<Record<string, string>>;
  /** Codes, or beginnings of codes, of the only rules to show; empty: all. */
  readonly "rules.select": readonly string[];
  /** Codes, or beginnings of codes, not to show. */
  readonly "rules.ignore": readonly string[];
  /** Find, read and watch profiles in the workspace. */
  readonly "profiles.enable": boolean;
  /** Which files of the workspace are profiles. */
  readonly "profiles.patterns": readonly string[];
  /** How many profiles of a folder are read, the newest first. */
  readonly "profiles.max": number;
  /** File of the folder, such as .gpadvisor-ledger.jsonl, that gets a line for each fix that was applied and profiled again: what was predicted, and what came. None where it is empty. */
  readonly "profiles.ledger": string;
  /** Timeline of a run, absolute or below the folder: a SQLite export of Nsight Systems, a Chrome trace as PyTorch's, or an HPCToolkit database (its folder). Empty: the newest that the patterns find. */
  readonly "timeline.file": string;
  /** Which files of the workspace may be timelines; empty: none is looked for. */
  readonly "timeline.patterns": readonly string[];
  /** Architecture to compile for, such as `sm_90`, where no profile names the source; empty: that of `gpadvisor.toml`, of the compile command, or of this machine's GPU. */
  readonly "analysis.arch": string;
  /** Compiler flags for sources that no `compile_commands.json` names. */
  readonly "analysis.flags": readonly string[];
  /** When kernels without a profile are simulated. */
  readonly "analysis.model": "onSave" | "manual";
  /** Time limit of one analysis, compiler and disassembler included. */
  readonly "analysis.timeoutSeconds": number;
  /** Memory limit of one analysis. */
  readonly "analysis.memoryMib": number;
  /** Analyses that may run at the same time. */
  readonly "analysis.workers": number;
  /** Command that writes a profile, word by word, run without a shell in the workspace folder; `${file}`, `${workspaceFolder}` and `${profile}` (the path to write) are replaced. */
  readonly "profile.command": readonly string[];
  /** Run the profile command after each save. */
  readonly "profile.onSave": boolean;
  /** Time limit of the profile command. */
  readonly "profile.timeoutSeconds": number;
  /** nvcc to use; empty: the toolkit's, else NVRTC. */
  readonly "nvcc.path": string;
  /** nvdisasm to use; empty: the newest that is found. */
  readonly "nvdisasm.path": string;
  /** Python (3.11 or newer) to run the server with, and its arguments; empty: found or set up. */
  readonly "interpreter": readonly string[];
  /** Which gpadvisor is run. */
  readonly "importStrategy": "fromEnvironment" | "useBundled";
  /** Folder of wheels to set up the private environment from, without network. */
  readonly "wheelFolder": string;
  /** What the server writes into its log. */
  readonly "logLevel": "error" | "warning" | "info" | "debug";
  /** Log the messages between client and server. */
  readonly "trace.server": "off" | "messages" | "verbose";
}

export const DEFAULTS: Settings = {
  "enable": true,
  "run": "onSave",
  "debounceMilliseconds": 300,
  "annotations": "normal",
  "codeLens.enable": true,
  "inlayHints.enable": true,
  "inlayHints.minShare": 0.03,
  "hover.enable": true,
  "gutter.enable": true,
  "gutter.minShare": 0.01,
  "stale": "dim",
  "report.minSpeedup": 1.05,
  "report.maxPerFile": 20,
  "severity": {},
  "rules.select": [],
  "rules.ignore": [],
  "profiles.enable": true,
  "profiles.patterns": ["**/*.gpadvisor", "**/*.ncu-rep", "**/*.ncu-repz"],
  "profiles.max": 10,
  "profiles.ledger": "",
  "timeline.file": "",
  "timeline.patterns": ["**/*.sqlite", "**/*.pt.trace.json", "**/*.pt.trace.json.gz", "**/trace.db"],
  "analysis.arch": "",
  "analysis.flags": [],
  "analysis.model": "onSave",
  "analysis.timeoutSeconds": 300,
  "analysis.memoryMib": 8192,
  "analysis.workers": 2,
  "profile.command": [],
  "profile.onSave": false,
  "profile.timeoutSeconds": 900,
  "nvcc.path": "",
  "nvdisasm.path": "",
  "interpreter": [],
  "importStrategy": "fromEnvironment",
  "wheelFolder": "",
  "logLevel": "info",
  "trace.server": "off",
};
