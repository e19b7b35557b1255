// SPDX-License-Identifier: Apache-2.0
// The one place where the user is told something in a notification.

import * as vscode from "vscode";
import { plain } from "./decide/plain";

type Answer = Thenable<string | undefined>;

export function inform(text: string, ...answers: readonly string[]): Answer {
  return vscode.window.showInformationMessage(plain(text), ...answers);
}

export function warn(text: string, ...answers: readonly string[]): Answer {
  return vscode.window.showWarningMessage(plain(text), ...answers);
}

export function fail(text: string, ...answers: readonly string[]): Answer {
  return vscode.window.showErrorMessage(plain(text), ...answers);
}

/** Asks before anything else is done; the detail is shown as it is. */
export function ask(question: string, detail: string, ...answers: readonly string[]): Answer {
  return vscode.window.showInformationMessage(plain(question), { modal: true, detail }, ...answers);
}
