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

/** Steps of the walkthrough, with words of their pages. */
const STEPS = [
  ["Open the sample", "one step of heat conduction"],
  ["Read a finding", "Plan with the number"],
  ["Bring your own profile", "On the machine with the GPU"],
  ["Keep it in CI", "--fail-on"],
];

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

/** Each step of the walkthrough, in light and dark; the first one is open at the end. */
export async function walkthrough({ page, open, theme, shot }) {
  await page.setViewportSize({ width: 1600, height: 900 }); // in a narrow window a step has no page
  await open([]);
  await page.locator(".getting-started-category", { hasText: "Find out why your kernels wait" }).first().click(WAIT);
  const shown = page.frameLocator("iframe.webview.ready").frameLocator("#active-frame");
  for (const [label, base] of [["Light Modern", "vs"], ["Dark Modern", "vs-dark"]]) {
    await theme(label);
    await page.locator(`.monaco-workbench.${base}`).waitFor(WAIT);
    for (const [at, [title, text]] of [...STEPS.entries()].reverse()) {
      await page.locator(".getting-started-step", { hasText: title }).click(WAIT);
      await shown.getByText(text).first().waitFor(WAIT);
      for (const picture of await shown.locator("img").all()) {
        await expectPicture(picture);
      }
      await shot(`walkthrough-${at + 1}-${base}`);
    }
  }
  await page.setViewportSize({ width: 1280, height: 800 });
}

/** Waits until a picture is there; VS Code gives up on one after 30 s, which a busy machine may take. */
async function expectPicture(picture) {
  const end = performance.now() + WAIT.timeout;
  while (!(await picture.evaluate((one) => one.naturalWidth > 0))) {
    assert.ok(performance.now() < end, `${await picture.getAttribute("src")} is not shown`);
    await picture.evaluate((one) => one.complete && one.setAttribute("src", one.src));
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

async function firstAdvice(driven) {
  const { page, palette, shot } = driven;
  await walkthrough(driven);
  const button = page.locator(".getting-started-step .monaco-button", { hasText: "Open Sample" });
  await button.waitFor(WAIT);
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
