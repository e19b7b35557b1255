// SPDX-License-Identifier: Apache-2.0
// The state in the status bar, and in detail behind the braces beside the language's name.

import * as vscode from "vscode";
import { type Stage, statusItem } from "./decide/status";
import { statusBar } from "./decide/statusBar";
import type { OverviewChangedParams, StatusParams } from "./generated/protocol";
import { SELECTOR } from "./selector";
import { StatusBarItem } from "./statusBarItem";

const SEVERITY = {
  information: vscode.LanguageStatusSeverity.Information,
  warning: vscode.LanguageStatusSeverity.Warning,
  error: vscode.LanguageStatusSeverity.Error,
} as const;

/** A profile's age is written anew this often. */
const MINUTE = 60_000;

export class StatusItem implements vscode.Disposable {
  readonly #item = vscode.languages.createLanguageStatusItem("gpadvisor.status", [...SELECTOR]);
  readonly #bar = new StatusBarItem();
  readonly #said = new Map<string | null, StatusParams>();
  readonly #subscriptions: vscode.Disposable[];
  #stage: Stage = { kind: "looking" };
  #known: OverviewChangedParams | undefined;

  public constructor() {
    this.#item.name = "GPAdvisor";
    const clock = setInterval(() => { this.#show(); }, MINUTE);
    this.#subscriptions = [
      this.#item,
      this.#bar,
      vscode.window.onDidChangeActiveTextEditor(() => { this.#show(); }),
      new vscode.Disposable(() => { clearInterval(clock); }),
    ];
    this.#show();
  }

  public get stage(): Stage {
    return this.#stage;
  }

  public set stage(stage: Stage) {
    this.#stage = stage;
    if (stage.kind !== "running") {
      this.#said.clear();
      this.#known = undefined;
    }
    this.#show();
  }

  /** What the server says about a document, or about the workspace. */
  public say(said: StatusParams): void {
    this.#said.set(said.uri, said);
    this.#show();
  }

  /** What the server has looked at. */
  public set known(known: OverviewChangedParams) {
    this.#known = known;
    this.#show();
  }

  /** What the item shows now, for a bug report. */
  public get text(): string {
    return `${this.#item.text}: ${this.#item.detail ?? ""}`;
  }

  public dispose(): void {
    for (const subscription of this.#subscriptions) {
      subscription.dispose();
    }
  }

  #show(): void {
    const document = vscode.window.activeTextEditor?.document;
    const said = this.#said.get(document?.uri.toString() ?? null) ?? this.#said.get(null);
    this.#bar.show(statusBar(this.#stage, said, document?.languageId === "cuda-cpp", this.#known));
    const shown = statusItem(this.#stage, said, Date.now());
    this.#item.text = shown.text;
    this.#item.detail = shown.detail;
    this.#item.busy = shown.busy;
    this.#item.severity = SEVERITY[shown.severity];
    this.#item.command = shown.command;
  }
}
