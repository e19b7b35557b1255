// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decode, nearest, pieces, type Events, type Lane } from "../page/stripData";

function packed(rows: readonly (readonly [number, number, number])[]): Lane {
  const bytes: number[] = [];
  for (const value of rows.flat()) {
    let rest = value;
    while (rest >= 128) {
      bytes.push((rest % 128) + 128);
      rest = Math.floor(rest / 128);
    }
    bytes.push(rest);
  }
  return { kind: "stream", label: "", events: rows.length, data: btoa(String.fromCharCode(...bytes)) };
}

function events(rows: readonly (readonly [number, number])[]): Events {
  return {
    start: Float64Array.from(rows, ([start]) => start),
    end: Float64Array.from(rows, ([, end]) => end),
    name: Uint32Array.from(rows, (_, at) => at),
  };
}

describe("decode", () => {
  it("gives back starts, ends and names, however large they are", () => {
    const found = decode(packed([[5, 3, 0], [130, 2 ** 40, 300], [2 ** 45, 0, 1]]));
    assert.deepEqual([...found.start], [5, 135, 135 + 2 ** 45]);
    assert.deepEqual([...found.end], [8, 135 + 2 ** 40, 135 + 2 ** 45]);
    assert.deepEqual([...found.name], [0, 300, 1]);
  });
  it("ends where the data end", () => {
    assert.equal(decode({ ...packed([[1, 1, 1]]), events: 3 }).start.length, 3);
  });
});

describe("pieces", () => {
  it("shows what is wider than a pixel as it is, cut at the edges", () => {
    const found = pieces(events([[0, 50], [60, 80], [90, 200]]), 10, 110, 100);
    assert.deepEqual(found.map(({ x, width, event }) => [x, width, event]), [[0, 40, 0], [50, 20, 1], [80, 20, 2]]);
  });
  it("adds up by pixel what is narrower, with the share of it and the longest", () => {
    const found = pieces(events([[0, 20], [30, 60], [150, 200]]), 0, 1000, 10);
    assert.deepEqual(found.map(({ x, event }) => [x, event]), [[0, 1], [1, 2]]);
    assert.ok(Math.abs((found[0]?.cover ?? 0) - 0.5) < 1e-9);
    assert.ok(Math.abs((found[1]?.cover ?? 0) - 0.5) < 1e-9);
  });
  it("has no more pieces than pixels, of however many events", () => {
    const many = events(Array.from({ length: 100_000 }, (_, at) => [10 * at, 10 * at + 5] as const));
    assert.equal(pieces(many, 0, 1_000_000, 800).length, 800);
    assert.equal(pieces(many, 5_000, 5_040, 800).length, 4);
  });
  it("shows what is too short to fill a part of a pixel", () => {
    assert.equal(pieces(events([[500, 500]]), 0, 1_000_000, 800).length, 1);
  });
});

describe("nearest", () => {
  it("is the event at a time, or the one next to it within reach", () => {
    const found = events([[0, 10], [20, 30], [40, 50]]);
    assert.equal(nearest(found, 25, 0), 1);
    assert.equal(nearest(found, 12, 3), 0);
    assert.equal(nearest(found, 38, 3), 2);
    assert.equal(nearest(found, 35, 3), null);
  });
});
