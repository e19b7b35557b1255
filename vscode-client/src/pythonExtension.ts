// SPDX-License-Identifier: Apache-2.0
// The interpreter that the user chose in the Python extension, where that is installed.

import { PVSC_EXTENSION_ID, PythonExtension } from "@vscode/python-extension";
import * as vscode from "vscode";
import type { Logs } from "./logs";

export async function pythonOfExtension(logs: Logs): Promise<string | undefined> {
  if (vscode.extensions.getExtension(PVSC_EXTENSION_ID) === undefined) {
    return undefined;
  }
  try {
    const { environments } = await PythonExtension.api();
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    const active = environments.getActiveEnvironmentPath(folder);
    return (await environments.resolveEnvironment(active))?.executable.uri?.fsPath;
  } catch (error) {
    logs.client.warn(`the Python extension did not name its interpreter: ${String(error)}`);
    return undefined;
  }
}
