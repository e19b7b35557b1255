// SPDX-License-Identifier: Apache-2.0
// Figures and names as lists show them.

const UNITS = [
  { unit: "s", size: 1e9 },
  { unit: "ms", size: 1e6 },
  { unit: "us", size: 1e3 },
] as const;

/** "1.2 ms": a time with a unit that leaves one to three digits before the point. */
export function duration(nanoseconds: number): string {
  const found = UNITS.find(({ size }) => nanoseconds >= size);
  return found === undefined ? `${nanoseconds.toFixed(0)} ns` : `${Number((nanoseconds / found.size).toPrecision(4))} ${found.unit}`;
}

/** "21 %": one digit behind the point below ten, and "<0.1 %" where the first would be zero. */
export function percent(share: number): string {
  const hundred = 100 * share;
  if (hundred > 0 && hundred < 0.1) {
    return "<0.1 %";
  }
  return `${hundred >= 10 || hundred === 0 ? hundred.toFixed(0) : hundred.toFixed(1)} %`;
}

/** "1 kernel", "3 kernels". */
export function count(number: number, noun: string): string {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** The last part of a URI's path. */
export function fileName(uri: string): string {
  const name = uri.slice(uri.lastIndexOf("/") + 1);
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** What is there, with dots between. */
export function joined(parts: readonly (string | null | undefined)[]): string {
  return parts.filter((part) => part !== null && part !== undefined && part !== "").join(" · ");
}
