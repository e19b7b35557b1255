// SPDX-License-Identifier: Apache-2.0
// What the menu of a row of the tree offers: why, fix, disable, machine code, the report's summary.

import * as vscode from "vscode";
import type { Node } from "./decide/overview";
import { inform } from "./say";
import { SUMMARY_VIEW } from "./summaryEditor";

export function registerFindingCommands(): vscode.Disposable {
  const commands: Readonly<Record<string, (node: Node) => unknown>> = {
    explainFinding: ({ code }) => vscode.commands.executeCommand("gpadvisor.explainAdvice", code),
    fixFinding: fix,
    disableFinding: disable,
    openKernelSass: ({ place }) => vscode.commands.executeCommand("gpadvisor.openSass", place?.uri, place?.line),
    openSummary: ({ path }) =>
      vscode.commands.executeCommand("vscode.openWith", vscode.Uri.file(path), SUMMARY_VIEW),
    copyFinding: ({ label, description, tooltip }) =>
      vscode.env.clipboard.writeText(`${label} ${description}\n${tooltip}\n`),
  };
  return vscode.Disposable.from(
    ...Object.entries(commands).map(([name, act]) => vscode.commands.registerCommand(`gpadvisor.${name}`, act)),
  );
}

/** The list of quick fixes, at the finding's line. */
async function fix(node: Node): Promise<void> {
  if ((await show(node)) !== undefined) {
    await vscode.commands.executeCommand("editor.action.quickFix");
  }
}

/** Writes the comment that the server offers for the finding's line. */
async function disable(node: Node): Promise<void> {
  const editor = await show(node);
  if (editor === undefined) {
    return;
  }
  const line = editor.selection.active.line;
  const offered = await vscode.commands.executeCommand<vscode.CodeAction[]>(
    "vscode.executeCodeActionProvider",
    editor.document.uri,
    editor.document.lineAt(line).range,
    vscode.CodeActionKind.QuickFix.value,
  );
  const found = offered.find(({ title, edit }) => edit !== undefined && title === `${node.code ?? ""}: Disable for this line`);
  if (found?.edit === undefined) {
    void inform(`GPAdvisor: no comment can stand on line ${line + 1}; disable it above.`);
    return;
  }
  await vscode.workspace.applyEdit(found.edit);
}

async function show({ place }: Node): Promise<vscode.TextEditor | undefined> {
  if (place === null) {
    return undefined;
  }
  await vscode.commands.executeCommand("gpadvisor.showLocation", place.uri, place.line);
  return vscode.window.activeTextEditor;
}
