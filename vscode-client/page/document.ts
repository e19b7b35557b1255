// SPDX-License-Identifier: Apache-2.0
// What the page is given: gpadvisor.page/1, made by editor/contents/page.py. Its parts are the documents that
// `advise`, `roofline` and `potential` print as JSON, whose schemas are published with them.

import type { Compared } from "./comparedDocument";
import type { Potential } from "./potentialDocument";
import type { Run } from "./stripData";

export interface Estimate {
  readonly low: number | null;
  readonly expected: number | null;
  readonly high: number | null;
  readonly paper: number | null;
  readonly reason: string;
  readonly cap: Cap | null;
}

export interface Cap {
  readonly speedup: number | null;
  readonly reason: string;
}

export interface CodeRef {
  readonly pc: number;
  readonly function: string;
  readonly text: string;
  readonly file: string | null;
  readonly line: number | null;
}

export interface Hotspot {
  readonly reason: string;
  readonly samples: number;
  readonly distance_instructions: number | null;
  readonly def: CodeRef | null;
  readonly use: CodeRef | null;
}

export interface Suggestion {
  readonly code: string;
  readonly name: string;
  readonly title: string;
  readonly evidence: string;
  readonly importance: number | null;
  readonly matched: { readonly samples: number };
  readonly speedup: Estimate | null;
  readonly program_speedup: Estimate | null;
  readonly equation: string | null;
  readonly cure: string | null;
  readonly advice: string;
  readonly next_limit: string | null;
  readonly hotspots: readonly Hotspot[];
  readonly suppressed: { readonly reason: string } | null;
}

export interface Problem {
  readonly code: string;
  readonly message: string;
}

export interface KernelAdvice {
  readonly name: string;
  readonly evidence: string;
  readonly evidence_reason: string;
  readonly limited_by: string | null;
  readonly verdict: string;
  readonly device: { readonly name: string | null; readonly arch: string; readonly max_warps_per_sm: number | null };
  readonly duration_ns: number | null;
  readonly time_share: number | null;
  readonly samples: { readonly total: number; readonly unattributed: number };
  readonly stalls: readonly { readonly reason: string; readonly plain: string; readonly samples: number }[];
  readonly suggestions: readonly Suggestion[];
  readonly notes: readonly Suggestion[];
  readonly hidden_suggestions: number;
  readonly rejected: readonly { readonly code: string; readonly reason: string }[];
  readonly problems: readonly Problem[];
}

export interface Advice {
  readonly tool: { readonly version: string };
  readonly profile: { readonly path: string; readonly collector: string | null };
  readonly kernels: readonly KernelAdvice[];
  readonly problems: readonly Problem[];
  readonly run_findings: readonly RunFinding[];
}

/** What host code of a traced run leaves idle. */
export interface RunFinding {
  readonly code: string;
  readonly title: string;
  readonly advice: string;
  readonly place: { readonly function: string | null; readonly file: string | null; readonly line: number | null } | null;
  readonly speedup: { readonly low: number; readonly expected: number; readonly high: number };
}

/** Samples by row that waits, row of the cause (the same: itself; -1: not known) and reason; row -1 is elsewhere. */
export interface BlameColumns {
  readonly row: readonly number[];
  readonly cause: readonly number[];
  readonly reason: readonly number[];
  readonly samples: readonly number[];
}

export interface Code {
  readonly functions: readonly { readonly name: string; readonly row: number }[];
  readonly address: readonly number[];
  readonly text: readonly string[];
  readonly file: readonly number[];
  readonly line: readonly number[];
  readonly executed: readonly number[] | null;
  readonly left_out: number;
  readonly reasons: readonly { readonly name: string; readonly plain: string }[];
  readonly blame: BlameColumns | null;
}

export interface Figure {
  readonly value: number;
  readonly source: string;
}

export interface Ceiling {
  readonly name: string;
  readonly kind: string;
  readonly use: number;
  readonly height: number;
  readonly source: string;
}

export interface Location {
  readonly file: string;
  readonly line: number;
}

export interface Region {
  readonly kind: string;
  readonly function: string;
  readonly location: Location | null;
  readonly pc: number | null;
  readonly loop: number | null;
  readonly samples: number;
  readonly share: number | null;
  readonly instructions: number;
  readonly sectors: number | null;
  readonly height: { readonly low: number; readonly expected: number; readonly high: number } | null;
  readonly hidden: string;
}

export interface Roofline {
  readonly seconds: number;
  readonly gips: number;
  readonly instructions: Figure;
  readonly issue_peak: Figure | null;
  readonly issue_peak_maximum: Figure | null;
  readonly points: readonly {
    readonly level: string;
    readonly intensity: number;
    readonly rate: number;
    readonly peak: Figure | null;
    readonly use: number | null;
  }[];
  readonly ceilings: readonly Ceiling[];
  readonly regions: readonly Region[];
  readonly lines: readonly Region[];
  readonly notes: readonly string[];
  readonly says: readonly string[];
}

export interface TreeRow {
  readonly parent: number | null;
  readonly kind: string;
  readonly name: string;
  readonly file: string | null;
  readonly line: number | null;
  readonly pc: number | null;
  readonly calls: number | null;
  readonly exclusive: readonly (number | null)[];
  readonly inclusive: readonly (number | null)[];
}

export interface Tree {
  readonly metrics: readonly { readonly name: string }[];
  readonly rows: readonly TreeRow[];
  readonly turned: Readonly<Record<string, readonly TreeRow[]>>;
  readonly kernels: readonly { readonly weights: string; readonly notes: readonly string[] }[];
}

export interface Kernel {
  readonly name: string;
  readonly place: readonly [number, number] | null;
  readonly launch: string | null;
  readonly arch: string | null;
  readonly code: Code;
  readonly roofline: Roofline | null;
  readonly potential: Potential | null;
  readonly tree: Tree | null;
  readonly missing: readonly string[];
}

export interface SourceFile {
  readonly path: string;
  readonly local: string | null;
  readonly text: string | null;
  readonly kind: string | null;
}

export interface PageDocument {
  readonly schema: string;
  readonly advice: Advice;
  readonly collected_at: string | null;
  readonly kernels: readonly Kernel[];
  readonly compared: Compared | null;
  readonly run: Run | null;
  readonly files: readonly SourceFile[];
}
