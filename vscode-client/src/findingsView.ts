// SPDX-License-Identifier: Apache-2.0
// The tree of profiles, kernels and ranked findings, in a container of its own.

import * as vscode from "vscode";
import { type Node, treeOf } from "./decide/overview";
import type { OverviewEntry } from "./generated/protocol";
import type { Overview } from "./overview";

const VIEW = "gpadvisor.findings";

export class FindingsView implements vscode.Disposable, vscode.TreeDataProvider<Node> {
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #view: vscode.TreeView<Node>;
  readonly #subscriptions: vscode.Disposable[];
  #entries: readonly OverviewEntry[] = [];
  #filter = "";
  #missed = true;

  public readonly onDidChangeTreeData = this.#changed.event;

  public constructor(private readonly overview: Overview) {
    this.#view = vscode.window.createTreeView(VIEW, { treeDataProvider: this, showCollapseAll: true });
    this.#subscriptions = [
      this.#changed,
      this.#view,
      overview.onDidChange(() => {
        this.#missed = true;
        void this.#ask();
      }),
      this.#view.onDidChangeVisibility(() => { void this.#ask(); }),
      vscode.commands.registerCommand("gpadvisor.filterFindings", () => this.#askFilter()),
      vscode.commands.registerCommand("gpadvisor.clearFilter", () => { this.#setFilter(""); }),
    ];
    void this.#ask();
  }

  public dispose(): void {
    vscode.Disposable.from(...this.#subscriptions).dispose();
  }

  public getChildren(node?: Node): Node[] {
    return [...(node?.children ?? treeOf(this.#entries, this.#filter, Date.now()))];
  }

  public getTreeItem(node: Node): vscode.TreeItem {
    const item = new vscode.TreeItem(node.label, folding(node));
    item.id = node.id;
    item.description = node.description;
    item.tooltip = node.tooltip;
    item.iconPath = new vscode.ThemeIcon(node.icon);
    item.contextValue = node.place === null ? node.kind : `${node.kind} placed`;
    item.accessibilityInformation = { label: `${node.label} ${node.description}` };
    const command = whatAClickDoes(node);
    if (command !== undefined) {
      item.command = command;
    }
    return item;
  }

  async #ask(): Promise<void> {
    if (this.#view.visible && this.#missed) {
      this.#missed = false;
      this.#entries = (await this.overview.ask()) ?? [];
      this.#changed.fire();
    }
  }

  async #askFilter(): Promise<void> {
    const given = await vscode.window.showInputBox({
      title: "Filter Findings",
      prompt: "Words of a kernel, a rule, its code or a file",
      value: this.#filter,
    });
    if (given !== undefined) {
      this.#setFilter(given.trim());
    }
  }

  #setFilter(filter: string): void {
    this.#filter = filter;
    this.#view.description = filter === "" ? "" : `filter: ${filter}`;
    void vscode.commands.executeCommand("setContext", "gpadvisor.filtered", filter !== "");
    this.#changed.fire();
  }
}

function folding({ kind, children }: Node): vscode.TreeItemCollapsibleState {
  if (children.length === 0) {
    return vscode.TreeItemCollapsibleState.None;
  }
  const dull = kind === "kernel" && children.every((child) => child.kind === "note");
  return dull ? vscode.TreeItemCollapsibleState.Collapsed : vscode.TreeItemCollapsibleState.Expanded;
}

function whatAClickDoes(node: Node): vscode.Command | undefined {
  if (node.place !== null) {
    const { uri, line } = node.place;
    return { title: "Go to Line", command: "gpadvisor.showLocation", arguments: [uri, line] };
  }
  if (node.kind === "finding" && node.code !== null) {
    return { title: "Explain", command: "gpadvisor.explainAdvice", arguments: [node.code] };
  }
  return undefined;
}
