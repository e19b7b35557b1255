// SPDX-License-Identifier: Apache-2.0
// Where the heat of a document goes: the gutter's bars, the overview ruler, and jumps between hot lines.

import type { HeatLine } from "../generated/protocol";
import { next } from "./jumps";

export const LEVELS = [1, 2, 3, 4, 5] as const;
export type Level = (typeof LEVELS)[number];

/** From pale to dark on a light ground and the reverse on a dark one; told apart without colour by length. */
const FILL: Readonly<Record<"light" | "dark", Readonly<Record<Level, string>>>> = {
  light: { 1: "#f2c14e", 2: "#f0a030", 3: "#e8791e", 4: "#d2491b", 5: "#a81a1a" },
  dark: { 1: "#8a6d1d", 2: "#b8801f", 3: "#e08a2c", 4: "#f2683c", 5: "#ff4d4d" },
};
const STALE = { light: "#9a9a9a", dark: "#7a7a7a" } as const;

/** A bar whose length is its level; hollow where the line was edited since the profile. */
export function gutterIcon(level: Level, stale: boolean, ground: "light" | "dark"): string {
  const width = 2 + 2 * level;
  const colour = stale ? STALE[ground] : FILL[ground][level];
  const shape = stale
    ? `<rect x="1.5" y="4.5" width="${Math.max(width - 1, 2)}" height="7" fill="none" stroke="${colour}" stroke-dasharray="2 1"/>`
    : `<rect x="1" y="4" width="${width}" height="8" rx="1" fill="${colour}"/>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16">${shape}</svg>`;
}

/** The theme colour of a level in the overview ruler. */
export function rulerColour(level: Level, stale: boolean): string {
  return stale ? "gpadvisor.heat.stale" : `gpadvisor.heat.level${level}`;
}

/** The level as one of those that are drawn. */
export function drawnLevel(level: number): Level {
  return LEVELS.find((known) => level <= known) ?? 5;
}

/** Lines by how they are drawn. */
export function byDrawing(lines: readonly HeatLine[], lineCount: number): ReadonlyMap<string, readonly HeatLine[]> {
  const groups = new Map<string, HeatLine[]>();
  for (const line of lines) {
    if (line.line >= 0 && line.line < lineCount) {
      const key = drawingKey(drawnLevel(line.level), line.stale);
      groups.set(key, [...(groups.get(key) ?? []), line]);
    }
  }
  return groups;
}

export function drawingKey(level: Level, stale: boolean): string {
  return `${level}${stale ? " stale" : ""}`;
}

const HOT_FROM = 3;

/** The next (`step` 1) or previous (-1) hot line after `from`, around the ends; hot: the upper levels, if any. */
export function neighbour(lines: readonly HeatLine[], from: number, step: 1 | -1): number | undefined {
  const upper = lines.filter(({ level }) => level >= HOT_FROM);
  return next((upper.length > 0 ? upper : lines).map(({ line }) => line), from, step);
}
