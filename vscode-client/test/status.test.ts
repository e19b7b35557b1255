// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ageOf, statusItem } from "../src/decide/status";
import type { StatusParams } from "../src/generated/protocol";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const SAID: StatusParams = {
  state: "idle",
  uri: "file:///a.cu",
  bar: "GPA: 5 findings, best 1.3x",
  text: "GPA",
  detail: "run.ncu-rep\ngather<1>: Limited by latency",
  next: [],
  device: "A100-SXM4-80GB",
  profile: "run.ncu-rep",
  collectedAt: "2026-03-01T09:30:00Z",
  evidence: "measured",
  kernel: "gather<1>",
  findings: 5,
  staleShare: 0.081,
};

describe("statusItem", () => {
  it("names device, age, advice and what is stale", () => {
    const shown = statusItem({ kind: "running" }, SAID, NOW);
    assert.equal(shown.text, "GPA A100 · 2 h ago · 5 advice · 8 % stale");
    assert.equal(shown.detail, "gather<1> · run.ncu-rep");
    const modelled = statusItem({ kind: "running" }, { ...SAID, evidence: "modelled" }, NOW);
    assert.equal(modelled.detail, "gather<1> · modelled · run.ncu-rep");
    assert.equal(shown.command?.command, "gpadvisor.selectKernel");
  });
  it("never calls a little staleness none", () => {
    assert.match(statusItem({ kind: "running" }, { ...SAID, staleShare: 0.001 }, NOW).text, / 1 % stale$/);
    assert.doesNotMatch(statusItem({ kind: "running" }, { ...SAID, staleShare: 0 }, NOW).text, /stale/);
  });
  it("is busy while the server works, and offers to stop it", () => {
    const shown = statusItem({ kind: "running" }, { ...SAID, state: "busy" }, NOW);
    assert.ok(shown.busy);
    assert.equal(shown.command?.command, "gpadvisor.cancel");
  });
  it("offers what helps in each stage", () => {
    const offered = (
      [
        { kind: "restricted", shown: 2 },
        { kind: "needsEnvironment", reason: "no Python" },
        { kind: "stopped", reason: "ended" },
      ] as const
    ).map((stage) => statusItem(stage, undefined, NOW).command?.command);
    assert.deepEqual(offered, ["workbench.trust.manage", "gpadvisor.installEnvironment", "gpadvisor.restart"]);
  });
  it("says in Restricted Mode that nothing runs", () => {
    const shown = statusItem({ kind: "restricted", shown: 1 }, SAID, NOW);
    assert.match(shown.detail, /nothing is compiled, read or run; 1 finding of/);
  });
});

describe("ageOf", () => {
  it("uses the largest unit", () => {
    assert.equal(ageOf("2023-02-26T12:00:00Z", NOW), "3 y ago");
    assert.equal(ageOf("2026-02-26T12:00:00Z", NOW), "3 d ago");
    assert.equal(ageOf("2026-03-01T11:59:50Z", NOW), "just now");
  });
  it("says nothing about a date that it cannot read", () => {
    assert.equal(ageOf("yesterday", NOW), undefined);
  });
});
