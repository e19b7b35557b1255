// SPDX-License-Identifier: Apache-2.0
// Makes the extension's own environment: asks, shows progress, and says how to do it by hand.

import { mkdirSync } from "node:fs";
import path from "node:path";
import * as vscode from "vscode";
import type { Candidate } from "./decide/environment";
import { byHand, installSteps, lastWords, MAKING, packageIn, pipChecks, type Plan, type Step } from "./decide/install";
import type { Logs } from "./logs";
import { run } from "./processes";
import { fail, inform } from "./say";
import { setting } from "./settings";
import type { StatusItem } from "./statusItem";

export type InstallOutcome = "done" | "declined" | "failed";

interface Places {
  readonly folder: string;
  readonly wheel: string;
  readonly requirements: string;
}

const CHECK_MILLISECONDS = 20_000;
const STEP_MILLISECONDS = 15 * 60_000;
const INSTALL = "Set Up";
const COPY = "Copy Commands";

export class Installer {
  #running: Promise<InstallOutcome> | undefined;

  public constructor(
    private readonly logs: Logs,
    private readonly status: StatusItem,
    private readonly places: Places,
  ) {}

  /** Asks before anything is downloaded. */
  public async offer(reason: string, makers: readonly Candidate[]): Promise<InstallOutcome> {
    const wheels = setting("wheelFolder");
    const from = wheels === "" ? "from the configured Python package index" : `from ${wheels}`;
    const question = `GPAdvisor needs its Python environment (${reason}). Set it up ${from}?`;
    const chosen = await inform(question, INSTALL, COPY, "Not Now");
    if (chosen === COPY) {
      await this.#copy(makers);
    }
    return chosen === INSTALL ? this.install(makers) : "declined";
  }

  /** Sets it up; a second call while one runs waits for that one. */
  public async install(makers: readonly Candidate[]): Promise<InstallOutcome> {
    this.#running ??= this.#install(makers).finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #install(makers: readonly Candidate[]): Promise<InstallOutcome> {
    const plan = this.#plan(makers);
    if (plan === undefined) {
      return "failed";
    }
    return vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title: "GPAdvisor", cancellable: true },
      async (progress, token) => {
        const stop = new AbortController();
        token.onCancellationRequested(() => { stop.abort(); });
        const say = (words: string): void => {
          progress.report({ message: words });
          this.status.stage = { kind: "installing", step: words };
        };
        say(MAKING);
        const steps = installSteps({ ...plan, ownPip: await this.#ownPip(plan, stop.signal) });
        for (const step of steps) {
          say(step.title);
          if (!(await this.#take(step, steps, stop.signal, (at) => { say(`${step.title}: ${at}`); }))) {
            return token.isCancellationRequested ? "declined" : "failed";
          }
        }
        return "done";
      },
    );
  }

  async #ownPip(plan: Omit<Plan, "ownPip">, signal: AbortSignal): Promise<boolean> {
    for (const command of pipChecks(plan)) {
      const { code } = await run(command, { cwd: this.#parent(), timeoutMilliseconds: CHECK_MILLISECONDS, signal });
      if (code !== 0) {
        return false;
      }
    }
    return true;
  }

  #parent(): string {
    const parent = path.dirname(this.places.folder);
    mkdirSync(parent, { recursive: true });
    return parent;
  }

  #plan(makers: readonly Candidate[]): Omit<Plan, "ownPip"> | undefined {
    const maker = makers[0];
    if (maker === undefined) {
      const message =
        "GPAdvisor found no Python 3.11 or newer. Install one (on Debian: apt-get install python3 " +
        "python3-venv), or name it in gpadvisor.interpreter.";
      void fail(message);
      return undefined;
    }
    return {
      ...this.places,
      python: maker.command,
      wheelFolder: setting("wheelFolder"),
      windows: process.platform === "win32",
    };
  }

  async #take(
    step: Step,
    all: readonly Step[],
    signal: AbortSignal,
    say: (at: string) => void,
  ): Promise<boolean> {
    const log = this.logs.client;
    log.info(step.command.join(" "));
    const done = await run(step.command, {
      cwd: this.#parent(),
      timeoutMilliseconds: STEP_MILLISECONDS,
      signal,
      hear: (text) => {
        log.info(text.trimEnd());
        const at = packageIn(text);
        if (at !== undefined) {
          say(at);
        }
      },
    });
    if (done.code === 0 || signal.aborted) {
      return done.code === 0;
    }
    const why = lastWords(done.errors === "" ? done.output : done.errors);
    log.error(`${step.title} failed: ${why}`);
    void this.#explain(`GPAdvisor: ${step.title} failed: ${why}`, all);
    return false;
  }

  async #explain(message: string, steps: readonly Step[]): Promise<void> {
    const chosen = await fail(message, COPY, "Show Log");
    if (chosen === COPY) {
      await vscode.env.clipboard.writeText(byHand(steps));
    } else if (chosen !== undefined) {
      this.logs.client.show(true);
    }
  }

  async #copy(makers: readonly Candidate[]): Promise<void> {
    const plan = this.#plan(makers);
    if (plan !== undefined) {
      await vscode.env.clipboard.writeText(byHand(installSteps({ ...plan, ownPip: false })));
    }
  }
}
