// SPDX-License-Identifier: Apache-2.0

import { h } from "./dom";
import { percent } from "./figures";

/** A number with a bar behind it. */
export function heat(cell: HTMLElement | undefined, share: number, kind: string): void {
  if (cell === undefined || share <= 0) {
    return;
  }
  const bar = h("span", { class: `fillbar ${kind}`, "aria-hidden": "true" });
  bar.style.width = `${Math.min(100, 2 + 98 * share)}%`;
  cell.append(bar, h("span", { class: "value" }, percent(share)));
}
