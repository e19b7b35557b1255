// SPDX-License-Identifier: Apache-2.0
// Machine code beside its source: read-only, with the selection of each side shown on the other.

import * as vscode from "vscode";
import { heatOf, layOut, lineToReveal, linesOf, type SassDocument } from "./decide/sass";
import type { SassParams } from "./generated/protocol";
import type { Gutter } from "./gutter";
import { SassMessage } from "./messages";
import { inform } from "./say";
import type { Session } from "./session";

const SCHEME = "gpadvisor-sass";
const LANGUAGE = "gpadvisor-sass";

interface Open {
  readonly asked: SassParams;
  readonly document: SassDocument;
}

export class SassView implements vscode.Disposable {
  readonly #open = new Map<string, Open>();
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  readonly #linked = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("gpadvisor.linkedLine.background"),
    border: "1px solid",
    borderColor: new vscode.ThemeColor("gpadvisor.linkedLine.border"),
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.rangeHighlightForeground"),
    overviewRulerLane: vscode.OverviewRulerLane.Center,
  });
  readonly #subscriptions: vscode.Disposable[];

  public constructor(
    private readonly session: Session,
    private readonly gutter: Gutter,
  ) {
    this.#subscriptions = [
      this.#changed,
      this.#linked,
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
        onDidChange: this.#changed.event,
        provideTextDocumentContent: (uri) => this.#open.get(uri.toString())?.document.text ?? "",
      }),
      vscode.commands.registerCommand("gpadvisor.openSass", (uri: unknown, line: unknown) => this.#show(uri, line)),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => { this.#follow(textEditor); }),
      // Setting the language closes the document once, as plain text, and opens it again.
      vscode.workspace.onDidCloseTextDocument(({ uri, languageId }) => {
        if (languageId === LANGUAGE) {
          this.#open.delete(uri.toString());
        }
      }),
      gutter.onDidChange((uri) => { void this.#refresh(uri); }),
    ];
  }

  public dispose(): void {
    vscode.Disposable.from(...this.#subscriptions).dispose();
  }

  async #show(given: unknown, at: unknown): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const source = typeof given === "string" ? given : editor?.document.uri.toString();
    if (source === undefined) {
      return;
    }
    const line = typeof at === "number" ? at : (editor?.selection.active.line ?? 0);
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `${vscode.Uri.parse(source).path} (SASS)` });
    if (!(await this.#load(uri, { uri: source, line }))) {
      return;
    }
    this.#changed.fire(uri);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.languages.setTextDocumentLanguage(document, LANGUAGE);
    await vscode.window.showTextDocument(document, {
      viewColumn: vscode.ViewColumn.Beside,
      preserveFocus: true,
      preview: false,
    });
    this.#link(source, line);
  }

  async #load(uri: vscode.Uri, asked: SassParams): Promise<boolean> {
    const answer = await this.session.request(SassMessage, asked);
    if (answer === undefined) {
      return false;
    }
    if (answer.rows.length === 0) {
      void inform(`GPAdvisor: ${answer.message ?? "there is no machine code for this file."}`);
      return false;
    }
    const document = layOut(answer);
    this.#open.set(uri.toString(), { asked, document });
    this.gutter.set(uri, heatOf(document));
    return true;
  }

  /** New samples or another kernel: the text follows. */
  async #refresh(source: vscode.Uri): Promise<void> {
    for (const [name, { asked }] of this.#open) {
      const uri = vscode.Uri.parse(name);
      if (asked.uri === source.toString() && (await this.#load(uri, asked))) {
        this.#changed.fire(uri);
      }
    }
  }

  /** Shows on the other side what the cursor is on; only from where the user works, so that nothing echoes. */
  #follow(editor: vscode.TextEditor): void {
    if (editor !== vscode.window.activeTextEditor) {
      return;
    }
    const uri = editor.document.uri.toString();
    const line = editor.selection.active.line;
    const open = this.#open.get(uri);
    if (open === undefined) {
      this.#link(uri, line);
      return;
    }
    const row = open.document.rows[line];
    if (row?.uri !== undefined && row.uri !== null && row.line !== null) {
      this.#mark(row.uri, [row.line], row.line);
      this.#mark(uri, linesOf(open.document, row.uri, row.line), undefined);
    }
  }

  #link(source: string, line: number): void {
    for (const [name, { document }] of this.#open) {
      const lines = linesOf(document, source, line);
      this.#mark(name, lines, lineToReveal(document, lines));
    }
    if (this.#open.size > 0) {
      this.#mark(source, [], undefined);
    }
  }

  #mark(name: string, lines: readonly number[], reveal: number | undefined): void {
    for (const editor of vscode.window.visibleTextEditors) {
      if (editor.document.uri.toString() === name) {
        editor.setDecorations(
          this.#linked,
          lines.map((line) => new vscode.Range(line, 0, line, 0)),
        );
        if (reveal !== undefined) {
          editor.revealRange(
            new vscode.Range(reveal, 0, reveal, 0),
            vscode.TextEditorRevealType.InCenterIfOutsideViewport,
          );
        }
      }
    }
  }
}
