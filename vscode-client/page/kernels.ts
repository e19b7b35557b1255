// SPDX-License-Identifier: Apache-2.0
// What takes the time: every kernel with its share, what limits it and its best change.

import type { KernelAdvice } from "./document";
import { h, panel } from "./dom";
import { count, duration, gain, percent } from "./figures";
import { Rows } from "./rows";
import type { Store } from "./store";

type Order = (one: KernelAdvice, other: KernelAdvice) => number;

const ORDERS: readonly (Order | null)[] = [
  (one, other) => one.name.localeCompare(other.name),
  (one, other) => (other.duration_ns ?? 0) - (one.duration_ns ?? 0),
  (one, other) => (other.time_share ?? 0) - (one.time_share ?? 0),
  (one, other) => (one.limited_by ?? "").localeCompare(other.limited_by ?? ""),
  (one, other) => best(other) - best(one),
];
const DESCENDING = new Set([1, 2, 4]);
const MOST_ROWS = 12;

export function kernelsPanel(store: Store): HTMLElement {
  const { kernels } = store.document.advice;
  let order = 2;
  let shown: readonly number[] = [];
  const filter = h("input", { type: "search", "aria-label": "Filter kernels by name", placeholder: "Filter kernels (/)", id: "filter" });
  const said = h("span", { class: "quiet", role: "status" });
  const rows = new Rows({
    id: "kernel-rows",
    label: "Kernels",
    columns: ["kernel", "time", "share of time", "limited by", "best change"].map((title, at) => ({
      title,
      kind: ["name", "number", "share", "text", "text"][at] ?? "text",
      sort: () => { arrange(at); },
    })),
    draw: (row, cells) => {
      const kernel = kernels[shown[row] ?? -1];
      if (kernel !== undefined) {
        draw(kernel, store.document.kernels[shown[row] ?? -1]?.name ?? kernel.name, cells);
      }
      return "";
    },
    pick: (row) => { store.pickKernel(shown[row] ?? 0); },
  });
  const arrange = (by: number): void => {
    order = by;
    const wanted = filter.value.toLowerCase();
    const compare = ORDERS[by];
    const found = [...kernels.entries()].filter(([, one]) => one.name.toLowerCase().includes(wanted));
    shown = found.sort(([, one], [, other]) => compare?.(one, other) ?? 0).map(([at]) => at);
    said.textContent = wanted === "" ? "" : `${count(shown.length)} of ${count(kernels.length)}`;
    rows.sorted(by, DESCENDING.has(by) ? "descending" : "ascending");
    rows.reset(shown.length);
    rows.show(shown.indexOf(store.now.kernel));
  };
  filter.addEventListener("input", () => { arrange(order); });
  rows.element.style.height = `${(Math.min(kernels.length, MOST_ROWS) + 1) * 21 + 2}px`;
  store.listen(({ kernel }, before) => {
    if (kernel !== before.kernel) {
      rows.show(shown.indexOf(kernel));
    }
  });
  arrange(order);
  const many = kernels.length > MOST_ROWS;
  return panel("kernels", "What takes the time", many ? h("div", { class: "tools" }, filter, said) : null, rows.element);
}

function best(kernel: KernelAdvice): number {
  return kernel.suggestions[0]?.speedup?.expected ?? 0;
}

function draw(kernel: KernelAdvice, name: string, cells: readonly HTMLElement[]): void {
  const [first, time, share, limit, change] = cells;
  first?.append(name);
  first?.setAttribute("title", kernel.name);
  time?.append(duration(kernel.duration_ns));
  const bar = h("span", { class: "bar" });
  bar.style.width = `${100 * (kernel.time_share ?? 0)}%`;
  share?.append(h("span", { class: "track", "aria-hidden": "true" }, bar), percent(kernel.time_share));
  limit?.append(kernel.limited_by ?? "-");
  const suggestion = kernel.suggestions.find((one) => one.suppressed === null);
  const won = suggestion?.speedup ? `${gain(suggestion.speedup)}  ` : "";
  change?.append(suggestion === undefined ? "nothing found" : `${won}${suggestion.title}`);
}
