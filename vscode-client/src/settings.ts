// SPDX-License-Identifier: Apache-2.0
// The settings that the client reads itself.

import * as vscode from "vscode";
import { DEFAULTS, SECTION, type Settings } from "./generated/settings";

export function setting<Name extends keyof Settings>(name: Name): Settings[Name] {
  return vscode.workspace.getConfiguration(SECTION).get<Settings[Name]>(name) ?? DEFAULTS[name];
}
