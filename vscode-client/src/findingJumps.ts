// SPDX-License-Identifier: Apache-2.0
// Jumps from one finding of a file to the next, and shows what it says.

import * as vscode from "vscode";
import { next } from "./decide/jumps";

export function registerFindingJumps(): vscode.Disposable {
  announce();
  return vscode.Disposable.from(
    vscode.languages.onDidChangeDiagnostics(announce),
    vscode.window.onDidChangeActiveTextEditor(announce),
    vscode.commands.registerTextEditorCommand("gpadvisor.nextFinding", (editor) => { jump(editor, 1); }),
    vscode.commands.registerTextEditorCommand("gpadvisor.previousFinding", (editor) => { jump(editor, -1); }),
  );
}

function findings(document: vscode.TextDocument | undefined): readonly vscode.Diagnostic[] {
  const all = document === undefined ? [] : vscode.languages.getDiagnostics(document.uri);
  return all.filter(({ source }) => source === "gpadvisor");
}

function announce(): void {
  const some = findings(vscode.window.activeTextEditor?.document).length > 0;
  void vscode.commands.executeCommand("setContext", "gpadvisor.fileHasFindings", some);
}

function jump(editor: vscode.TextEditor, step: 1 | -1): void {
  const places = findings(editor.document).map(({ range }) => range.start);
  const line = next(places.map((place) => place.line), editor.selection.active.line, step);
  const at = places.find((place) => place.line === line);
  if (at === undefined) {
    vscode.window.setStatusBarMessage("GPAdvisor: this file has no findings", 5000);
    return;
  }
  editor.selection = new vscode.Selection(at, at);
  editor.revealRange(new vscode.Range(at, at), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  void vscode.commands.executeCommand("editor.action.showHover");
}
