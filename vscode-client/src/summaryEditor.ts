// SPDX-License-Identifier: Apache-2.0
// Reports open as a summary: read-only, without scripts, from what the server knows of the file.

import { randomBytes } from "node:crypto";
import path from "node:path";
import * as vscode from "vscode";
import { execute } from "./commands";
import { type Instead, PAGE_COMMANDS, summaryPage } from "./decide/summaryPage";
import { IMPORT_PROFILE, type OverviewEntry } from "./generated/protocol";
import type { Overview } from "./overview";
import type { Session } from "./session";

export const SUMMARY_VIEW = "gpadvisor.summary";

export class SummaryEditor implements vscode.Disposable, vscode.CustomReadonlyEditorProvider {
  readonly #registered = vscode.window.registerCustomEditorProvider(SUMMARY_VIEW, this, {
    webviewOptions: { enableFindWidget: true },
  });

  public constructor(
    private readonly session: Session,
    private readonly overview: Overview,
  ) {}

  public dispose(): void {
    this.#registered.dispose();
  }

  public openCustomDocument(uri: vscode.Uri): vscode.CustomDocument {
    return { uri, dispose: () => undefined };
  }

  public async resolveCustomEditor({ uri }: vscode.CustomDocument, panel: vscode.WebviewPanel): Promise<void> {
    panel.webview.options = { enableScripts: false, enableCommandUris: PAGE_COMMANDS, localResourceRoots: [] };
    const name = path.posix.basename(uri.path);
    const nonce = randomBytes(16).toString("base64url");
    let asked = false;
    const show = async (): Promise<void> => {
      const entries = vscode.workspace.isTrusted ? await this.overview.ask(uri) : undefined;
      panel.webview.html = summaryPage(name, shown(entries), nonce, Date.now());
      // What lies in the workspace is read anyhow; a report from elsewhere only when it is opened.
      if (!asked && entries?.length === 0) {
        asked = true;
        await execute(this.session, IMPORT_PROFILE, uri.toString());
        await show();
      }
    };
    const heard = vscode.Disposable.from(
      this.overview.onDidChange(() => { void show(); }),
      vscode.workspace.onDidGrantWorkspaceTrust(() => { void show(); }),
    );
    panel.onDidDispose(() => { heard.dispose(); });
    await show();
  }
}

function shown(entries: readonly OverviewEntry[] | undefined): OverviewEntry | Instead {
  if (!vscode.workspace.isTrusted) {
    return { text: "In Restricted Mode no report is read.", link: { title: "Manage Trust", command: "workbench.trust.manage" } };
  }
  if (entries === undefined) {
    return { text: "The GPAdvisor server is not running.", link: { title: "Set Up", command: "gpadvisor.installEnvironment" } };
  }
  const [entry] = entries;
  const waits = entry === undefined || (entry.reading && entry.kernels.length === 0 && entry.error === null);
  return waits ? { text: "Reading the report...", busy: true } : entry;
}
