// SPDX-License-Identifier: Apache-2.0
// The page in a webview: its markup, where its lines are today, and which of its messages are to be heard.

import type { PageFile } from "../generated/protocol";

/** What the page may ask for: nothing but a line of one of the files that it was given. */
export type Heard = { readonly type: "ready" } | { readonly type: "open"; readonly file: number; readonly line: number };

/** A line of the page's text, by the number of its file; lines count from 1 there. */
export interface PageLine {
  readonly file: number;
  readonly line: number;
}

/** A line of a text document, from 0. */
export interface TextLine {
  readonly uri: string;
  readonly line: number;
}

const MOST_LINES = 10_000_000;

/** The page without data: our script and style alone run, and nothing can be loaded from anywhere. */
export function reportPage(script: string, style: string, nonce: string): string {
  const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'`;
  return [
    '<!DOCTYPE html><html lang="en"><head><meta charset="UTF-8">',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    `<title>Report</title><style nonce="${nonce}">${inside(style)}</style></head><body class="in-editor">`,
    `<script nonce="${nonce}">${inside(script)}</script>`,
    "</body></html>",
  ].join("\n");
}

/** A message of the page; undefined for whatever else it may be. */
export function heard(message: unknown): Heard | undefined {
  if (typeof message !== "object" || message === null) {
    return undefined;
  }
  const { type, file, line } = message as Readonly<Record<string, unknown>>;
  if (type === "ready") {
    return { type };
  }
  return type === "open" && isCount(file) && isCount(line) && line > 0 ? { type, file, line } : undefined;
}

/** Where a line of the page is today. */
export function today(files: readonly PageFile[], { file, line }: PageLine): TextLine | undefined {
  const { uri, lines } = files[file] ?? { uri: null, lines: [] };
  const run = lines.find(({ then, count }) => line - 1 >= then && line - 1 < then + count);
  return uri === null || run === undefined ? undefined : { uri, line: run.now + line - 1 - run.then };
}

/** Which line of the page a line of today is. */
export function inPage(files: readonly PageFile[], { uri, line }: TextLine): PageLine | undefined {
  const file = files.findIndex((one) => one.uri === uri);
  const run = files[file]?.lines.find(({ now, count }) => line >= now && line < now + count);
  return run === undefined ? undefined : { file, line: run.then + line - run.now + 1 };
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= MOST_LINES;
}

/** Nothing that we wrote holds the end of its element; were it so one day, the page would be another one. */
function inside(text: string): string {
  if (/<\/(script|style)|<!--/i.test(text)) {
    throw new Error("a part of the page would end its element");
  }
  return text;
}
