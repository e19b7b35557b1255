// SPDX-License-Identifier: Apache-2.0
// Which rules there are to explain at a place.

export interface Advice {
  readonly code: string;
  readonly message: string;
  readonly line: number;
}

/** One entry a rule: those of the line if it has any, else those of the file. */
export function rulesAt(advice: readonly Advice[], line: number | undefined): readonly Advice[] {
  const here = advice.filter((entry) => entry.line === line);
  const byCode = new Map<string, Advice>();
  for (const entry of here.length > 0 ? here : advice) {
    if (entry.code !== "" && !byCode.has(entry.code)) {
      byCode.set(entry.code, entry);
    }
  }
  return [...byCode.values()];
}
