// SPDX-License-Identifier: Apache-2.0
// The machine code of a kernel by instruction.

import { address, words } from "./figures";
import { heat } from "./heat";
import type { Listing } from "./listing";
import { Rows } from "./rows";
import type { Store } from "./store";

export function machineRows(store: Store): Rows {
  return new Rows({
    id: "machine-rows",
    label: "Machine code",
    columns: [
      { title: "from", kind: "arrows" },
      { title: "address", kind: "line wide" },
      { title: "waits", kind: "heat" },
      { title: "causes", kind: "heat" },
      { title: "instruction", kind: "code" },
      { title: "most waits", kind: "reason" },
    ],
    draw: (row, cells) => {
      const listing = store.listing;
      return listing === undefined ? "" : draw(store, listing, row, cells);
    },
    pick: (row) => { store.pickRow(row); },
  });
}

function draw(store: Store, listing: Listing, row: number, cells: readonly HTMLElement[]): string {
  const [, at, waits, causes, code, reason] = cells;
  const { executed, functions } = listing.code;
  const own = functions.length > 1 ? functions.find((one) => one.row === row) : undefined;
  at?.append(address(listing.pc(row)));
  code?.append(listing.text(row));
  if (own !== undefined) {
    code?.setAttribute("title", `here begins ${own.name}`);
  }
  if (listing.unit === "samples") {
    const shares = listing.shares([row]);
    heat(waits, shares.waits, "waits");
    heat(causes, shares.causes, "causes");
    reason?.append(mostWaits(listing, row));
  } else if (executed !== null) {
    waits?.append(String(executed[row]));
  }
  return `coded${isLinked(store, listing, row) ? " picked" : ""}${own === undefined ? "" : " starts"}`;
}

function mostWaits(listing: Listing, row: number): string {
  const [most] = listing.reasons(row);
  return most === undefined ? "" : words(listing.reason(most.reason).name);
}

/** Whether a row is of the line that is picked. */
function isLinked(store: Store, listing: Listing, row: number): boolean {
  const { file, line } = store.now;
  const place = listing.place(row);
  return place !== null && place.line === line && place.file === file;
}
