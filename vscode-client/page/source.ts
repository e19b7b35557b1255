// SPDX-License-Identifier: Apache-2.0
// The lines of a source with what waits on them, what they cause, and the mix of their stalls.

import { percent, words } from "./figures";
import { heat } from "./heat";
import type { LineSums, Listing } from "./listing";
import { Rows } from "./rows";
import type { Store } from "./store";

export interface SourceText {
  readonly lines: readonly string[];
  readonly numbers: readonly number[];
  readonly known: boolean;
}

/** Every line of a file; of one that is not at hand, those that have code. */
export function sourceText(store: Store, file: number | null): SourceText {
  const one = file === null ? undefined : store.document.files[file];
  if (file === null || one === undefined) {
    return { lines: [], numbers: [], known: false };
  }
  if (one.text !== null) {
    const lines = one.text.split(/\r\n|\r|\n/);
    return { lines, numbers: lines.map((_, at) => at + 1), known: true };
  }
  const numbers = [...(store.listing?.linesOf(file).keys() ?? [])].sort((first, second) => first - second);
  return { lines: numbers.map(() => ""), numbers, known: false };
}

export function sourceRows(store: Store, text: () => SourceText, open: (file: number, line: number) => void): Rows {
  const line = (row: number): number => text().numbers[row] ?? 0;
  return new Rows({
    id: "source-rows",
    label: "Source",
    columns: [
      { title: "from", kind: "arrows" },
      { title: "line", kind: "line" },
      { title: "waits", kind: "heat" },
      { title: "causes", kind: "heat" },
      { title: "source", kind: "code" },
    ],
    draw: (row, cells) => draw(store, text(), row, cells),
    pick: (row) => { store.pickLine(store.now.file ?? 0, line(row)); },
    open: (row) => { open(store.now.file ?? 0, line(row)); },
  });
}

function draw(store: Store, text: SourceText, row: number, cells: readonly HTMLElement[]): string {
  const [, number, waits, causes, code] = cells;
  const listing = store.listing;
  const line = text.numbers[row] ?? 0;
  const sums = listing?.line(store.now.file ?? -1, line);
  number?.append(String(line));
  code?.append(text.lines[row] ?? "");
  if (listing !== undefined && sums !== undefined) {
    heat(waits, waiting(listing, sums), "waits");
    heat(causes, listing.total > 0 ? sums.caused / listing.total : 0, "causes");
    waits?.setAttribute("title", stallsOf(listing, sums));
  }
  const inside = line === store.now.line ? " picked" : "";
  return `${sums === undefined ? "plain" : "coded"}${inside}`;
}

/** The line's share of the samples; of what was counted only, of the executed instructions. */
function waiting(listing: Listing, sums: LineSums): number {
  if (listing.unit === "executed") {
    return sums.executed / listing.executed;
  }
  return listing.total > 0 ? sums.samples / listing.total : 0;
}

function stallsOf(listing: Listing, sums: LineSums): string {
  const sorted = [...sums.reasons].sort(([, one], [, other]) => other - one);
  return sorted.map(([reason, samples]) => `${words(listing.reason(reason).name)} ${percent(samples / listing.total)}`).join(", ");
}
