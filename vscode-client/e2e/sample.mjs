// SPDX-License-Identifier: Apache-2.0
// The first minute: an empty folder, the walkthrough's first step, and there is advice without a GPU.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { WAIT, withCodeServer } from "./code-server.mjs";

export async function sample() {
  const workspace = mkdtempSync(path.join(tmpdir(), "gpadvisor-empty-"));
  try {
    const settings = { "workbench.startupEditor": "welcomePage" };
    await withCodeServer({ name: "sample", workspace, settings }, async ({ page, open, shot }) => {
      await open([]);
      await page.locator(".getting-started-category", { hasText: "Find out why your kernels wait" }).first().click(WAIT);
      const button = page.locator(".getting-started-step .monaco-button", { hasText: "Open Sample" });
      await button.waitFor(WAIT);
      await shot("walkthrough");
      await button.click();
      const editor = page.locator(".monaco-editor[data-uri$='thermal_stencil.cu']");
      await editor.locator(".view-line", { hasText: /result.=.centre.*\d.%/ }).waitFor(WAIT);
      await shot("sample");
      await page.keyboard.press("Control+Home");
      const lens = editor.locator(".codelens-decoration", { hasText: /modelled.*GPA102/ });
      await lens.first().waitFor(WAIT);
    });
  } finally {
    rmSync(workspace, { recursive: true, force: true });
  }
}
