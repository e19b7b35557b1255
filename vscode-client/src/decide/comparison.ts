// SPDX-License-Identifier: Apache-2.0
// What two profiles are called, and what a line has gained or lost.

import type { OverviewEntry } from "../generated/protocol";
import { duration } from "./figures";

/** "120 us gained", "3 ms lost": told apart without colour. */
export function changeWords(changeNs: number): string {
  return `${duration(Math.abs(changeNs))} ${changeNs < 0 ? "gained" : "lost"}`;
}

/** Two profiles by the time they were taken at; as given where that is not known. */
export function olderFirst(paths: readonly string[], known: readonly OverviewEntry[]): readonly [string, string] {
  const [first = "", second = ""] = paths;
  const taken = (path: string): number => Date.parse(known.find((one) => one.path === path)?.collectedAt ?? "");
  return taken(second) < taken(first) ? [second, first] : [first, second];
}
