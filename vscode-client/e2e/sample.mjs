// SPDX-License-Identifier: Apache-2.0
// The first minute: an empty folder, "Open Sample" from the palette, and there is advice without a GPU.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { withCodeServer } from "./code-server.mjs";

const WAIT = { timeout: 60_000 };

export async function sample() {
  const workspace = mkdtempSync(path.join(tmpdir(), "gpadvisor-empty-"));
  try {
    await withCodeServer({ name: "sample", workspace }, async ({ page, open, shot }) => {
      await open([]);
      await page.locator(".monaco-workbench .statusbar").waitFor(WAIT);
      await page.keyboard.press("F1");
      await page.keyboard.type("GPAdvisor: Open Sample");
      await page.locator(".quick-input-list .monaco-list-row", { hasText: "Open Sample" }).first().waitFor(WAIT);
      await page.keyboard.press("Enter");
      const editor = page.locator(".monaco-editor[data-uri$='thermal_stencil.cu']");
      await editor.locator(".codelens-decoration", { hasText: "modelled" }).first().waitFor(WAIT);
      await editor.locator(".codelens-decoration", { hasText: "GPA102" }).first().waitFor(WAIT);
      await shot("sample");
    });
  } finally {
    rmSync(workspace, { recursive: true, force: true });
  }
}
