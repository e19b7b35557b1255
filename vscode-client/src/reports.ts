// SPDX-License-Identifier: Apache-2.0
// The reports that are open, one panel for each.

import * as vscode from "vscode";
import type { Node } from "./decide/overview";
import type { Overview } from "./overview";
import { Report, type Subject } from "./reportPanel";
import type { Session } from "./session";

export class Reports implements vscode.Disposable {
  readonly #open = new Map<string, Report>();
  readonly #command = vscode.commands.registerCommand("gpadvisor.showReport", (given: unknown) => {
    const uri = given instanceof vscode.Uri ? given : (uriOf(given as Partial<Node> | undefined) ?? shownUri());
    this.show(uri === undefined ? {} : { uri: uri.toString() });
  });

  public constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly session: Session,
    private readonly overview: Overview,
  ) {}

  public show(subject: Subject): void {
    const key = JSON.stringify(subject);
    const known = this.#open.get(key);
    if (known !== undefined) {
      known.reveal();
      return;
    }
    const made = new Report(this.context, this.session, this.overview, subject, () => { this.#open.delete(key); });
    this.#open.set(key, made);
  }

  public dispose(): void {
    vscode.Disposable.from(this.#command, ...this.#open.values()).dispose();
  }
}

function uriOf(node: Partial<Node> | undefined): vscode.Uri | undefined {
  return node?.path === undefined ? undefined : vscode.Uri.file(node.path);
}

/** The source or the report that the user looks at. */
function shownUri(): vscode.Uri | undefined {
  const { input } = vscode.window.tabGroups.activeTabGroup.activeTab ?? {};
  if (input instanceof vscode.TabInputCustom) {
    return input.uri;
  }
  const document = vscode.window.activeTextEditor?.document;
  return document !== undefined && ["cuda-cpp", "python"].includes(document.languageId) ? document.uri : undefined;
}
