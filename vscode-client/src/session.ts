// SPDX-License-Identifier: Apache-2.0
// The language client's life: start, stop, restart, and what happens when the server ends by itself.

import * as vscode from "vscode";
import { LanguageClient, type NotificationType, type RequestType, State } from "vscode-languageclient/node";
import { clientOptions, Extensions } from "./clientOptions";
import { RestartBudget } from "./decide/crashes";
import type { Candidate } from "./decide/environment";
import type { EnvironmentFinder } from "./environment";
import { FixCommands } from "./fixCommands";
import { spacedHints } from "./hintSpacing";
import type { Logs } from "./logs";
import { OverviewChangedMessage, StatusMessage } from "./messages";
import { fail } from "./say";
import type { StatusItem } from "./statusItem";

type Listener = (params: unknown) => void;

export class Session implements vscode.Disposable {
  readonly #listeners = new Map<string, Listener>();
  readonly #started = new vscode.EventEmitter<void>();
  readonly #stopped = new vscode.EventEmitter<void>();
  readonly #environmentChanged: vscode.Disposable;
  readonly #fixes = new FixCommands();
  #client: LanguageClient | undefined;
  #queue: Promise<void> = Promise.resolve();

  /** The server answers. */
  public readonly onDidStart = this.#started.event;

  /** The server has ended: what it said is no longer to be shown. */
  public readonly onDidStop = this.#stopped.event;

  public constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly finder: EnvironmentFinder,
    private readonly logs: Logs,
    private readonly status: StatusItem,
  ) {
    this.onNotification(StatusMessage, (said) => { status.say(said); });
    this.onNotification(OverviewChangedMessage, (known) => { status.known = known; });
    this.#environmentChanged = finder.onDidChange(() => { void this.restart(); });
  }

  public get client(): LanguageClient | undefined {
    return this.#client;
  }

  /** Hears a notification of every server, this one and later ones. A client keeps one listener for each. */
  public onNotification<Params>(message: NotificationType<Params>, hear: (params: Params) => void): void {
    const before = this.#listeners.get(message.method);
    this.#listeners.set(message.method, (params) => {
      before?.(params);
      hear(params as Params);
    });
  }

  /** Asks the server; undefined where none runs. */
  public async request<Params, Result>(
    message: RequestType<Params, Result, void>,
    params: Params,
    token?: vscode.CancellationToken,
  ): Promise<Result | undefined> {
    if (this.#client?.state !== State.Running) {
      return undefined;
    }
    const last = token === undefined ? [] : [token]; // an undefined one would be sent as a second parameter
    return this.#client.sendRequest<Result>(message.method, params, ...last);
  }

  public async start(): Promise<void> {
    return this.#inTurn(() => this.#start());
  }

  public async stop(): Promise<void> {
    return this.#inTurn(() => this.#stop());
  }

  public async restart(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#stop();
      await this.#start();
    });
  }

  public dispose(): void {
    this.#environmentChanged.dispose();
    this.#fixes.dispose();
    this.#started.dispose();
    this.#stopped.dispose();
  }

  /** One after the other: a restart during a start waits for it. */
  async #inTurn(act: () => Promise<void>): Promise<void> {
    this.#queue = this.#queue.then(act, act);
    return this.#queue;
  }

  async #start(): Promise<void> {
    const candidate = await this.finder.find();
    if (candidate === undefined) {
      return;
    }
    this.status.stage = { kind: "starting" };
    const client = this.#makeClient(candidate);
    this.#client = client;
    try {
      await client.start();
      await this.#announce(client);
    } catch (error) {
      this.logs.client.error(`the server did not start: ${String(error)}`);
      this.status.stage = { kind: "stopped", reason: "the server did not start; see its log" };
    }
  }

  #makeClient(candidate: Candidate): LanguageClient {
    const [command, ...args] = candidate.command;
    // -P and a working folder of ours: nothing of the workspace is importable by its name alone.
    const run = {
      command,
      args: [...args, "-P", "-m", "gpadvisor", "lsp"],
      options: { cwd: this.context.extensionPath, env: { ...process.env, PYTHONUTF8: "1" } },
    };
    this.logs.client.info(`server: ${[command, ...run.args].join(" ")} (${candidate.origin})`);
    const budget = new RestartBudget();
    const client = new LanguageClient(
      "gpadvisor",
      "GPAdvisor",
      run,
      clientOptions(this.context, this.logs, () => this.#closed(budget), {
        ...this.#fixes.middleware,
        provideInlayHints: spacedHints,
      }),
    );
    client.registerFeature(new Extensions());
    client.onDidChangeState(({ newState }) => { this.#changed(client, newState); });
    for (const [method, listen] of this.#listeners) {
      client.onNotification(method, listen);
    }
    return client;
  }

  #changed(client: LanguageClient, state: State): void {
    this.logs.client.info(`client: ${State[state]}`);
    if (state === State.Running) {
      void this.#announce(client);
    } else if (state === State.Stopped) {
      this.#stopped.fire();
    }
  }

  /** What the palette offers follows from what the server can do. */
  async #announce(client: LanguageClient): Promise<void> {
    this.status.stage = { kind: "running" };
    const commands = client.initializeResult?.capabilities.executeCommandProvider?.commands ?? [];
    await setContext("running", true);
    for (const name of ["profile", "doctor"]) {
      await setContext(`can.${name}`, commands.includes(`gpadvisor.server.${name}`));
    }
    this.#started.fire();
  }

  #closed(budget: RestartBudget): boolean {
    void setContext("running", false);
    this.#stopped.fire();
    const again = budget.spend(Date.now());
    if (again) {
      this.status.stage = { kind: "starting" };
      this.logs.client.warn("the server ended by itself and is started again");
    } else {
      this.status.stage = { kind: "stopped", reason: "the server ended too often; see its log" };
      void this.#offerRestart();
    }
    return again;
  }

  async #offerRestart(): Promise<void> {
    const message = "The GPAdvisor server ended five times within three minutes and is not started again.";
    const chosen = await fail(message, "Restart", "Show Server Log");
    if (chosen === "Restart") {
      await this.restart();
    } else if (chosen !== undefined) {
      this.logs.server.show(true);
    }
  }

  async #stop(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await setContext("running", false);
    if (client !== undefined) {
      this.#stopped.fire();
      await client.dispose().catch((error: unknown) => {
        this.logs.client.warn(`the server did not stop by itself: ${String(error)}`);
      });
    }
  }
}

async function setContext(key: string, value: boolean): Promise<void> {
  await vscode.commands.executeCommand("setContext", `gpadvisor.${key}`, value);
}
