// SPDX-License-Identifier: Apache-2.0
// The first minute: a machine with a Python and no gpadvisor, an empty folder, the walkthrough's first step. The user
// agrees to the set-up, which takes its wheels from a folder, and there is advice without a GPU.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { need, WAIT, withCodeServer } from "./code-server.mjs";

/** Making an environment is work for disk and processor. */
const SET_UP = { timeout: 420_000 };

export async function sample() {
  const folder = mkdtempSync(path.join(tmpdir(), "gpadvisor-empty-"));
  const workspace = path.join(folder, "workspace");
  mkdirSync(workspace);
  const options = {
    name: "sample",
    workspace,
    path: [pythonFolder(folder), "/usr/bin", "/bin"].join(path.delimiter),
    settings: { "workbench.startupEditor": "welcomePage" },
    machine: { "gpadvisor.wheelFolder": need("WHEELS") },
  };
  try {
    await withCodeServer(options, firstAdvice);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function firstAdvice({ page, open, palette, shot }) {
  await open([]);
  await page.locator(".getting-started-category", { hasText: "Find out why your kernels wait" }).first().click(WAIT);
  const button = page.locator(".getting-started-step .monaco-button", { hasText: "Open Sample" });
  await button.waitFor(WAIT);
  await shot("walkthrough");
  const start = performance.now();
  const parts = [];
  const done = (what) => parts.push(`${what} ${((performance.now() - start) / 1000).toFixed(1)}`);
  await button.click();

  const editor = page.locator(".monaco-editor[data-uri$='thermal_stencil.cu']");
  await editor.locator(".view-line", { hasText: "result = centre" }).waitFor(WAIT);
  const notification = page.locator(".notification-list-item");
  await palette("Notifications: Show Notifications"); // a toast may have come and gone already
  const question = notification.filter({ hasText: /needs its Python environment.*from .*wheels/ });
  await question.waitFor(WAIT);
  done("question");
  await shot("setup");
  await question.locator(".monaco-button", { hasText: "Set Up" }).click(WAIT);
  await notification.filter({ hasText: /installing gpadvisor: \w/ }).waitFor(SET_UP);
  done("first package");
  await shot("installing");
  await notification.filter({ hasText: /installing gpadvisor/ }).waitFor({ ...SET_UP, state: "detached" });
  done("installed");

  await editor.locator(".view-line", { hasText: /result.=.centre.*\d.%/ }).waitFor(SET_UP);
  done("advice");
  console.log(`  seconds after "Open Sample": ${parts.join(", ")}`);
  await shot("sample");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+Home");
  const lens = editor.locator(".codelens-decoration", { hasText: /Strength Reduction.*modelled/ });
  await lens.first().waitFor(WAIT);
}

/** A folder for the PATH with the Python that the tests' own environment was made of. */
function pythonFolder(folder) {
  const asked = spawnSync(need("PYTHON"), ["-c", "import sys; print(sys._base_executable)"], { encoding: "utf8" });
  assert.equal(asked.status, 0, asked.stderr);
  const bin = path.join(folder, "bin");
  mkdirSync(bin);
  writeFileSync(path.join(bin, "python3"), `#!/bin/sh\nexec '${asked.stdout.trim()}' "$@"\n`, { mode: 0o755 });
  return bin;
}
