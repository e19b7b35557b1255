// SPDX-License-Identifier: Apache-2.0
// The advice of the selected kernel: each suggestion a card with what to change, what for, why and where.

import type { CodeRef, Estimate, Hotspot, Suggestion } from "./document";
import { button, details, fill, h, panel, table } from "./dom";
import { address, baseName, count, explains, figure, gain, percent, plural, words } from "./figures";
import type { Store } from "./store";

const PLACES = 8;

export function advicePanel(store: Store): HTMLElement {
  const head = h("div", { class: "verdict" });
  const list = h("ol", { class: "cards" });
  const more = h("div", {});
  const made = panel("advice", "Advice", head, list, more);
  const show = (): void => {
    const advice = store.advice;
    fill(list);
    fill(more);
    fill(head);
    if (advice === undefined) {
      return;
    }
    head.append(h("h3", {}, advice.name), h("p", {}, advice.verdict), h("p", { class: "quiet" }, facts(store)));
    list.append(...advice.suggestions.map((one, at) => card(store, one, at)));
    if (advice.suggestions.length === 0) {
      more.append(h("p", {}, "No change is worth its while here."));
    }
    if (advice.hidden_suggestions > 0) {
      more.append(h("p", { class: "quiet" }, `${plural(advice.hidden_suggestions, "smaller finding")}: gpadvisor advise --all`));
    }
  };
  store.listen((now, before) => {
    if (now.kernel !== before.kernel) {
      show();
    }
    mark(list, now.suggestion);
  });
  show();
  return made;
}

/** Moves to the next or the previous card. */
export function stepCards(store: Store, by: number): void {
  const last = (store.advice?.suggestions.length ?? 0) - 1;
  if (last >= 0) {
    const from = store.now.suggestion ?? (by > 0 ? -1 : last + 1);
    store.pickSuggestion(Math.min(last, Math.max(0, from + by)));
  }
}

function facts(store: Store): string {
  const advice = store.advice;
  const launch = store.kernel?.launch;
  const device = advice?.device.name ?? advice?.device.arch;
  const samples = advice?.samples.total ?? 0;
  const known = samples > 0 ? `${count(samples)} samples, ${percent((advice?.samples.unattributed ?? 0) / samples)} without a known cause` : null;
  return [device, launch, advice?.evidence, known].filter((one) => one !== null && one !== undefined).join("; ");
}

function mark(list: HTMLElement, chosen: number | null): void {
  [...list.children].forEach((item, at) => {
    item.classList.toggle("current", at === chosen);
    const pick = item.querySelector(".pick");
    pick?.setAttribute("aria-pressed", String(at === chosen));
    if (at === chosen && item instanceof HTMLElement) {
      const box = list.getBoundingClientRect();
      const own = item.getBoundingClientRect();
      if (own.top < box.top || own.bottom > box.bottom) {
        list.scrollTop += own.top - box.top - 8;
      }
    }
  });
}

function card(store: Store, one: Suggestion, at: number): HTMLElement {
  const won = one.speedup === null ? (one.evidence === "static" ? "code only" : "no gain known") : gain(one.speedup);
  const pick = button("", () => { store.pickSuggestion(at); }, { class: "pick", "aria-pressed": "false" });
  pick.append(h("strong", { class: "gain" }, won), " ", h("span", { class: "cure" }, one.cure ?? one.advice));
  const part = one.importance ?? 0;
  const share = part > 0 && explains(part, one.speedup) ? `, ${percent(part)} of samples` : "";
  const cause = `${one.title}${share} (${one.code})`;
  const first = one.hotspots[0];
  const place = first?.def ?? first?.use ?? null;
  const body = h("dl", {}, h("dt", {}, "cause"), h("dd", {}, cause));
  if (place !== null) {
    body.append(h("dt", {}, "place"), h("dd", {}, placeLink(store, place), " ", h("code", {}, place.text)));
  }
  body.append(...limit(one.speedup));
  const then = after(one);
  if (then !== "") {
    body.append(h("dt", {}, "then"), h("dd", {}, then));
  }
  const set = one.suppressed === null ? null : h("p", { class: "quiet" }, `set aside in the source: ${one.suppressed.reason}`);
  return h("li", { class: "card" }, h("article", {}, pick, body, set, why(store, one)));
}

/** What the estimate was lowered to, and why. */
function limit(estimate: Estimate | null): HTMLElement[] {
  const cap = estimate?.cap ?? null;
  return cap === null ? [] : [h("dt", {}, "at most"), h("dd", { class: "limit" }, `${figure(cap.speedup ?? 1)}x: ${cap.reason}`)];
}

function after(one: Suggestion): string {
  const whole = one.program_speedup === null ? "" : `${gain(one.program_speedup)} of the whole run`;
  return [whole, one.next_limit === null ? "" : `limited by ${one.next_limit}`].filter(Boolean).join("; ");
}

function why(store: Store, one: Suggestion): HTMLElement {
  const estimate = one.speedup;
  const paper = estimate?.paper ?? null;
  return details(
    "Why",
    one.cure === null ? null : h("p", {}, one.advice),
    one.equation === null ? null : h("p", {}, h("code", {}, one.equation)),
    estimate === null || estimate.reason === "" ? null : h("p", { class: "quiet" }, estimate.reason),
    paper === null ? null : h("p", { class: "quiet" }, `The paper's own value is ${figure(paper)}x; evidence: ${one.evidence}.`),
    one.hotspots.length === 0 ? null : hotspots(store, one.hotspots),
  );
}

function hotspots(store: Store, all: readonly Hotspot[]): HTMLElement {
  const rows = all.slice(0, PLACES).map((spot) => [
    spot.def === null ? "-" : placeLink(store, spot.def),
    spot.use === null ? "-" : placeLink(store, spot.use),
    words(spot.reason),
    count(spot.samples),
    spot.distance_instructions === null ? "-" : count(spot.distance_instructions),
  ]);
  return table("Where: cause and what waits for it", ["cause", "waits", "stall", "samples", "instructions between"], rows);
}

/** A button that selects an instruction; it reads as its line, else its address. */
function placeLink(store: Store, code: CodeRef): HTMLElement {
  const label = code.file === null || code.line === null ? address(code.pc) : `${baseName(code.file)}:${code.line}`;
  const act = (): void => {
    const row = store.listing?.find(code) ?? null;
    if (row !== null) {
      store.pickRow(row);
    }
  };
  return button(label, act, { class: "link", title: code.file === null ? code.text : `${code.file}:${code.line ?? ""}` });
}
