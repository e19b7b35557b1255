// SPDX-License-Identifier: Apache-2.0
// The traced run along the clock, what host code leaves idle in it, and what the CPU did then.

import { button, details, h, panel, table } from "./dom";
import { count, duration, gain, percent, plural } from "./figures";
import type { Store } from "./store";
import { COLOURS, KERNELS, Strip } from "./strip";
import type { Run } from "./stripData";

const LEGEND = ["copy", "wait", "launch", "application", "call"] as const;
const IN_WORDS: Readonly<Record<string, string>> = {
  copy: "copy",
  wait: "wait for the GPU",
  launch: "launch",
  application: "the application's own code",
  call: "other call of CUDA",
};

export function runPanel(store: Store): HTMLElement | null {
  const run = store.document.run;
  if (run === null) {
    return null;
  }
  const strip = new Strip(store, run);
  const tools = h(
    "div",
    { class: "tools" },
    button("Closer", () => { strip.zoom(0.5); }),
    button("Wider", () => { strip.zoom(2); }),
    button("All", () => { strip.show({ from: 0, to: run.span_ns }); }),
    strip.range,
  );
  const lost = [
    run.merged_ns > 0 ? `Events of a lane with no more than ${duration(run.merged_ns)} between them are one.` : "",
    run.left_out > 0 ? `${plural(run.left_out, "lane")} with less time are not shown.` : "",
  ].filter(Boolean);
  return panel(
    "run",
    `The run along the clock (${run.trace})`,
    tools,
    h("div", { class: "strip" }, strip.canvas),
    strip.status,
    legend(),
    h("p", { class: "quiet" }, "Drag over a part to see it closer; Ctrl and the wheel, + and -, arrows and Home move. ", ...lost),
    ...findings(store),
    details("What the CPU did while a GPU was idle", ...run.devices.map(idleTable)),
  );
}

function legend(): HTMLElement {
  const key = (colours: readonly string[], words: string): HTMLElement =>
    h("span", {}, ...colours.map((one) => h("span", { class: `key strip${one}`, "aria-hidden": "true" })), words);
  return h(
    "p",
    { class: "legend" },
    key(KERNELS, "kernels, by name"),
    ...LEGEND.map((kind) => key([COLOURS[kind] ?? ""], IN_WORDS[kind] ?? kind)),
  );
}

function findings(store: Store): HTMLElement[] {
  const found = store.document.advice.run_findings.map((one) => [
    `${gain(one.speedup)} ${one.code}`,
    one.place === null ? "not known" : placeWords(one.place),
    `${one.title}.`,
    one.advice,
  ]);
  const caption = "Host code that leaves the GPU idle: what another way is worth for the whole run, each as if changed alone";
  return found.length === 0 ? [] : [table(caption, ["gain", "where", "what", "change"], found)];
}

function placeWords(place: { readonly function: string | null; readonly file: string | null; readonly line: number | null }): string {
  const line = place.line === null ? "" : `${place.file ?? ""}:${place.line}`;
  return [line, place.function].filter(Boolean).join(" in ");
}

function idleTable({ device, span_ns, idle_ns, gaps, by_call }: Run["devices"][number]): HTMLElement {
  const rows = by_call.map((one) => [one.name, duration(one.idle_ns), percent(one.idle_ns / idle_ns), count(one.gaps)]);
  return table(
    `GPU ${device}: idle for ${duration(idle_ns)} of ${duration(span_ns)}, in ${plural(gaps, "gap")}`,
    ["what the CPU did", "time", "of idle time", "gaps"],
    rows,
  );
}
