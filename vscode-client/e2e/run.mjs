// SPDX-License-Identifier: Apache-2.0
// All end-to-end tests, one fresh VS Code each: node e2e/run.mjs [name ...].
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { need } from "./code-server.mjs";
import { foreign } from "./foreign.mjs";
import { hostTests } from "./host.mjs";
import { pageTests } from "./page.mjs";
import { person } from "./person.mjs";
import { report } from "./report.mjs";
import { restricted } from "./restricted.mjs";
import { sample } from "./sample.mjs";
import { timeline } from "./timeline.mjs";

const ROOT = path.join(path.dirname(fileURLToPath(import.meta.url)), "../..");
const RUNS = { page: pageTests, host: hostTests, person, report, restricted, sample, timeline, foreign };

function makeWorkspace(folder) {
  const made = spawnSync(need("PYTHON"), [path.join(ROOT, "vscode-client/e2e/workspace.py"), folder], {
    cwd: ROOT,
    env: { ...process.env, PYTHONPATH: ROOT },
    encoding: "utf8",
  });
  if (made.status !== 0) {
    throw new Error(`the workspace could not be made: ${made.stderr}`);
  }
}

/** What is installed by hand is in the package, and only that. */
function checkPackage() {
  const listed = spawnSync(need("PYTHON"), ["-m", "zipfile", "-l", need("VSIX")], { encoding: "utf8" });
  assert.equal(listed.status, 0, listed.stderr);
  const names = listed.stdout.split("\n").slice(1).map((line) => line.split(" ")[0] ?? "");
  const parts = ["dist/extension.js", "dist/page.js", "dist/page.css", "bundled/requirements.txt", "bundled/sbom.json", "bundled/sample/thermal_stencil.cu"];
  for (const part of [...parts, "readme.md", "changelog.md", "LICENSE.txt", "media/view.svg"]) {
    assert.ok(names.includes(`extension/${part}`), `${part} is not in the package`);
  }
  assert.ok(names.some((name) => /^extension\/bundled\/gpadvisor-.*\.whl$/.test(name)));
  assert.deepEqual(names.filter((name) => /node_modules|\.ts$|\/e2e\/|\/src\//.test(name)), []);
}

checkPackage();
const wanted = process.argv.slice(2);
const folder = mkdtempSync(path.join(tmpdir(), "gpadvisor-workspace-"));
try {
  makeWorkspace(folder);
  for (const [name, run] of Object.entries(RUNS)) {
    if (wanted.length === 0 || wanted.includes(name)) {
      const start = performance.now();
      await run(path.join(folder, { host: "", report: "report", timeline: "timeline" }[name] ?? "main"), wanted.includes(name));
      console.log(`e2e: ${name} passed in ${((performance.now() - start) / 1000).toFixed(1)} s`);
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
