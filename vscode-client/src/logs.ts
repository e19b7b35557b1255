// SPDX-License-Identifier: Apache-2.0
// Two channels, the client's and the server's; neither opens by itself.

import * as vscode from "vscode";

export class Logs implements vscode.Disposable {
  public readonly client = vscode.window.createOutputChannel("GPAdvisor", { log: true });
  public readonly server = vscode.window.createOutputChannel("GPAdvisor Server", { log: true });

  public dispose(): void {
    this.client.dispose();
    this.server.dispose();
  }
}
