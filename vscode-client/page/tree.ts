// SPDX-License-Identifier: Apache-2.0
// Calling contexts from the launch down to lines: as a flame graph (the run on top), and as a table that can be turned.

import type { Tree, TreeRow } from "./document";
import { button, details, fill, h, panel } from "./dom";
import { large, percent } from "./figures";
import { Rows } from "./rows";
import type { Store } from "./store";

const NARROWEST = 0.002; // of the width: what is narrower is in the table only
const DEEPEST = 40;
const HEIGHT = 20;
const VIEWS = {
  "top-down": "top-down: callers above what they call",
  "bottom-up": "bottom-up: each function, below it its callers",
  flat: "flat: each function with its loops and lines",
} as const;

interface Frame {
  readonly row: number;
  readonly depth: number;
  readonly left: number;
  readonly width: number;
}

export function treePanel(store: Store): HTMLElement {
  const picture = h("div", { class: "flame", "aria-hidden": "true" });
  const said = h("p", { class: "quiet" });
  const reset = button("Show all", () => { draw(0); });
  const metric = (): number => metricOf(store.kernel?.tree ?? null);
  const chooser = h(
    "select",
    { "aria-label": "Order of calling contexts", id: "tree-view" },
    ...Object.entries(VIEWS).map(([value, words]) => h("option", { value }, words)),
  );
  const listed = (): readonly TreeRow[] => {
    const tree = store.kernel?.tree;
    return tree?.turned[chooser.value] ?? tree?.rows ?? [];
  };
  const rows = new Rows({
    id: "tree-rows",
    label: "Calling contexts",
    columns: [
      { title: "with calls", kind: "number" },
      { title: "own", kind: "number" },
      { title: "calls", kind: "number" },
      { title: "context", kind: "code" },
    ],
    draw: (row, cells) => {
      fillRow(listed(), metric(), row, cells);
      return "coded";
    },
    pick: (row) => {
      rows.show(row);
      pick(store, listed()[row]);
    },
  });
  const pickFrame = (row: number): void => {
    if (chooser.value === "top-down") {
      rows.show(row);
    }
    pick(store, store.kernel?.tree?.rows[row]);
  };
  chooser.addEventListener("change", () => { rows.reset(listed().length); });
  const draw = (root: number): void => {
    const tree = store.kernel?.tree ?? null;
    reset.hidden = root === 0;
    const all = tree === null ? [] : frames(tree, metric(), root);
    const deepest = all.reduce((most, { depth }) => Math.max(most, depth), -1);
    picture.style.height = `${(deepest + 1) * HEIGHT}px`;
    fill(picture, ...(tree === null ? [] : all.map((one) => frame(tree, metric(), one, () => { pickFrame(one.row); }, () => { draw(one.row); }))));
  };
  const show = (): void => {
    const tree = store.kernel?.tree ?? null;
    const [kernel] = tree?.kernels ?? [];
    const words = tree === null ? "There are no calling contexts of this kernel; see below." : `By ${tree.metrics[metric()]?.name ?? ""}; calls are weighted by ${kernel?.weights ?? "-"}.`;
    said.textContent = [words, ...(kernel?.notes ?? [])].join(" ");
    draw(0);
    rows.reset(listed().length);
  };
  store.listen((now, before) => {
    if (now.kernel !== before.kernel) {
      show();
    } else {
      mark(store, picture);
    }
  });
  show();
  const list = details("The same as a table", h("div", { class: "tools" }, chooser), rows.element);
  list.addEventListener("toggle", () => { rows.refresh(); });
  return panel("tree", "Calling contexts", h("div", { class: "tools" }, said, reset), picture, list);
}

/** Samples, else what was executed, else the first. */
function metricOf(tree: Tree | null): number {
  const names = tree?.metrics.map((one) => one.name) ?? [];
  return Math.max(0, ["samples", "instructions"].map((name) => names.indexOf(name)).find((at) => at >= 0) ?? 0);
}

/** Each row below its parent, from the left in their order, as wide as what it has with all that it calls. */
function frames(tree: Tree, metric: number, root: number): readonly Frame[] {
  const value = (row: number): number => valueOf(tree.rows[row], metric);
  const whole = value(root);
  const placed = new Map<number, Frame>([[root, { row: root, depth: 0, left: 0, width: 1 }]]);
  const next = new Map<number, number>();
  for (let row = root + 1; row < tree.rows.length; row += 1) {
    const parent = tree.rows[row]?.parent ?? -1;
    const above = placed.get(parent);
    const width = whole > 0 ? value(row) / whole : 0;
    if (above !== undefined && width >= NARROWEST && above.depth < DEEPEST) {
      const left = next.get(parent) ?? above.left;
      next.set(parent, left + width);
      placed.set(row, { row, depth: above.depth + 1, left, width });
    }
  }
  return [...placed.values()];
}

function frame(tree: Tree, metric: number, { row, depth, left, width }: Frame, act: () => void, zoom: () => void): HTMLElement {
  const one = tree.rows[row];
  const share = valueOf(one, metric) / valueOf(tree.rows[0], metric);
  const name = one?.name ?? "";
  const made = h("div", { class: `frame ${(one?.kind ?? "").replaceAll(" ", "-")}`, title: `${name}: ${percent(share)}`, "data-line": key(one) }, width > 0.03 ? name : "");
  made.style.left = `${100 * left}%`;
  made.style.width = `${100 * width}%`;
  made.style.top = `${depth * HEIGHT}px`;
  made.addEventListener("click", act);
  made.addEventListener("dblclick", zoom);
  return made;
}

function fillRow(listed: readonly TreeRow[], metric: number, row: number, cells: readonly HTMLElement[]): void {
  const one = listed[row];
  if (one === undefined) {
    return;
  }
  const whole = valueOf(listed[0], metric);
  const words = [
    percent(valueOf(one, metric) / whole),
    percent((one.exclusive[metric] ?? 0) / whole),
    one.calls === null ? "" : large(one.calls),
    `${"  ".repeat(depthOf(listed, one))}${one.name}`,
  ];
  cells.forEach((cell, at) => { cell.append(words[at] ?? ""); });
}

function valueOf(row: TreeRow | undefined, metric: number): number {
  return row?.inclusive[metric] ?? 0;
}

function depthOf(listed: readonly TreeRow[], row: TreeRow): number {
  let depth = 0;
  for (let at = row.parent; at !== null; at = listed[at]?.parent ?? null) {
    depth += 1;
  }
  return depth;
}

function pick(store: Store, one: TreeRow | undefined): void {
  const file = store.document.files.findIndex(({ path }) => path === one?.file);
  const at = store.listing?.code.address.indexOf(one?.pc ?? -1) ?? -1;
  if (file >= 0 && one?.line) {
    store.pickLine(file, one.line);
  } else if (at >= 0) {
    store.pickRow(at);
  }
}

function key(one: TreeRow | undefined): string {
  return `${one?.file ?? ""}:${one?.line ?? ""}`;
}

/** Frames of the line that is picked. */
function mark(store: Store, picture: HTMLElement): void {
  const { file, line } = store.now;
  const wanted = file === null || line === null ? null : `${store.document.files[file]?.path ?? ""}:${line}`;
  for (const one of picture.children) {
    one.classList.toggle("current", one.getAttribute("data-line") === wanted);
  }
}
