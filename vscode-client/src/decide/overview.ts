// SPDX-License-Identifier: Apache-2.0
// The tree of what is known: inputs, their kernels, what to do about them, what their numbers lack.

import type { OverviewEntry, OverviewFinding, OverviewKernel, OverviewPlace } from "../generated/protocol";
import { count, duration, fileName, joined, percent } from "./figures";
import { ageOf } from "./status";

export type Kind = "profile" | "source" | "failed" | "kernel" | "finding" | "note";

/** One row. */
export interface Node {
  readonly id: string;
  readonly kind: Kind;
  readonly label: string;
  readonly description: string;
  readonly tooltip: string;
  readonly icon: string;
  readonly place: OverviewPlace | null;
  /** Rule of a finding. */
  readonly code: string | null;
  /** Mangled name of the kernel that it belongs to. */
  readonly kernel: string | null;
  /** Path of the input that it belongs to. */
  readonly path: string;
  readonly children: readonly Node[];
}

const MOST_LETTERS = 120;

/** The rows; `filter`: words that a kernel, or a finding in it, has to have all of. */
export function treeOf(entries: readonly OverviewEntry[], filter: string, now: number): readonly Node[] {
  const words = filter.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const rows = entries.flatMap((entry) => {
    const node = inputNode(entry, words, now);
    return words.length > 0 && node.children.length === 0 ? [] : [node];
  });
  return distinct(rows, new Map());
}

/** VS Code shows no tree in which two rows have one id, as two kernels of one name and launch would. */
function distinct(nodes: readonly Node[], known: Map<string, number>): readonly Node[] {
  return nodes.map((node) => {
    const copies = known.get(node.id) ?? 0;
    known.set(node.id, copies + 1);
    const id = copies === 0 ? node.id : `${node.id}\n\n${copies}`; // no other id has an empty line in it
    return { ...node, id, children: distinct(node.children, known) };
  });
}

function inputNode(entry: OverviewEntry, words: readonly string[], now: number): Node {
  const kernels = entry.kernels.flatMap((kernel) => kernelNode(entry, kernel, words));
  const notes = words.length > 0 ? [] : entry.problems.map((text, at) => note(`${entry.path}\n${at}`, entry.path, text));
  if (words.length === 0 && entry.left > 0) {
    notes.push(note(`${entry.path}\nleft`, entry.path, `${count(entry.left, "kernel")} with less time not listed`));
  }
  const failed = entry.error !== null;
  const read = entry.profile ? "profile" : "source";
  return {
    id: entry.path,
    kind: failed ? "failed" : read,
    label: entry.name,
    description: failed ? entry.error : inputWords(entry, now),
    tooltip: [entry.path, entry.error, ...entry.problems].filter((line) => line !== null).join("\n"),
    icon: entry.reading ? "loading~spin" : failed ? "error" : entry.profile ? "graph" : "file-code",
    place: null,
    code: null,
    kernel: null,
    path: entry.path,
    children: [...kernels, ...notes],
  };
}

function inputWords(entry: OverviewEntry, now: number): string {
  if (entry.reading && entry.kernels.length === 0) {
    return "being read";
  }
  const [first] = entry.kernels;
  const age = entry.collectedAt === null ? undefined : ageOf(entry.collectedAt, now);
  const evidence = first === undefined || first.evidence === "measured" ? null : first.evidence;
  return joined([first?.device, age, evidence, first === undefined ? "no kernel" : null]);
}

function kernelNode(entry: OverviewEntry, kernel: OverviewKernel, words: readonly string[]): readonly Node[] {
  const id = `${entry.path}\n${kernel.kernel}\n${kernel.launch ?? ""}`;
  const whole = has(words, kernel.name, entry.name);
  const findings = kernel.findings.filter((one) => whole || has(words, kernel.name, entry.name, ...spoken(one)));
  if (!whole && findings.length === 0) {
    return [];
  }
  const best = findings.find(({ gain, suppressed }) => gain !== null && suppressed === null);
  const time = kernel.durationNs === null ? null : duration(kernel.durationNs);
  const share = kernel.timeShare === null ? null : percent(kernel.timeShare);
  const nothing = kernel.findings.length === 0 ? "nothing to suggest" : null;
  const node: Node = {
    id,
    kind: "kernel",
    label: kernel.name,
    description: joined([best === undefined ? nothing : `up to ${best.gain ?? ""}`, share, time]),
    tooltip: joinedLines([kernel.name, kernel.verdict, kernel.launch, `${kernel.evidence}, ${kernel.device}`]),
    icon: "symbol-method",
    place: kernel.place,
    code: null,
    kernel: kernel.kernel,
    path: entry.path,
    children: [
      ...findings.map((one, at) => findingNode(`${id}\n${at}`, entry, kernel, one)),
      ...(words.length > 0 ? [] : kernel.problems.map((text, at) => note(`${id}\nnote ${at}`, entry.path, text))),
    ],
  };
  return [node];
}

function findingNode(id: string, entry: OverviewEntry, kernel: OverviewKernel, one: OverviewFinding): Node {
  const at = one.place === null ? null : `${fileName(one.place.uri)}:${one.place.line + 1}`;
  const stale = one.place?.stale === true ? "edited since" : null;
  const off = one.suppressed === null ? null : "disabled";
  const share = one.share === null ? null : `${percent(one.share)} of the samples`;
  return {
    id,
    kind: "finding",
    label: one.gain === null ? one.name : `${one.gain} ${one.name}`,
    description: joined([at, one.title, off, stale]),
    tooltip: joinedLines([
      joined([one.gainAndRange, one.name, one.code]),
      one.change,
      joined([one.title, share, kernel.evidence]),
      one.suppressed === null ? null : `Disabled: ${one.suppressed}`,
    ]),
    icon: one.suppressed === null ? "lightbulb" : "circle-slash",
    place: one.place,
    code: one.code,
    kernel: kernel.kernel,
    path: entry.path,
    children: [],
  };
}

function note(id: string, path: string, text: string): Node {
  return {
    id,
    kind: "note",
    label: text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS - 3)}...` : text,
    description: "",
    tooltip: text,
    icon: "info",
    place: null,
    code: null,
    kernel: null,
    path,
    children: [],
  };
}

function spoken(one: OverviewFinding): readonly string[] {
  return [one.code, one.name, one.title, one.place === null ? "" : fileName(one.place.uri)];
}

function has(words: readonly string[], ...texts: readonly string[]): boolean {
  const text = texts.join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

function joinedLines(lines: readonly (string | null)[]): string {
  return lines.filter((line) => line !== null && line !== "").join("\n");
}
