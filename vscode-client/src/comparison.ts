// SPDX-License-Identifier: Apache-2.0
// Two profiles side by side: what each line gained or lost stands at its end, the report with both beside it.

import * as vscode from "vscode";
import { changeWords, olderFirst } from "./decide/comparison";
import type { Node } from "./decide/overview";
import { plain } from "./decide/plain";
import type { CompareLine, OverviewEntry } from "./generated/protocol";
import { CompareMessage } from "./messages";
import type { Overview } from "./overview";
import type { Reports } from "./reports";
import { fail, inform } from "./say";
import type { Session } from "./session";

export class Comparison implements vscode.Disposable {
  readonly #gained = decoration("gpadvisor.gained");
  readonly #lost = decoration("gpadvisor.lost");
  readonly #subscriptions: vscode.Disposable[];
  #lines: readonly CompareLine[] = [];

  public constructor(
    private readonly session: Session,
    private readonly overview: Overview,
    private readonly reports: Reports,
  ) {
    this.#subscriptions = [
      ...[this.#gained, this.#lost],
      vscode.commands.registerCommand("gpadvisor.compareProfiles", (first: unknown, all: unknown) => this.#ask(first, all)),
      vscode.commands.registerCommand("gpadvisor.clearComparison", () => { this.#mark([]); }),
      vscode.window.onDidChangeVisibleTextEditors(() => { this.#draw(); }),
      session.onDidStop(() => { this.#mark([]); }),
    ];
  }

  public dispose(): void {
    vscode.Disposable.from(...this.#subscriptions).dispose();
  }

  /** From the palette, a row of the tree, or one or two reports in the explorer. */
  async #ask(first: unknown, all: unknown): Promise<void> {
    const known = ((await this.overview.ask()) ?? []).filter(({ profile }) => profile);
    const given = (Array.isArray(all) && all.length > 1 ? all : [first]).flatMap(pathOf);
    if (given.length >= 2) {
      const [before, after] = olderFirst(given.slice(0, 2), known);
      await this.#show(before, after);
      return;
    }
    const after = given[0] ?? (await pick("The profile from after the change", known));
    const rest = known.filter(({ path }) => path !== after);
    const before = after === undefined ? undefined : await pick("The profile from before the change", rest);
    if (before !== undefined && after !== undefined) {
      await this.#show(before, after);
    }
  }

  async #show(before: string, after: string): Promise<void> {
    const [old, now] = [before, after].map((one) => vscode.Uri.file(one).toString()) as [string, string];
    try {
      const answer = await this.session.request(CompareMessage, { before: old, after: now });
      if (answer !== undefined) {
        this.#mark(answer.lines);
        this.reports.show({ uri: now, before: old });
      }
    } catch (error) {
      void fail(`GPAdvisor: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  #mark(lines: readonly CompareLine[]): void {
    this.#lines = lines;
    void vscode.commands.executeCommand("setContext", "gpadvisor.comparing", lines.length > 0);
    this.#draw();
  }

  #draw(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      const { uri, lineCount } = editor.document;
      const own = this.#lines.filter((one) => one.uri === uri.toString() && one.line < lineCount);
      const drawn = (lines: readonly CompareLine[]): vscode.DecorationOptions[] =>
        lines.map(({ line, changeNs }) => ({
          range: editor.document.lineAt(line).range,
          renderOptions: { after: { contentText: changeWords(changeNs) } },
        }));
      editor.setDecorations(this.#gained, drawn(own.filter(({ changeNs }) => changeNs < 0)));
      editor.setDecorations(this.#lost, drawn(own.filter(({ changeNs }) => changeNs > 0)));
    }
  }
}

function decoration(colour: string): vscode.TextEditorDecorationType {
  const color = new vscode.ThemeColor(colour);
  return vscode.window.createTextEditorDecorationType({
    after: { color, margin: "0 0 0 2em" },
    overviewRulerColor: color,
    overviewRulerLane: vscode.OverviewRulerLane.Right,
  });
}

function pathOf(given: unknown): readonly string[] {
  if (given instanceof vscode.Uri) {
    return [given.fsPath];
  }
  const node = given as Partial<Node> | undefined;
  return node?.path === undefined ? [] : [node.path];
}

async function pick(title: string, known: readonly OverviewEntry[]): Promise<string | undefined> {
  const items = known.map(({ name, path, collectedAt }) => ({ label: plain(name), description: collectedAt?.slice(0, 16).replace("T", " ") ?? "", detail: plain(path), path }));
  if (items.length === 0) {
    void inform("GPAdvisor: import another profile to compare with.");
    return undefined;
  }
  return (await vscode.window.showQuickPick(items, { title, matchOnDetail: true }))?.path;
}
