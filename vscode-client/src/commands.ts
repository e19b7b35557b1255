// SPDX-License-Identifier: Apache-2.0
// Commands that hand over to the server, and those of its life.

import * as vscode from "vscode";
import { ExecuteCommandRequest } from "vscode-languageclient/node";
import { isFile } from "./decide/commands";
import type { EnvironmentFinder } from "./environment";
import * as protocol from "./generated/protocol";
import type { Logs } from "./logs";
import { ask, fail, inform, warn } from "./say";
import type { Session } from "./session";
import { setting } from "./settings";

const NEXT = "Next Hot Line";

export function registerCommands(session: Session, finder: EnvironmentFinder, logs: Logs): vscode.Disposable {
  const commands: Readonly<Record<string, (...words: unknown[]) => unknown>> = {
    analyzeFile: () => onFile(session, protocol.ANALYZE_FILE),
    modelFile: () => onFile(session, protocol.MODEL_FILE),
    profile: (uri) => profile(session, uri),
    importProfile: (uri) => importProfile(session, uri),
    toggleAnnotations: () => execute(session, protocol.TOGGLE_ANNOTATIONS),
    doctor: () => doctor(session),
    cancel: () => execute(session, protocol.CANCEL),
    applyFix: (...words) => applyFix(session, words),
    showLocation,
    restart: () => session.restart(),
    showLogs: () => { logs.client.show(); },
    showServerLogs: () => { logs.server.show(); },
    installEnvironment: () => install(session, finder),
  };
  return vscode.Disposable.from(
    ...Object.entries(commands).map(([name, act]) => vscode.commands.registerCommand(`gpadvisor.${name}`, act)),
  );
}

/** Runs a command of the server; where it fails, its one sentence is shown. */
export async function execute(session: Session, command: string, ...words: unknown[]): Promise<unknown> {
  if (session.client === undefined) {
    void warn("GPAdvisor: the server is not running.");
    return undefined;
  }
  try {
    return await session.client.sendRequest(ExecuteCommandRequest.type, { command, arguments: words });
  } catch (error) {
    void fail(`GPAdvisor: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

async function onFile(session: Session, command: string): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  if (document?.languageId === "cuda-cpp") {
    await execute(session, command, document.uri.toString());
  } else {
    void inform("GPAdvisor: open a CUDA source first.");
  }
}

async function profile(session: Session, given: unknown): Promise<void> {
  const uri = given instanceof vscode.Uri ? given : vscode.window.activeTextEditor?.document.uri;
  if (setting("profile.command", uri).length > 0) {
    const said = await execute(session, protocol.PROFILE, uri?.toString());
    if (typeof said === "string") {
      // A message with an answer is shown in full.
      void inform(`GPAdvisor: ${said}.`, NEXT).then(async (chosen) => {
        if (chosen !== undefined) {
          await vscode.commands.executeCommand("gpadvisor.nextHotLine");
        }
      });
    }
    return;
  }
  const message =
    "GPAdvisor: no profiler is configured. Set gpadvisor.profile.command to a command that writes a profile, " +
    "or collect one elsewhere and import it.";
  const chosen = await inform(message, "Open Settings", "Import Profile");
  if (chosen === "Open Settings") {
    await vscode.commands.executeCommand("workbench.action.openSettings", "gpadvisor.profile");
  } else if (chosen !== undefined) {
    await importProfile(session, undefined);
  }
}

async function importProfile(session: Session, uri: unknown): Promise<void> {
  const chosen = uri instanceof vscode.Uri ? uri : await askForProfile();
  if (chosen !== undefined) {
    await execute(session, protocol.IMPORT_PROFILE, chosen.toString());
  }
}

async function askForProfile(): Promise<vscode.Uri | undefined> {
  const chosen = await vscode.window.showOpenDialog({
    title: "Profile to show",
    openLabel: "Import",
    filters: { Profiles: ["ncu-rep", "ncu-repz", "gpadvisor"] },
  });
  return chosen?.[0];
}

async function doctor(session: Session): Promise<void> {
  const said = await execute(session, protocol.DOCTOR);
  if (typeof said === "string") {
    const document = await vscode.workspace.openTextDocument({ language: "markdown", content: said });
    await vscode.window.showTextDocument(document);
  }
}

/** A fix that may change results: the lines are shown and asked about, and Enter applies. */
async function applyFix(session: Session, [uri, fix, question, lines]: readonly unknown[]): Promise<void> {
  if ((await ask(String(question), String(lines), "Apply")) !== undefined) {
    await execute(session, protocol.APPLY_FIX, uri, fix, true);
  }
}

async function showLocation(uri: unknown, line: unknown, character: unknown): Promise<void> {
  if (typeof uri === "string" && isFile(uri) && typeof line === "number") {
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(uri));
    const words = document.lineAt(Math.max(0, Math.min(line, document.lineCount - 1)));
    const first = typeof character === "number" ? character : words.firstNonWhitespaceCharacterIndex;
    const at = new vscode.Position(words.lineNumber, first);
    await vscode.window.showTextDocument(document, { selection: new vscode.Range(at, at) });
  }
}

async function install(session: Session, finder: EnvironmentFinder): Promise<void> {
  await session.stop();
  await finder.install();
  await session.start();
}
