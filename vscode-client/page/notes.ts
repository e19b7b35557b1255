// SPDX-License-Identifier: Apache-2.0
// What the numbers lack, and what was looked at and rejected: always there, even if there is nothing to say.

import { details, fill, h, panel, table } from "./dom";
import { count } from "./figures";
import type { Store } from "./store";

const TOLD = 200;

export function notesPanel(store: Store): HTMLElement {
  const body = h("div", {});
  const show = (): void => {
    const { advice, kernel } = store;
    const said = [
      ...store.document.advice.problems.map((one) => one.message),
      ...(advice?.problems ?? []).map((one) => one.message),
      ...(kernel?.missing ?? []),
      ...(advice === undefined ? [] : [`Evidence: ${advice.evidence}; ${advice.evidence_reason}.`]),
    ];
    const sentences = [...new Set(said)];
    const rejected = advice?.rejected ?? [];
    fill(
      body,
      h("ul", {}, ...sentences.slice(0, TOLD).map((one) => h("li", {}, one))),
      sentences.length <= TOLD ? null : h("p", { class: "quiet" }, `and ${count(sentences.length - TOLD)} more: gpadvisor advise --format json`),
      rejected.length === 0
        ? null
        : details("What was considered and rejected", table("Rules that do not hold here", ["rule", "because"], rejected.map((one) => [one.code, one.reason]))),
    );
  };
  store.listen((now, before) => {
    if (now.kernel !== before.kernel) {
      show();
    }
  });
  show();
  return panel("notes", "What these numbers lack", body);
}
