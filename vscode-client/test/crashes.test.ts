// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { RestartBudget } from "../src/decide/crashes";

it("a server is started again four times within the span, and again once that has passed", () => {
  const budget = new RestartBudget(4, 1000);
  assert.deepEqual(
    [0, 100, 200, 300, 400].map((now) => budget.spend(now)),
    [true, true, true, true, false],
  );
  assert.equal(budget.spend(1350), true);
});
