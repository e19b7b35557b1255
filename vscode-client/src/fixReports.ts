// SPDX-License-Identifier: Apache-2.0
// What a quick fix has done to the machine code, once the background compile knows.

import * as vscode from "vscode";
import { FixCheckedMessage } from "./messages";
import type { Logs } from "./logs";
import { inform, warn } from "./say";
import type { Session } from "./session";

const SASS = "Show SASS";

export function registerFixReports(session: Session, logs: Logs): vscode.Disposable {
  session.onNotification(FixCheckedMessage, (said) => {
    const text = `${said.code}: ${said.text}`;
    logs.client.info(`${said.title}: ${said.outcome}: ${said.text}`);
    switch (said.outcome) {
      case "gone":
      case "fewer":
      case "unknown":
        void offerSass(inform(text, SASS), said.uri, said.line);
        return;
      case "remains":
        void offerSass(warn(text, SASS), said.uri, said.line);
        return;
      case "notCompiled":
        void warn(text);
        return;
      case "cancelled":
    }
  });
  return new vscode.Disposable(() => undefined);
}

async function offerSass(asked: Thenable<string | undefined>, uri: string, line: number): Promise<void> {
  if ((await asked) === SASS) {
    await vscode.commands.executeCommand("gpadvisor.openSass", uri, line);
  }
}
