// SPDX-License-Identifier: Apache-2.0
// The page's model is that of Python, on the cases that tests/what_if_cases.py wrote.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { type Change, type CycleParts, whatIf } from "../page/model";
import type { ModelInputs } from "../page/potentialDocument";

const CYCLES = 1e-3; // differences of large numbers

interface Case {
  readonly inputs: ModelInputs;
  readonly cycles: number;
  readonly change: Change;
  readonly speedup: number;
  readonly parts: CycleParts;
}

// The tests run in vscode-client.
const CASES = JSON.parse(readFileSync(path.resolve("../tests/what_if_cases.json"), "utf8")) as Case[];

test("what-if is what Python says", () => {
  assert.ok(CASES.length > 50);
  for (const { inputs, cycles, change, speedup, parts } of CASES) {
    const found = whatIf(inputs, cycles, change);
    near(found.speedup, speedup);
    const { benefits, ...sums } = parts;
    for (const [name, value] of Object.entries(sums)) {
      near(found.parts[name as keyof typeof sums], value, CYCLES);
    }
    for (const [name, value] of Object.entries(benefits)) {
      near(found.parts.benefits[name as keyof typeof benefits], value, CYCLES);
    }
  }
});

function near(one: number, other: number, slack = 0): void {
  assert.ok(Math.abs(one - other) <= 1e-9 * Math.abs(other) + slack, `${one} and ${other}`);
}
