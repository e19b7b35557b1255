// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type Candidate,
  chooseEnvironment,
  compareVersions,
  environmentMakers,
  type Probe,
  type Probed,
  readProbe,
} from "../src/decide/environment";

const ready = (gpadvisor: string): Probe => ({ kind: "ready", python: "3.12.1", gpadvisor });
const of = (origin: Candidate["origin"], name: string, probe: Probe): Probed => ({
  candidate: { command: [name], origin },
  probe,
});
const EMPTY: Probe = { kind: "empty", python: "3.12.1" };
const FAILED: Probe = { kind: "failed", reason: "not found" };

describe("compareVersions", () => {
  for (const [older, newer] of [
    ["0.1.0", "0.1.1"],
    ["0.9.0", "0.10.0"],
    ["1.0", "1.0.1"],
    ["1.0.0rc1", "1.0.0"],
    ["0.1.0.dev3", "0.1.0"],
  ] as const) {
    it(`${older} is older than ${newer}`, () => {
      assert.equal(compareVersions(older, newer), -1);
      assert.equal(compareVersions(newer, older), 1);
    });
  }
  it("takes 1.0 for 1.0.0", () => {
    assert.equal(compareVersions("1.0", "1.0.0"), 0);
  });
});

describe("readProbe", () => {
  it("reads both versions", () => {
    assert.deepEqual(readProbe("3.11.2\n0.1.0\n"), { kind: "ready", python: "3.11.2", gpadvisor: "0.1.0" });
  });
  it("sees a Python without gpadvisor", () => {
    assert.deepEqual(readProbe("3.13.0\r\n\r\n"), { kind: "empty", python: "3.13.0" });
  });
  it("refuses an old Python, whatever it has", () => {
    assert.deepEqual(readProbe("3.10.9\n0.1.0\n"), { kind: "old", python: "3.10.9" });
  });
  it("does not take another program's words for versions", () => {
    assert.equal(readProbe("usage: python [option]").kind, "failed");
  });
});

describe("chooseEnvironment", () => {
  it("takes the setting, even where it is older than the bundled wheel", () => {
    const choice = chooseEnvironment([of("setting", "/opt/py", ready("0.0.9"))], "0.1.0", "fromEnvironment");
    assert.equal(choice.kind, "run");
  });
  it("refuses a setting that cannot be used, and does not look further", () => {
    for (const probe of [EMPTY, FAILED, { kind: "old", python: "3.9.0" } as const]) {
      const choice = chooseEnvironment([of("setting", "/opt/py", probe)], "0.1.0", "fromEnvironment");
      assert.equal(choice.kind, "refuse");
      assert.match(choice.reason, /gpadvisor\.interpreter \(\/opt\/py\)/);
    }
  });
  it("prefers the first environment that is new enough", () => {
    const probed = [
      of("python extension", "/venv/python", ready("0.0.9")),
      of("PATH", "python3", ready("0.2.0")),
      of("private", "/own", ready("0.1.0")),
    ];
    const choice = chooseEnvironment(probed, "0.1.0", "fromEnvironment");
    assert.deepEqual(choice.kind === "run" && choice.candidate.command, ["python3"]);
  });
  it("takes its own environment where the machine has none, or where it is told to", () => {
    const own = of("private", "/own", ready("0.1.0"));
    for (const [probed, strategy] of [
      [[of("PATH", "python3", EMPTY), own], "fromEnvironment"],
      [[of("PATH", "python3", ready("9.0.0")), own], "useBundled"],
    ] as const) {
      const choice = chooseEnvironment(probed, "0.1.0", strategy);
      assert.equal(choice.kind === "run" && choice.candidate.origin, "private");
    }
  });
  it("asks for a new set-up after an upgrade of the extension, and after a downgrade", () => {
    for (const installed of ["0.1.0", "0.3.0"]) {
      const choice = chooseEnvironment([of("private", "/own", ready(installed))], "0.2.0", "fromEnvironment");
      assert.equal(choice.kind, "install");
      assert.match(choice.reason, new RegExp(`${installed}.*0\\.2\\.0`));
    }
  });
  it("says that an environment is too old", () => {
    const choice = chooseEnvironment([of("PATH", "python3", ready("0.0.1"))], "0.1.0", "fromEnvironment");
    assert.match(choice.kind === "install" ? choice.reason : "", /0\.0\.1 in python3 is older/);
  });
});

describe("environmentMakers", () => {
  it("are Pythons that are new enough, never the environment itself", () => {
    const makers = environmentMakers([
      of("PATH", "python2", { kind: "old", python: "2.7.18" }),
      of("PATH", "python", FAILED),
      of("PATH", "python3", EMPTY),
      of("private", "/own", ready("0.1.0")),
    ]);
    assert.deepEqual(
      makers.map(({ command }) => command[0]),
      ["python3"],
    );
  });
});
