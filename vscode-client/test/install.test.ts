// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, it } from "node:test";
import { PROBE_SCRIPT, readProbe } from "../src/decide/environment";
import { byHand, environmentPython, installSteps, lastWords, packageIn, pipChecks } from "../src/decide/install";
import { run } from "../src/processes";

const PYTHON = process.env["PYTHON"] ?? "python3";
const PLAN = {
  python: ["python3"] as const,
  folder: "/data/it's here/environment",
  wheel: "/ext/gpadvisor-0.1.0-py3-none-any.whl",
  requirements: "/ext/requirements.txt",
  wheelFolder: "",
  windows: false,
  ownPip: false,
};

describe("installSteps", () => {
  it("takes wheels with known hashes from the network, and its own wheel from where it is", () => {
    const [, fill, own] = installSteps(PLAN).map(({ command }) => command.join(" "));
    assert.match(fill ?? "", /--only-binary :all: --require-hashes -r \/ext\/requirements\.txt$/);
    assert.doesNotMatch(fill ?? "", /--no-index/);
    assert.match(own ?? "", /--no-index --no-deps \/ext\/gpadvisor-0\.1\.0-py3-none-any\.whl$/);
  });
  it("asks no network where there is a folder of wheels", () => {
    const fill = byHand(installSteps({ ...PLAN, wheelFolder: "/wheels" }));
    assert.match(fill, /--no-index --find-links \/wheels/);
    assert.match(fill, /--only-binary :all:/);
    assert.doesNotMatch(fill, /--require-hashes/);
  });
  it("can be typed into a shell", () => {
    const said = byHand(installSteps(PLAN));
    assert.ok(said.includes(`'/data/it'\\''s here/environment'`));
    assert.ok(said.includes(" && "));
  });
  it("takes the maker's pip where that can, else unpacks one", () => {
    const [make, fill] = installSteps({ ...PLAN, ownPip: true });
    assert.ok(make?.command.includes("--without-pip"));
    assert.deepEqual(fill?.command.slice(0, 5), ["python3", "-m", "pip", "--python", `${PLAN.folder}/bin/python`]);
    assert.deepEqual(installSteps(PLAN)[1]?.command.slice(0, 3), [`${PLAN.folder}/bin/python`, "-m", "pip"]);
  });
  it("knows where Windows keeps its Python", () => {
    assert.equal(environmentPython("C:\\e", true), "C:\\e\\Scripts\\python.exe");
  });
});

describe("lastWords", () => {
  it("are the end of what was printed", () => {
    assert.equal(lastWords("a\nb\nc\nERROR: no\n", 2), "c\nERROR: no");
  });
});

describe("packageIn", () => {
  it("is what pip is at", () => {
    assert.equal(packageIn("Collecting numpy>=1.26 (from gpadvisor==0.1.0)\n"), "numpy");
    assert.equal(packageIn("  Downloading nvidia_cuda_nvrtc-13.5.37-py3-none-any.whl (56 MB)\n"), "nvidia_cuda_nvrtc");
    assert.equal(packageIn("Processing ./wheels/tree_sitter_cuda-0.21.2-cp310.whl (from x)\nnoise"), "tree_sitter_cuda");
    assert.equal(packageIn("Collecting tree-sitter-cuda>=0.20\nCollecting numpy\n"), "numpy");
    assert.equal(packageIn("Installing collected packages: numpy, attrs"), "unpacking");
    assert.equal(packageIn("Successfully installed numpy-2.4.6\n"), undefined);
  });
});

/** A wheel of gpadvisor with nothing in it but its metadata. */
const MAKE_WHEEL = `
import sys, zipfile
folder, version = sys.argv[1:]
info = f"gpadvisor-{version}.dist-info"
with zipfile.ZipFile(f"{folder}/gpadvisor-{version}-py3-none-any.whl", "w") as wheel:
    wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\\nName: gpadvisor\\nVersion: {version}\\nProvides-Extra: compile\\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(f"{info}/RECORD", "")
`;

describe("the steps", () => {
  it("make an environment that answers with the wheel's version, and upgrade it", { timeout: 120_000 }, async () => {
    const root = mkdtempSync(path.join(tmpdir(), "gpadvisor-install-"));
    try {
      for (const [version, ownPip] of [["0.1.0", false], ["0.2.0", true]] as const) {
        spawnSync(PYTHON, ["-c", MAKE_WHEEL, root, version]);
        const folder = path.join(root, "environment");
        const plan = {
          python: [PYTHON] as const,
          folder,
          wheel: path.join(root, `gpadvisor-${version}-py3-none-any.whl`),
          requirements: "",
          wheelFolder: root,
          windows: false,
        };
        const steps = installSteps({ ...plan, ownPip });
        for (const command of [...(ownPip ? pipChecks(plan) : []), ...steps.map((step) => step.command)]) {
          const done = await run(command, { cwd: root, timeoutMilliseconds: 100_000 });
          assert.equal(done.code, 0, `${command.join(" ")}: ${done.errors}`);
        }
        const said = await run([environmentPython(folder, false), "-c", PROBE_SCRIPT], {
          cwd: root,
          timeoutMilliseconds: 20_000,
        });
        const probe = readProbe(said.output);
        assert.equal(probe.kind === "ready" && probe.gpadvisor, version);
      }
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });
  it("end with pip's own words where a wheel is missing", { timeout: 120_000 }, async () => {
    const root = mkdtempSync(path.join(tmpdir(), "gpadvisor-install-"));
    try {
      const done = await run(
        [PYTHON, "-m", "pip", "install", "--no-index", "--find-links", root, "gpadvisor==99"],
        { cwd: root, timeoutMilliseconds: 100_000 },
      );
      assert.notEqual(done.code, 0);
      assert.match(lastWords(done.errors), /No matching distribution/);
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });
});

describe("run", () => {
  it("says that a program does not exist", async () => {
    const done = await run(["/nowhere/python"], { cwd: tmpdir(), timeoutMilliseconds: 1000 });
    assert.match(done.errors, /ENOENT/);
  });
  it("ends what does not answer", async () => {
    const done = await run([PYTHON, "-c", "import time; time.sleep(60)"], {
      cwd: tmpdir(),
      timeoutMilliseconds: 300,
    });
    assert.match(done.errors, /no answer within 0\.3 seconds/);
  });
  it("imports nothing from the folder it runs in", async () => {
    const root = mkdtempSync(path.join(tmpdir(), "gpadvisor-hostile-"));
    try {
      writeFileSync(path.join(root, "importlib.py"), "raise SystemExit('hostile')");
      writeFileSync(path.join(root, "gpadvisor.py"), "raise SystemExit('hostile')");
      const probed = await run([PYTHON, "-c", PROBE_SCRIPT], { cwd: root, timeoutMilliseconds: 20_000 });
      assert.notEqual(readProbe(probed.output).kind, "failed", probed.errors);
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });
});
