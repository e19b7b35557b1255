// SPDX-License-Identifier: Apache-2.0
// The item in the status bar; a click offers what to do next.

import * as vscode from "vscode";
import type { Bar } from "./decide/statusBar";
import type { NextStep } from "./generated/protocol";

const COMMAND = "gpadvisor.nextStep";
/** Right of the position and the language: of what a narrow window has no room for, the leftmost goes first. */
const PRIORITY = 1;

export class StatusBarItem implements vscode.Disposable {
  readonly #item = vscode.window.createStatusBarItem("gpadvisor.bar", vscode.StatusBarAlignment.Right, PRIORITY);
  readonly #command = vscode.commands.registerCommand(COMMAND, () => this.#offer());
  #steps: readonly NextStep[] = [];
  #title = "";

  public constructor() {
    this.#item.name = "GPAdvisor";
  }

  public show(bar: Bar | undefined): void {
    if (bar === undefined) {
      this.#item.hide();
      return;
    }
    this.#steps = bar.steps;
    this.#title = bar.text;
    this.#item.text = bar.icon === undefined ? bar.text : `$(${bar.icon}) ${bar.text}`;
    this.#item.tooltip = [bar.text, ...bar.lines].join("\n");
    this.#item.accessibilityInformation = { label: [bar.text, ...bar.lines.slice(0, 1)].join(", ") };
    this.#item.backgroundColor = bar.severity === "error" ? new vscode.ThemeColor("statusBarItem.errorBackground") : undefined;
    this.#item.command = bar.steps.length > 0 ? COMMAND : undefined;
    this.#item.show();
  }

  public dispose(): void {
    vscode.Disposable.from(this.#item, this.#command).dispose();
  }

  async #offer(): Promise<void> {
    const items = this.#steps.map((step) => ({ label: step.title, step }));
    const chosen = items.length > 1 ? await vscode.window.showQuickPick(items, { title: this.#title }) : items[0];
    if (chosen !== undefined) {
      const { command, argument } = chosen.step;
      await vscode.commands.executeCommand(command, ...(argument === null ? [] : [argument]));
    }
  }
}
