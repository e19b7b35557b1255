// SPDX-License-Identifier: Apache-2.0
// What files and a server that went wrong may bring: none of it runs a command, hides, hangs or ends the editor's host.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, it } from "node:test";
import { byPath, readAdvice } from "../src/decide/advice";
import { isFile, isKnown } from "../src/decide/commands";
import { kernelLines } from "../src/decide/kernels";
import { type Node, treeOf } from "../src/decide/overview";
import { placesToLook } from "../src/decide/paths";
import { plain, visible } from "../src/decide/plain";
import { heard } from "../src/decide/report";
import { layOut } from "../src/decide/sass";
import { statusItem } from "../src/decide/status";
import { statusBar } from "../src/decide/statusBar";
import { escape, summaryPage } from "../src/decide/summaryPage";
import type { OverviewEntry, StatusParams } from "../src/generated/protocol";

/** What VS Code makes a link of in notifications and in its language status. */
const LINK = /\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^)\s]+)(?: (["'])(.+?)(\3))?\)/i;
const NAMES = [
  "[Fix it](command:workbench.action.terminal.sendSequence?%7B%22text%22%3A%22id%5Cn%22%7D)",
  "[a](https://example.org/track.png)",
  '[a](command:b "title")',
  "[a\u200b](command:b)",
  "[a]\u200b(command:b)",
  "$(alert) failed",
  "</code><img src=x onerror=alert(1)><code>",
  "\"><script>alert(1)</script>",
  "a\u202egpj.exe",
  "a\u001b[2Jb\u0000c\nd\u2028e",
  "\ud800\udfff\udc00",
  "{{constructor.constructor('alert(1)')()}}",
  "__proto__",
  "javascript:alert(1)",
  "[".repeat(2000) + "](command:b)".repeat(2000),
] as const;

const said = (name: string): StatusParams => ({
  ...{ state: "idle", uri: "file:///w/a.cu", bar: name, text: name, detail: `${name}\n${name}`, device: name, profile: `file:///w/${name}` },
  ...{ collectedAt: null, evidence: name, kernel: name, findings: 1, staleShare: 0 },
  next: [{ title: name, command: "workbench.action.terminal.sendSequence", argument: "x" }, { title: "Logs", command: "gpadvisor.showLogs", argument: null }],
});

describe("names that look like something else", () => {
  for (const name of NAMES) {
    it(`${JSON.stringify(name.slice(0, 40))} is text`, () => {
      const item = statusItem({ kind: "running" }, said(name), 0);
      const bar = statusBar({ kind: "running" }, said(name), true, undefined);
      const stopped = statusItem({ kind: "stopped", reason: name }, undefined, 0);
      for (const text of [plain(name), item.text, item.detail, bar?.text ?? "", stopped.detail]) {
        assert.doesNotMatch(text, LINK);
        assert.ok(!text.includes("$("), text);
        assert.doesNotMatch(text, /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
      }
      assert.deepEqual(bar?.steps.map(({ command }) => command), ["gpadvisor.findings.focus", "gpadvisor.showLogs"]);
      assert.doesNotMatch(escape(name), /[<>"']/);
    });
  }
  it("leaves words as they are", () => {
    const words = ["gemm<float>(float*, int) [clone .1]", "a[i] (b)", "50 % of 3 $", "größe_kernel"];
    assert.deepEqual(words.map(plain), words);
  });
  it("are told in one place alone", () => {
    const sources = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
    for (const name of sources) {
      if (name !== "say.ts") {
        assert.doesNotMatch(readFileSync(path.join("src", name), "utf8"), /show(?:Information|Warning|Error)Message/, name);
      }
    }
  });
});

describe("a page of a hostile report", () => {
  it("has no markup, style, script or command but ours", () => {
    for (const name of NAMES) {
      const place = { uri: `file:///w/${name}`, line: 1, stale: false };
      const finding = {
        ...{ code: name, name, title: name, gain: name, gainAndRange: `${name} (${name})`, share: 0.5, change: name },
        ...{ suppressed: null, place },
      };
      const kernel = {
        ...{ kernel: name, name, verdict: name, evidence: name, device: name, launch: name, durationNs: 1, timeShare: 0.5 },
        ...{ place, findings: [finding], problems: [name] },
      };
      const entry = {
        ...{ path: name, name, profile: true, reading: false, error: name, collectedAt: name, left: 0 },
        ...{ kernels: [kernel], problems: [name] },
      } as OverviewEntry;
      const page = summaryPage(name, entry, "abc", 0);
      const tags = new Set(Array.from(page.matchAll(/<([a-z!]+\d?)/gi), ([, tag]) => (tag ?? "").toLowerCase()));
      for (const tag of ["script", "img", "iframe", "object", "link", "form", "svg", "base"]) {
        assert.ok(!tags.has(tag), tag);
      }
      assert.equal(page.match(/<style/g)?.length, 1);
      for (const [, target] of page.matchAll(/href="([^"]*)"/g)) {
        assert.match(target ?? "", /^command:(?:gpadvisor\.\w+(?:\.\w+)?|workbench\.trust\.manage)(?:\?(?:[\w%.!~*()-]|&#39;)*)?$/);
      }
      assert.doesNotMatch(page, /<[a-z][^>]*\son\w+=/);
    }
  });
  it("is a tree with an id for each row, though kernels are alike", () => {
    const kernel = {
      ...{ kernel: "k", name: "k", verdict: "", evidence: "measured", device: "", launch: null, durationNs: null, timeShare: null },
      ...{ place: null, findings: [], problems: ["a", "a"] },
    };
    const entry = {
      ...{ path: "/w/r", name: "r", profile: true, reading: false, error: null, collectedAt: null, left: 0 },
      ...{ kernels: Array.from({ length: 5000 }, () => kernel), problems: ["x"] },
    } as OverviewEntry;
    const ids: string[] = [];
    const walk = (nodes: readonly Node[]): void => {
      for (const node of nodes) {
        ids.push(node.id);
        walk(node.children);
      }
    };
    walk(treeOf([entry, entry], "", 0));
    assert.equal(new Set(ids).size, ids.length);
    assert.equal(ids.length, 2 * (1 + 5000 * 3 + 1));
  });
});

describe("converted advice of a workspace that nobody trusts", () => {
  const advice = (file: string, more: object = {}): string =>
    JSON.stringify({
      schema: "gpadvisor.advice/1",
      kernels: [{ name: "k", suggestions: [{ code: "GPA102", name: "n", title: "t", suppressed: null, scope: { file, line: 1 }, ...more }] }],
    });
  it("names no place outside of the folder, whatever its path", () => {
    const hostile = [
      ...["../../etc/passwd", "/etc/passwd", "..\\..\\etc\\passwd", "/w/../etc/passwd", "/w2/a.cu", "file:///etc/passwd", "//host/share/a.cu"],
      ...["/w/./../../etc/passwd", "a/../../../etc/passwd", "\u0000/etc", "C:\\Windows\\system.ini", "%2e%2e/%2e%2e/etc/passwd", "..", "/", "", "~/.ssh/id"],
    ];
    for (const named of hostile) {
      for (const place of placesToLook(named, "/w/sub/x.gpadvisor.json", "/w")) {
        assert.ok(place.startsWith("/w/") && !place.split("/").includes(".."), `${named}: ${place}`);
      }
    }
  });
  it("has few places to look at, though a path is long", () => {
    for (const named of ["a/".repeat(2000), "a/".repeat(40_000), "/".repeat(4000), "../".repeat(1300), "a".repeat(1e6)]) {
      assert.ok(placesToLook(named, "/w/x.gpadvisor.json", "/w").length <= 66);
    }
  });
  it("is read to what it says, in any shape", () => {
    const shapes = ["[".repeat(1e6), "{}", "null", "7", '"x"', '{"schema":"gpadvisor.advice/1"}', '{"schema":"gpadvisor.advice/1","kernels":{}}'];
    shapes.push('{"schema":"gpadvisor.advice/1","kernels":' + "[".repeat(1e5) + "]".repeat(1e5) + "}");
    shapes.push('{"schema":"gpadvisor.advice/1","__proto__":{"kernels":[{}]},"kernels":[null,7,"x",{"suggestions":[null,{"hotspots":[null]}]}]}');
    for (const text of shapes) {
      const read = readAdvice(text);
      assert.ok(read.kind === "unusable" || read.findings.length === 0);
    }
    for (const line of [0, -1, 1.5, 1e300, "1", null, true]) {
      const read = readAdvice(advice("a.cu", { scope: { file: "a.cu", line } }));
      const lines = read.kind === "advice" ? read.findings.map((one) => one.line) : [];
      assert.deepEqual(lines, line === 1e300 ? [1e300 - 1] : []);
    }
  });
  it("shows text of a bounded length, and moves no letters", () => {
    for (const name of NAMES) {
      const read = readAdvice(advice("a.cu", { code: name, name, title: name.repeat(50) }));
      for (const { code, message } of read.kind === "advice" ? read.findings : assert.fail()) {
        assert.ok(code.length <= 16 && message.length <= 1000);
        assert.doesNotMatch(code + message, /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
      }
    }
  });
  it("is looked for in a bounded number of files, each once", () => {
    const one = { code: "GPA102", message: "m", hint: false, line: 0 };
    const many = Array.from({ length: 2000 }, (_, at) => ({ ...one, path: `${at % 500}.cu` }));
    const found = byPath(many);
    assert.equal(found.size, 200);
    assert.ok([...found.values()].every((findings) => findings.length === 4));
  });
});

describe("a hostile source", () => {
  it("has its kernels found in time in proportion to its size", () => {
    for (const one of ["\\", "\\\n", "/*", "#", " ", "\t#", "__global__ ", "(", "#\\\n", "/*\n", "//", '"', '"\\', "\r\n", "__global__(){"]) {
      assert.ok(kernelLines(one.repeat(1_000_000 / one.length)).length <= 1e6);
    }
  });
  it("has none in comments of several lines, and all behind a string that looks like one", () => {
    assert.deepEqual(kernelLines("/*\n__global__ void k() {}\n*/\n__global__ void r() {}"), [3]);
    assert.deepEqual(kernelLines('const char* s = "/*";\n__global__ void r() {}'), [1]);
    assert.deepEqual(kernelLines("__global__ void r() {}\n/* never ends\n__global__ void k() {}"), [0]);
  });
});

describe("a server that went wrong", () => {
  it("has the user run our commands alone, and open files alone", () => {
    const others = ["workbench.action.terminal.new", "vscode.open", "gpadvisor", "", "Gpadvisor.x", "_gpadvisor.x", "workbench.trust.manage.x"];
    assert.deepEqual(others.filter(isKnown), []);
    const elsewhere = ["https://example.org", "command:x", "vscode://x/y", "git:/a?x", "untitled:a", "file://host/a", "FILE:", "", " file:///a"];
    assert.deepEqual(elsewhere.filter(isFile), []);
    assert.ok(isFile("file:///w/a.cu") && isKnown("gpadvisor.showLogs"));
  });
  it("brings machine code of any text", () => {
    for (const name of NAMES) {
      const row = { address: 16, text: name, control: name, samples: 1, share: 0.5, reason: name, causes: 1, waitsFor: 99, uri: name, line: -1 };
      const functions = [{ row: 0, name }];
      const { text, rows } = layOut({ title: name, kernel: name, arch: name, evidence: name, message: name, rows: [row], functions, truncated: 0 });
      assert.equal(text.split("\n").length, rows.length + 1, "a line of the text for each row, whatever is in it");
    }
  });
  it("is not heard where a message has another shape, a thousand ways", () => {
    const values: readonly unknown[] = [undefined, null, 0, -1, 1.5, NaN, Infinity, "1", "", [], {}, true, 1e9, { valueOf: () => 1 }, Symbol("x")];
    const types = ["open", "ready ", "Open", "", null, 1, ["open"], "command", "__proto__"];
    for (const type of types) {
      for (const file of values) {
        for (const line of values) {
          assert.equal(heard({ type, file, line }), undefined);
        }
      }
    }
    assert.equal(visible("a\u0000b"), "a\u{FFFD}b");
  });
});
