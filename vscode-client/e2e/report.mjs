// SPDX-License-Identifier: Apache-2.0
// The report in a panel: what it says beside the JSON, links both ways, edits and new profiles, two profiles, hostile
// names, and how it looks in both themes.
import assert from "node:assert/strict";
import { copyFileSync, readFileSync, utimesSync } from "node:fs";
import path from "node:path";
import { pickFirst, WAIT, withCodeServer } from "./code-server.mjs";

export async function report(workspace) {
  const advice = JSON.parse(readFileSync(path.join(workspace, "run.json"), "utf8"));
  await withCodeServer({ name: "report", workspace }, async (driven) => {
    const { page, workspace: folder, open, remote, palette } = driven;
    for (const name of ["after.ncu-rep", "hostile.ncu-rep"]) {
      utimesSync(path.join(folder, name), 1e9, 1e9); // the other one is the newest, whenever each is read
    }
    page.setDefaultTimeout(WAIT.timeout);
    const refused = [];
    page.on("console", (message) => {
      if (/content security policy/i.test(message.text()) && message.location().url.includes("webview")) {
        refused.push(message.text());
      }
    });
    await page.setViewportSize({ width: 1700, height: 950 });
    await open([["openFile", remote(`${folder}/thermal_stencil.cu`)]]);
    const editor = page.locator(".monaco-editor[data-uri$='thermal_stencil.cu']");
    await editor.locator(".codelens-decoration a", { hasText: "of GPU time" }).first().waitFor(WAIT);
    await editor.locator(".view-line", { hasText: "constexpr int kBlock" }).click();
    await page.keyboard.press("Control+b"); // room for the text
    await palette("GPAdvisor: Show Report");
    const shown = page.frameLocator("iframe.webview:visible").frameLocator("#active-frame");
    await shown.locator("#notes").waitFor(WAIT);
    await contents(shown, advice);
    await links(driven, shown, editor, advice);
    await looks(driven, shown);
    await edited(driven, shown, editor, advice);
    await renewed(driven, shown);
    await beside(driven, shown);
    await hostile(driven, shown);
    assert.deepEqual(refused, []);
  });
}

const only = (number) => new RegExp(`^${number}$`);

/** The number of the cursor's line; the status bar has none while the panel has the focus. */
const cursor = (page) => page.locator(".monaco-editor[data-uri$='thermal_stencil.cu'] .active-line-number");

async function contents(shown, { kernels: [kernel] }) {
  assert.equal(await shown.locator("#advice h3").innerText(), kernel.name);
  const cures = kernel.suggestions.map((one) => one.cure ?? one.advice);
  await shown.locator("#advice .cure").nth(cures.length - 1).waitFor(WAIT);
  assert.deepEqual(await shown.locator("#advice .cure").allInnerTexts(), cures);
}

/** A click on a card, a line, an instruction or a frame opens the line; the cursor's line is the page's. */
async function links({ page }, shown, editor, { kernels: [kernel] }) {
  const [spot] = kernel.suggestions[0].hotspots;
  const { line } = spot.def ?? spot.use;
  await shown.locator("#advice .pick").first().click();
  await cursor(page).filter({ hasText: only(line) }).waitFor(WAIT);
  const at = () => shown.locator("#source-rows .row.current .line").innerText();
  assert.equal(await at(), String(line));
  for (const place of ["#machine-rows .row.coded:not(.picked)", "#source-rows .row.coded:not(.current)", "#tree .frame.line", "#roofline .region"]) {
    const target = shown.locator(place).first();
    if ((await target.count()) > 0) {
      await target.click();
      await cursor(page).filter({ hasText: only(await at()) }).waitFor(WAIT);
    }
  }
  for (const words of ["result = centre", "along_x ="]) {
    await editor.locator(".view-line", { hasText: words }).first().click();
    const wanted = await cursor(page).innerText();
    await shown.locator("#source-rows .row.current .line").filter({ hasText: only(wanted) }).waitFor(WAIT);
  }
}

async function looks({ page, theme, shot }, shown) {
  await shown.locator("#advice .pick").first().click();
  await page.locator(".part.editor").click({ position: { x: 200, y: 500 } });
  for (const [label, name] of [["Light Modern", "light"], ["Dark High Contrast", "contrast"], ["Dark Modern", "dark"]]) {
    await theme(label);
    const dark = name !== "light";
    await shown.locator(dark ? "body.vscode-dark, body.vscode-high-contrast" : "body.vscode-light").waitFor(WAIT);
    const [ground, ink] = await shown.locator("body").evaluate((body) => {
      const { backgroundColor, color } = globalThis.getComputedStyle(body);
      return [backgroundColor, color].map((one) => one.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0));
    });
    assert.equal(ground < ink, dark, `${name}: ${ground} ${ink}`);
    await shot(`report-${name}`);
  }
}

/** Lines move while one types: after the save a click finds them, and the page is the same one. */
async function edited({ page }, shown, editor, { kernels: [kernel] }) {
  const [spot] = kernel.suggestions[0].hotspots;
  const { line } = spot.def ?? spot.use;
  await editor.locator(".view-line", { hasText: "along_x =" }).first().click(); // the first one may be behind a pinned line
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("// one\n// two\n");
  await page.keyboard.press("Control+s");
  const end = performance.now() + WAIT.timeout;
  do {
    await shown.locator("#source-rows .row.coded").first().click();
    await shown.locator("#advice .pick").first().click();
    await page.waitForTimeout(300);
  } while ((await cursor(page).innerText()) !== String(line + 2) && performance.now() < end);
  assert.equal(await cursor(page).innerText(), String(line + 2));
}

async function renewed({ workspace, page, palette }, shown) {
  const before = await shown.locator("#kernel-rows .cell.number").first().innerText();
  copyFileSync(path.join(workspace, "run.ncu-rep"), path.join(workspace, "kept.ncu-rep"));
  copyFileSync(path.join(workspace, "after.ncu-rep"), path.join(workspace, "run.ncu-rep"));
  const after = shown.locator("#kernel-rows .body .cell.number").first();
  await after.filter({ hasNotText: before }).filter({ hasText: /714 us/ }).waitFor(WAIT);
  await page.locator(".tab", { hasText: "thermal_stencil.cu" }).click();
  await palette("View: Close All Editors"); // the comparison is then the only page in sight
}

/** Two profiles: predicted beside achieved, by line. */
async function beside({ page, palette, shot }, shown) {
  await palette("GPAdvisor: Compare Profiles");
  await page.locator(".quick-input-title", { hasText: "from after the change" }).waitFor(WAIT);
  await pickFirst(page, "after.ncu", "after.ncu-rep");
  await page.locator(".quick-input-title", { hasText: "from before the change" }).waitFor(WAIT);
  await pickFirst(page, "kept.ncu", "kept.ncu-rep");
  await shown.locator("#compared .result", { hasText: "1.40x, faster" }).waitFor(WAIT);
  assert.match(await shown.locator("#compared h2").innerText(), /kept\.ncu-rep/);
  const row = shown.locator("#compared-rows .body .row", { hasText: /GPA102/ }).first();
  await row.click();
  await shown.locator("#source-rows .row.current").waitFor(WAIT);
  await shot("report-compared");
}

/** Names with markup are text in the panel, too. */
async function hostile({ page, palette }, shown) {
  await palette("View: Close All Editors");
  await page.keyboard.press("Control+p");
  await pickFirst(page, "hostile.ncu-rep", "hostile.ncu-rep");
  await shown.getByText("<...>").first().waitFor(WAIT); // the summary has short names
  await palette("GPAdvisor: Show Report");
  await page.locator(".tab.active", { hasText: "Report: hostile.ncu-rep" }).click();
  await palette("View: Close Editors in Other Groups"); // the summary is a page, too
  await shown.locator("#kernel-rows .cell.name", { hasText: "&lt;kernel" }).waitFor(WAIT);
  assert.equal(await shown.locator("main img, main b, main script").count(), 0);
  assert.equal(await shown.locator("body").evaluate(() => "stolen" in globalThis), false);
}
