// SPDX-License-Identifier: Apache-2.0
// The instruction roofline: a kernel at each level of memory below its ceilings, and its loops or lines.

import { apart, type Axes, axes, BOX, decades, label, line } from "./axes";
import type { Ceiling, Region, Roofline } from "./document";
import { button, details, fill, h, panel, svg, table } from "./dom";
import { address, baseName, count, figure, percent } from "./figures";
import type { Store } from "./store";

const DOTS = 12;
const GAP = 14;
const LISTED = 100;
const LEVELS: Readonly<Record<string, string>> = { "L1 tags": "l1", "L1 sectors": "l2", "shared memory": "l3", L2: "l4", DRAM: "l5" };

export function rooflinePanel(store: Store): HTMLElement {
  const body = h("div", {});
  const chooser = h(
    "select",
    { "aria-label": "Parts of the kernel", id: "roofline-regions" },
    h("option", { value: "regions" }, "loops"),
    h("option", { value: "lines" }, "lines"),
  );
  const show = (): void => {
    const found = store.kernel?.roofline;
    chooser.hidden = !found;
    fill(body, ...(found ? contents(store, found, chooser.value === "lines" ? found.lines : found.regions) : [h("p", { class: "quiet" }, "The profile has no counts and no time of this kernel; see below.")]));
  };
  store.listen((now, before) => {
    if (now.kernel !== before.kernel) {
      show();
    } else {
      mark(store, body);
    }
  });
  chooser.addEventListener("change", show);
  show();
  return panel("roofline", "Roofline", h("div", { class: "tools" }, chooser), body);
}

function contents(store: Store, of: Roofline, parts: readonly Region[]): Node[] {
  return [
    picture(store, of, parts),
    h("ul", { class: "says" }, ...of.says.map((one) => h("li", {}, one))),
    details("The numbers", levels(of), ceilings(of), regions(store, parts)),
    ...of.notes.map((one) => h("p", { class: "quiet" }, one)),
  ];
}

function picture(store: Store, of: Roofline, parts: readonly Region[]): SVGSVGElement {
  const height = of.gips * 1e9;
  const timed = parts.filter((one) => one.height !== null && (one.sectors ?? 0) > 0).sort((one, other) => other.samples - one.samples);
  const dots = timed.slice(0, DOTS);
  const xs = [1 / 32, 1, ...of.points.map((one) => one.intensity), ...dots.map(intensity)].filter((one) => one > 0);
  const peaks = [of.issue_peak?.value, of.issue_peak_maximum?.value].filter((one) => one !== undefined);
  const ys = [height, ...peaks, ...dots.flatMap(({ height: of }) => (of === null ? [] : [of.low, of.high]))].filter((one) => one > 0);
  const top = Math.max(...ys) * 1.4;
  const made = axes([Math.min(...xs) / 1.5, Math.max(30, Math.max(...xs) * 2)], [Math.min(Math.min(...ys) / 2, top / 100), top]);
  return svg(
    "svg",
    { class: "plot", viewBox: `0 0 ${BOX.width} ${BOX.height}`, role: "group", "aria-label": `Instruction roofline. ${of.says.join(" ")}` },
    ...grid(made),
    ...walls(made),
    ...rising(made, of),
    ...flat(made, of),
    ...dots.map((one) => region(store, made, one)),
    ...of.points.map((one) =>
      svg(
        "circle",
        { class: `dot ${LEVELS[one.level] ?? ""}`, cx: made.x(one.intensity).toFixed(1), cy: made.y(height).toFixed(1), r: 5.5 },
        svg("title", {}, `${one.level}: ${figure(one.intensity)} instructions for each transaction, ${figure(of.gips)} GIPS, ${percent(one.use)} of the peak`),
      ),
    ),
  );
}

function grid(made: Axes): SVGElement[] {
  const across = decades(made.xs).flatMap((value) => [
    line("grid", [made.x(value), BOX.top], [made.x(value), BOX.bottom]),
    label("tick middle", made.x(value), BOX.bottom + 15, String(value)),
  ]);
  const up = decades([made.ys[0] / 1e9, made.ys[1] / 1e9]).flatMap((value) => [
    line("grid", [BOX.left, made.y(value * 1e9)], [BOX.right, made.y(value * 1e9)]),
    label("tick end", BOX.left - 6, made.y(value * 1e9) + 4, String(value)),
  ]);
  const title = label("quiet middle", 0, 0, "warp instructions per second, 1e9");
  title.setAttribute("transform", `translate(13 ${(BOX.top + BOX.bottom) / 2}) rotate(-90)`);
  return [...across, ...up, title, label("quiet middle", (BOX.left + BOX.right) / 2, BOX.bottom + 34, "warp instructions per memory transaction")];
}

function walls(made: Axes): SVGElement[] {
  return [[1, "one address in all lanes"], [1 / 32, "a transaction for each lane"]].map(([at, name]) => {
    const one = line("wall", [made.x(Number(at)), BOX.top], [made.x(Number(at)), BOX.bottom]);
    one.append(svg("title", {}, String(name)));
    return one;
  });
}

/** Of levels of memory: peak * x, up to the issue peak. */
function rising(made: Axes, of: Roofline): SVGElement[] {
  const top = of.issue_peak?.value ?? made.ys[1];
  const named: number[] = [];
  return of.points.flatMap(({ level, peak }) => {
    const first = peak === null ? 1 : Math.max(made.xs[0], made.ys[0] / peak.value);
    const last = peak === null ? 0 : Math.min(made.xs[1], top / peak.value);
    if (peak === null || first >= last) {
      return [];
    }
    const kind = LEVELS[level] ?? "";
    const made_ = line(`ceiling ${kind}`, [made.x(first), made.y(peak.value * first)], [made.x(last), made.y(peak.value * last)]);
    made_.append(svg("title", {}, `${level}: ${figure(peak.value / 1e9)} transactions per second, 1e9 (${peak.source})`));
    const [x, y] = [made.x(first) + 8, made.y(peak.value * first) - 10];
    const crowded = named.filter((one) => Math.abs(one - x) < 60).length;
    named.push(x);
    return [made_, label(`name ${kind}`, x, y - GAP * crowded, level)];
  });
}

function flat(made: Axes, of: Roofline): SVGElement[] {
  const units = of.ceilings.filter(({ kind }) => kind === "pipe" || kind === "unit").map((one): Flat => [one.height, `${one.name} ${percent(one.use)}`, "unit", one.source]);
  const issue = of.issue_peak === null ? [] : [[of.issue_peak.value, `issue ${figure(of.issue_peak.value / 1e9)}`, "issue", of.issue_peak.source] as Flat];
  const most = of.issue_peak_maximum;
  const maximum = most === null ? [] : [[most.value, `at most ${figure(most.value / 1e9)}`, "unit", most.source] as Flat];
  const all = [...units, ...issue, ...maximum].filter(([height]) => height > made.ys[0] && height <= made.ys[1]).sort(([one], [other]) => other - one);
  const places = apart(all.map(([height]) => made.y(height)), GAP);
  return all.flatMap(([height, name, kind, source], at) => {
    const [y, place] = [made.y(height), places[at] ?? 0];
    const one = line(kind, [BOX.left, y], [BOX.right, y]);
    one.append(svg("title", {}, `${name}, from ${source}`));
    return [one, line("leader", [BOX.right, y], [BOX.right + 8, place]), label("name", BOX.right + 11, place + 4, name)];
  });
}

type Flat = readonly [height: number, name: string, kind: string, source: string];

function intensity(one: Region): number {
  return one.instructions / (one.sectors ?? 1);
}

function region(store: Store, made: Axes, one: Region): SVGElement {
  const { low, expected, high } = one.height ?? { low: 1, expected: 1, high: 1 };
  const x = made.x(intensity(one));
  const name = regionName(one);
  const said = `${name}: ${figure(expected / 1e9)} GIPS (${figure(low / 1e9)}-${figure(high / 1e9)}, modelled), ${percent(one.share)} of the samples`;
  const group = svg(
    "g",
    { class: "region", role: "button", tabindex: 0, "aria-label": said, "data-line": lineKey(store, one) },
    svg("title", {}, said),
    line("interval", [x, made.y(high)], [x, made.y(low)]),
    svg("circle", { cx: x.toFixed(1), cy: made.y(expected).toFixed(1), r: (4 + 7 * Math.sqrt(one.share ?? 0)).toFixed(1) }),
  );
  const act = (): void => { pick(store, one); };
  group.addEventListener("click", act);
  group.addEventListener("keydown", ({ key }) => {
    if (key === "Enter" || key === " ") {
      act();
    }
  });
  return group;
}

/** Regions with the line that is picked are marked. */
function mark(store: Store, body: HTMLElement): void {
  const { file, line: at } = store.now;
  for (const one of body.querySelectorAll("[data-line]")) {
    one.classList.toggle("current", one.getAttribute("data-line") === `${file ?? ""}:${at ?? ""}`);
  }
}

function lineKey(store: Store, one: Region): string {
  const at = one.location;
  const file = at === null ? -1 : store.document.files.findIndex(({ path }) => path === at.file);
  return `${file}:${at?.line ?? ""}`;
}

function pick(store: Store, one: Region): void {
  const at = one.location;
  const file = at === null ? -1 : store.document.files.findIndex(({ path }) => path === at.file);
  const row = store.listing?.code.address.indexOf(one.pc ?? -1) ?? -1;
  if (at !== null && file >= 0) {
    store.pickLine(file, at.line);
  } else if (row >= 0) {
    store.pickRow(row);
  }
}

function regionName(one: Region): string {
  if (one.kind === "line") {
    return one.location === null ? `${one.function}, no line` : `${baseName(one.location.file)}:${one.location.line}`;
  }
  const at = one.location === null ? (one.pc === null ? one.function : address(one.pc)) : `${baseName(one.location.file)}:${one.location.line}`;
  return one.loop === null ? `outside of loops, ${at}` : `loop at ${at}`;
}

function levels(of: Roofline): HTMLElement {
  const rows = of.points.map((one) => [one.level, figure(one.intensity), figure(one.rate / 1e9), one.peak === null ? "-" : figure(one.peak.value / 1e9), percent(one.use)]);
  return table("Levels of memory", ["level", "instructions per transaction", "transactions per second, 1e9", "peak", "use"], rows);
}

function ceilings(of: Roofline): HTMLElement {
  const rows = of.ceilings.map((one: Ceiling) => [one.name, percent(one.use), figure(one.height / 1e9), one.source]);
  return table("Ceilings, nearest first", ["ceiling", "use", "GIPS", "from"], rows);
}

function regions(store: Store, parts: readonly Region[]): HTMLElement {
  const rows = [...parts].sort((one, other) => other.samples - one.samples).slice(0, LISTED).map((one) => [
    button(regionName(one), () => { pick(store, one); }, { class: "link" }),
    percent(one.share),
    count(Math.round(one.instructions)),
    one.sectors ? figure(intensity(one)) : "-",
    one.height === null ? `- (${one.hidden})` : `${figure(one.height.expected / 1e9)} (${figure(one.height.low / 1e9)}-${figure(one.height.high / 1e9)})`,
  ]);
  const more = parts.length > LISTED ? `, ${LISTED} of ${parts.length}` : "";
  return table(`Parts of the kernel, most samples first${more}`, ["region", "samples", "instructions", "per L1 sector", "GIPS, modelled"], rows);
}
