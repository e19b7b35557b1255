// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ageOf, statusItem } from "../src/decide/status";
import { statusBar } from "../src/decide/statusBar";
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

describe("statusBar", () => {
  const running = { kind: "running" } as const;
  const bar = (change: Partial<StatusParams> = {}, isCuda = true): ReturnType<typeof statusBar> =>
    statusBar(running, { ...SAID, ...change }, isCuda, { inputs: 2, best: null });
  it("says what was found, in which profile, and offers the list", () => {
    const shown = bar({ bar: "GPA: 3 findings, best 4.5x", profile: "/w/run.ncu-rep" });
    assert.equal(shown?.text, "GPA: 3 findings, best 4.5x · run");
    assert.equal(shown.steps[0]?.command, "gpadvisor.findings.focus");
    const long = bar({ bar: "GPA: 3 findings, best 4.5x", profile: `/w/owner_${"long".repeat(20)}_v2.ncu-rep` });
    assert.equal(long?.text, "GPA: 3 findings, best 4.5x · owner_l...glong_v2");
    assert.ok(long.text.length <= 50, "what a window 1000 pixels wide has room for");
  });
  it("has a step for each state that wants one, as the server names it", () => {
    const step = { title: "Import Profile", command: "gpadvisor.importProfile", argument: null };
    for (const state of ["noProfile", "error", "busy", "untrusted", "disabled", "noKernel"] as const) {
      assert.deepEqual(bar({ state, next: [step] })?.steps, [step], state);
    }
    assert.equal(bar({ state: "error" })?.severity, "warning");
    assert.equal(bar({ state: "busy" })?.icon, "loading~spin");
  });
  it("leaves files alone that are none of its business", () => {
    assert.equal(bar({ state: "noProfile" }, false), undefined);
    assert.equal(bar({ state: "noKernel" }, false), undefined);
    assert.notEqual(bar({ state: "idle" }, false), undefined);
    assert.equal(statusBar(running, undefined, false, undefined), undefined);
  });
  it("says of a CUDA source of which nothing was said yet that it will be", () => {
    assert.equal(statusBar(running, undefined, true, undefined)?.text, "GPA: starting");
  });
  it("tells of profiles where no source is shown", () => {
    for (const said of [undefined, { ...SAID, uri: null, state: "noProfile" } as const]) {
      const shown = statusBar(running, said, false, { inputs: 2, best: "4.5x" });
      assert.equal(shown?.text, "GPA: 2 inputs, best 4.5x");
      assert.equal(statusBar(running, said, false, { inputs: 1, best: null })?.text, "GPA: 1 input");
      assert.deepEqual(shown.steps.map(({ command }) => command), ["gpadvisor.findings.focus", "gpadvisor.importProfile"]);
    }
  });
  it("says before the server runs what is wrong, with what helps", () => {
    assert.equal(statusBar({ kind: "starting" }, undefined, true, undefined)?.text, "GPA: starting");
    const stopped = statusBar({ kind: "stopped", reason: "it ended too often" }, undefined, true, undefined);
    assert.deepEqual([stopped?.severity, stopped?.steps[0]?.command], ["error", "gpadvisor.restart"]);
    assert.deepEqual(stopped?.lines, ["it ended too often"]);
    assert.equal(statusBar({ kind: "restricted", shown: 1 }, undefined, true, undefined)?.steps[0]?.command, "workbench.trust.manage");
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
