// SPDX-License-Identifier: Apache-2.0
// Where VS Code comes in: makes the parts, and starts the server where the workspace is trusted.

import * as vscode from "vscode";
import { registerAgentTools } from "./agentTools";
import { registerCommands } from "./commands";
import { Comparison } from "./comparison";
import { DebugInformation } from "./debugInformation";
import { EnvironmentFinder } from "./environment";
import { registerExplain } from "./explain";
import { registerFindingCommands } from "./findingCommands";
import { registerFindingJumps } from "./findingJumps";
import { FindingsView } from "./findingsView";
import { registerFixReports } from "./fixReports";
import { Gutter } from "./gutter";
import { registerHotLines } from "./hotLines";
import { registerKernelPicker } from "./kernelPicker";
import { Logs } from "./logs";
import { Overview } from "./overview";
import { ProfileLens } from "./profileLens";
import { Reports } from "./reports";
import { RestrictedAdvice } from "./restrictedAdvice";
import { registerSample } from "./sample";
import { SassView } from "./sassView";
import { Session } from "./session";
import { StatusItem } from "./statusItem";
import { SummaryEditor } from "./summaryEditor";

let session: Session | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const logs = new Logs();
  const status = new StatusItem();
  const finder = new EnvironmentFinder(context, logs, status);
  session = new Session(context, finder, logs, status);
  const gutter = new Gutter(session);
  const overview = new Overview(session);
  const reports = new Reports(context, session, overview);
  context.subscriptions.push(
    ...[logs, status, finder, session, gutter, new SassView(session, gutter)],
    ...[overview, new FindingsView(overview), new SummaryEditor(session, overview)],
    ...[reports, new Comparison(session, overview, reports), new ProfileLens(session)],
    registerCommands(session, finder, logs),
    registerHotLines(gutter),
    registerFindingJumps(),
    registerFindingCommands(),
    registerKernelPicker(session),
    registerExplain(session),
    registerFixReports(session, logs),
    registerSample(context, session),
    registerAgentTools(session),
    new DebugInformation(context, session, finder),
  );
  await vscode.commands.executeCommand("setContext", "gpadvisor.active", true);
  if (vscode.workspace.isTrusted) {
    await session.start();
    return;
  }
  const restricted = new RestrictedAdvice(status);
  context.subscriptions.push(
    restricted,
    vscode.workspace.onDidGrantWorkspaceTrust(() => {
      restricted.dispose();
      void session?.start();
    }),
  );
}

export async function deactivate(): Promise<void> {
  await session?.stop();
}
