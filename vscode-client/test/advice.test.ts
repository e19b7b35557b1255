// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readAdvice } from "../src/decide/advice";
import { placesToLook } from "../src/decide/paths";

const hotspot = (side: "def" | "use", line: number | null): object => ({
  def: null,
  use: null,
  [side]: { file: "/src/a.cu", line },
});
const advice = (suggestion: object): string =>
  JSON.stringify({
    schema: "gpadvisor.advice/1",
    sources: [{ report_path: "/src/a.cu", local_path: "a.cu", method: "path suffix" }],
    kernels: [
      {
        name: "gather<1>",
        suggestions: [
          {
            code: "GPA202",
            name: "Code Reordering",
            title: "loads are used at once",
            evidence: "measured",
            speedup: { low: 1.05, expected: 1.2, high: 1.314 },
            hotspots: [hotspot("def", 9), hotspot("use", 9), hotspot("use", 7), hotspot("use", null)],
            scope: { kind: "loop", file: "/src/a.cu", line: 3 },
            suppressed: null,
            ...suggestion,
          },
        ],
      },
    ],
  });
const findings = (text: string): readonly unknown[] => {
  const read = readAdvice(text);
  return read.kind === "advice" ? read.findings : assert.fail(read.reason);
};

describe("readAdvice", () => {
  it("puts one finding on each line, where the file is here", () => {
    const said = "Code Reordering: loads are used at once. Estimated 1.05-1.31x. [measured, gather<1>, converted advice]";
    assert.deepEqual(findings(advice({})), [
      { path: "a.cu", line: 8, code: "GPA202", message: said, hint: false },
      { path: "a.cu", line: 6, code: "GPA202", message: said, hint: false },
    ]);
  });
  it("hints at what was not measured, and gives no estimate where there is none", () => {
    const [found] = findings(advice({ evidence: "static", speedup: null })) as readonly { hint: boolean; message: string }[];
    assert.equal(found?.hint, true);
    assert.doesNotMatch(found.message, /Estimated/);
  });
  it("falls back to the scope", () => {
    assert.deepEqual((findings(advice({ hotspots: [] })) as readonly { line: number }[])[0]?.line, 2);
  });
  it("is silent about what the source suppresses", () => {
    assert.deepEqual(findings(advice({ suppressed: { file: "a.cu", line: 3, reason: "wanted" } })), []);
  });
  it("refuses other JSON and other schemas", () => {
    assert.equal(readAdvice("{").kind, "unusable");
    assert.equal(readAdvice("[1]").kind, "unusable");
    assert.equal(readAdvice('{"schema": "gpadvisor.advice/2"}').kind, "unusable");
  });
  for (const [what, hostile] of [
    ["kernels that are none", { schema: "gpadvisor.advice/1", kernels: 7 }],
    ["a line that is none", JSON.parse(advice({ hotspots: [hotspot("def", -3), hotspot("use", 1.5)], scope: 1 })) as object],
    ["names of the prototype", { schema: "gpadvisor.advice/1", kernels: [{ __proto__: null, constructor: {} }] }],
  ] as const) {
    it(`finds nothing in ${what}`, () => {
      assert.deepEqual(findings(JSON.stringify(hostile)), []);
    });
  }
  it("keeps messages and numbers of findings bounded", () => {
    const many = Array.from({ length: 5000 }, (_, at) => hotspot("def", at + 1));
    const found = findings(advice({ hotspots: many, title: "x".repeat(9999) })) as readonly { message: string }[];
    assert.equal(found.length, 2000);
    assert.equal(found[0]?.message.length, 1000);
  });
});

describe("placesToLook", () => {
  it("tries the advice's folder and the workspace, with shorter and shorter ends", () => {
    assert.deepEqual(placesToLook("/src/app/a.cu", "/ws/out/run.gpadvisor.json", "/ws"), [
      "/ws/out/src/app/a.cu",
      "/ws/src/app/a.cu",
      "/ws/out/app/a.cu",
      "/ws/app/a.cu",
      "/ws/out/a.cu",
      "/ws/a.cu",
    ]);
  });
  it("takes an absolute path of the workspace first", () => {
    assert.equal(placesToLook("/ws/a.cu", "/ws/run.gpadvisor.json", "/ws")[0], "/ws/a.cu");
  });
  it("never leaves the workspace", () => {
    const places = placesToLook("../../etc/passwd", "/ws/run.gpadvisor.json", "/ws");
    assert.ok(places.every((place) => place.startsWith("/ws/")), places.join());
  });
});
