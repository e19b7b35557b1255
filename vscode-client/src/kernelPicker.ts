// SPDX-License-Identifier: Apache-2.0
// Picks the kernel (launch, template instantiation) that colours a file.

import * as vscode from "vscode";
import { execute } from "./commands";
import { plain } from "./decide/plain";
import { SELECT_KERNEL } from "./generated/protocol";
import { KernelsMessage } from "./messages";
import { inform } from "./say";
import type { Session } from "./session";

export function registerKernelPicker(session: Session): vscode.Disposable {
  return vscode.commands.registerCommand("gpadvisor.selectKernel", async (given: unknown) => {
    const uri = typeof given === "string" ? given : vscode.window.activeTextEditor?.document.uri.toString();
    if (uri !== undefined) {
      await pick(session, uri);
    }
  });
}

async function pick(session: Session, uri: string): Promise<void> {
  const answer = await session.request(KernelsMessage, { uri });
  const items = (answer?.choices ?? []).map(({ kernel, name, description, detail, chosen }) => ({
    kernel,
    label: chosen ? `$(check) ${plain(name)}` : plain(name),
    description: plain(description),
    detail: plain(detail),
  }));
  if (items.length === 0) {
    void inform("GPAdvisor: no kernel of a profile has lines in this file.");
    return;
  }
  const picked = await vscode.window.showQuickPick(items, {
    title: "Kernel that colours this file",
    matchOnDescription: true,
    matchOnDetail: true,
  });
  if (picked !== undefined) {
    await execute(session, SELECT_KERNEL, uri, picked.kernel);
  }
}
