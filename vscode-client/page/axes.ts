// SPDX-License-Identifier: Apache-2.0
// Logarithmic axes.

import { svg } from "./dom";

export const BOX = { width: 640, height: 400, left: 52, right: 500, top: 14, bottom: 356 };

export interface Axes {
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
  readonly xs: readonly [number, number];
  readonly ys: readonly [number, number];
}

export function axes(xs: readonly [number, number], ys: readonly [number, number]): Axes {
  const part = (value: number, [low, high]: readonly [number, number]): number =>
    Math.min(1, Math.max(0, Math.log(value / low) / Math.log(high / low)));
  return {
    x: (value) => BOX.left + part(value, xs) * (BOX.right - BOX.left),
    y: (value) => BOX.bottom - part(value, ys) * (BOX.bottom - BOX.top),
    xs,
    ys,
  };
}

/** Lines at 1, 10, 100 ..., and 2 and 5 between where there is room. */
export function decades([low, high]: readonly [number, number]): readonly number[] {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const steps = last - first <= 3 ? [1, 2, 5] : [1];
  const powers = Array.from({ length: last - first + 1 }, (_, at) => 10 ** (first + at));
  return powers.flatMap((power) => steps.map((step) => step * power)).filter((one) => one >= low && one <= high);
}

export function line(kind: string, from: readonly [number, number], to: readonly [number, number]): SVGLineElement {
  const [x1, y1, x2, y2] = [...from, ...to].map((one) => one.toFixed(1));
  return svg("line", { class: kind, x1, y1, x2, y2 });
}

export function label(kind: string, x: number, y: number, text: string): SVGTextElement {
  return svg("text", { class: kind, x: x.toFixed(1), y: y.toFixed(1) }, text);
}

/** Places at least `gap` apart, each as near to the wanted one as that allows; wanted from top to bottom. */
export function apart(wanted: readonly number[], gap: number): readonly number[] {
  const places: number[] = [];
  for (const one of wanted) {
    places.push(Math.max(one, (places.at(-1) ?? -Infinity) + gap));
  }
  return places;
}
