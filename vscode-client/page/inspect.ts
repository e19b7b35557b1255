// SPDX-License-Identifier: Apache-2.0
// What is known of the picked line or instruction, in words and as a table: its stalls, and who causes them.

import { button, h, table } from "./dom";
import { address, baseName, count, percent, plural } from "./figures";
import type { Edge, Listing } from "./listing";
import type { Store } from "./store";

const ROWS = 6;

export function inspected(store: Store): Node[] {
  const listing = store.listing;
  const { file, line, row } = store.now;
  if (listing === undefined || (line === null && row === null)) {
    return [h("p", { class: "quiet" }, "Pick a line, an instruction or a card to see what waits for what.")];
  }
  const named = line === null || file === null ? null : { file, line };
  const rows = named === null ? [row ?? 0] : (listing.line(named.file, named.line)?.rows ?? []);
  const name = named === null ? address(listing.pc(row ?? 0)) : lineName(store, named.file, named.line);
  const { waits, causes } = listing.shares(rows);
  const said = listing.total > 0 ? `${percent(waits)} of the samples wait here; ${percent(causes)} are caused here` : "no samples";
  const edges = grouped(rows.flatMap((one) => listing.reasons(one)));
  const made: Node[] = [h("p", {}, h("strong", {}, name), `: ${said}, ${plural(rows.length, "instruction")}.`)];
  if (edges.length > 0) {
    const cells = edges.slice(0, ROWS).map((edge) => [
      listing.reason(edge.reason).plain,
      count(edge.samples),
      percent(edge.samples / listing.total),
      cause(store, listing, edge),
    ]);
    made.push(table(`Stalls of ${name}`, ["stall", "samples", "share", "cause"], cells));
  }
  return made;
}

/** Those with the same cause and reason together. */
function grouped(edges: readonly Edge[]): readonly Edge[] {
  const found = new Map<string, Edge>();
  for (const edge of edges) {
    const key = `${edge.cause === edge.row ? "own" : edge.cause} ${edge.reason}`;
    const known = found.get(key);
    found.set(key, known === undefined ? edge : { ...known, samples: known.samples + edge.samples });
  }
  return [...found.values()].sort((one, other) => other.samples - one.samples);
}

function cause(store: Store, listing: Listing, edge: Edge): Node | string {
  if (edge.cause < 0) {
    return "not known";
  }
  if (edge.cause === edge.row) {
    return "itself";
  }
  const at = listing.place(edge.cause);
  const place = at === null ? address(listing.pc(edge.cause)) : lineName(store, at.file, at.line);
  return h("span", {}, button(place, () => { store.pickRow(edge.cause); }, { class: "link" }), " ", h("code", {}, listing.text(edge.cause)));
}

function lineName(store: Store, file: number, line: number): string {
  return `${baseName(store.document.files[file]?.path ?? "")}:${line}`;
}
