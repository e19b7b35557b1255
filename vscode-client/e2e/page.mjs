// SPDX-License-Identifier: Apache-2.0
// The page as a file in Chromium, without a network: what it shows beside the data that it was made of.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { need, SHOTS, WAIT } from "./code-server.mjs";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const ROOT = path.join(HERE, "../..");
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SCHEMES = ["light", "dark"];

export async function pageTests(workspace) {
  const root = mkdtempSync(path.join(tmpdir(), "gpadvisor-pages-"));
  const folder = path.join(root, "pages");
  mkdirSync(SHOTS, { recursive: true });
  let browser;
  try {
    const made = spawnSync(need("PYTHON"), [path.join(HERE, "pages.py"), path.join(workspace, "run.ncu-rep"), folder], {
      cwd: ROOT,
      env: { ...process.env, PYTHONPATH: ROOT },
      encoding: "utf8",
    });
    assert.equal(made.status, 0, made.stderr);
    browser = await chromium.launch({ executablePath: need("CHROMIUM"), headless: true, args: ["--no-sandbox"] });
    const open = (name, options) => opened(browser, path.join(folder, `${name}.html`), options);
    const data = (name) => JSON.parse(readFileSync(path.join(folder, `${name}.json`), "utf8"));
    await contents(await open("run"), data("run"));
    await links(await open("run"), data("run"));
    await keyboard(await open("run"), data("run"));
    await views(await open("demo"), data("demo"), data("what_if"));
    for (const colorScheme of SCHEMES) {
      await looks(await open("demo", { colorScheme }), colorScheme);
    }
    await looks(await open("run", { forcedColors: "active" }), "contrast");
    await printed(await open("run"), data("run"));
    await compared(await open("compared"), data("compared"));
    await hostile(await open("hostile"), data("hostile"));
    await large(await open("large"), path.join(folder, "large.html"), await opened(browser, path.join(folder, "empty.html"), {}, "body"));
    await long(await open("long"), data("long"));
  } finally {
    await browser?.close();
    rmSync(root, { recursive: true, force: true });
  }
}

/** A page of its own: a word on the console, an error or a request beyond the file fails the test. */
async function opened(browser, file, options = {}, ready = "#notes") {
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT.timeout);
  const wrong = [];
  page.on("console", (message) => wrong.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => { wrong.push("a dialog"); void dialog.dismiss(); });
  page.on("request", (request) => {
    if (request.url().split("#")[0] !== pathToFileURL(file).href) {
      wrong.push(`request: ${request.url()}`);
    }
  });
  await page.goto(pathToFileURL(file).href, WAIT);
  await page.locator(ready).waitFor(WAIT);
  return {
    page,
    done: async () => {
      assert.deepEqual(wrong, []);
      await context.close();
    },
  };
}

const texts = (page, selector) => page.locator(selector).allInnerTexts();
const current = (page, grid) => page.locator(`#${grid} .row.current`);

/** Kernels, cards and heat are those of the data. */
async function contents({ page, done }, { advice, kernels }) {
  assert.deepEqual(await texts(page, "#kernel-rows .body .cell.name"), kernels.map((one) => one.name));
  const limits = await texts(page, "#kernel-rows .body .cell.text:nth-child(4)");
  assert.deepEqual(limits, advice.kernels.map((one) => one.limited_by ?? "-"));
  for (const [at, kernel] of advice.kernels.entries()) {
    await page.locator("#kernel-rows .body .row").nth(at).click();
    const cures = kernel.suggestions.map((one) => one.cure ?? one.advice);
    assert.deepEqual(await texts(page, "#advice .cure"), cures);
    const gains = await texts(page, "#advice .gain");
    kernel.suggestions.forEach(({ speedup }, card) => {
      assert.ok(speedup === null || Math.abs(parseFloat(gains[card]) / speedup.expected - 1) < 0.05, gains[card]);
    });
  }
  await page.locator("#kernel-rows .body .row").first().click();
  const { blame } = kernels[0].code;
  const [row] = await rowOf(page, "machine-rows");
  const own = blame.samples.reduce((sum, samples, at) => sum + (blame.row[at] === row ? samples : 0), 0);
  const share = await current(page, "machine-rows").locator(".heat .value").first().innerText();
  assert.ok(Math.abs(parseFloat(share) - (100 * own) / advice.kernels[0].samples.total) < 0.6, share);
  await done();
}

const rowOf = async (page, grid) =>
  (await current(page, grid).evaluateAll((rows) => rows.map((row) => Number(row.dataset.row)))).slice(0, 1);

/** A card, a line and an instruction each move the others. */
async function links({ page, done }, { advice, kernels, files }) {
  const { code } = kernels[0];
  const spot = advice.kernels[0].suggestions[0].hotspots[0];
  await page.locator("#advice .pick").first().click();
  const [row] = await rowOf(page, "machine-rows");
  assert.equal(code.address[row], (spot.def ?? spot.use).pc);
  const [line] = await rowOf(page, "source-rows");
  assert.equal(line + 1, code.line[row]);
  const shown = await current(page, "source-rows").locator(".code").innerText();
  assert.equal(shown.trim(), files[code.file[row]].text.split("\n")[line].trim());
  assert.ok((await page.locator("#machine-rows .arrow").count()) > 0, "no arrow from the cause");
  const { blame } = code;
  const edge = blame.row.findIndex((use, at) => blame.cause[at] >= 0 && code.line[blame.cause[at]] !== code.line[use]);
  await page.locator("#machine-rows").evaluate((grid, top) => { grid.scrollTop = top; }, 21 * blame.row[edge] - 60);
  await page.locator(`#machine-rows-${blame.row[edge]}`).click();
  assert.deepEqual(await rowOf(page, "source-rows"), [code.line[blame.row[edge]] - 1]);
  assert.ok((await page.locator("#source-rows .arrow").count()) > 0, "no arrow between lines");
  await page.locator("#code .inspect .link").first().click();
  const [cause] = await rowOf(page, "machine-rows");
  assert.ok(blame.cause.includes(cause));
  const wanted = code.line[code.line.length >> 1];
  await page.locator("#source-rows").evaluate((grid, top) => { grid.scrollTop = top; }, 21 * wanted - 60);
  await page.locator(`#source-rows-${wanted - 1}`).click();
  const picked = await page.locator("#machine-rows .row.picked .line").allInnerTexts();
  const own = code.address.filter((_, at) => code.line[at] === wanted).map((pc) => `0x${pc.toString(16).padStart(4, "0")}`);
  assert.ok(picked.length > 0 && picked.every((pc) => own.includes(pc)), picked.join());
  const address = page.url();
  await page.reload(WAIT);
  assert.deepEqual([page.url(), await rowOf(page, "source-rows")], [address, [wanted - 1]]);
  await done();
}

/** The views say what the data say; a loop and a frame move the source; what-if is what Python has. */
async function views({ page, done }, { advice, kernels }, speedup) {
  const [{ roofline, potential, tree }] = kernels;
  assert.deepEqual(await texts(page, "#roofline .says li"), roofline.says);
  assert.equal(await page.locator("#roofline .dot").count(), roofline.points.length);
  const shares = await texts(page, "#potential td:nth-child(2)");
  assert.ok(Math.abs(parseFloat(shares[2]) - 100 * potential.benefits.memlp.share) < 0.6, shares.join());
  const timed = roofline.regions.filter((one) => one.height !== null && one.sectors > 0);
  const [hottest] = timed.sort((one, other) => other.samples - one.samples);
  await page.locator("#roofline .region").first().focus();
  await page.keyboard.press("Enter");
  assert.deepEqual(await rowOf(page, "source-rows"), [hottest.location.line - 1]);
  assert.match((await page.locator("#roofline .region").first().getAttribute("class")) ?? "", /current/);
  const samples = tree.metrics.findIndex(({ name }) => name === "samples");
  const lines = tree.rows.map((row, at) => ({ ...row, at })).filter((row) => row.kind === "line");
  const [most] = lines.sort((one, other) => other.inclusive[samples] - one.inclusive[samples]);
  await page.locator("#tree .frame.line", { hasText: most.name }).first().click();
  assert.deepEqual(await rowOf(page, "source-rows"), [most.line - 1]);
  assert.ok((await page.locator("#tree .frame.current").count()) > 0);
  await page.locator("#roofline-regions").selectOption("lines");
  const drawn = roofline.lines.filter((one) => one.height !== null && one.sectors > 0);
  assert.equal(await page.locator("#roofline .region").count(), Math.min(12, drawn.length));
  await page.locator("#tree summary").click();
  const told = await page.locator(`#tree-rows-${most.at} .cell`).allInnerTexts();
  assert.ok(told[3].includes(most.name), told.join());
  assert.ok(Math.abs(parseFloat(told[0]) - (100 * most.inclusive[samples]) / tree.rows[0].inclusive[samples]) < 0.6, told.join());
  for (const [view, rows] of Object.entries(tree.turned)) {
    await page.locator("#tree-view").selectOption(view);
    await page.locator("#tree-rows-1").waitFor(WAIT);
    const cells = await page.locator("#tree-rows-1 .cell").allInnerTexts();
    const share = (100 * rows[1].inclusive[samples]) / rows[0].inclusive[samples];
    assert.ok(cells[3].includes(rows[1].name) && Math.abs(parseFloat(cells[0]) - share) < 0.6, `${view}: ${cells.join()}`);
  }
  const { suggestion: answer } = Object.values(potential.benefits).find((one) => one.suggestion !== null);
  const card = advice.kernels[0].suggestions.findIndex((one) => one.code === answer);
  for (const part of ["#potential button[data-code]", "#potential .part[data-code]"]) {
    await page.locator("#machine-rows").focus();
    await page.keyboard.press("Home"); // no card is picked then
    assert.equal(await page.locator("#advice .card.current").count(), 0);
    await page.locator(`${part.replace("]", `="${answer}"]`)}`).first().click();
    assert.equal(await page.locator("#advice .pick").nth(card).getAttribute("aria-pressed"), "true");
  }
  await page.locator("#what-if-transactions").fill("-30");
  assert.equal(await page.locator("#potential output").innerText(), `${speedup.toFixed(2)}x by the model`);
  await page.getByRole("button", { name: "Reset" }).click();
  assert.equal(await page.locator("#potential output").innerText(), "Move a slider.");
  await done();
}

/** What was predicted beside what was achieved, by line; a click moves the others. */
async function compared({ page, done }, { compared: { before, kernels: [kernel] } }) {
  assert.ok((await page.locator("#compared h2").innerText()).endsWith(before));
  assert.match(await page.locator("#compared .result").innerText(), new RegExp(`${kernel.achieved.toFixed(2)}x, faster`));
  assert.equal(await page.locator("#compared .range").count(), 2 * kernel.predictions.length);
  const verdicts = await texts(page, "#compared tbody tr > :nth-child(4)");
  assert.deepEqual(verdicts.slice(0, kernel.predictions.length), kernel.predictions.map((one) => one.verdict));
  const at = kernel.lines.findIndex((line) => line.place !== null && line.predicted.length > 0);
  const row = page.locator(`#compared-rows-${at}`);
  const cells = await row.locator(".cell").allInnerTexts();
  assert.ok(cells[4].includes(kernel.predictions[kernel.lines[at].predicted[0]].code), cells.join());
  assert.ok(cells[6].includes(kernel.lines[at].text), cells.join());
  await row.click();
  assert.deepEqual(await rowOf(page, "source-rows"), [kernel.lines[at].place[1] - 1]);
  await page.screenshot({ path: path.join(SHOTS, "page-compared.png") });
  await done();
}

async function keyboard({ page, done }, { advice }) {
  await page.locator("#kernel-rows").focus();
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.locator("#advice h3").innerText(), advice.kernels[1].name);
  await page.keyboard.press("Home");
  await page.keyboard.press("k");
  const last = advice.kernels[0].suggestions.length - 1;
  assert.equal(await page.locator("#advice .card.current").count(), 1);
  assert.equal(await page.locator("#advice .pick").nth(last).getAttribute("aria-pressed"), "true");
  await page.locator("#machine-rows").focus();
  await page.keyboard.press("End");
  const active = await page.locator("#machine-rows").getAttribute("aria-activedescendant");
  assert.equal(await page.locator(`#${active}`).getAttribute("aria-selected"), "true");
  await done();
}

/** No fault that axe finds; a picture of each look. */
async function looks({ page, done }, name) {
  await page.evaluate(() => { globalThis.document.querySelectorAll("details").forEach((one) => { one.open = true; }); });
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const said = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary}`).join("\n")}`);
  assert.deepEqual(said, []);
  await page.evaluate(() => { globalThis.document.querySelectorAll("details").forEach((one) => { one.open = false; }); });
  await page.screenshot({ path: path.join(SHOTS, `page-${name}.png`), fullPage: true });
  for (const part of ["roofline", "potential", "tree"].filter(() => SCHEMES.includes(name))) {
    await page.locator(`#${part}`).screenshot({ path: path.join(SHOTS, `${part}-${name}.png`) });
  }
  await done();
}

/** On paper all rows are there, of very many those around the current one; afterwards again what is in sight. */
async function printed({ page, done }, { advice, files }) {
  const { text } = files[Number(await page.locator("#code select").inputValue())];
  const announce = (name) => page.evaluate((event) => globalThis.dispatchEvent(new globalThis.Event(event)), name);
  const rows = (grid) => page.locator(`#${grid} .body .row`).count();
  const [before, open] = [await rows("source-rows"), await page.locator("details[open]").count()];
  await announce("beforeprint");
  assert.equal(await rows("kernel-rows"), advice.kernels.length);
  assert.equal(await rows("source-rows"), text.split("\n").length);
  assert.equal(await page.locator("details:not([open])").count(), 0);
  await announce("afterprint");
  assert.deepEqual([await rows("source-rows"), await page.locator("details[open]").count()], [before, open]);
  const pdf = await page.pdf({ path: path.join(SHOTS, "page.pdf") });
  assert.ok((pdf.toString("latin1").match(/\/Type\s*\/Page\b/g) ?? []).length > 1, "more than one sheet");
  await done();
}

/** Whatever names hold stays text. */
async function hostile({ page, done }, { kernels }) {
  await page.locator("#advice .pick").first().click();
  assert.equal(await page.locator("body img, body b, main script").count(), 0);
  assert.equal(await page.evaluate(() => "stolen" in globalThis), false);
  assert.deepEqual(await texts(page, "#kernel-rows .body .cell.name"), kernels.map((one) => one.name));
  await done();
}

/** Of 1,000 kernels and 100,000 instructions only what is in sight is in the document, and scrolling does not stutter. */
async function large({ page, done }, file, empty) {
  assert.ok((await page.locator(".row").count()) < 200);
  await page.locator("#machine-rows").evaluate((grid) => { grid.scrollTop = grid.scrollHeight; });
  await page.locator("#machine-rows-99999").waitFor(WAIT);
  assert.ok((await page.locator(".row").count()) < 200);
  for (const [way, [step, slowest]] of Object.entries(WAYS)) {
    const rounds = [];
    let median, most;
    do { // one behind the other: a busy machine slows both, and what is slow in every round is the page
      const [full, none] = [await frames(page, "#machine-rows", step), await frames(empty.page, "body", step)];
      rounds.push(full.map((one, at) => one / none[at]));
      [median, most] = [0, 1].map((at) => Math.min(...rounds.map((one) => one[at])));
    } while (rounds.length < ROUNDS && !(median < slowest && most < 2 * slowest));
    console.log(`  100,000 instructions, ${way}: from frame to frame ${median.toFixed(2)} of an empty page's time, 95th percentile ${most.toFixed(2)}`);
    assert.ok(median < slowest && most < 2 * slowest, `${way}: ${JSON.stringify(rounds)}`);
  }
  await empty.done();
  await page.locator("#filter").fill("kernel_77");
  assert.equal(await page.locator("#kernel-rows .body .row").count(), 11);
  const painted = await page.evaluate(() => globalThis.performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  console.log(`  1,000 kernels, 100,000 instructions: ${(statSync(file).size / 1e6).toFixed(1)} MB, first paint after ${Math.round(painted)} ms`);
  await done();
}

/** At most. */
const ROUNDS = 6;
/** Of a screen to each frame, and how many times as long as an empty page's a frame may be. */
const WAYS = { "five rows to a frame": [1 / 4, 2], "a screen to a frame": [1, 4], "jumps to anywhere": [null, 4] };

/** Median and 95th percentile from frame to frame, in ms, while an element is scrolled by a part of a screen, or by jumps. */
async function frames(page, selector, part) {
  return await page.locator(selector).evaluate(async (element, by) => {
    const found = [];
    const frame = () => new Promise((resolve) => { globalThis.requestAnimationFrame(resolve); });
    for (let [step, last] = [0, await frame()]; step < 120; step += 1) {
      element.scrollTop = by === null ? (element.scrollHeight * ((step * 37) % 120)) / 120 : step * by * element.clientHeight;
      const now = await frame();
      found.push(now - last);
      last = now;
    }
    found.sort((one, other) => one - other);
    return [found[60], found[114]];
  }, part);
}

/** Lists that no browser has the height for, or a call the arguments: the last row is there, and each is where it is seen. */
async function long({ page, done }, { files, advice }) {
  const lines = files[0].text.split("\n");
  await page.locator("#source-rows").focus();
  await page.keyboard.press("End");
  const seen = async (row) => {
    const shown = page.locator(`#source-rows-${row}`);
    assert.equal(await shown.locator(".code").innerText(), lines[row]);
    const [box, grid] = [await shown.boundingBox(), await page.locator("#source-rows").boundingBox()];
    assert.ok(box.y >= grid.y && box.y + box.height <= grid.y + grid.height + 1, `row ${row} is not in sight`);
  };
  await seen(lines.length - 1);
  assert.deepEqual(await rowOf(page, "source-rows"), [lines.length - 1]);
  for (let step = 0; step < 3; step += 1) {
    await page.keyboard.press("PageUp");
  }
  const [row] = await rowOf(page, "source-rows");
  assert.ok(row < lines.length - 30);
  await seen(row);
  await page.locator("#source-rows").evaluate((grid) => { grid.scrollTop = grid.scrollHeight / 2; });
  const middle = page.locator("#source-rows .body .row").nth(20);
  await middle.click();
  const [picked] = await rowOf(page, "source-rows");
  assert.ok(Math.abs(picked / lines.length - 0.5) < 0.01, String(picked));
  await seen(picked);
  const told = await texts(page, "#notes > div > ul li");
  assert.equal(told[0], advice.problems[0].message);
  assert.equal(told.length, 200);
  assert.match(await page.locator("#notes").innerText(), /and 149,8\d\d more/); // with those of the kernel
  const { cap } = advice.kernels[0].suggestions[0].speedup;
  assert.equal(await page.locator("#advice .limit").first().innerText(), `${cap.speedup.toFixed(2)}x: ${cap.reason}`);
  await done();
}
