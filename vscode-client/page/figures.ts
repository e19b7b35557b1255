// SPDX-License-Identifier: Apache-2.0
// Figures as every output of gpadvisor has them (model/figures.py): no more digits than their interval supports.

import type { Estimate } from "./document";

interface Interval {
  readonly low: number;
  readonly expected: number;
  readonly high: number;
}

export function figure(value: number, places?: number): string {
  if (!Number.isFinite(value)) {
    return "unbounded";
  }
  if (Math.abs(value) >= 1e4) {
    return value.toExponential(1).replace("e+", "e+0").replace(/e\+0(\d\d)/, "e+$1");
  }
  const magnitude = Math.abs(value);
  return value.toFixed(places ?? (magnitude < 10 ? 2 : magnitude < 100 ? 1 : 0));
}

export function factor(value: number, places?: number): string {
  const digits = figure(value, places);
  return digits === "unbounded" ? digits : `${digits}x`;
}

/** `8.2x (4.5-8.4)`. */
export function gain(estimate: Pick<Estimate, "low" | "expected" | "high">): string {
  const of = finite(estimate);
  const digits = places(of);
  const low = figure(of.low, digits);
  const high = figure(of.high, digits);
  return `${factor(of.expected, digits)} (${low === high || low === "unbounded" ? high : `${low}-${high}`})`;
}

/** Whether a share of the samples stands for at least half of a gain, as logarithms; else a full unit gets less to do. */
export function explains(share: number, estimate: Estimate | null): boolean {
  const expected = estimate === null ? 1 : (estimate.expected ?? Infinity);
  return expected <= 1 || share >= 1 || -2 * Math.log(1 - share) >= Math.log(expected);
}

/** JSON has no infinity: null stands for it. */
function finite({ low, expected, high }: Pick<Estimate, "low" | "expected" | "high">): Interval {
  return { low: low ?? Infinity, expected: expected ?? Infinity, high: high ?? Infinity };
}

function places({ low, expected, high }: Interval): number {
  const width = Math.abs(high - low);
  if (!Number.isFinite(width)) {
    return 1;
  }
  if (width >= 20 || expected >= 100) {
    return 0;
  }
  return width < 0.25 || figure(expected, 1) === "1.0" ? 2 : 1;
}

export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) {
    return "-";
  }
  const hundred = 100 * share;
  if (hundred > 0 && hundred < 0.1) {
    return "<0.1 %";
  }
  return hundred >= 10 || hundred === 0 || hundred <= -10 ? `${hundred.toFixed(0)} %` : `${hundred.toFixed(1)} %`;
}

export function duration(nanoseconds: number | null): string {
  if (nanoseconds === null) {
    return "-";
  }
  if (nanoseconds === 0) {
    return "0 ns";
  }
  const power = Math.min(3, Math.max(0, Math.floor(Math.log10(nanoseconds) / 3)));
  return `${(nanoseconds / 1000 ** power).toPrecision(3)} ${["ns", "us", "ms", "s"][power] ?? ""}`;
}

/** `1.2e9` as people read it in a table. */
export function large(value: number): string {
  return Math.abs(value) >= 1e5 ? Math.round(value).toLocaleString("en") : value.toPrecision(4).replace(/\.?0+$/, "");
}

export function count(number: number): string {
  return number.toLocaleString("en");
}

export function plural(number: number, noun: string): string {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

export function words(reason: string): string {
  return reason.replaceAll("_", " ");
}

export function address(pc: number): string {
  return `0x${pc.toString(16).padStart(4, "0")}`;
}

/** The last part of a path. */
export function baseName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
}
