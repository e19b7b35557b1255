// SPDX-License-Identifier: Apache-2.0
// What the numbers lack, and what was looked at and rejected: always there, even if there is nothing to say.

import { details, fill, h, panel, table } from "./dom";
import type { Store } from "./store";

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
    const rejected = advice?.rejected ?? [];
    fill(
      body,
      h("ul", {}, ...[...new Set(said)].map((one) => h("li", {}, one))),
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
