// SPDX-License-Identifier: Apache-2.0
// Events of a traced run as columns, and what of them a row of pixels shows.

export interface Lane {
  readonly kind: string;
  readonly label: string;
  readonly events: number;
  readonly data: string;
}

export interface Idleness {
  readonly device: number;
  readonly span_ns: number;
  readonly idle_ns: number;
  readonly gaps: number;
  readonly by_call: readonly { readonly name: string; readonly idle_ns: number; readonly gaps: number }[];
}

export interface Run {
  readonly trace: string;
  readonly span_ns: number;
  readonly names: readonly (readonly [string, string])[];
  readonly lanes: readonly Lane[];
  readonly left_out: number;
  readonly merged_ns: number;
  readonly devices: readonly Idleness[];
}

/** One lane's events by start; times are nanoseconds since the run's first event. */
export interface Events {
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly name: Uint32Array;
}

/** Unsigned LEB128 in base64: start since the one before, length and name of each event. */
export function decode({ events, data }: Lane): Events {
  const bytes = atob(data);
  const made = { start: new Float64Array(events), end: new Float64Array(events), name: new Uint32Array(events) };
  let [at, before] = [0, 0];
  const next = (): number => {
    let [value, factor] = [0, 1];
    for (;;) {
      const byte = bytes.charCodeAt(at);
      at += 1;
      value += (byte & 127) * factor;
      if (!(byte & 128)) { // also behind the end, where there is none
        return value;
      }
      factor *= 128;
    }
  };
  for (let row = 0; row < events; row += 1) {
    before += next();
    made.start[row] = before;
    made.end[row] = before + next();
    made.name[row] = next();
  }
  return made;
}

/** A part of a lane's picture, in pixels; `cover` is the share of it in which something happens. */
export interface Piece {
  readonly x: number;
  readonly width: number;
  readonly event: number; // the longest of it
  readonly cover: number;
}

/** What the pixels from one time to another show: events as wide as a pixel themselves, others added up by pixel. */
export function pieces({ start, end }: Events, from: number, to: number, width: number): Piece[] {
  const scale = width / Math.max(1, to - from);
  const found: Piece[] = [];
  let [pixel, cover, event, longest] = [-1, 0, 0, 0];
  const flush = (): void => {
    if (cover > 0) {
      found.push({ x: pixel, width: 1, event, cover: Math.min(1, cover) });
    }
    cover = longest = 0;
  };
  for (let row = firstIn(start, end, from); row < start.length && (start[row] ?? 0) < to; row += 1) {
    const [left, right] = [((start[row] ?? 0) - from) * scale, ((end[row] ?? 0) - from) * scale];
    if (right <= 0) {
      continue;
    }
    if (right - left >= 1) {
      const x = Math.max(0, left);
      found.push({ x, width: Math.min(width, right) - x, event: row, cover: 1 });
      continue;
    }
    const here = Math.max(0, Math.floor(left));
    if (here !== pixel) {
      flush();
      pixel = here;
    }
    const part = Math.max(right - left, 0.02); // what is there is seen, however short it is
    cover += part;
    if (part > longest) {
      [longest, event] = [part, row];
    }
  }
  flush();
  return found;
}

/** The event at a time, or the nearest one no further away than a tolerance; null where there is none. */
export function nearest({ start, end }: Events, time: number, tolerance: number): number | null {
  const at = firstIn(start, end, time);
  let [best, least] = [-1, tolerance];
  for (let row = Math.max(0, at - 1); row < Math.min(start.length, at + 3); row += 1) {
    const away = Math.max((start[row] ?? 0) - time, time - (end[row] ?? 0), 0);
    if (away <= least) {
      [best, least] = [row, away];
    }
  }
  return best < 0 ? null : best;
}

/** The first event that has not ended, of those that begin in order and rarely overlap. */
function firstIn(start: Float64Array, end: Float64Array, time: number): number {
  let [low, high] = [0, start.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((start[middle] ?? 0) < time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  while (low > 0 && (end[low - 1] ?? 0) > time) {
    low -= 1;
  }
  return low;
}
