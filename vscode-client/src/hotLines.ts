// SPDX-License-Identifier: Apache-2.0
// Jumps from one hot line to the next.

import * as vscode from "vscode";
import { neighbour } from "./decide/heat";
import type { Gutter } from "./gutter";

export function registerHotLines(gutter: Gutter): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.commands.registerTextEditorCommand("gpadvisor.nextHotLine", (editor) => { jump(editor, gutter, 1); }),
    vscode.commands.registerTextEditorCommand("gpadvisor.previousHotLine", (editor) => { jump(editor, gutter, -1); }),
  );
}

function jump(editor: vscode.TextEditor, gutter: Gutter, step: 1 | -1): void {
  const line = neighbour(gutter.of(editor.document.uri), editor.selection.active.line, step);
  if (line === undefined) {
    vscode.window.setStatusBarMessage("GPAdvisor: no line of this file has samples", 5000);
    return;
  }
  const at = new vscode.Position(line, editor.document.lineAt(line).firstNonWhitespaceCharacterIndex);
  editor.selection = new vscode.Selection(at, at);
  editor.revealRange(new vscode.Range(at, at), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}
