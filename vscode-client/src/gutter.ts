// SPDX-License-Identifier: Apache-2.0
// Heat in the gutter and the overview ruler, as the server sends it; dimmed where it is stale.

import * as vscode from "vscode";
import { byDrawing, drawingKey, gutterIcon, type Level, LEVELS, rulerColour } from "./decide/heat";
import type { HeatLine } from "./generated/protocol";
import { HeatMessage } from "./messages";
import type { Session } from "./session";

export class Gutter implements vscode.Disposable {
  readonly #heat = new Map<string, readonly HeatLine[]>();
  readonly #drawings = new Map<string, vscode.TextEditorDecorationType>();
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  readonly #subscriptions: vscode.Disposable[];

  /** The heat of a document has changed. */
  public readonly onDidChange = this.#changed.event;

  public constructor(session: Session) {
    for (const level of LEVELS) {
      for (const stale of [false, true]) {
        this.#drawings.set(drawingKey(level, stale), drawing(level, stale));
      }
    }
    session.onNotification(HeatMessage, ({ uri, lines }) => {
      this.set(vscode.Uri.parse(uri), lines);
    });
    this.#subscriptions = [
      session.onDidStop(() => { this.#clear(); }),
      vscode.window.onDidChangeVisibleTextEditors(() => { this.#draw(); }),
      vscode.window.onDidChangeActiveTextEditor(() => { this.#announce(); }),
    ];
  }

  /** The heat of a document. */
  public of(uri: vscode.Uri): readonly HeatLine[] {
    return this.#heat.get(uri.toString()) ?? [];
  }

  public set(uri: vscode.Uri, lines: readonly HeatLine[]): void {
    if (lines.length > 0) {
      this.#heat.set(uri.toString(), lines);
    } else {
      this.#heat.delete(uri.toString());
    }
    this.#draw();
    this.#announce();
    this.#changed.fire(uri);
  }

  public dispose(): void {
    vscode.Disposable.from(this.#changed, ...this.#drawings.values(), ...this.#subscriptions).dispose();
  }

  #clear(): void {
    this.#heat.clear();
    this.#draw();
    this.#announce();
  }

  #draw(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      const groups = byDrawing(this.of(editor.document.uri), editor.document.lineCount);
      for (const [key, type] of this.#drawings) {
        editor.setDecorations(type, (groups.get(key) ?? []).map(decoration));
      }
    }
  }

  #announce(): void {
    const uri = vscode.window.activeTextEditor?.document.uri;
    const hot = uri !== undefined && this.of(uri).length > 0;
    void vscode.commands.executeCommand("setContext", "gpadvisor.fileHasHeat", hot);
  }
}

function decoration({ line }: HeatLine): vscode.DecorationOptions {
  return { range: new vscode.Range(line, 0, line, 0) };
}

function drawing(level: Level, stale: boolean): vscode.TextEditorDecorationType {
  const side = (ground: "light" | "dark"): vscode.ThemableDecorationRenderOptions => ({
    gutterIconPath: vscode.Uri.parse(`data:image/svg+xml;utf8,${encodeURIComponent(gutterIcon(level, stale, ground))}`),
    gutterIconSize: "contain",
  });
  return vscode.window.createTextEditorDecorationType({
    light: side("light"),
    dark: side("dark"),
    overviewRulerColor: new vscode.ThemeColor(rulerColour(level, stale)),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
}
