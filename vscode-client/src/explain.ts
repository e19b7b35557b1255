// SPDX-License-Identifier: Apache-2.0
// A rule's page, as a preview beside the source.

import * as vscode from "vscode";
import { rulesAt } from "./decide/rules";
import { ExplainMessage } from "./messages";
import { inform } from "./say";
import type { Session } from "./session";

const SCHEME = "gpadvisor-rule";

export function registerExplain(session: Session): vscode.Disposable {
  const pages = new Map<string, string>();
  return vscode.Disposable.from(
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
      provideTextDocumentContent: (uri) => pages.get(uri.path) ?? "",
    }),
    vscode.commands.registerCommand("gpadvisor.explainAdvice", async (given: unknown) => {
      const code = typeof given === "string" ? given : await askForRule();
      const answer = code === undefined ? undefined : await session.request(ExplainMessage, { code });
      if (code !== undefined && answer !== undefined) {
        const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${code}.md` });
        pages.set(uri.path, answer.markdown);
        await vscode.commands.executeCommand("markdown.showPreviewToSide", uri);
      }
    }),
  );
}

/** The rule on the cursor's line, else one that the user picks from those of the file. */
async function askForRule(): Promise<string | undefined> {
  const editor = vscode.window.activeTextEditor;
  const found = editor === undefined ? [] : vscode.languages.getDiagnostics(editor.document.uri);
  const advice = found
    .filter(({ source }) => source === "gpadvisor")
    .map((entry) => ({ code: codeOf(entry), message: entry.message, line: entry.range.start.line }));
  const rules = rulesAt(advice, editor?.selection.active.line);
  if (rules.length <= 1) {
    if (rules.length === 0) {
      void inform("GPAdvisor: there is no advice in this file.");
    }
    return rules[0]?.code;
  }
  const items = rules.map(({ code, message }) => ({ label: code, detail: message }));
  return (await vscode.window.showQuickPick(items, { title: "Rule to explain" }))?.label;
}

function codeOf({ code }: vscode.Diagnostic): string {
  return String(typeof code === "object" ? code.value : (code ?? ""));
}
