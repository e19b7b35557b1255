// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { byDrawing, drawnLevel, gutterIcon, LEVELS, neighbour } from "../src/decide/heat";
import type { HeatLine } from "../src/generated/protocol";

const line = (at: number, level: number, stale = false): HeatLine => ({
  line: at,
  level,
  stale,
  share: level / 10,
  text: "",
});

describe("gutterIcon", () => {
  it("tells levels apart by length, not by colour alone", () => {
    const widths = LEVELS.map((level) => /width="(\d+)" height="8"/.exec(gutterIcon(level, false, "dark"))?.[1]);
    assert.equal(new Set(widths).size, LEVELS.length);
  });
  it("is hollow where the line is stale", () => {
    assert.match(gutterIcon(3, true, "light"), /fill="none"/);
    assert.doesNotMatch(gutterIcon(3, false, "light"), /fill="none"/);
  });
});

describe("byDrawing", () => {
  it("groups by level and staleness and leaves out lines that the document does not have", () => {
    const groups = byDrawing([line(1, 5), line(2, 5, true), line(3, 5), line(99, 5), line(-1, 1)], 10);
    assert.deepEqual(
      [...groups].map(([key, lines]) => [key, lines.map((entry) => entry.line)]),
      [
        ["5", [1, 3]],
        ["5 stale", [2]],
      ],
    );
  });
  it("draws every level that a later server may send", () => {
    assert.equal(drawnLevel(0), 1);
    assert.equal(drawnLevel(7), 5);
  });
});

describe("neighbour", () => {
  const heat = [line(30, 5), line(10, 3), line(20, 1)];
  it("goes down and up through the hot lines, and around", () => {
    assert.equal(neighbour(heat, 0, 1), 10);
    assert.equal(neighbour(heat, 10, 1), 30);
    assert.equal(neighbour(heat, 30, 1), 10);
    assert.equal(neighbour(heat, 10, -1), 30);
  });
  it("takes all lines where none is hot, and none where there is no heat", () => {
    assert.equal(neighbour([line(4, 1)], 0, 1), 4);
    assert.equal(neighbour([], 0, 1), undefined);
  });
});
