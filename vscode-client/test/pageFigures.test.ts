// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Estimate } from "../page/document";
import { explains } from "../page/figures";

const of = (expected: number | null): Estimate => ({ low: 1, expected, high: null, paper: null, reason: "", cap: null });

describe("figures of the page", () => {
  it("names a share of the samples where it stands for half of the gain", () => {
    // All that half of the samples can give is 2x (GPA Eq. 2), of which 4x is the square.
    assert.deepEqual([of(3.9), of(4.1), of(null), of(1), null].map((one) => explains(0.5, one)), [true, false, false, true, true]);
    assert.equal(explains(1, of(null)), true);
  });
});
