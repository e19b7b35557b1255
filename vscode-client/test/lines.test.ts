// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { changeWords, olderFirst } from "../src/decide/comparison";
import { next } from "../src/decide/jumps";
import { kernelLines } from "../src/decide/kernels";
import type { OverviewEntry } from "../src/generated/protocol";

describe("kernelLines", () => {
  it("are those of definitions, as templates, with bounds and over several lines, too", () => {
    const text = [
      "template <int N>",
      "__global__ void one(float* a) {}",
      'extern "C" __global__ void __launch_bounds__(128, 2) two(',
      "    int n) {",
      "}",
      "static __global__",
      "void three(int (&x)[3])",
      "{",
    ];
    assert.deepEqual(kernelLines(text.join("\n")), [1, 2, 5]);
  });
  it("are not those of declarations, comments, directives and host functions", () => {
    const text = [
      "__global__ void declared(int n);",
      "// __global__ void said(int n) {}",
      "/* __global__ void",
      "   said(int n) {} */",
      "#define KERNEL __global__ void made(int n) \\",
      "  { }",
      "__device__ int helper(int n) { return n; }",
    ];
    assert.deepEqual(kernelLines(text.join("\n")), []);
  });
  it("are found in no time in a text that is none", () => {
    assert.deepEqual(kernelLines("__global__ (".repeat(20_000)), []);
  });
});

describe("next", () => {
  it("goes round both ends", () => {
    assert.deepEqual([next([9, 3], 3, 1), next([9, 3], 9, 1), next([9, 3], 3, -1), next([], 3, 1)], [9, 3, 9, undefined]);
  });
});

describe("a comparison", () => {
  const entry = (path: string, collectedAt: string | null): OverviewEntry => ({
    path,
    name: path,
    profile: true,
    reading: false,
    error: null,
    collectedAt,
    problems: [],
    kernels: [],
    left: 0,
  });
  it("says what a line gained or lost in words", () => {
    assert.deepEqual([changeWords(-120_000), changeWords(3e6)], ["120 us gained", "3 ms lost"]);
  });
  it("takes the older profile for the one before, and the order given where times are unknown", () => {
    const known = [entry("/new", "2026-03-02T00:00:00Z"), entry("/old", "2026-03-01T00:00:00Z"), entry("/none", null)];
    assert.deepEqual(olderFirst(["/new", "/old"], known), ["/old", "/new"]);
    assert.deepEqual(olderFirst(["/new", "/none"], known), ["/new", "/none"]);
  });
});
