// SPDX-License-Identifier: Apache-2.0
// Other people's reports with their own sources open: what somebody sees who opens one for the first time. The three
// that everybody may have; asked for by name also those of all measured pairs, with a line for each in foreign.md
// beside the pictures. FOREIGN_ONLY is a pattern of their names. Each is met in the next look, light, dark and both
// high contrasts, in a large and a small window; FOREIGN_LOOKS=all then shows it in all of them.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { need, SHOTS, WAIT, withCodeServer } from "./code-server.mjs";

const ROOT = path.join(path.dirname(fileURLToPath(import.meta.url)), "../..");
const PROFILES = path.join(ROOT, "../shared/profiles");
/** Settings and labels. */
const THEMES = {
  light: ["Default Light Modern", "Light Modern"],
  dark: ["Default Dark Modern", "Dark Modern"],
  "hc-dark": ["Default High Contrast", "Dark High Contrast"],
  "hc-light": ["Default High Contrast Light", "Light High Contrast"],
};
const SIZES = [
  { width: 1400, height: 900 },
  { width: 1000, height: 700 },
];
const LOOKS = Object.keys(THEMES).flatMap((theme) => SIZES.map((size) => ({ theme, size })));
const HEADER = "| report | look | what the first ten seconds show | and then |\n|---|---|---|---|\n";
const TEN_SECONDS = 10_000;

export async function foreign(_workspace, all) {
  if (!existsSync(path.join(PROFILES, "pairs.json"))) {
    console.log("  skipped: ../shared/profiles is not at hand");
    return;
  }
  const folder = mkdtempSync(path.join(tmpdir(), "gpadvisor-foreign-"));
  try {
    const reports = layOut(folder, all);
    const empty = path.join(folder, "empty");
    spawnSync("mkdir", [empty]);
    await withCodeServer({ name: "foreign", workspace: empty }, async (driven) => {
      const rows = [];
      const silent = [];
      for (const [at, report] of reports.entries()) {
        // Small windows in the second round of themes, and so on: neighbours are often of one repository.
        const look = LOOKS[(at * 2 + Math.floor(at / 4)) % LOOKS.length];
        const row = await firstContact(driven, report, look, all, (what) => {
          silent.push(`${report.name} ${what}`);
          console.log(`  wrong: ${report.name} ${what}`); // a run of an hour may be ended before its end
        });
        rows.push(`| ${report.name} | ${row.join(" | ")} |\n`);
        console.log(`  ${report.name}: ${row.join("; ")}`);
        writeFileSync(path.join(SHOTS, "foreign.md"), `${HEADER}${rows.join("")}`);
      }
      assert.deepEqual(silent, []);
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

/** Opens source and report as somebody would who has cloned the repository: look, what is seen early, and late. */
async function firstContact(driven, { name, folder, report, source }, look, all, wrong) {
  const { page, open, remote, set } = driven;
  set({ "workbench.colorTheme": THEMES[look.theme][0] });
  await page.setViewportSize(look.size);
  await open([["openFile", remote(path.join(folder, source ?? report))]], { folder });
  await page.locator(".tab").first().waitFor(WAIT);
  const opened = performance.now();
  const seconds = () => Math.round((performance.now() - opened) / 1000);
  await page.waitForTimeout(all ? TEN_SECONDS : 0);
  const early = all ? await said(page) : "";
  // On a slow machine what is being read is given its time; how long it took is said.
  await settled(page);
  const took = seconds();
  const late = await said(page);
  if (!/GPA: .*(finding|input|not in a profile|no kernel|does not compile)/.test(late) || /Reading/.test(late)) {
    wrong(`says only "${late}"`);
  }
  for (const one of process.env.FOREIGN_LOOKS === "all" ? from(look) : [look]) {
    await seen(driven, name, one, wrong);
  }
  const dressed = `${look.theme}, ${look.size.width}`;
  return [dressed, early === late ? late : early, early === late ? "" : `after ${took} s: ${late}`];
}

/** All looks, beginning with one; a theme takes longer to change than a size, and is chosen once. */
function from(look) {
  const rest = LOOKS.filter((other) => other !== look);
  return [look, ...rest.filter(({ theme }) => theme === look.theme), ...rest.filter(({ theme }) => theme !== look.theme)];
}

/** What must be in sight in each look: a status that is not red, with a next step. */
async function seen(driven, name, look, wrong) {
  const { page, shot, theme: choose } = driven;
  const { theme, size } = look;
  await page.setViewportSize(size);
  const base = { light: "vs", dark: "vs-dark", "hc-dark": "hc-black", "hc-light": "hc-light" }[theme];
  const worn = page.locator(`.monaco-workbench.${base}`);
  if ((await worn.count()) === 0) {
    await choose(THEMES[theme][1]);
    await worn.waitFor(WAIT);
  }
  await page.waitForTimeout(500); // the window lays itself out anew
  await shot(`foreign-${name}-${theme}-${size.width}`);
  const inThis = (what) => wrong(`${what} (${theme}, ${size.width})`);
  const bar = page.locator("[id$='gpadvisor.bar']");
  const box = (await bar.count()) > 0 ? await bar.boundingBox() : null;
  if (box === null || box.y + box.height > size.height) {
    inThis("has a status out of sight"); // what does not fit is wrapped to below the window
  }
  if ((await page.locator("[id$='gpadvisor.bar'].error-kind").count()) > 0) {
    inThis("is red");
  }
  if ((await page.locator("[id$='gpadvisor.bar'] a:not(.disabled)").count()) === 0) {
    inThis("has no next step");
  }
}

/** Waits until what is said lasts: one analysis may follow another. */
async function settled(page) {
  const end = performance.now() + WAIT.timeout;
  for (let before = ""; performance.now() < end; ) {
    const now = await said(page);
    if (now === before && /GPA: (?!analysing|starting|looking|reading)/.test(now) && !now.includes("Reading the report")) {
      return;
    }
    before = now;
    await page.waitForTimeout(2000);
  }
}

/** Status, messages, lenses, the summary's best, and how many lines are underlined, in words. */
async function said(page) {
  const texts = async (within, selector) =>
    (await within.locator(selector).allTextContents().catch(() => [])).map((text) => text.replaceAll("\u00a0", " ").trim());
  const status = await texts(page, "[id$='gpadvisor.bar']");
  const messages = (await texts(page, ".notification-toast .notification-list-item-message")).slice(0, 1);
  const lenses = (await texts(page, ".codelens-decoration a")).filter((text) => text !== "Profile this");
  const lines = await page.locator(".squiggly-warning, .squiggly-info, .squiggly-error").count();
  const summary = await texts(page.frameLocator("iframe.webview").frameLocator("#active-frame"), "main > p:not(.quiet)");
  return [...status, ...lenses.slice(0, 2), ...summary.slice(0, 1), ...messages, lines > 0 ? `${lines} underlined in view` : ""]
    .filter((text) => text !== "")
    .join("; ")
    .replaceAll("|", "/");
}
