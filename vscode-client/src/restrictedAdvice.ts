// SPDX-License-Identifier: Apache-2.0
// Restricted Mode: converted advice (*.gpadvisor.json) as plain diagnostics, by the client alone.

import * as vscode from "vscode";
import { byPath, MOST_BYTES, type PlainFinding, readAdvice } from "./decide/advice";
import { placesToLook } from "./decide/paths";
import type { StatusItem } from "./statusItem";

const PATTERN = "**/*.gpadvisor.json";
const MOST_FILES = 20;

export class RestrictedAdvice implements vscode.Disposable {
  readonly #collection = vscode.languages.createDiagnosticCollection("gpadvisor");
  readonly #watcher = vscode.workspace.createFileSystemWatcher(PATTERN);
  readonly #subscriptions: vscode.Disposable[];
  #run = 0;

  public constructor(private readonly status: StatusItem) {
    const again = (): void => { void this.#show(); };
    this.#subscriptions = [
      this.#collection,
      this.#watcher,
      this.#watcher.onDidChange(again),
      this.#watcher.onDidCreate(again),
      this.#watcher.onDidDelete(again),
    ];
    again();
  }

  public dispose(): void {
    this.#run++;
    vscode.Disposable.from(...this.#subscriptions).dispose();
  }

  async #show(): Promise<void> {
    const run = ++this.#run;
    const found = new Map<string, vscode.Diagnostic[]>();
    for (const file of await vscode.workspace.findFiles(PATTERN, undefined, MOST_FILES)) {
      for (const [path, findings] of await findingsIn(file)) {
        const document = await locate(path, file);
        if (document !== undefined) {
          const own = findings.map((one) => diagnostic(one, document.lineAt(Math.min(one.line, document.lineCount - 1))));
          found.set(document.uri.toString(), [...(found.get(document.uri.toString()) ?? []), ...own]);
        }
      }
    }
    if (run === this.#run) {
      this.#collection.clear();
      this.#collection.set([...found].map(([uri, entries]) => [vscode.Uri.parse(uri), entries]));
      const shown = [...found.values()].flat().length;
      this.status.stage = { kind: "restricted", shown };
    }
  }
}

/** By the paths that they name; nothing of what cannot be read. */
async function findingsIn(file: vscode.Uri): Promise<ReadonlyMap<string, readonly PlainFinding[]>> {
  try {
    const { size, type } = await vscode.workspace.fs.stat(file);
    if (size > MOST_BYTES || (type & vscode.FileType.File) === 0) {
      return new Map();
    }
    const read = readAdvice(new TextDecoder().decode(await vscode.workspace.fs.readFile(file)));
    return byPath(read.kind === "advice" ? read.findings : []);
  } catch {
    return new Map();
  }
}

/** The first place where the file exists, inside the workspace only. */
async function locate(path: string, advice: vscode.Uri): Promise<vscode.TextDocument | undefined> {
  const folder = vscode.workspace.getWorkspaceFolder(advice);
  if (folder === undefined) {
    return undefined;
  }
  for (const place of placesToLook(path, advice.path, folder.uri.path)) {
    const uri = folder.uri.with({ path: place });
    try {
      const { type } = await vscode.workspace.fs.stat(uri);
      return (type & vscode.FileType.File) === 0 ? undefined : await vscode.workspace.openTextDocument(uri);
    } catch {
      continue;
    }
  }
  return undefined;
}

function diagnostic(finding: PlainFinding, line: vscode.TextLine): vscode.Diagnostic {
  const severity = finding.hint ? vscode.DiagnosticSeverity.Hint : vscode.DiagnosticSeverity.Information;
  const range = line.range.with({ start: line.range.start.translate(0, line.firstNonWhitespaceCharacterIndex) });
  const made = new vscode.Diagnostic(range, finding.message, severity);
  made.source = "gpadvisor";
  made.code = finding.code;
  return made;
}
