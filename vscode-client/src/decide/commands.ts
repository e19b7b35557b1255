// SPDX-License-Identifier: Apache-2.0
// What the server may have the user run, and open.

/** Beside ours: pages of VS Code that only show something. */
const OF_VS_CODE = ["workbench.action.openSettings", "workbench.actions.view.problems", "workbench.trust.manage"];

/** Whether a command that came from the server is one of those that it has any use for. */
export function isKnown(command: string): boolean {
  return command.startsWith("gpadvisor.") || OF_VS_CODE.includes(command);
}

/** Whether a link or a message names a file: other schemes are for whoever provides their contents. */
export function isFile(uri: string): boolean {
  return /^file:\/\/\//i.test(uri);
}
