// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { duration, fileName, percent } from "../src/decide/figures";
import { type Node, treeOf } from "../src/decide/overview";
import { escape, summaryPage } from "../src/decide/summaryPage";
import type { OverviewEntry, OverviewFinding, OverviewKernel } from "../src/generated/protocol";

const NOW = Date.parse("2026-03-01T12:00:00Z");

const finding = (change: Partial<OverviewFinding> = {}): OverviewFinding => ({
  code: "GPA106",
  name: "Memory Coalescing",
  title: "uncoalesced load",
  gain: "4.5x",
  gainAndRange: "4.5x (3.8-4.9)",
  share: 0.92,
  change: "Let neighbouring threads read neighbouring elements.",
  suppressed: null,
  place: { uri: "file:///w/my%20gemm.cu", line: 13, stale: false },
  ...change,
});

const kernel = (change: Partial<OverviewKernel> = {}): OverviewKernel => ({
  kernel: "_Z4gemmPf",
  name: "gemm<float>",
  verdict: "Limited by memory latency",
  evidence: "measured",
  device: "RTX 3090",
  launch: "launch 1 of 2: 4096 x 256 threads",
  durationNs: 9_846_176,
  timeShare: 0.891,
  place: { uri: "file:///w/my%20gemm.cu", line: 9, stale: false },
  findings: [finding()],
  problems: [],
  ...change,
});

const entry = (change: Partial<OverviewEntry> = {}): OverviewEntry => ({
  path: "/w/run.ncu-rep",
  name: "run.ncu-rep",
  profile: true,
  reading: false,
  error: null,
  collectedAt: "2026-03-01T09:30:00Z",
  problems: [],
  kernels: [kernel()],
  left: 0,
  ...change,
});

const only = (nodes: readonly Node[]): Node => {
  assert.equal(nodes.length, 1, JSON.stringify(nodes));
  return nodes[0] ?? assert.fail();
};

describe("the tree", () => {
  it("has profile, kernel with its time and gain, finding with its gain first and its line", () => {
    const profile = only(treeOf([entry()], "", NOW));
    assert.deepEqual([profile.label, profile.description, profile.kind], ["run.ncu-rep", "RTX 3090 · 2 h ago", "profile"]);
    const one = only(profile.children);
    assert.deepEqual([one.label, one.description], ["gemm<float>", "up to 4.5x · 89 % · 9.846 ms"]);
    const found = only(one.children);
    assert.deepEqual([found.label, found.description], ["4.5x Memory Coalescing", "my gemm.cu:14 · uncoalesced load"]);
    assert.match(found.tooltip, /4\.5x \(3\.8-4\.9\) · Memory Coalescing · GPA106\nLet neighbouring threads/);
  });
  it("promises no gain of what is disabled, and says what was edited since", () => {
    const disabled = finding({ suppressed: "measured: no gain" });
    const stale = finding({ code: "GPA102", gain: null, place: { uri: "file:///a.cu", line: 0, stale: true } });
    const one = only(only(treeOf([entry({ kernels: [kernel({ findings: [disabled, stale] })] })], "", NOW)).children);
    assert.doesNotMatch(one.description, /up to/);
    assert.deepEqual(one.children.map(({ icon }) => icon), ["circle-slash", "lightbulb"]);
    assert.match(one.children[1]?.description ?? "", /edited since/);
  });
  it("shows what is being read, what could not be, and what the numbers lack", () => {
    const nothing = { kernels: [], collectedAt: null, profile: false };
    const nodes = treeOf(
      [
        entry({ ...nothing, reading: true }),
        entry({ ...nothing, error: "it is cut off" }),
        entry({ problems: ["No line information"], kernels: [kernel({ findings: [], problems: ["Few samples"] })], left: 3 }),
      ],
      "",
      NOW,
    );
    assert.deepEqual(nodes.map(({ icon }) => icon), ["loading~spin", "error", "graph"]);
    assert.deepEqual(nodes.map(({ description }) => description), ["being read", "it is cut off", "RTX 3090 · 2 h ago"]);
    const [one, problem, left] = nodes[2]?.children ?? [];
    assert.match(one?.description ?? "", /nothing to suggest/);
    assert.equal(one?.children[0]?.label, "Few samples");
    assert.deepEqual([problem?.label, left?.label], ["No line information", "3 kernels with less time not listed"]);
  });
  it("has rows of different ids", () => {
    const twice = [kernel(), kernel({ launch: "launch 2 of 2: 1 x 32 threads", problems: ["Few samples"] })];
    const ids: string[] = [];
    const collect = ({ id, children }: Node): void => {
      ids.push(id);
      children.forEach(collect);
    };
    treeOf([entry({ kernels: twice }), entry({ path: "/w/other.ncu-rep" })], "", NOW).forEach(collect);
    assert.equal(new Set(ids).size, ids.length);
  });
  it("is filtered by all words of a kernel, a rule, its code or its file", () => {
    const other = kernel({ kernel: "_Z3addv", name: "add", findings: [finding({ code: "GPA201", name: "Loop Unrolling" })] });
    const filtered = (words: string): readonly string[] =>
      treeOf([entry({ kernels: [kernel(), other] })], words, NOW).flatMap(({ children }) => children.map(({ label }) => label));
    assert.deepEqual(filtered("unroll"), ["add"]);
    assert.deepEqual(filtered("GPA106 gemm"), ["gemm<float>"]);
    assert.deepEqual(filtered("my gemm.cu"), ["gemm<float>", "add"]);
    assert.deepEqual(filtered("nothing of this"), []);
  });
});

describe("the summary page", () => {
  const page = (shown: Parameters<typeof summaryPage>[1], name = "run.ncu-rep"): string => summaryPage(name, shown, "n0nce", NOW);
  it("begins with what is to be won, then each kernel with links to its lines", () => {
    const text = page(entry({ problems: ["Clocks were not locked."] }));
    assert.match(text, /<strong>4\.5x \(3\.8-4\.9\)<\/strong> for <code>gemm&lt;float&gt;<\/code>: Let neighbouring/);
    assert.ok(text.indexOf("headline\"") < text.indexOf("Clocks were not locked."));
    const link = /<a href="(command:gpadvisor\.showLocation\?[^"]+)">my gemm\.cu:14<\/a>/.exec(text)?.[1] ?? "";
    assert.deepEqual(JSON.parse(decodeURIComponent(link.split("?")[1] ?? "")), ["file:///w/my%20gemm.cu", 13]);
  });
  it("allows no script, no resource and no style but its own", () => {
    const policy = /Content-Security-Policy" content="([^"]+)"/.exec(page(entry()))?.[1];
    assert.equal(policy, "default-src 'none'; style-src 'nonce-n0nce'");
    assert.doesNotMatch(page(entry()), /<script|style="|src=|#[0-9a-f]{3,6}\b(?!;)/i);
  });
  it("takes names and sentences of a report as text, never as markup", () => {
    const bad = `"><img src=x onerror=alert(1)>'</style><script>\u202e`;
    const hostile = finding({ code: bad, name: bad, title: bad, change: bad, gain: bad, gainAndRange: bad, place: { uri: `file:///${bad}`, line: 1, stale: false } });
    const text = page(
      entry({
        name: bad,
        error: bad,
        problems: [bad],
        kernels: [kernel({ name: bad, verdict: bad, launch: bad, device: bad, problems: [bad], findings: [hostile] })],
      }),
      bad,
    );
    const tags = [...text.matchAll(/<\/?([a-z0-9]+)/gi)].map(([, tag]) => tag?.toLowerCase());
    assert.ok(!tags.includes("img") && !tags.includes("script"), tags.join(" "));
    assert.doesNotMatch(text.replace(/<style.*<\/style>/s, ""), /\u202e|onerror=alert\(1\)>(?!&)/);
    assert.equal(text.match(/<\/style>/g)?.length, 1);
  });
  it("says why there is nothing, with what helps", () => {
    const text = page({ text: "In Restricted Mode no report is read.", link: { title: "Manage Trust", command: "workbench.trust.manage" } });
    assert.match(text, /In Restricted Mode.*<a href="command:workbench\.trust\.manage">Manage Trust<\/a>/s);
    assert.match(page({ text: "Reading the report...", busy: true }), /aria-busy="true"/);
    assert.match(page(entry({ error: "it is cut off", kernels: [] })), /it is cut off.*command:gpadvisor\.showServerLogs/s);
  });
});

describe("figures", () => {
  it("are short", () => {
    assert.deepEqual([12, 1500, 2.5e6, 3e9].map(duration), ["12 ns", "1.5 us", "2.5 ms", "3 s"]);
    assert.deepEqual([0, 0.0004, 0.042, 0.5].map(percent), ["0 %", "<0.1 %", "4.2 %", "50 %"]);
  });
  it("and names bear what a URI cannot decode", () => {
    assert.deepEqual(["file:///a/b%20c.cu", "file:///a/%zz"].map(fileName), ["b c.cu", "%zz"]);
    assert.equal(escape("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  });
});
