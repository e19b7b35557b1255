// SPDX-License-Identifier: Apache-2.0
// The settings that the client reads itself.

import * as vscode from "vscode";
import { DEFAULTS, SECTION, type Settings } from "./generated/settings";

/** A setting of the window, or of the folder that a document is in. */
export function setting<Name extends keyof Settings>(name: Name, document?: vscode.Uri): Settings[Name] {
  return vscode.workspace.getConfiguration(SECTION, document).get<Settings[Name]>(name) ?? DEFAULTS[name];
}
