// SPDX-License-Identifier: Apache-2.0
// One report beside the source: the page that `gpadvisor view` writes, fed by the server. A click in it opens the
// line, and the line of the cursor is the page's.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import * as vscode from "vscode";
import { isFile } from "./decide/commands";
import { heard, inPage, type PageLine, reportPage, today } from "./decide/report";
import { summaryPage } from "./decide/summaryPage";
import type { PageFile } from "./generated/protocol";
import { PageMessage } from "./messages";
import type { Overview } from "./overview";
import type { Session } from "./session";

const VIEW = "gpadvisor.report";

/** What a report is about: a profile or a source, by default the newest profile, beside an earlier one. */
export interface Subject {
  readonly uri?: string;
  readonly before?: string;
}

export class Report implements vscode.Disposable {
  readonly #panel = vscode.window.createWebviewPanel(
    VIEW,
    "Report",
    { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
    { enableFindWidget: true, localResourceRoots: [] },
  );
  readonly #heard: vscode.Disposable;
  #files: readonly PageFile[] = [];
  #document: string | undefined;
  #digest: string | undefined;
  #asking = false;
  #stale = true;
  #live = false; // whether the panel has the page with its script
  #closed = false;

  public constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly session: Session,
    overview: Overview,
    private readonly subject: Subject,
    forget: () => void,
  ) {
    const later = (): void => {
      this.#stale = true;
      void this.#update();
    };
    this.#heard = vscode.Disposable.from(
      this.#panel.webview.onDidReceiveMessage((message) => { this.#answer(message); }),
      this.#panel.onDidChangeViewState(() => { void this.#update(); }),
      overview.onDidChange(later),
      vscode.workspace.onDidSaveTextDocument(later),
      vscode.workspace.onDidGrantWorkspaceTrust(later),
      session.onDidStart(later),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => { this.#follow(textEditor); }),
    );
    this.#panel.onDidDispose(() => {
      this.#closed = true;
      this.#heard.dispose();
      forget();
    });
    void this.#update();
  }

  public reveal(): void {
    this.#panel.reveal(undefined, true);
  }

  public dispose(): void {
    this.#panel.dispose();
  }

  /** Asks for what has changed since; once at a time, and only while somebody looks. */
  async #update(): Promise<void> {
    if (this.#closed) {
      return;
    }
    if (!vscode.workspace.isTrusted) {
      this.#say("In Restricted Mode no report is read.");
      return;
    }
    if (this.#asking || !this.#stale || !this.#panel.visible) {
      return;
    }
    this.#asking = true;
    this.#stale = false;
    await this.#ask();
    this.#asking = false;
    await this.#update();
  }

  async #ask(): Promise<void> {
    this.#orSay("Reading the profile...", true);
    try {
      const known = this.#digest === undefined ? {} : { known: this.#digest };
      const answer = await this.session.request(PageMessage, { ...this.subject, ...known });
      if (this.#closed) {
        return;
      }
      if (answer === undefined) {
        this.#orSay("The GPAdvisor server is not running.");
      } else {
        this.#files = answer.files;
        this.#digest = answer.digest;
        this.#panel.title = `Report: ${path.posix.basename(vscode.Uri.parse(answer.uri).path)}`;
        this.#show(answer.document);
      }
    } catch (error) {
      this.#orSay(error instanceof Error ? error.message : String(error));
    }
  }

  #show(document: string | null): void {
    this.#document = document ?? this.#document;
    if (!this.#live) {
      this.#live = true;
      const [script, style] = ["page.js", "page.css"].map((name) => readFileSync(this.context.asAbsolutePath(`dist/${name}`), "utf8"));
      this.#panel.webview.options = { enableScripts: true, localResourceRoots: [] };
      this.#panel.webview.html = reportPage(script ?? "", style ?? "", nonce());
    } else if (document !== null) {
      this.#send();
    }
  }

  #send(): void {
    void this.#panel.webview.postMessage({ type: "document", document: this.#document });
    const editor = vscode.window.activeTextEditor;
    if (editor !== undefined) {
      this.#follow(editor);
    }
  }

  /** What was shown stays, though it may be of before. */
  #orSay(text: string, busy = false): void {
    if (this.#document === undefined && !this.#closed) {
      this.#say(text, busy);
    }
  }

  /** A sentence in the place of the page: no script. */
  #say(text: string, busy = false): void {
    this.#live = false;
    const instead = vscode.workspace.isTrusted ? { text, busy } : { text, link: { title: "Manage Trust", command: "workbench.trust.manage" as const } };
    this.#panel.webview.options = { enableScripts: false, enableCommandUris: ["workbench.trust.manage"], localResourceRoots: [] };
    this.#panel.webview.html = summaryPage(this.#panel.title, instead, nonce(), Date.now());
  }

  #answer(message: unknown): void {
    const asked = heard(message);
    if (asked?.type === "ready") {
      this.#send();
    } else if (asked !== undefined) {
      void this.#reveal(asked);
    }
  }

  /** Opens a line beside the panel; the panel keeps the focus, so that one can go on from card to card. */
  async #reveal(at: PageLine): Promise<void> {
    const place = today(this.#files, at);
    if (place === undefined || !isFile(place.uri)) {
      return;
    }
    const uri = vscode.Uri.parse(place.uri);
    const shown = vscode.window.visibleTextEditors.find(({ document }) => document.uri.toString() === uri.toString());
    const other = vscode.window.tabGroups.all.find(({ viewColumn }) => viewColumn !== this.#panel.viewColumn);
    const viewColumn = shown?.viewColumn ?? other?.viewColumn ?? vscode.ViewColumn.Beside;
    const document = await vscode.workspace.openTextDocument(uri);
    const { range } = document.lineAt(Math.min(place.line, document.lineCount - 1));
    await vscode.window.showTextDocument(document, { viewColumn, preserveFocus: true, selection: range.with({ end: range.start }) });
  }

  /** The line that the user works on; not one that the page has just opened. */
  #follow(editor: vscode.TextEditor): void {
    if (editor === vscode.window.activeTextEditor && this.#live) {
      const line = inPage(this.#files, { uri: editor.document.uri.toString(), line: editor.selection.active.line });
      if (line !== undefined) {
        void this.#panel.webview.postMessage({ type: "select", ...line });
      }
    }
  }
}

function nonce(): string {
  return randomBytes(16).toString("base64url");
}
