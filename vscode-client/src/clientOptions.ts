// SPDX-License-Identifier: Apache-2.0
// How the language client speaks to the server.

import * as vscode from "vscode";
import {
  type ClientCapabilities,
  CloseAction,
  ErrorAction,
  type FeatureState,
  type LanguageClientOptions,
  type Middleware,
  RevealOutputChannelOn,
  type StaticFeature,
} from "vscode-languageclient/node";
import type { InitializationOptions } from "./generated/protocol";
import { SECTION } from "./generated/settings";
import type { Logs } from "./logs";
import { sampleFolder } from "./sample";
import { SELECTOR } from "./selector";

const WORST_WRITE_ERRORS = 3;

export function clientOptions(
  context: vscode.ExtensionContext,
  logs: Logs,
  closed: () => boolean,
  middleware: Middleware,
): LanguageClientOptions {
  return {
    documentSelector: [...SELECTOR],
    diagnosticCollectionName: "gpadvisor",
    outputChannel: logs.server,
    traceOutputChannel: logs.server,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    middleware,
    initializationOptions: (): InitializationOptions => ({
      trusted: vscode.workspace.isTrusted,
      settings: { ...vscode.workspace.getConfiguration(SECTION) },
      sampleFolder: sampleFolder(context).fsPath,
    }),
    errorHandler: {
      error: (_error, _message, count) => ({
        action: (count ?? 0) <= WORST_WRITE_ERRORS ? ErrorAction.Continue : ErrorAction.Shutdown,
        handled: true,
      }),
      closed: () => ({ action: closed() ? CloseAction.Restart : CloseAction.DoNotRestart, handled: true }),
    },
    markdown: { isTrusted: { enabledCommands: LINKED_COMMANDS } },
  };
}

/** Commands that a hover's links may run: they show something and change nothing. */
const LINKED_COMMANDS = ["gpadvisor.explainAdvice", "gpadvisor.openSass", "gpadvisor.showLocation"];

/** Tells the server that this client understands its custom messages. */
export class Extensions implements StaticFeature {
  public fillClientCapabilities(capabilities: ClientCapabilities): void {
    capabilities.experimental = { ...(capabilities.experimental as object | undefined), gpadvisor: true };
  }

  public initialize(): void {
    // The server's capabilities need no answer.
  }

  public getState(): FeatureState {
    return { kind: "static" };
  }

  public clear(): void {
    // Nothing is kept.
  }
}
