// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, it } from "node:test";
import { heard, inPage, reportPage, today } from "../src/decide/report";
import type { PageFile } from "../src/generated/protocol";

const FILES: readonly PageFile[] = [
  { uri: null, lines: [] },
  // Two lines were put before all, and one was taken out behind the tenth.
  { uri: "file:///w/a.cu", lines: [{ then: 0, now: 2, count: 10 }, { then: 10, now: 11, count: 1 }, { then: 11, now: 12, count: 5 }] },
];

describe("the page in a webview", () => {
  it("hears two kinds of messages, and whatever else is sent is nothing", () => {
    assert.deepEqual(heard({ type: "ready", more: 1 }), { type: "ready" });
    assert.deepEqual(heard({ type: "open", file: 1, line: 7, uri: "file:///etc/passwd" }), { type: "open", file: 1, line: 7 });
    const hostile = [
      ...[undefined, null, 7, "ready", [], {}, { type: "command", command: "workbench.action.terminal.new" }],
      ...[{ type: "open" }, { type: "open", file: "1", line: 7 }, { type: "open", file: 1, line: 0 }],
      ...[{ type: "open", file: -1, line: 1 }, { type: "open", file: 1.5, line: 1 }, { type: "open", file: 1, line: 1e9 }],
      ...[{ type: "open", file: NaN, line: 1 }, { type: "open", file: { valueOf: () => 1 }, line: 1 }],
      ...[{ type: "open", file: "__proto__", line: 1 }, { type: ["ready"] }],
    ];
    assert.deepEqual(hostile.map(heard), hostile.map(() => undefined));
  });

  it("opens only lines of the files that the server placed", () => {
    assert.equal(today(FILES, { file: 0, line: 1 }), undefined);
    assert.equal(today(FILES, { file: 2, line: 1 }), undefined);
    assert.equal(today(FILES, { file: 1, line: 17 }), undefined);
    assert.deepEqual(today(FILES, { file: 1, line: 1 }), { uri: "file:///w/a.cu", line: 2 });
    assert.deepEqual(today(FILES, { file: 1, line: 12 }), { uri: "file:///w/a.cu", line: 12 });
  });

  it("finds the line of the cursor again, whatever was edited above", () => {
    for (const line of [1, 10, 12, 16]) {
      const there = today(FILES, { file: 1, line }) ?? assert.fail();
      assert.deepEqual(inPage(FILES, there), { file: 1, line });
    }
    assert.equal(inPage(FILES, { uri: "file:///w/a.cu", line: 0 }), undefined, "a new line is none of the page's");
    assert.equal(inPage(FILES, { uri: "file:///w/b.cu", line: 3 }), undefined);
  });

  it("has our script and style and lets nothing else run or load", () => {
    const [script, style] = ["page.js", "page.css"].map((name) =>
      readFileSync(path.join("../server/gpadvisor/views/page", name), "utf8"),
    );
    const page = reportPage(script ?? "", style ?? "", "abc");
    const [, policy] = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page) ?? [];
    assert.equal(policy, "default-src 'none'; script-src 'nonce-abc'; style-src 'nonce-abc'; base-uri 'none'; form-action 'none'");
    assert.deepEqual(page.match(/<(script|style)\b[^>]*>/g), ['<style nonce="abc">', '<script nonce="abc">']);
    assert.doesNotMatch(page, /\s(src|href|style|on\w+)="/);
    assert.throws(() => reportPage("a</script>b", "", "abc"));
  });
});
