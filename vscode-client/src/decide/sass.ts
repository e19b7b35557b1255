// SPDX-License-Identifier: Apache-2.0
// The machine code of a kernel as a text, and which of its lines belongs to which line of the source.

import type { HeatLine, SassResult, SassRow } from "../generated/protocol";
import { visible } from "./plain";

export interface SassDocument {
  readonly text: string;
  /** The instruction on each line of the text; headings have none. */
  readonly rows: readonly (SassRow | undefined)[];
}

const WIDEST_INSTRUCTION = 64;
const WIDEST_STALL = 36;

/** Lays the instructions out in columns, what a reader looks for first: share, causes, stall and its cause, code. */
export function layOut(result: SassResult): SassDocument {
  const instruction = width(result.rows.map(({ text }) => text), WIDEST_INSTRUCTION);
  const stall = width(result.rows.map((row) => because(row, result.rows)), WIDEST_STALL);
  const names = new Map(result.functions.map(({ row, name }) => [row, name]));
  const lines: string[] = heading(result).map(visible);
  const rows: (SassRow | undefined)[] = lines.map(() => undefined);
  const push = (line: string, row?: SassRow): void => {
    lines.push(visible(line).trimEnd());
    rows.push(row);
  };
  const sampled = result.rows.some((row) => row.share !== null);
  result.rows.forEach((row, at) => {
    const name = names.get(at);
    if (name !== undefined) {
      push("");
      push(`${name}:`);
    }
    push(
      [
        ...(sampled ? [shareColumn(row), because(row, result.rows).padEnd(stall)] : []),
        address(row),
        row.text.padEnd(instruction),
        `; ${spelledOut(row.control)}`,
      ].join("  "),
      row,
    );
  });
  if (result.truncated > 0) {
    push("");
    push(`// ${result.truncated.toLocaleString("en")} more instructions are not shown`);
  }
  return { text: `${lines.join("\n")}\n`, rows };
}

function heading(result: SassResult): string[] {
  const arch = result.arch !== null && result.title.includes(result.arch) ? null : result.arch;
  const known = [result.title, arch, result.evidence].filter((part) => part !== null && part !== "");
  const lines = [`// ${known.join(", ")}`];
  if (result.message !== null) {
    lines.push(`// ${result.message}`);
  }
  if (result.rows.some((row) => row.share !== null)) {
    lines.push(
      "// share of samples, <samples elsewhere that wait for it, stall with most samples <- the instruction that it",
      "// is blamed on, address, instruction ; control code",
    );
  }
  return lines;
}

function shareColumn(row: SassRow): string {
  const share = row.share === null || row.share < 0.0005 ? "" : `${(row.share * 100).toFixed(1)} %`;
  const causes = row.causes > 0 ? `<${short(row.causes)}` : "";
  return `${share.padStart(7)} ${causes.padStart(6)}`;
}

function address(row: SassRow): string {
  return `0x${row.address.toString(16).padStart(4, "0")}`;
}

function short(samples: number): string {
  if (samples < 10_000) {
    return String(samples);
  }
  return samples < 10_000_000 ? `${Math.round(samples / 1000)}k` : `${Math.round(samples / 1_000_000)}M`;
}

/** The stall with most samples, and the instruction that it is blamed on. */
function because(row: SassRow, rows: readonly SassRow[]): string {
  const cause = row.waitsFor === null ? undefined : rows[row.waitsFor];
  const named = row.reason === "selected" ? "" : (row.reason ?? "").replaceAll("_", " ");
  return [named, cause === undefined || cause === row ? "" : `<- ${address(cause)}`].filter((part) => part !== "").join(" ");
}

function width(words: readonly string[], most: number): number {
  return Math.min(
    most,
    words.reduce((widest, word) => Math.max(widest, word.length), 0),
  );
}

/** A control code in words: "0-----:-:3:Y:02" waits for barrier 0, sets barrier 3, yields, and stalls 2 cycles. */
export function spelledOut(control: string): string {
  const [waits, reads, writes, yields, stall] = control.split(":");
  if (waits === undefined || stall === undefined) {
    return control;
  }
  const barriers = waits.replaceAll("-", "");
  return [
    `stall ${Number(stall)}`,
    barriers === "" ? "" : `wait B${Array.from(barriers).join(" B")}`,
    writes === "-" ? "" : `write B${writes}`,
    reads === "-" ? "" : `read B${reads}`,
    yields === "Y" ? "yield" : "",
  ]
    .filter((part) => part !== "")
    .join(", ");
}

/** Lines of the text whose instructions come from a line of a source. */
export function linesOf(document: SassDocument, uri: string, line: number): readonly number[] {
  return document.rows.flatMap((row, at) => (row?.line === line && row.uri === uri ? [at] : []));
}

/** The line to bring into view for a line of the source: of those with most samples, the first. */
export function lineToReveal(document: SassDocument, lines: readonly number[]): number | undefined {
  const samples = (at: number): number => document.rows[at]?.samples ?? 0;
  return lines.reduce<number | undefined>(
    (best, at) => (best === undefined || samples(at) > samples(best) ? at : best),
    undefined,
  );
}

/** Shares from which on a line of the source has level 1, 2, 3, 4 and 5. */
const SOURCE_LEVELS = [0.01, 0.03, 0.1, 0.25, 0.5] as const;

/**
 * Heat of the text, in the five levels of the source's heat: relative to the hottest instruction, whose own level is
 * at most two above that of a source's line with its share. Where no instruction stands out, none is red.
 */
export function heatOf(document: SassDocument): readonly HeatLine[] {
  const most = document.rows.reduce((top, row) => Math.max(top, row?.share ?? 0), 0);
  const highest = Math.min(5, SOURCE_LEVELS.filter((bound) => most >= bound).length + 2);
  return document.rows.flatMap((row, line) => {
    const share = row?.share ?? 0;
    if (row === undefined || share < 0.005 || most === 0) {
      return [];
    }
    const level = Math.max(1, Math.ceil((share / most) * highest));
    return [{ line, share, level, stale: false, text: row.reason ?? "" }];
  });
}
