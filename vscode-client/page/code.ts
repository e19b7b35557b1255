// SPDX-License-Identifier: Apache-2.0
// Source beside machine code: heat, stalls, and arrows from the cause to what waits for it.

import { Arrows } from "./arrows";
import { fill, h, panel } from "./dom";
import { baseName, percent } from "./figures";
import { inspected } from "./inspect";
import { lineArrows, rowArrows } from "./links";
import { machineRows } from "./machine";
import type { Selection, Store } from "./store";
import { sourceRows, type SourceText, sourceText } from "./source";

export function codePanel(store: Store, open: (file: number, line: number) => void): HTMLElement {
  const chooser = h("select", { "aria-label": "Source file" });
  const told = h("span", { class: "quiet" });
  const note = h("p", { class: "quiet", role: "status" });
  const inspect = h("div", { class: "inspect", "aria-live": "polite" });
  let text: SourceText = { lines: [], numbers: [], known: false };
  const source = sourceRows(store, () => text, open);
  const machine = machineRows(store);
  const [lineMarks, rowMarks] = [new Arrows(source), new Arrows(machine)];
  chooser.addEventListener("change", () => { store.pickFile(Number(chooser.value)); });

  const showFile = (file: number | null): void => {
    text = sourceText(store, file);
    source.element.hidden = text.lines.length === 0;
    source.reset(text.lines.length);
    const one = file === null ? undefined : store.document.files[file];
    chooser.value = String(file ?? "");
    const missing = one?.text === null ? `${baseName(one.path)} is not at hand: only the lines with code are listed` : "";
    note.textContent = file === null ? "No line table: compile with -lineinfo to see the source." : missing;
  };
  const showKernel = (): void => {
    const listing = store.listing;
    const files = listing?.files ?? [];
    fill(chooser, ...files.map((file) => fileOption(store, file)));
    chooser.hidden = files.length === 0;
    machine.reset(listing?.rows ?? 0);
    told.textContent = listing === undefined || listing.rows > 0 ? "" : "The machine code of this kernel is not in this page.";
  };
  const show = (now: Selection, before: Selection | null): void => {
    if (now.kernel !== before?.kernel) {
      showKernel();
    }
    if (now.file !== before?.file || now.kernel !== before.kernel) {
      showFile(now.file);
    }
    source.show(now.line === null ? -1 : text.numbers.indexOf(now.line));
    machine.show(now.row ?? -1);
    lineMarks.set(lineArrows(store, text));
    rowMarks.set(rowArrows(store));
    fill(inspect, ...inspected(store));
  };
  store.listen(show);
  queueMicrotask(() => { show(store.now, null); });
  return panel(
    "code",
    "Source and machine code",
    h("div", { class: "tools" }, chooser, note, told),
    h("div", { class: "sides" }, source.element, machine.element),
    inspect,
  );
}

function fileOption(store: Store, file: number): HTMLOptionElement {
  const listing = store.listing;
  const samples = [...(listing?.linesOf(file).values() ?? [])].reduce((sum, line) => sum + line.samples, 0);
  const share = listing !== undefined && listing.total > 0 ? `, ${percent(samples / listing.total)} of samples` : "";
  const path = store.document.files[file]?.path ?? "";
  return h("option", { value: file, title: path }, `${baseName(path)}${share}`);
}
