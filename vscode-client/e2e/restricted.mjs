// SPDX-License-Identifier: Apache-2.0
// Restricted Mode: no server, no compiler; the converted advice is shown. Trust given, the server starts.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import path from "node:path";
import { WAIT, withCodeServer } from "./code-server.mjs";
import { checkRecording } from "./recording.mjs";

export async function restricted(workspace) {
  const options = { name: "restricted", workspace, trust: true, record: true };
  await withCodeServer(options, async ({ page, workspace: folder, open, remote, palette, shot, root }) => {
    await open([["openFile", remote(`${folder}/thermal_stencil.cu`)]]);
    const editor = page.locator(".monaco-editor[data-uri$='thermal_stencil.cu']");
    await editor.locator(".squiggly-info").first().waitFor(WAIT);
    await editor.locator(".view-line", { hasText: "constexpr int kBlock" }).click();
    await page.keyboard.press("F8");
    await page.locator(".zone-widget", { hasText: "converted advice" }).waitFor(WAIT);
    await shot("restricted");
    assert.ok(!existsSync(path.join(root, "started")), "no server was started");
    assert.equal(await editor.locator(".codelens-decoration").count(), 0);
    await palette("GPAdvisor: Show Report");
    const panel = page.frameLocator("iframe.webview").frameLocator("#active-frame");
    await panel.getByText("In Restricted Mode no report is read.").waitFor(WAIT);
    assert.equal(await panel.locator("script").count(), 0);

    await page.locator(".statusbar-item", { hasText: "Restricted Mode" }).first().click();
    await page.locator(".workspace-trust-editor .monaco-button", { hasText: /^Trust$/ }).first().click(WAIT);
    await editor.locator(".codelens-decoration", { hasText: "of GPU time" }).waitFor(WAIT);
    assert.ok(existsSync(path.join(root, "started")));
    checkRecording(path.join(root, "sent"));
  });
}
