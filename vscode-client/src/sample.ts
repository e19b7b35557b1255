// SPDX-License-Identifier: Apache-2.0
// The sample that the extension carries: a kernel and a simulated profile, copied to where it may be edited.

import * as vscode from "vscode";
import type { Session } from "./session";

/** Where the sample lies once it was opened. */
export function sampleFolder(context: vscode.ExtensionContext): vscode.Uri {
  return vscode.Uri.joinPath(context.globalStorageUri, "sample");
}

export function registerSample(context: vscode.ExtensionContext, session: Session): vscode.Disposable {
  return vscode.commands.registerCommand("gpadvisor.openSample", async () => {
    const folder = sampleFolder(context);
    const shipped = vscode.Uri.joinPath(context.extensionUri, "bundled", "sample");
    await vscode.workspace.fs.copy(shipped, folder, { overwrite: true });
    const names = (await vscode.workspace.fs.readDirectory(folder)).map(([name]) => name);
    const source = names.find((name) => name.endsWith(".cu"));
    if (source === undefined) {
      throw new Error(`${folder.fsPath} has no source; install the extension again`);
    }
    const document = await vscode.workspace.openTextDocument(vscode.Uri.joinPath(folder, source));
    const loop = document.positionAt(Math.max(0, document.getText().indexOf("for (")));
    const selection = new vscode.Range(loop, loop);
    const editor = await vscode.window.showTextDocument(document, { preview: false, selection });
    editor.revealRange(selection, vscode.TextEditorRevealType.InCenter);
    if (session.client === undefined) {
      await session.start();
    }
  });
}
