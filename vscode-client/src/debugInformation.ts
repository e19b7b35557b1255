// SPDX-License-Identifier: Apache-2.0
// What a bug report needs: the client's side, and what the server says of itself. No source text.

import * as vscode from "vscode";
import type { EnvironmentFinder } from "./environment";
import { DebugInformationMessage } from "./messages";
import type { Session } from "./session";

export class DebugInformation implements vscode.Disposable {
  readonly #command: vscode.Disposable;

  public constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly session: Session,
    private readonly finder: EnvironmentFinder,
  ) {
    this.#command = vscode.commands.registerCommand("gpadvisor.debugInformation", () => this.#show());
  }

  public dispose(): void {
    this.#command.dispose();
  }

  async #show(): Promise<void> {
    const content = `${this.#own()}\n${await this.#ofServer()}`;
    const document = await vscode.workspace.openTextDocument({ language: "markdown", content });
    await vscode.window.showTextDocument(document);
  }

  #own(): string {
    const { version } = this.context.extension.packageJSON as { readonly version: string };
    const rows = [
      ["extension", version],
      ["VS Code", `${vscode.version}, ${vscode.env.appName}, ${vscode.env.remoteName ?? "local"}`],
      ["platform", `${process.platform} ${process.arch}, Node ${process.version}`],
      ["trusted", String(vscode.workspace.isTrusted)],
      ["environment", JSON.stringify(this.finder.choice ?? null)],
    ];
    return ["# GPAdvisor", "", ...rows.map(([name, value]) => `- ${name}: ${value}`), ""].join("\n");
  }

  async #ofServer(): Promise<string> {
    if (this.session.client === undefined) {
      return "The server is not running.";
    }
    try {
      return (await this.session.client.sendRequest(DebugInformationMessage)).markdown;
    } catch (error) {
      return `The server did not answer: ${String(error)}`;
    }
  }
}
