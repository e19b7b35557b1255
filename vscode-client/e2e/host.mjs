// SPDX-License-Identifier: Apache-2.0
// What VS Code's interface says: host/tests.cjs runs inside the extension host, beside the installed extension, in a
// workspace of two folders. The interpreter is that of a stand-in for the Python extension, which no npm package has.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { WAIT, withCodeServer } from "./code-server.mjs";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const [HOST, PYTHON_EXTENSION] = ["host", "python-extension"].map((name) => path.join(HERE, name));
const LIMIT_MILLISECONDS = 900_000;

/** Waits until the lenses above a line, which the window draws one beside the other, are these and no more. */
const lensesShown = (page, text) =>
  page.waitForFunction(
    (wanted) =>
      [...globalThis.document.querySelectorAll(".codelens-decoration")].some(
        (line) => line.textContent.replaceAll("\u00a0", " ") === wanted,
      ),
    text,
    WAIT,
  );

export async function hostTests(workspace) {
  // Without this option a built VS Code silently ignores the two paths of the payload.
  const options = { name: "host", workspace, file: "both.code-workspace", machine: {}, hostTests: true };
  await withCodeServer(options, async ({ page, open, remote, shot, root }) => {
    let finish;
    const finished = new Promise((resolve) => (finish = resolve));
    await page.exposeFunction("codeAutomationLog", async (_kind, words) => {
      const line = words.join(" ");
      const [, what, name, text] = /^(shot|lenses) (\S+)(?: (.+))?$/.exec(line) ?? [];
      if (what !== undefined) {
        await (what === "shot" ? shot(name) : lensesShown(page, text));
        writeFileSync(path.join(root, `${what}-${name}`), "");
      } else if (/^(not )?ok - |passed, /.test(line)) {
        console.log(`  ${line}`);
      }
    });
    await page.exposeFunction("codeAutomationExit", (code) => finish(code));
    await open([
      ...[HOST, PYTHON_EXTENSION].map((folder) => ["extensionDevelopmentPath", remote(folder)]),
      ["extensionTestsPath", remote(path.join(HOST, "tests.cjs"))],
    ]);
    const limit = setTimeout(() => finish("no exit code"), LIMIT_MILLISECONDS);
    const code = await finished;
    clearTimeout(limit); // or Node waits for it
    assert.equal(code, 0);
  });
}
