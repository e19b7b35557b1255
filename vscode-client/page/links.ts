// SPDX-License-Identifier: Apache-2.0
// From causes to what waits for them: of the suggestion that is picked, else of the line or the instruction.

import type { Arrow } from "./arrows";
import type { Listing } from "./listing";
import type { SourceText } from "./source";
import type { Store } from "./store";

/** By rows of the machine code. */
export function rowArrows(store: Store): readonly Arrow[] {
  const listing = store.listing;
  if (listing === undefined || listing.total === 0) {
    return [];
  }
  const { row } = store.now;
  return ofSuggestion(store, listing) ?? (row === null ? [] : ofRows(listing, [row]));
}

/** By lines of the source that is shown. */
export function lineArrows(store: Store, text: SourceText): readonly Arrow[] {
  const listing = store.listing;
  const { file, line } = store.now;
  if (listing === undefined || listing.total === 0 || file === null) {
    return [];
  }
  const rows = line === null ? [] : (listing.line(file, line)?.rows ?? []);
  const shown = new Map(text.numbers.map((number, at) => [number, at]));
  const at = (row: number): number => (listing.code.file[row] === file ? (shown.get(listing.code.line[row] ?? -1) ?? -1) : -1);
  const found = new Map<string, Arrow>();
  for (const arrow of ofSuggestion(store, listing) ?? ofRows(listing, rows)) {
    const [from, to] = [at(arrow.from), at(arrow.to)];
    const key = `${from} ${to}`;
    if (from >= 0 && to >= 0 && from !== to) {
      found.set(key, { from, to, weight: (found.get(key)?.weight ?? 0) + arrow.weight });
    }
  }
  return [...found.values()].sort((one, other) => other.weight - one.weight);
}

function ofSuggestion(store: Store, listing: Listing): readonly Arrow[] | null {
  const spots = store.suggestion?.hotspots.map(({ def, use, samples }) => ({
    from: def === null ? null : listing.find(def),
    to: use === null ? null : listing.find(use),
    weight: samples / listing.total,
  }));
  return spots?.filter((one): one is Arrow => one.from !== null && one.to !== null && one.from !== one.to) ?? null;
}

function ofRows(listing: Listing, rows: readonly number[]): readonly Arrow[] {
  return rows
    .flatMap((row) => listing.edges(row))
    .filter(({ cause, row }) => cause >= 0 && cause !== row)
    .map(({ cause, row, samples }) => ({ from: cause, to: row, weight: samples / listing.total }));
}
