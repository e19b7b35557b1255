// SPDX-License-Identifier: Apache-2.0
// What a person sees and does: looks, hovers, takes the quick fix, saves. Short: class names are VS Code's own.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pickFirst, WAIT, withCodeServer } from "./code-server.mjs";

export async function person(workspace) {
  await withCodeServer({ name: "person", workspace }, async (driven) => {
    const { page, workspace: folder, open, remote, palette, shot } = driven;
    const file = `${folder}/thermal_stencil.cu`;
    await open([["openFile", remote(file)]]);
    const editor = page.locator(".monaco-editor[data-uri$='thermal_stencil.cu']");
    const line = (text) => editor.locator(".view-line", { hasText: text });
    await editor.locator(".codelens-decoration a", { hasText: "of GPU time" }).first().waitFor(WAIT);
    await editor.locator(".codelens-decoration a", { hasText: /^Profile.this$/ }).waitFor(WAIT);
    await line("constexpr int kBlock").click();
    await page.keyboard.press("Control+b"); // room for the text

    await palette("GPAdvisor: Go to Next Hot Line");
    await line(/along_x.=.*\d.%/).waitFor(WAIT); // blanks are U+00A0 in the page
    assert.ok((await editor.locator(".glyph-margin-widgets .cgmr").count()) > 3, "bars in the gutter");
    await shot("advice");

    await line("along_x =").first().hover({ position: { x: 541, y: 9 } }); // on the literal
    const hover = page.locator(".monaco-hover", { hasText: "Strength Reduction" }).first();
    await hover.waitFor(WAIT);
    assert.match(await hover.textContent(), /^1\.\d+x \(\S+\): Strength Reduction, /, "the gain first");
    await shot("hover");
    await page.keyboard.press("Escape");

    await page.locator("[id='status.languageStatus']").click(WAIT);
    await page.locator(".hover-language-status", { hasText: "GPA A100" }).waitFor(WAIT);
    await shot("status");
    await page.keyboard.press("Escape");

    await findings(driven);

    await line("result = centre").click();
    await palette("GPAdvisor: Open SASS to the Side");
    const sass = page.locator(".monaco-editor[data-uri^='gpadvisor-sass:']");
    await sass.locator(".view-line", { hasText: "F2F.F64.F32" }).first().waitFor(WAIT);
    await shot("sass");

    await palette("View: Close Editors in Other Groups");
    await sass.waitFor({ ...WAIT, state: "detached" });

    await fix(page, line, shot);
    await page.keyboard.press("Control+s");
    await notified(page, palette, "the pattern is gone");
    await page.locator(".notification-list-item", { hasText: "analysing" }).waitFor({ ...WAIT, state: "detached" });
    await shot("fixed");
    assert.match(readFileSync(file, "utf8"), /west\] - 2\.0f \* centre/);
    await pickKernels(driven);
    await pythonKernel(driven);
  });
}

/** The tree of findings, and a report opened as a summary whose links lead to the lines. */
async function findings({ page, palette, shot }) {
  await palette("GPAdvisor: Focus on Findings View");
  const row = (text) => page.locator(".pane-body .monaco-list-row", { hasText: text }).first();
  await row(/thermal_stencil.*up to 1\.\d+x · .*% · .*s/).waitFor(WAIT);
  await row(/1\.\d+x Strength Reduction.*thermal_stencil\.cu:\d+/).click();
  const cursor = page.locator("[id='status.editor.selection']");
  await cursor.filter({ hasNotText: "Ln 1," }).waitFor(WAIT);
  await shot("findings");

  await page.keyboard.press("Control+p");
  await pickFirst(page, "run.ncu-rep", "run.ncu-rep");
  const report = page.frameLocator("iframe.webview").frameLocator("#active-frame");
  await report.getByText(/1\.\d+x \(.*\)/).first().waitFor(WAIT);
  await shot("summary");
  await report.getByRole("link", { name: /^thermal_stencil\.cu:3\d$/ }).first().click();
  await page.locator(".monaco-editor[data-uri$='thermal_stencil.cu'] .view-line", { hasText: "along_x =" }).waitFor(WAIT);
  await palette("View: Close Other Editors in Group");
  await page.keyboard.press("Control+b");
}

/** The profile of a Triton kernel: its Python file has lens, hints and heat. */
async function pythonKernel({ page, shot }) {
  await page.keyboard.press("Control+p");
  await pickFirst(page, "blend.py", "blend.py");
  const editor = page.locator(".monaco-editor[data-uri$='blend.py']");
  await editor.locator(".codelens-decoration a", { hasText: "of GPU time" }).first().waitFor(WAIT);
  await editor.locator(".view-line", { hasText: /total.\+=.*\d.%/ }).waitFor(WAIT);
  assert.ok((await editor.locator(".glyph-margin-widgets .cgmr").count()) > 3, "bars in the gutter");
  await shot("python");
}

/** Waits for a notification: its toast may have come and gone, and the list of all closes when there is none left. */
async function notified(page, palette, text) {
  const item = page.locator(".notifications-center .notification-list-item", { hasText: text });
  const end = performance.now() + WAIT.timeout;
  while ((await item.count()) === 0 && performance.now() < end) {
    await palette("Notifications: Show Notifications");
    await item.waitFor({ timeout: 3000 }).catch(() => undefined);
  }
  await item.waitFor(WAIT);
}

/** The pick list of a file whose lines two instantiations share, one of them launched twice; all by keyboard. */
async function pickKernels({ page, palette, shot }) {
  await page.keyboard.press("Control+p");
  await pickFirst(page, "gather.cu", "gather.cu");
  const editor = page.locator(".monaco-editor[data-uri$='gather.cu']");
  const lens = (text) => editor.locator(".codelens-decoration a", { hasText: text }).first().waitFor(WAIT);
  const pick = async (words, row) => {
    await palette("GPAdvisor: Select Kernel");
    await page.locator(".quick-input-title", { hasText: "Kernel that colours this file" }).waitFor(WAIT);
    await pickFirst(page, words, row, () => shot("pick"));
  };
  await palette("Notifications: Clear All Notifications");
  await lens(/gather<1>.*GPU.time/);
  await pick("gather<4>", "gather<4>");
  await lens(/showing.gather<4>/);
  await pick("launch 2", "launch 2");
  await lens(/showing.gather<1>/);
  const launch = page.locator(".quick-input-list .monaco-list-row", { hasText: "launch 2 of 2:" });
  const chosen = launch.filter({ has: page.locator(".codicon-check") });
  const end = performance.now() + WAIT.timeout;
  while (performance.now() < end) {
    await palette("GPAdvisor: Select Kernel");
    await launch.waitFor(WAIT);
    if ((await chosen.count()) > 0) {
      await page.keyboard.press("Escape");
      return;
    }
    await page.keyboard.press("Escape"); // the other launch is still being read
    await launch.waitFor({ ...WAIT, state: "hidden" });
  }
  assert.fail("the launch that was picked is not the chosen one");
}

/** The quick fix, by keyboard; it changes rounding, so that it asks, with the lines. */
async function fix(page, line, shot) {
  await line("along_x =").first().click({ position: { x: 200, y: 9 } });
  await page.keyboard.press("Control+Period");
  await page.locator(".action-widget", { hasText: /float literal/i }).waitFor(WAIT);
  await shot("menu");
  await page.keyboard.press("Enter");
  await page.locator(".monaco-dialog-box", { hasText: /\+ .*- 2\.0f \* centre/ }).waitFor(WAIT);
  await shot("asked");
  await page.keyboard.press("Enter");
  await line("- 2.0f").first().waitFor(WAIT);
}
