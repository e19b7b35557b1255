// SPDX-License-Identifier: Apache-2.0
// Generated from server/gpadvisor/lsp by `make docs`; do not edit.

export const HEAT = "gpadvisor/heat";
export const STATUS = "gpadvisor/status";
export const FIX_CHECKED = "gpadvisor/fixChecked";
export const SASS = "gpadvisor/sass";
export const KERNELS = "gpadvisor/kernels";
export const EXPLAIN = "gpadvisor/explain";
export const OVERVIEW = "gpadvisor/overview";
export const OVERVIEW_CHANGED = "gpadvisor/overviewChanged";
export const COMPARE = "gpadvisor/compare";
export const PAGE = "gpadvisor/page";
export const DEBUG_INFORMATION = "gpadvisor/debugInformation";
export const TOOL = "gpadvisor/tool";
export const ANALYZE_FILE = "gpadvisor.server.analyzeFile";
export const MODEL_FILE = "gpadvisor.server.modelFile";
export const IMPORT_PROFILE = "gpadvisor.server.importProfile";
export const PROFILE = "gpadvisor.server.profile";
export const SELECT_KERNEL = "gpadvisor.server.selectKernel";
export const EXPLAIN_COMMAND = "gpadvisor.server.explain";
export const TOGGLE_ANNOTATIONS = "gpadvisor.server.toggleAnnotations";
export const APPLY_FIX = "gpadvisor.server.applyFix";
export const CHECK_FIX = "gpadvisor.server.checkFix";
export const DOCTOR = "gpadvisor.server.doctor";
export const CANCEL = "gpadvisor.server.cancel";
export const CLIENT_SELECT_KERNEL = "gpadvisor.selectKernel";
export const CLIENT_EXPLAIN = "gpadvisor.explainAdvice";
export const CLIENT_OPEN_SASS = "gpadvisor.openSass";
export const CLIENT_SHOW_LOCATION = "gpadvisor.showLocation";
export const CLIENT_APPLY_FIX = "gpadvisor.applyFix";
export const CLIENT_IMPORT_PROFILE = "gpadvisor.importProfile";
export const CLIENT_MODEL_FILE = "gpadvisor.modelFile";
export const CLIENT_PROFILE = "gpadvisor.profile";
export const CLIENT_CANCEL = "gpadvisor.cancel";
export const CLIENT_SERVER_LOGS = "gpadvisor.showServerLogs";
export const CLIENT_FINDINGS = "gpadvisor.findings.focus";

export type State = "idle" | "stale" | "busy" | "error" | "noKernel" | "noProfile" | "untrusted" | "disabled";

/** Request to the server: two profiles, from before a change and from after it. */
export interface CompareParams {
  readonly before: string;
  readonly after: string;
}

/** A line of today's text whose time is another one in the second profile. */
export interface CompareLine {
  readonly uri: string;
  readonly line: number;
  readonly changeNs: number;
}

/** What lines have gained or lost; the page of the second profile has the rest. */
export interface CompareResult {
  readonly lines: readonly CompareLine[];
}

/** Request to the server: everything about a profile as one page (docs/page.md). */
export interface PageParams {
  readonly uri?: string | null;
  readonly before?: string | null;
  readonly known?: string | null;
}

/** Lines of a page's text that follow each other in today's, too. */
export interface PageLines {
  readonly then: number;
  readonly now: number;
  readonly count: number;
}

/** A source file of a page, by its position there. */
export interface PageFile {
  readonly uri: string | null;
  readonly lines: readonly PageLines[];
}

/** The page's document, and where its lines are today. */
export interface PageResult {
  readonly uri: string;
  readonly digest: string;
  readonly document: string | null;
  readonly files: readonly PageFile[];
}

/** ``initializationOptions``; every part may be missing. */
export interface InitializationOptions {
  readonly trusted?: boolean;
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly sampleFolder?: string | null;
}

/** One line with samples. */
export interface HeatLine {
  readonly line: number;
  readonly share: number;
  readonly level: number;
  readonly stale: boolean;
  readonly text: string;
}

/** Notification to the client: all heat of a document; replaces what was sent before. */
export interface HeatParams {
  readonly uri: string;
  readonly version: number | null;
  readonly lines: readonly HeatLine[];
}

/** What to do in a state: a command of our client, or of VS Code's. */
export interface NextStep {
  readonly title: string;
  readonly command: string;
  readonly argument: string | null;
}

/** Notification to the client: what the status bar and the language status item say. */
export interface StatusParams {
  readonly state: "idle" | "stale" | "busy" | "error" | "noKernel" | "noProfile" | "untrusted" | "disabled";
  readonly uri: string | null;
  readonly bar: string;
  readonly text: string;
  readonly detail: string;
  readonly next: readonly NextStep[];
  readonly device: string | null;
  readonly profile: string | null;
  readonly collectedAt: string | null;
  readonly evidence: string | null;
  readonly kernel: string | null;
  readonly findings: number;
  readonly staleShare: number;
}

/** Notification to the client: what a quick fix has done to the machine code. */
export interface FixCheckedParams {
  readonly uri: string;
  readonly line: number;
  readonly code: string;
  readonly title: string;
  readonly outcome: "gone" | "fewer" | "remains" | "unknown" | "notCompiled" | "cancelled";
  readonly text: string;
}

/** Request to the server. */
export interface SassParams {
  readonly uri: string;
  readonly line?: number | null;
  readonly kernel?: string | null;
}

/** One instruction. */
export interface SassRow {
  readonly address: number;
  readonly text: string;
  readonly control: string;
  readonly samples: number;
  readonly share: number | null;
  readonly reason: string | null;
  readonly causes: number;
  readonly waitsFor: number | null;
  readonly uri: string | null;
  readonly line: number | null;
}

/** Where a function begins. */
export interface SassFunction {
  readonly name: string;
  readonly row: number;
}

/** The machine code of one kernel. */
export interface SassResult {
  readonly title: string;
  readonly kernel: string | null;
  readonly arch: string | null;
  readonly evidence: string | null;
  readonly functions: readonly SassFunction[];
  readonly rows: readonly SassRow[];
  readonly truncated: number;
  readonly message: string | null;
}

/** Request to the server. */
export interface KernelsParams {
  readonly uri: string;
}

/** One kernel with lines in the document. */
export interface KernelChoice {
  readonly kernel: string;
  readonly name: string;
  readonly description: string;
  readonly detail: string;
  readonly chosen: boolean;
}

/** Kernels to pick from, most GPU time first. */
export interface KernelsResult {
  readonly choices: readonly KernelChoice[];
}

/** Request to the server. */
export interface ExplainParams {
  readonly code: string;
}

/** A rule's page. */
export interface ExplainResult {
  readonly markdown: string;
}

/** Notification to the client: an overview asked for now may be another one. */
export interface OverviewChangedParams {
  readonly inputs: number;
  readonly best: string | null;
}

/** Request to the server. */
export interface OverviewParams {
  readonly uri?: string | null;
}

/** A line of today's text. */
export interface OverviewPlace {
  readonly uri: string;
  readonly line: number;
  readonly stale: boolean;
}

/** One suggestion for a kernel. */
export interface OverviewFinding {
  readonly code: string;
  readonly name: string;
  readonly title: string;
  readonly gain: string | null;
  readonly gainAndRange: string | null;
  readonly share: number | null;
  readonly change: string;
  readonly suppressed: string | null;
  readonly place: OverviewPlace | null;
}

/** One kernel of an input. */
export interface OverviewKernel {
  readonly kernel: string;
  readonly name: string;
  readonly verdict: string;
  readonly evidence: string;
  readonly device: string;
  readonly launch: string | null;
  readonly durationNs: number | null;
  readonly timeShare: number | null;
  readonly place: OverviewPlace | null;
  readonly findings: readonly OverviewFinding[];
  readonly problems: readonly string[];
}

/** One input: a profile, or a source whose machine code was looked at. */
export interface OverviewEntry {
  readonly path: string;
  readonly name: string;
  readonly profile: boolean;
  readonly reading: boolean;
  readonly error: string | null;
  readonly collectedAt: string | null;
  readonly problems: readonly string[];
  readonly kernels: readonly OverviewKernel[];
  readonly left: number;
}

/** Profiles newest first, then sources with what no profile tells of. */
export interface OverviewResult {
  readonly entries: readonly OverviewEntry[];
}

/** What a bug report needs: versions, settings, tools, profiles, workers. No source text. */
export interface DebugInformationResult {
  readonly markdown: string;
}

/** Request to the server: a tool for coding agents (docs/agents.md) by its name. */
export interface ToolParams {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly agreed?: boolean;
}

/** Its answer: JSON, as ``gpadvisor mcp`` gives it. */
export interface ToolResult {
  readonly text: string;
}
