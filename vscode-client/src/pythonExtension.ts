// SPDX-License-Identifier: Apache-2.0
// The interpreter that the user chose in the Python extension, where that is installed.

import { PVSC_EXTENSION_ID, PythonExtension } from "@vscode/python-extension";
import * as vscode from "vscode";
import type { Logs } from "./logs";

export class ChosenInterpreter implements vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<void>();
  #heard: vscode.Disposable | undefined;

  /** The user has chosen another one. */
  public readonly onDidChange = this.#changed.event;

  public constructor(private readonly logs: Logs) {}

  public async find(): Promise<string | undefined> {
    if (vscode.extensions.getExtension(PVSC_EXTENSION_ID) === undefined) {
      return undefined;
    }
    try {
      const { environments } = await PythonExtension.api();
      this.#heard ??= environments.onDidChangeActiveEnvironmentPath(() => { this.#changed.fire(); });
      const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
      const active = environments.getActiveEnvironmentPath(folder);
      return (await environments.resolveEnvironment(active))?.executable.uri?.fsPath;
    } catch (error) {
      this.logs.client.warn(`the Python extension did not name its interpreter: ${String(error)}`);
      return undefined;
    }
  }

  public dispose(): void {
    this.#heard?.dispose();
    this.#changed.dispose();
  }
}
