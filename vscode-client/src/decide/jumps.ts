// SPDX-License-Identifier: Apache-2.0
// From one line of interest to the next.

/** The next (`step` 1) or previous (-1) of some lines after `from`, around the ends. */
export function next(lines: readonly number[], from: number, step: 1 | -1): number | undefined {
  const ordered = [...lines].sort((a, b) => (a - b) * step);
  return ordered.find((line) => (line - from) * step > 0) ?? ordered[0];
}
