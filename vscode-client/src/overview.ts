// SPDX-License-Identifier: Apache-2.0
// What the server knows, asked for again whenever it says that something has changed and somebody looks.

import * as vscode from "vscode";
import type { OverviewEntry } from "./generated/protocol";
import { OverviewChangedMessage, OverviewMessage } from "./messages";
import type { Session } from "./session";

export class Overview implements vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #stopped: vscode.Disposable;

  /** Whoever shows something of it asks again. */
  public readonly onDidChange = this.#changed.event;

  public constructor(private readonly session: Session) {
    session.onNotification(OverviewChangedMessage, () => { this.#changed.fire(); });
    this.#stopped = session.onDidStop(() => { this.#changed.fire(); });
  }

  /** All inputs, or the one at a URI; undefined where no server runs. */
  public async ask(uri?: vscode.Uri): Promise<readonly OverviewEntry[] | undefined> {
    const answer = await this.session.request(OverviewMessage, uri === undefined ? {} : { uri: uri.toString() });
    return answer?.entries;
  }

  public dispose(): void {
    vscode.Disposable.from(this.#changed, this.#stopped).dispose();
  }
}
