// SPDX-License-Identifier: Apache-2.0
// Restricted Mode: no server, no compiler; the converted advice is shown. Trust given, the server starts. A language
// model's tools answer in a trusted workspace only, and run a program once the user has seen it and agreed.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { WAIT, withCodeServer } from "./code-server.mjs";
import { checkRecording } from "./recording.mjs";

const MODEL = fileURLToPath(new URL("model-extension", import.meta.url));

export async function restricted(workspace) {
  const options = { name: "restricted", workspace, trust: true, record: true, extension: MODEL };
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

    const call = async (tool, input) => {
      await palette("Model: Call a Tool");
      await page.locator(".quick-input-widget input:focus").waitFor(WAIT);
      await page.keyboard.insertText(`gpadvisor_${tool} ${JSON.stringify(input)}`);
      await page.keyboard.press("Enter");
    };
    const told = async (text) => {
      const notification = page.locator(".notification-toast", { hasText: text });
      await notification.first().waitFor(WAIT);
      await notification.first().hover();
      await notification.locator(".codicon-notifications-clear").first().click(WAIT);
      await notification.waitFor({ ...WAIT, state: "detached" });
    };
    await call("advise", { file: "run.ncu-rep" });
    await told("Refused: the workspace is not trusted");

    await page.locator(".statusbar-item", { hasText: "Restricted Mode" }).first().click();
    await page.locator(".workspace-trust-editor .monaco-button", { hasText: /^Trust$/ }).first().click(WAIT);
    await editor.locator(".codelens-decoration", { hasText: "of GPU time" }).waitFor(WAIT);
    assert.ok(existsSync(path.join(root, "started")));
    checkRecording(path.join(root, "sent"));

    await page.locator("[class*=modal-editor]").getByRole("button", { name: /^Close/ }).first().click(WAIT);
    await page.locator(".workspace-trust-editor").waitFor({ ...WAIT, state: "detached" });
    await call("advise", { file: "run.ncu-rep" });
    await told(/Answer: [1-9]/);
    const ran = path.join(root, "ran");
    const dialog = page.locator(".monaco-dialog-box", { hasText: "Run this program under the profiler?" });
    for (const [button, answer] of [["Cancel", "Refused: Canceled"], ["Yes", "Refused: "]]) {
      await call("profile", { command: ["touch", ran, `${ran}; \u{202e}echo`] });
      await dialog.getByText(`touch ${ran} '${ran}; \u{FFFD}echo'`).waitFor(WAIT);
      assert.ok(!existsSync(ran), "it has not run yet");
      await shot("tool");
      await dialog.getByRole("button", { name: button }).click(WAIT);
      await told(answer);
    }
    assert.ok(existsSync(ran), "it has run, and there was no kernel to measure");
  });
}
