// SPDX-License-Identifier: Apache-2.0
// Keeps the command that follows a quick fix alive while the user is asked about its edit.
//
// VS Code forgets the arguments of a code action's command as soon as the list of actions is gone, which may be
// before the user has answered the refactor preview. A command without arguments is not forgotten.

import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";

/** Actions are offered on every move of the cursor; the last ones are enough. */
const KEPT = 200;

export class FixCommands implements vscode.Disposable {
  readonly #registered: vscode.Disposable[] = [];
  #count = 0;

  public readonly middleware: Middleware = {
    provideCodeActions: async (document, range, context, token, next) => {
      const offered = await next(document, range, context, token);
      for (const action of offered ?? []) {
        const edits = action instanceof vscode.CodeAction && action.edit !== undefined;
        if (edits && action.command?.arguments !== undefined) {
          action.command = this.#withoutArguments(action.command);
        }
      }
      return offered;
    },
  };

  public dispose(): void {
    vscode.Disposable.from(...this.#registered).dispose();
  }

  #withoutArguments({ title, command, arguments: words = [] }: vscode.Command): vscode.Command {
    const id = `gpadvisor.afterFix.${this.#count++}`;
    const run = async (): Promise<unknown> => vscode.commands.executeCommand(command, ...(words as unknown[]));
    this.#registered.push(vscode.commands.registerCommand(id, run));
    if (this.#registered.length > KEPT) {
      this.#registered.shift()?.dispose();
    }
    return { title, command: id };
  }
}
