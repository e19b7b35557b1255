// SPDX-License-Identifier: Apache-2.0
// A traced run in the workspace: host code that leaves the GPU idle, and what a kernel's change is worth for the run.
import assert from "node:assert/strict";
import { pickFirst, WAIT, withCodeServer } from "./code-server.mjs";

export async function timeline(workspace) {
  await withCodeServer({ name: "timeline", workspace }, async (driven) => {
    const { page, workspace: folder, open, remote, palette, theme, shot } = driven;
    await open([["openFile", remote(`${folder}/simulate.cpp`)]]);
    const editor = page.locator(".monaco-editor[data-uri$='simulate.cpp']");
    await editor.locator(".view-line", { hasText: "void advance" }).click();
    await page.keyboard.press("Control+b"); // room for the text
    await editor.locator(".squiggly-info").first().waitFor(WAIT);
    for (const [label, name] of [["Light Modern", "light"], ["Dark Modern", "dark"]]) {
      await theme(label);
      await palette("GPAdvisor: Go to Next Finding");
      const hover = page.locator(".monaco-hover", { hasText: "Needless Wait" }).first();
      await hover.waitFor(WAIT);
      assert.match(await hover.textContent(), /^\d\.\d+x \(\S+\) of the whole run: Needless Wait: 200 calls/);
      await hover.getByText("of the whole run").first().waitFor(WAIT);
      await shot(`run-${name}`);
      await page.keyboard.press("Escape");
    }
    await page.keyboard.press("Control+p");
    await pickFirst(page, "thermal_stencil.cu", "thermal_stencil.cu");
    const kernel = page.locator(".monaco-editor[data-uri$='thermal_stencil.cu']");
    await kernel.locator(".codelens-decoration a", { hasText: /of.the.whole.run/ }).first().waitFor(WAIT);
    await palette("GPAdvisor: Go to Next Finding");
    const hover = page.locator(".monaco-hover", { hasText: "Strength Reduction" }).first();
    await hover.waitFor(WAIT);
    assert.match(await hover.textContent(), /x of the whole run: Strength Reduction/);
    await hover.getByText("run.sqlite").first().waitFor(WAIT);
    await shot("run-kernel");
  });
}
