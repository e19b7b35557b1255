// SPDX-License-Identifier: Apache-2.0
// Where the measured cycles go by the model, what each kind of change could save, and the model with other inputs.

import { button, details, fill, h, panel, set, table } from "./dom";
import { factor, large, percent, words } from "./figures";
import { type Change, type CycleParts, NO_CHANGE, whatIf } from "./model";
import type { BenefitName, Potential } from "./potentialDocument";
import type { Store } from "./store";

const BENEFITS: readonly (readonly [BenefitName, string])[] = [
  ["memlp", "memory"],
  ["itilp", "parallelism"],
  ["serial", "serialization"],
  ["fp", "other instructions"],
];
const STEPS = 60;

interface Slider {
  readonly name: keyof Change;
  readonly label: string;
  readonly unit: string;
  readonly low: number;
  readonly high: number;
  readonly now: number; // what the factor is of
}

export function potentialPanel(store: Store): HTMLElement {
  const body = h("div", {});
  const mark = (): void => {
    for (const one of body.querySelectorAll("[data-code]")) {
      set(one, { "aria-pressed": one instanceof HTMLButtonElement ? String(one.dataset["code"] === store.suggestion?.code) : null });
      one.classList.toggle("current", one.getAttribute("data-code") === store.suggestion?.code);
    }
  };
  const show = (): void => {
    const found = store.kernel?.potential;
    fill(body, ...(found ? contents(found, store.advice?.device.max_warps_per_sm ?? 64) : [h("p", { class: "quiet" }, "The profile has not what the model takes; see below.")]));
    mark();
  };
  body.addEventListener("click", ({ target }) => {
    const code = target instanceof Element ? target.closest("[data-code]")?.getAttribute("data-code") : null;
    const at = store.advice?.suggestions.findIndex((one) => one.code === code) ?? -1;
    if (at >= 0) {
      store.pickSuggestion(at);
    }
  });
  store.listen((now, before) => {
    if (now.kernel !== before.kernel) {
      show();
    } else {
      mark();
    }
  });
  show();
  return panel("potential", "Potential", body);
}

function contents(of: Potential, mostWarps: number): Node[] {
  const change = { ...NO_CHANGE };
  const result = h("output", { class: "result", for: sliders(of, mostWarps).map(({ name }) => `what-if-${name}`).join(" ") });
  const changedBar = h("div", {});
  const show = (): void => {
    const { parts, speedup } = whatIf(of.inputs, of.cycles, change);
    const same = Object.values(change).every((one) => one === 1);
    result.textContent = same ? "Move a slider." : `${factor(speedup)} by the model`;
    const bar = same ? null : stack(`With these inputs: ${factor(speedup)}`, rows(of, parts, change.clock), of.cycles);
    fill(changedBar, bar);
  };
  const controls = sliders(of, mostWarps).map((one) => control(one, (value) => {
    change[one.name] = value;
    show();
  }));
  const reset = button("Reset", () => {
    for (const one of controls) {
      one.reset();
    }
  });
  show();
  return [
    stack("Measured cycles", rows(of, null, 1), of.cycles),
    legend(of),
    ...of.says.map((one) => h("p", {}, one)),
    h("h3", { class: "sub" }, "What if"),
    h("div", { class: "sliders" }, ...controls.map((one) => one.element)),
    h("p", {}, result, " ", reset),
    changedBar,
    h("p", { class: "quiet" }, "A model of bounds, not a prediction: what it does not explain stays as long as it was measured."),
    details("Inputs of the model", table("Inputs, of one SM", ["input", "value"], inputs(of))),
    ...[...of.missing_inputs, ...of.notes].map((one) => h("p", { class: "quiet" }, one)),
  ];
}

type Part = readonly [name: string, cycles: number, kind: string, code?: string | null]; // of the suggestion that saves it

/** The parts of the run, in cycles of its own clock; without `after`, as they were measured. */
function rows(of: Potential, after: CycleParts | null, clock: number): readonly Part[] {
  const { memory, overlap, ideal_compute } = after ?? of.parts;
  const exposed = memory - overlap;
  const benefit = (name: BenefitName): number => (after?.benefits[name] ?? of.benefits[name].cycles) / clock;
  const ideal = ideal_compute / clock;
  return [
    [`essential instructions (${of.essential})`, ideal, "k1"],
    ["bytes of DRAM at its peak, exposed", exposed / clock - benefit("memlp"), "k2"],
    ...BENEFITS.map(([name, label], at): Part => [label, benefit(name), `k${at + 3}`, of.benefits[name].suggestion]),
    ["not explained", Math.max(0, of.unexplained_cycles), "k7"],
  ];
}

function stack(label: string, all: readonly Part[], cycles: number): HTMLElement {
  const widest = Math.max(cycles, all.reduce((sum, [, one]) => sum + one, 0));
  const bars = all
    .filter(([, one]) => one > 0)
    .map(([name, one, kind, code]) => {
      const bar = h("span", { class: `part ${kind}`, title: `${name}: ${percent(one / cycles)}`, "data-code": code }, one / widest > 0.07 ? percent(one / cycles) : "");
      bar.style.width = `${(100 * one) / widest}%`;
      return bar;
    });
  const said = all.map(([name, one]) => `${name} ${percent(one / cycles)}`).join(", ");
  return h("figure", {}, h("figcaption", {}, label), h("div", { class: "stack", role: "img", "aria-label": `${label}: ${said}` }, ...bars));
}

function legend(of: Potential): HTMLElement {
  const cells = rows(of, null, 1).map(([label, cycles, kind, code], at) => {
    const [name] = BENEFITS[at - 2] ?? [];
    const benefit = name === undefined ? undefined : of.benefits[name];
    const most = benefit?.speedup_at_most;
    return [
      h("span", {}, h("span", { class: `key ${kind}`, "aria-hidden": "true" }), code ? h("button", { type: "button", class: "link", "data-code": code, title: `saved by ${code}` }, label) : label),
      percent((at === 6 ? of.unexplained_cycles : cycles) / of.cycles),
      percent(benefit?.share_by_samples),
      benefit === undefined ? "" : factor(most ?? Infinity),
    ];
  });
  return table("Parts of the measured cycles", ["part", "model", "samples", "at most"], cells);
}

function sliders({ inputs: { resident_warps, mlp } }: Potential, mostWarps: number): readonly Slider[] {
  return [
    { name: "warps", label: "occupancy", unit: "warps of an SM", low: 1 / 4, high: Math.max(1, mostWarps / resident_warps), now: resident_warps },
    { name: "in_flight", label: "memory parallelism", unit: "loads in flight of a warp", low: 1 / 4, high: 8, now: mlp },
    { name: "transactions", label: "transactions of a request", unit: "times as many", low: 1 / 32, high: 2, now: 1 },
    { name: "clock", label: "clock of the SMs", unit: "times as fast", low: 1 / 2, high: 2, now: 1 },
    { name: "bandwidth", label: "bandwidth", unit: "times as much", low: 1 / 2, high: 4, now: 1 },
  ];
}

function control(of: Slider, act: (value: number) => void): { readonly element: HTMLElement; readonly reset: () => void } {
  const id = `what-if-${of.name}`;
  const input = h("input", { type: "range", id, min: -STEPS, max: STEPS, step: 1, value: 0 });
  const said = h("span", { class: "quiet" });
  const value = (): number => {
    const part = Number(input.value) / STEPS;
    return part < 0 ? of.low ** -part : of.high ** part;
  };
  const show = (): void => {
    const text = `${(value() * of.now).toPrecision(3).replace(/\.?0+$/, "")} ${of.unit}`;
    said.textContent = text;
    input.setAttribute("aria-valuetext", text);
    act(value());
  };
  input.addEventListener("input", show);
  queueMicrotask(show);
  const reset = (): void => {
    input.value = "0";
    show();
  };
  return { element: h("div", { class: "slider" }, h("label", { for: id }, of.label), input, said), reset };
}

function inputs(of: Potential): readonly (readonly string[])[] {
  return Object.entries(of.inputs).map(([name, value]) => [words(name), typeof value === "number" ? large(value) : String(value)]);
}
