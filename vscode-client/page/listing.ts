// SPDX-License-Identifier: Apache-2.0
// The machine code of a kernel with its samples added up by row and by line, once, when it is looked at.

import type { Code, CodeRef } from "./document";

export interface Edge {
  readonly cause: number;
  readonly row: number;
  readonly reason: number;
  readonly samples: number;
}

export interface LineSums {
  samples: number;
  caused: number;
  executed: number;
  readonly reasons: Map<number, number>;
  readonly rows: number[];
}

const MAX_EDGES = 12;

export class Listing {
  public readonly samples: Float64Array;
  /** Samples blamed on a row, its own included. */
  public readonly caused: Float64Array;
  public readonly total: number;
  public readonly outside: number;
  /** Executed instructions of all rows, at least 1. */
  public readonly executed: number;
  readonly #lines = new Map<number, Map<number, LineSums>>();
  readonly #byRow = new Map<number, Edge[]>();
  readonly #byCause = new Map<number, Edge[]>();

  public constructor(public readonly code: Code) {
    const rows = code.address.length;
    this.executed = Math.max(1, (code.executed ?? []).reduce((sum, one) => sum + one, 0));
    this.samples = new Float64Array(rows);
    this.caused = new Float64Array(rows);
    this.#placeRows();
    let [total, outside] = [0, 0];
    const blame = code.blame;
    blame?.row.forEach((row, at) => {
      const edge = { row, cause: blame.cause[at] ?? -1, reason: blame.reason[at] ?? 0, samples: blame.samples[at] ?? 0 };
      total += edge.samples;
      if (row < 0) {
        outside += edge.samples;
      } else {
        this.#add(edge);
      }
    });
    this.total = total;
    this.outside = outside;
  }

  public get rows(): number {
    return this.code.address.length;
  }

  /** What heat is of: samples, or executed instructions of what was only counted. */
  public get unit(): "samples" | "executed" | null {
    return this.total > 0 ? "samples" : this.code.executed === null ? null : "executed";
  }

  /** Files with code, those with most samples first. */
  public get files(): number[] {
    const weight = (file: number): number =>
      [...(this.#lines.get(file)?.values() ?? [])].reduce((sum, line) => sum + line.samples + line.executed / 1e15, 0);
    return [...this.#lines.keys()].sort((one, other) => weight(other) - weight(one));
  }

  /** Where most samples wait; null without samples. */
  public get hottestRow(): number | null {
    const most = this.samples.reduce((best, samples, row) => (samples > (this.samples[best] ?? 0) ? row : best), 0);
    return (this.samples[most] ?? 0) > 0 ? most : null;
  }

  /** File and line of a row; null without one. */
  public place(row: number | null): { readonly file: number; readonly line: number } | null {
    const [file, line] = row === null ? [] : [this.code.file[row], this.code.line[row]];
    return file === undefined || line === undefined || file < 0 ? null : { file, line };
  }

  public text(row: number): string {
    return this.code.text[row] ?? "";
  }

  public pc(row: number): number {
    return this.code.address[row] ?? 0;
  }

  /** A reason to wait, as the profiler names it and in words. */
  public reason(reason: number): { readonly name: string; readonly plain: string } {
    return this.code.reasons[reason] ?? { name: "", plain: "" };
  }

  /** Shares of the samples that wait and that are caused on some rows. */
  public shares(rows: readonly number[]): { readonly waits: number; readonly causes: number } {
    const share = (of: Float64Array): number => rows.reduce((sum, row) => sum + (of[row] ?? 0), 0) / Math.max(1, this.total);
    return { waits: share(this.samples), causes: share(this.caused) };
  }

  public linesOf(file: number): ReadonlyMap<number, LineSums> {
    return this.#lines.get(file) ?? new Map<number, LineSums>();
  }

  public line(file: number, line: number): LineSums | undefined {
    return this.#lines.get(file)?.get(line);
  }

  /** What a row waits for, and what waits for it; most samples first. */
  public edges(row: number): readonly Edge[] {
    const found = [...(this.#byRow.get(row) ?? []), ...(this.#byCause.get(row) ?? [])];
    return found.sort((one, other) => other.samples - one.samples).slice(0, MAX_EDGES);
  }

  public reasons(row: number): readonly Edge[] {
    return [...(this.#byRow.get(row) ?? [])].sort((one, other) => other.samples - one.samples);
  }

  /** The row of an instruction that advice names. */
  public find(ref: CodeRef): number | null {
    const { functions, address } = this.code;
    for (const [at, { name, row }] of functions.entries()) {
      const end = functions[at + 1]?.row ?? address.length;
      if (name === ref.function) {
        for (let one = row; one < end; one += 1) {
          if (address[one] === ref.pc) {
            return one;
          }
        }
      }
    }
    return null;
  }

  /** The row of a line that most is known of. */
  public hottest(file: number, line: number): number | null {
    const rows = this.line(file, line)?.rows ?? [];
    const heat = (row: number): number => (this.samples[row] ?? 0) + (this.caused[row] ?? 0);
    return rows.reduce<number | null>((best, row) => (best === null || heat(row) > heat(best) ? row : best), null);
  }

  #placeRows(): void {
    for (let row = 0; row < this.rows; row += 1) {
      const sums = this.#sums(row);
      if (sums !== null) {
        sums.rows.push(row);
        sums.executed += this.code.executed?.[row] ?? 0;
      }
    }
  }

  #add(edge: Edge): void {
    const { row, cause, reason, samples } = edge;
    this.samples[row] = (this.samples[row] ?? 0) + samples;
    const own = this.#sums(row);
    if (own !== null) {
      own.samples += samples;
      own.reasons.set(reason, (own.reasons.get(reason) ?? 0) + samples);
    }
    push(this.#byRow, row, edge);
    if (cause >= 0) {
      this.caused[cause] = (this.caused[cause] ?? 0) + samples;
      const at = this.#sums(cause);
      if (at !== null) {
        at.caused += samples;
      }
      if (cause !== row) {
        push(this.#byCause, cause, edge);
      }
    }
  }

  #sums(row: number): LineSums | null {
    const place = this.place(row);
    if (place === null) {
      return null;
    }
    const { file, line } = place;
    const lines = this.#lines.get(file) ?? new Map<number, LineSums>();
    this.#lines.set(file, lines);
    const found = lines.get(line) ?? { samples: 0, caused: 0, executed: 0, reasons: new Map<number, number>(), rows: [] };
    lines.set(line, found);
    return found;
  }
}

function push(map: Map<number, Edge[]>, key: number, edge: Edge): void {
  const known = map.get(key);
  if (known === undefined) {
    map.set(key, [edge]);
  } else {
    known.push(edge);
  }
}
