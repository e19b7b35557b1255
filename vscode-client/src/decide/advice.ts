// SPDX-License-Identifier: Apache-2.0
// Advice that was converted to JSON elsewhere (`gpadvisor advise --format json`), shown without the server.

import { visible } from "./plain";

export interface PlainFinding {
  /** As the advice names it: absolute, or relative to the advice or to the folder. */
  readonly path: string;
  /** From 0. */
  readonly line: number;
  readonly code: string;
  readonly message: string;
  readonly hint: boolean;
}

export type ReadAdvice =
  | { readonly kind: "advice"; readonly findings: readonly PlainFinding[] }
  | { readonly kind: "unusable"; readonly reason: string };

/** Larger files are not read: the JSON of a report with hundreds of kernels has some ten megabytes. */
export const MOST_BYTES = 64 * 1024 * 1024;
const MOST_FINDINGS = 2000;
const MOST_PATHS = 200;
const LONGEST_MESSAGE = 1000;
const LONGEST_CODE = 16;
const SCHEMA = "gpadvisor.advice/1";

/** Reads converted advice; whatever does not have the schema's shape is left out. */
export function readAdvice(text: string): ReadAdvice {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return { kind: "unusable", reason: "it is not JSON" };
  }
  const schema = field(read, "schema");
  if (schema !== SCHEMA) {
    return { kind: "unusable", reason: `its schema is not ${SCHEMA}` };
  }
  const local = localPaths(read);
  const findings = list(field(read, "kernels")).flatMap((kernel) =>
    list(field(kernel, "suggestions")).flatMap((suggestion) => findingsOf(kernel, suggestion, local)),
  );
  return { kind: "advice", findings: findings.slice(0, MOST_FINDINGS) };
}

/** Findings by the path that they name: each is looked for once, and no more than there may be. */
export function byPath(findings: readonly PlainFinding[]): ReadonlyMap<string, readonly PlainFinding[]> {
  const found = new Map<string, PlainFinding[]>();
  for (const finding of findings) {
    const known = found.get(finding.path);
    if (known !== undefined) {
      known.push(finding);
    } else if (found.size < MOST_PATHS) {
      found.set(finding.path, [finding]);
    }
  }
  return found;
}

function localPaths(read: unknown): ReadonlyMap<string, string> {
  return new Map(
    list(field(read, "sources")).flatMap((source): [string, string][] => {
      const [given, local] = [field(source, "report_path"), field(source, "local_path")];
      return typeof given === "string" && typeof local === "string" ? [[given, local]] : [];
    }),
  );
}

function findingsOf(kernel: unknown, suggestion: unknown, local: ReadonlyMap<string, string>): PlainFinding[] {
  const code = visible(words(field(suggestion, "code"))).slice(0, LONGEST_CODE);
  const evidence = words(field(suggestion, "evidence"));
  if (field(suggestion, "suppressed") !== null) {
    return [];
  }
  const said = [
    `${words(field(suggestion, "name"))}:`,
    `${words(field(suggestion, "title"))}.`,
    estimate(field(suggestion, "speedup")),
    `[${[evidence, words(field(kernel, "name")), "converted advice"].filter(Boolean).join(", ")}]`,
  ];
  const message = visible(said.filter(Boolean).join(" ").slice(0, LONGEST_MESSAGE));
  const findings = new Map<string, PlainFinding>();
  for (const { file, line } of placesOf(suggestion)) {
    const path = local.get(file) ?? file;
    findings.set(`${path}:${line}`, { path, line: line - 1, code, message, hint: evidence !== "measured" });
  }
  return code === "" ? [] : [...findings.values()];
}

interface Place {
  readonly file: string;
  readonly line: number;
}

/** The cause of each hotspot, else where it waits; without hotspots the scope. */
function placesOf(suggestion: unknown): readonly Place[] {
  const hotspots = list(field(suggestion, "hotspots")).flatMap(
    (hotspot) => placeOf(field(hotspot, "def")) ?? placeOf(field(hotspot, "use")) ?? [],
  );
  return hotspots.length > 0 ? hotspots : [placeOf(field(suggestion, "scope")) ?? []].flat();
}

function placeOf(code: unknown): Place | undefined {
  const [file, line] = [field(code, "file"), field(code, "line")];
  const known = typeof file === "string" && typeof line === "number" && Number.isInteger(line) && line > 0;
  return known ? { file, line } : undefined;
}

function estimate(speedup: unknown): string {
  const [low, high] = [field(speedup, "low"), field(speedup, "high")];
  return typeof low === "number" && typeof high === "number" ? `Estimated ${low.toFixed(2)}-${high.toFixed(2)}x.` : "";
}

function field(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) {
    return undefined;
  }
  return (value as Readonly<Record<string, unknown>>)[name];
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function words(value: unknown): string {
  return typeof value === "string" ? value : "";
}
