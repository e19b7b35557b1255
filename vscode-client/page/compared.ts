// SPDX-License-Identifier: Apache-2.0
// An earlier profile beside this one: what was predicted and what was achieved, and which lines gained or lost.

import { label, line as stroke } from "./axes";
import type { Compared, ComparedKernel, ComparedLine, Prediction } from "./comparedDocument";
import { details, fill, h, panel, svg, table } from "./dom";
import { count, duration, factor, gain, plural } from "./figures";
import { Rows } from "./rows";
import type { Store } from "./store";

const BOX = { width: 700, left: 290, right: 600, row: 26, top: 8 };

export function comparedPanel(store: Store): HTMLElement | null {
  const { compared } = store.document;
  if (compared === null) {
    return null;
  }
  const head = h("div", {});
  let lines: readonly ComparedLine[] = [];
  let own: ComparedKernel | undefined;
  const rows = new Rows({
    id: "compared-rows",
    label: "Lines that gained or lost time",
    columns: [
      { title: "before", kind: "number" },
      { title: "after", kind: "number" },
      { title: "change", kind: "number" },
      { title: "achieved", kind: "number" },
      { title: "predicted of it", kind: "text" },
      { title: "line", kind: "place" },
      { title: "source", kind: "code" },
    ],
    draw: (row, cells) => draw(store, own, lines[row], cells),
    pick: (row) => {
      const place = lines[row]?.place ?? null;
      if (place !== null) {
        store.pickLine(...place);
      }
    },
  });
  const show = (): void => {
    own = compared.kernels.find(({ kernel }) => kernel === store.now.kernel);
    lines = own?.lines ?? [];
    rows.element.hidden = lines.length === 0;
    rows.reset(lines.length);
    fill(head, ...(own === undefined ? [h("p", {}, `${compared.before} has no such kernel.`)] : contents(own)), rest(compared));
  };
  store.listen((now, before) => {
    if (now.kernel !== before.kernel) {
      show();
    }
    rows.show(lines.findIndex(({ place }) => place !== null && place[0] === now.file && place[1] === now.line));
  });
  show();
  return panel("compared", `Beside ${compared.before}`, head, rows.element);
}

function contents(own: ComparedKernel): Node[] {
  const { achieved, lines } = own;
  const whole = `${duration(own.duration_before_ns)}, now ${duration(own.duration_after_ns)}`;
  const said = achieved === null ? `${whole}: one run has no duration` : `${whole}: ${factor(achieved)}, ${speed(achieved)} (${clock(own)})`;
  const notes = [...own.differences, ...(own.same_code ? ["the machine code is the same"] : []), ...devices(own)];
  const mapped = own.line_mapping === null ? "lines of two functions, each by itself" : `put together ${own.line_mapping}`;
  return [
    h("p", { class: "result" }, said),
    notes.length === 0 ? h("span", {}) : h("p", { class: "quiet" }, `${notes.join("; ")}.`),
    ...predictions(own),
    details("Time by stall reason", stalls(own)),
    h("p", { class: "quiet" }, lines.length === 0 ? "No lines to compare: they need samples and -lineinfo." : `Time by source line, ${mapped}; largest change first.`),
  ];
}

function speed(achieved: number): string {
  const shown = achieved.toFixed(2);
  return shown === "1.00" ? "as fast" : achieved < 1 ? "slower" : "faster";
}

function clock({ evidence_before, evidence_after }: ComparedKernel): string {
  const modelled = [evidence_before, evidence_after].filter((one) => one === "modelled").length;
  return ["measured", "a modelled time beside a measured one", "both modelled"][modelled] ?? "";
}

function devices({ device_before, device_after }: ComparedKernel): readonly string[] {
  return device_before === device_after ? [] : [`on two GPUs (${device_before}, then ${device_after})`];
}

function predictions({ predictions: all, achieved }: ComparedKernel): Node[] {
  if (all.length === 0) {
    return [h("p", {}, "Nothing was predicted for the first run.")];
  }
  const cells = all.map((one) => [
    `${one.code} ${one.name}`,
    gain(one.predicted),
    one.changed && one.achieved !== null ? factor(one.achieved) : "-",
    one.verdict,
    one.time_before_ns === null || one.time_after_ns === null ? "-" : `${duration(one.time_before_ns)}, now ${duration(one.time_after_ns)}`,
  ]);
  return [
    intervals(all, achieved),
    table("Predicted for the first run, achieved by the second", ["suggestion", "predicted", "achieved", "is", "its stalls"], cells),
  ];
}

/** The predicted ranges on one scale with a tick at what was expected, and the achieved speedup through all of them. */
function intervals(all: readonly Prediction[], achieved: number | null): SVGElement {
  const ends = all.flatMap(({ predicted: { low, high } }) => [low, high]).filter((one) => one !== null);
  const values = [1, ...ends, ...(achieved === null ? [] : [achieved])].filter((one) => one > 0);
  const [first, last] = [Math.min(...values) / 1.1, Math.max(...values) * 1.1];
  const x = (value: number | null): number =>
    BOX.left + ((BOX.right - BOX.left) * Math.log((value ?? last) / first)) / Math.log(last / first);
  const bottom = BOX.top + all.length * BOX.row;
  const said = all.map((one) => `${one.code} predicted ${gain(one.predicted)}: ${one.verdict}`).join("; ");
  const made = svg("svg", { class: "plot", viewBox: `0 0 ${BOX.width} ${bottom + 20}`, role: "img", "aria-label": said });
  made.append(stroke("wall", [x(1), BOX.top], [x(1), bottom]), label("tick middle", x(1), bottom + 15, "1x"));
  all.forEach(({ code, name, predicted: { low, expected, high }, changed }, at) => {
    const y = BOX.top + (at + 0.5) * BOX.row;
    const kind = changed ? "" : " unchanged";
    made.append(
      label("end", BOX.left - 14, y + 4, shortened(`${code} ${name}`)),
      stroke(`range${kind}`, [x(low), y], [x(high), y]),
      stroke(`range${kind}`, [x(expected), y - 6], [x(expected), y + 6]),
      ...(changed && achieved !== null ? [svg("circle", { class: "achieved", cx: x(achieved).toFixed(1), cy: y, r: 5 })] : []),
    );
  });
  if (achieved !== null) {
    made.append(stroke("reached", [x(achieved), BOX.top], [x(achieved), bottom]), label("middle", x(achieved), bottom + 15, `achieved ${factor(achieved)}`));
  }
  return made;
}

function shortened(name: string): string {
  return name.length > 42 ? `${name.slice(0, 41)}\u2026` : name;
}

function stalls({ stalls: all }: ComparedKernel): HTMLElement {
  const cells = all.map((one) => [one.reason.replaceAll("_", " "), duration(one.time_before_ns), duration(one.time_after_ns), change(one.change_ns), `${count(one.samples_before)}, now ${count(one.samples_after)}`]);
  return table("Largest change first", ["stall", "before", "after", "change", "samples"], cells);
}

function change(nanoseconds: number | null): string {
  return nanoseconds === null || nanoseconds === 0 ? "-" : `${nanoseconds > 0 ? "+" : "-"}${duration(Math.abs(nanoseconds))}`;
}

function draw(store: Store, own: ComparedKernel | undefined, one: ComparedLine | undefined, cells: readonly HTMLElement[]): string {
  if (own === undefined || one === undefined) {
    return "";
  }
  const { before, after, place, time_before_ns: then, time_after_ns: now } = one;
  const predicted = one.predicted.map((at) => own.predictions[at]).filter((entry) => entry !== undefined);
  const words = [
    before === null ? "" : duration(then),
    after === null ? "" : duration(now),
    change(one.change_ns),
    before !== null && after !== null ? quotient(then, now) : "",
    predicted.map((entry) => `${entry.code} ${gain(entry.predicted)}`).join(", "),
    `${name(one)}${became(one)}`,
    one.text ?? "",
  ];
  cells.forEach((cell, at) => { cell.append(words[at] ?? ""); });
  const picked = place !== null && place[0] === store.now.file && place[1] === store.now.line ? " picked" : "";
  return `${(one.change_ns ?? 0) < 0 ? "gained" : "lost"}${place === null ? " plain" : ""}${picked}`;
}

function quotient(then: number | null, now: number | null): string {
  return then !== null && now !== null && now > 0 ? factor(then / now) : "";
}

function became({ before, after, edited }: ComparedLine): string {
  if (before === null || after === null) {
    return after === null ? ", gone" : ", new";
  }
  return edited ? ", edited" : "";
}

function name({ before, after }: ComparedLine): string {
  const place = after ?? before;
  return place === null ? "" : `${place.file.slice(place.file.lastIndexOf("/") + 1)}:${place.line}`;
}

function rest({ before, only_before, only_after }: Compared): HTMLElement | null {
  const words = [
    ...(only_before.length === 0 ? [] : [`only in ${before}: ${some(only_before)}`]),
    ...(only_after.length === 0 ? [] : [`not in ${before}: ${some(only_after)}`]),
  ];
  return words.length === 0 ? null : h("p", { class: "quiet" }, `${words.join("; ")}.`);
}

function some(names: readonly string[]): string {
  const first = names.slice(0, 4).join(", ");
  return names.length > 4 ? `${first} and ${plural(names.length - 4, "other")}` : first;
}
