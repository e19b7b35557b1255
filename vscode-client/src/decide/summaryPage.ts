// SPDX-License-Identifier: Apache-2.0
// The summary of a report as a page: no script, no resources; what a report says is text, whatever it looks like.

import type { OverviewEntry, OverviewFinding, OverviewKernel, OverviewPlace } from "../generated/protocol";
import { count, duration, fileName, joined, percent } from "./figures";
import { visible } from "./plain";
import { ageOf } from "./status";

/** Commands that a link of the page may run. */
export const PAGE_COMMANDS = [
  "gpadvisor.showLocation",
  "gpadvisor.explainAdvice",
  "gpadvisor.openSass",
  "gpadvisor.showServerLogs",
  "gpadvisor.installEnvironment",
  "gpadvisor.findings.focus",
  "workbench.trust.manage",
] as const;
type PageCommand = (typeof PAGE_COMMANDS)[number];

const MOST_KERNELS = 50;

/** Why there is nothing to show, with what helps. */
export interface Instead {
  readonly text: string;
  readonly busy?: boolean;
  readonly link?: { readonly title: string; readonly command: PageCommand };
}

/** The page; `nonce` is of its style alone. */
export function summaryPage(name: string, shown: OverviewEntry | Instead, nonce: string, now: number): string {
  const body = "kernels" in shown ? report(shown, now) : instead(name, shown);
  return [
    '<!DOCTYPE html><html lang="en"><head><meta charset="UTF-8">',
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${nonce}'">`,
    `<title>${escape(name)}</title><style nonce="${nonce}">${STYLE}</style></head><body>`,
    body,
    "</body></html>",
  ].join("\n");
}

/** Text that no markup can begin in; what would reorder or hide letters is shown as a replacement. */
export function escape(text: string): string {
  return visible(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}

function instead(name: string, { text, busy, link }: Instead): string {
  const wait = busy === true ? ' aria-busy="true"' : "";
  const next = link === undefined ? "" : `<p>${anchor(link.title, link.command)}</p>`;
  return `<main${wait}><h1>${escape(name)}</h1><p role="status">${escape(text)}</p>${next}</main>`;
}

function report(entry: OverviewEntry, now: number): string {
  const [first] = entry.kernels;
  const age = entry.collectedAt === null ? undefined : ageOf(entry.collectedAt, now);
  const facts = joined([first?.device, age, count(entry.kernels.length + entry.left, "kernel"), first?.evidence]);
  const left = entry.left + Math.max(0, entry.kernels.length - MOST_KERNELS);
  return [
    `<main><h1>${escape(entry.name)}</h1>`,
    `<p class="quiet">${escape(facts)}${entry.reading ? " &middot; being read again" : ""}</p>`,
    headline(entry),
    entry.error === null ? "" : problems([entry.error], "It could not be read", "gpadvisor.showServerLogs"),
    problems(entry.problems, "What to know of this report"),
    ...entry.kernels.slice(0, MOST_KERNELS).map(kernelSection),
    left > 0 ? `<p class="quiet">${escape(count(left, "kernel"))} with less time not listed.</p>` : "",
    `<p>${anchor("All findings", "gpadvisor.findings.focus")}</p></main>`,
  ].join("\n");
}

/** The best there is to win, in a sentence. */
function headline(entry: OverviewEntry): string {
  const all = entry.kernels.flatMap((kernel) => open(kernel).map((finding) => ({ kernel, finding })));
  const best = all.find(({ finding }) => finding.gain !== null);
  if (best === undefined) {
    return entry.kernels.length === 0 ? "" : "<p>No suggestion has an estimated gain.</p>";
  }
  const { kernel, finding } = best;
  return `<p class="headline"><strong>${escape(finding.gainAndRange ?? "")}</strong> for <code>${escape(kernel.name)}</code>: ${escape(finding.change)}</p>`;
}

function open(kernel: OverviewKernel): readonly OverviewFinding[] {
  return kernel.findings.filter(({ suppressed }) => suppressed === null);
}

function kernelSection(kernel: OverviewKernel): string {
  const share = kernel.timeShare === null ? null : `${percent(kernel.timeShare)} of GPU time`;
  const time = kernel.durationNs === null ? null : duration(kernel.durationNs);
  const facts = escape(joined([share, time, kernel.launch]));
  const at = kernel.place === null ? "" : ` &middot; ${lineLink(kernel.place)} &middot; ${sassLink(kernel.place)}`;
  const off = kernel.findings.length - open(kernel).length;
  const rows = open(kernel).map(findingRow).join("\n");
  const table = `<table><thead><tr><th>Gain</th><th>What to do</th><th>Where</th></tr></thead><tbody>${rows}</tbody></table>`;
  return [
    `<section><h2><code>${escape(kernel.name)}</code></h2><p class="quiet">${facts}${at}</p>`,
    `<p>${escape(kernel.verdict)}</p>`,
    rows === "" ? '<p class="quiet">Nothing to suggest.</p>' : table,
    off > 0 ? `<p class="quiet">${escape(count(off, "suggestion"))} disabled in the source.</p>` : "",
    problems(kernel.problems, "What its numbers lack"),
    "</section>",
  ].join("\n");
}

function findingRow(finding: OverviewFinding): string {
  const range = /\((.+)\)$/.exec(finding.gainAndRange ?? "")?.[1];
  const gain =
    finding.gain === null
      ? '<span class="quiet">no estimate</span>'
      : `<strong>${escape(finding.gain)}</strong>${range === undefined ? "" : ` <span class="quiet">${escape(range)}</span>`}`;
  const stale = finding.place?.stale === true ? ' <span class="quiet">edited since</span>' : "";
  const share = finding.share === null ? "" : ` <span class="quiet">&middot; ${escape(percent(finding.share))} of the samples</span>`;
  const why = anchor(finding.code, "gpadvisor.explainAdvice", [finding.code]);
  return [
    `<tr><td class="gain">${gain}</td>`,
    `<td><strong>${escape(finding.name)}</strong> (${why})<br>${escape(finding.change)}<br>`,
    `<span class="quiet">${escape(finding.title)}</span>${share}</td>`,
    `<td>${finding.place === null ? '<span class="quiet">no line known</span>' : lineLink(finding.place)}${stale}</td></tr>`,
  ].join("");
}

function problems(texts: readonly string[], title: string, command?: PageCommand): string {
  if (texts.length === 0) {
    return "";
  }
  const items = texts.map((text) => `<li>${escape(text)}</li>`).join("");
  const next = command === undefined ? "" : `<p>${anchor("Show the log", command)}</p>`;
  return `<aside><h3>${escape(title)}</h3><ul>${items}</ul>${next}</aside>`;
}

function lineLink({ uri, line }: OverviewPlace): string {
  return anchor(`${fileName(uri)}:${line + 1}`, "gpadvisor.showLocation", [uri, line]);
}

function sassLink({ uri, line }: OverviewPlace): string {
  return anchor("machine code", "gpadvisor.openSass", [uri, line]);
}

function anchor(text: string, command: PageCommand, words: readonly (string | number)[] = []): string {
  const given = words.length === 0 ? "" : `?${encodeURIComponent(JSON.stringify(words))}`;
  return `<a href="${escape(`command:${command}${given}`)}">${escape(text)}</a>`;
}

const STYLE = `
body { color: var(--vscode-foreground); background: var(--vscode-editor-background); font: var(--vscode-font-weight) var(--vscode-font-size)/1.5 var(--vscode-font-family); padding: 0 24px 24px; max-width: 72em; }
h1 { font-size: 1.6em; font-weight: 600; margin: 20px 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.2em; margin: 28px 0 4px; overflow-wrap: anywhere; }
h3 { font-size: 1em; margin: 0; }
p { margin: 4px 0; }
code { font-family: var(--vscode-editor-font-family); background: none; color: inherit; padding: 0; }
a { color: var(--vscode-textLink-foreground); }
a:focus-visible { outline: 1px solid var(--vscode-focusBorder); outline-offset: 2px; }
.quiet { color: var(--vscode-descriptionForeground); }
.headline { font-size: 1.15em; margin: 12px 0; }
table { border-collapse: collapse; width: 100%; margin: 8px 0; }
th { text-align: left; font-weight: 600; }
th, td { padding: 6px 12px 6px 0; vertical-align: top; border-bottom: 1px solid var(--vscode-contrastBorder, var(--vscode-widget-border, var(--vscode-panel-border))); }
td.gain, td:last-child { white-space: nowrap; }
td { overflow-wrap: anywhere; }
aside { border-left: 3px solid var(--vscode-editorInfo-foreground); padding: 4px 12px; margin: 12px 0; }
aside ul { margin: 4px 0; padding-left: 20px; }
`;
