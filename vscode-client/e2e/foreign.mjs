// SPDX-License-Identifier: Apache-2.0
// Other people's reports with their own sources open: what somebody sees who opens one for the first time. Three
// reports in one theme, where they are at hand; with FOREIGN=all every measured pair's in light, dark and both high
// contrasts, in a large and a small window, with a line for each in foreign.md beside the pictures.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { need, SHOTS, WAIT, withCodeServer } from "./code-server.mjs";

const ROOT = path.join(path.dirname(fileURLToPath(import.meta.url)), "../..");
const PROFILES = path.join(ROOT, "../shared/profiles");
const THEMES = {
  light: "Default Light Modern",
  dark: "Default Dark Modern",
  "hc-dark": "Default High Contrast",
  "hc-light": "Default High Contrast Light",
};
const SIZES = [
  { width: 1400, height: 900 },
  { width: 1000, height: 700 },
];
const TEN_SECONDS = 10_000;

export async function foreign() {
  if (!existsSync(path.join(PROFILES, "pairs.json"))) {
    console.log("  skipped: ../shared/profiles is not at hand");
    return;
  }
  const all = process.env.FOREIGN === "all";
  const folder = mkdtempSync(path.join(tmpdir(), "gpadvisor-foreign-"));
  try {
    const reports = layOut(folder, all);
    const empty = path.join(folder, "empty");
    spawnSync("mkdir", [empty]);
    await withCodeServer({ name: "foreign", workspace: empty }, async (driven) => {
      const rows = [];
      for (const report of reports) {
        const row = await firstContact(driven, report, all);
        rows.push(`| ${report.name} | ${row} |\n`);
        console.log(`  ${report.name}: ${row}`);
        writeFileSync(path.join(SHOTS, "foreign.md"), `| report | what the first ten seconds show |\n|---|---|\n${rows.join("")}`);
      }
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Each report in a folder of its own; what is not at hand is said. */
function layOut(folder, all) {
  const made = spawnSync(need("PYTHON"), ["vscode-client/e2e/foreign.py", folder, ...(all ? ["--all"] : [])], {
    cwd: ROOT,
    env: { ...process.env, PYTHONPATH: ROOT },
    encoding: "utf8",
  });
  assert.equal(made.status, 0, made.stderr);
  const wanted = new RegExp(process.env.FOREIGN_ONLY ?? "");
  const found = made.stdout.trim().split("\n").map((line) => JSON.parse(line)).filter(({ name }) => wanted.test(name));
  for (const { name } of found.filter((one) => one.folder === null)) {
    console.log(`  skipped: ${name}, whose report is not at hand`);
  }
  return found.filter((one) => one.folder !== null);
}

/** Opens source and report as somebody would who has cloned the repository; one line on what is seen. */
async function firstContact({ page, open, remote, set, shot }, { name, folder, report, source }, all) {
  set({ "workbench.colorTheme": THEMES.light });
  await page.setViewportSize(SIZES[0]);
  const start = performance.now();
  await open([["openFile", remote(path.join(folder, source ?? report))]], { folder });
  await page.locator(".tab").first().waitFor(WAIT);
  const opened = performance.now();
  const bar = page.locator("[id$='gpadvisor.bar']");
  await bar.filter({ hasText: /GPA/ }).waitFor(WAIT);
  await page.waitForTimeout(Math.max(0, TEN_SECONDS - (performance.now() - opened)));
  const early = await said(page, bar);
  // On a slow machine what is being read is given its time; how long it took is said.
  await settled(page, bar);
  const late = await said(page, bar);
  const seconds = ((performance.now() - start) / 1000).toFixed(0);
  assert.match(late, /GPA: .*(finding|input|no profile|no kernel|failed)/, `${name} says nothing`);
  for (const [theme, label] of Object.entries(all ? THEMES : { light: THEMES.light })) {
    set({ "workbench.colorTheme": label });
    for (const size of all ? SIZES : SIZES.slice(0, 1)) {
      await page.setViewportSize(size);
      await page.waitForTimeout(all ? 700 : 0);
      await shot(`foreign-${name}-${theme}-${size.width}`);
    }
  }
  return early === late ? late : `${early}; after ${seconds} s: ${late}`;
}

/** Waits until the status says something that lasts: one analysis may follow another. */
async function settled(page, bar) {
  const end = performance.now() + 3 * WAIT.timeout;
  for (let before = ""; performance.now() < end; ) {
    const now = (await bar.allTextContents()).join(" ");
    if (now === before && /GPA: (?!analysing|starting)/.test(now)) {
      return;
    }
    before = now;
    await page.waitForTimeout(3000);
  }
}

/** Status, lenses, and how many lines are underlined or have a hint, in words. */
async function said(page, bar) {
  const texts = async (selector) =>
    (await page.locator(selector).allTextContents()).map((text) => text.replaceAll("\u00a0", " ").trim());
  const status = (await bar.allTextContents()).join(" ").trim();
  const lenses = (await texts(".codelens-decoration a")).filter((text) => text !== "Profile this");
  const lines = (await texts(".squiggly-warning, .squiggly-info, .squiggly-error")).length;
  const page_ = page.frameLocator("iframe.webview").frameLocator("#active-frame").locator(".headline, [role=status], aside li");
  const summary = (await page_.allTextContents().catch(() => [])).slice(0, 1);
  return [status, ...lenses.slice(0, 2), ...summary, lines > 0 ? `${lines} underlined in view` : ""]
    .filter((text) => text !== "")
    .join("; ")
    .replaceAll("|", "/");
}
