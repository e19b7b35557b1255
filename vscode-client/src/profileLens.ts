// SPDX-License-Identifier: Apache-2.0
// "Profile this" above each kernel, from the text alone: it stands there before anything is compiled.

import * as vscode from "vscode";
import { kernelLines } from "./decide/kernels";
import type { Session } from "./session";
import { setting } from "./settings";

export class ProfileLens implements vscode.Disposable, vscode.CodeLensProvider {
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #subscriptions: vscode.Disposable[];

  public readonly onDidChangeCodeLenses = this.#changed.event;

  public constructor(private readonly session: Session) {
    this.#subscriptions = [
      this.#changed,
      vscode.languages.registerCodeLensProvider({ scheme: "file", language: "cuda-cpp" }, this),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("gpadvisor")) {
          this.#changed.fire();
        }
      }),
      session.onDidStart(() => { this.#changed.fire(); }),
      session.onDidStop(() => { this.#changed.fire(); }),
    ];
  }

  public dispose(): void {
    vscode.Disposable.from(...this.#subscriptions).dispose();
  }

  public provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const { uri } = document;
    const drawn = ["normal", "all"].includes(setting("annotations", uri));
    const wanted = setting("enable", uri) && setting("codeLens.enable", uri) && drawn;
    if (!wanted || this.session.client === undefined) {
      return [];
    }
    const command = { title: "Profile this", command: "gpadvisor.profile", arguments: [uri] };
    return kernelLines(document.getText()).map((line) => new vscode.CodeLens(new vscode.Range(line, 0, line, 0), command));
  }
}
