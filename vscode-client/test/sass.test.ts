// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { heatOf, layOut, lineToReveal, linesOf, spelledOut } from "../src/decide/sass";
import type { SassResult, SassRow } from "../src/generated/protocol";

const row = (address: number, line: number | null, samples = 0, share: number | null = null): SassRow => ({
  address,
  text: `FADD R${address}, R1, R2`,
  control: "0-2---:-:3:Y:04",
  samples,
  share,
  reason: samples > 0 ? "long_scoreboard" : null,
  causes: 0,
  waitsFor: samples > 0 ? 0 : null,
  uri: line === null ? null : "file:///a.cu",
  line,
});
const RESULT: SassResult = {
  title: "gather<1>",
  kernel: "_Z6gather",
  arch: "sm_80",
  evidence: "measured",
  functions: [
    { name: "gather<1>", row: 0 },
    { name: "helper", row: 2 },
  ],
  rows: [row(0, 3), row(16, 4, 30, 0.3), row(0, 4, 50, 0.5), row(16, null)],
  truncated: 0,
  message: null,
};

describe("layOut", () => {
  const document = layOut(RESULT);
  const lines = document.text.split("\n");
  it("has one line for each instruction, and knows which", () => {
    document.rows.forEach((found, at) => {
      if (found !== undefined) {
        assert.ok(lines[at]?.includes(found.text), lines[at]);
      }
    });
    assert.equal(document.rows.filter(Boolean).length, 4);
  });
  it("puts each function's name before its first instruction", () => {
    const at = lines.indexOf("helper:");
    assert.equal(document.rows[at], undefined);
    assert.equal(document.rows[at + 1], RESULT.rows[2]);
  });
  it("aligns the control codes", () => {
    const columns = lines.filter((text) => text.includes("stall 4")).map((text) => text.indexOf("stall 4"));
    assert.equal(new Set(columns).size, 1);
  });
  it("says what an instruction waits for", () => {
    assert.ok(lines.some((text) => /^ +30\.0 % +long scoreboard <- 0x0000 +0x0010 {2}FADD/.test(text)), document.text);
    assert.ok(lines.some((text) => text.endsWith("; stall 4, wait B0 B2, write B3, yield")));
  });
  it("has what one looks for within the half of a window of 1000 pixels", () => {
    const narrow = 46; // letters of 14 pixels' height, beside a side bar
    assert.ok(lines.every((text) => !text.includes("<- 0x") || text.startsWith("//") || text.indexOf("<- 0x") + 8 <= narrow));
  });
  it("has no column of samples where nothing was sampled", () => {
    const bare = layOut({ ...RESULT, rows: [row(0, 3)], functions: [] });
    assert.ok(bare.text.split("\n").some((text) => text.startsWith("0x0000")));
  });
  it("says how much is not shown, and why nothing is", () => {
    assert.match(layOut({ ...RESULT, truncated: 12345 }).text, /12,345 more instructions/);
    assert.match(layOut({ ...RESULT, rows: [], functions: [], message: "no code" }).text, /\/\/ no code/);
  });
});

describe("the link between both sides", () => {
  const document = layOut(RESULT);
  it("finds all instructions of a line, and shows the one with most samples", () => {
    const lines = linesOf(document, "file:///a.cu", 4);
    assert.equal(lines.length, 2);
    assert.equal(document.rows[lineToReveal(document, lines) ?? 0]?.samples, 50);
  });
  it("finds none in another file", () => {
    assert.deepEqual(linesOf(document, "file:///b.cu", 4), []);
    assert.equal(lineToReveal(document, []), undefined);
  });
});

it("heat is relative to the hottest instruction", () => {
  const document = layOut(RESULT);
  assert.deepEqual(
    heatOf(document).map(({ level }) => level),
    [3, 5],
  );
});

it("is not red where no instruction stands out", () => {
  const rows = [row(0, 1, 10, 0.011), row(16, 1, 5, 0.006), row(32, 2, 1, 0.001)];
  assert.deepEqual(
    heatOf(layOut({ ...RESULT, rows, functions: [] })).map(({ level }) => level),
    [3, 2],
  );
});

describe("spelledOut", () => {
  it("names only what an instruction does", () => {
    assert.equal(spelledOut("------:-:-:-:02"), "stall 2");
    assert.equal(spelledOut("-1---5:4:-:-:13"), "stall 13, wait B1 B5, read B4");
  });
  it("leaves alone what it does not know", () => {
    assert.equal(spelledOut("something else"), "something else");
  });
});
