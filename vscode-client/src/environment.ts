// SPDX-License-Identifier: Apache-2.0
// Finds the Python that runs the server, or sets one up after asking.

import { readdirSync } from "node:fs";
import path from "node:path";
import * as vscode from "vscode";
import {
  type Candidate,
  chooseEnvironment,
  type Choice,
  environmentMakers,
  PROBE_SCRIPT,
  type Probe,
  type Probed,
  readProbe,
} from "./decide/environment";
import { environmentPython, lastWords } from "./decide/install";
import { Installer } from "./installer";
import type { Logs } from "./logs";
import { run } from "./processes";
import { ChosenInterpreter } from "./pythonExtension";
import { fail } from "./say";
import { setting } from "./settings";
import type { StatusItem } from "./statusItem";

const NAMES = ["python3", "python", "python3.14", "python3.13", "python3.12", "python3.11"] as const;
const PROBE_MILLISECONDS = 20_000;

export class EnvironmentFinder implements vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #interpreter: ChosenInterpreter;
  readonly #folder: string;
  readonly #wheel: string;
  readonly #installer: Installer;
  #choice: Choice | undefined;
  #asking = false;

  /** There is another environment to run the server with: it was set up, or chosen. */
  public readonly onDidChange = this.#changed.event;

  public constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly logs: Logs,
    private readonly status: StatusItem,
  ) {
    this.#folder = path.join(context.globalStorageUri.fsPath, "environment");
    this.#wheel = bundledWheel(context);
    this.#interpreter = new ChosenInterpreter(logs);
    this.#interpreter.onDidChange(() => { void this.#reconsider(); });
    this.#installer = new Installer(logs, status, {
      folder: this.#folder,
      wheel: this.#wheel,
      requirements: context.asAbsolutePath(path.join("bundled", "requirements.txt")),
    });
  }

  /** What was chosen last, for a bug report. */
  public get choice(): Choice | undefined {
    return this.#choice;
  }

  public dispose(): void {
    this.#interpreter.dispose();
    this.#changed.dispose();
  }

  /** The Python to use; undefined where there is none: then the user is asked, and nothing waits for the answer. */
  public async find(): Promise<Candidate | undefined> {
    this.status.stage = { kind: "looking" };
    const probed = await this.#probeAll();
    this.#choice = this.#choose(probed);
    switch (this.#choice.kind) {
      case "run":
        return this.#choice.candidate;
      case "refuse":
        this.#refuse(this.#choice.reason);
        return undefined;
      case "install":
        void this.#offer(this.#choice.reason, probed);
        return undefined;
    }
  }

  /** Makes the extension's own environment anew, whatever is there. */
  public async install(): Promise<boolean> {
    const probed = await this.#probeAll();
    return (await this.#installer.install(environmentMakers(probed))) === "done";
  }

  #choose(probed: readonly Probed[]): Choice {
    return chooseEnvironment(probed, wheelVersion(this.#wheel), setting("importStrategy"));
  }

  /** Another interpreter was chosen: it may be the one to use now. */
  async #reconsider(): Promise<void> {
    const choice = this.#choose(await this.#probeAll());
    if (choice.kind === "run" && JSON.stringify(choice) !== JSON.stringify(this.#choice)) {
      this.#changed.fire();
    }
  }

  async #offer(reason: string, probed: readonly Probed[]): Promise<void> {
    this.logs.client.info(`set-up is needed: ${reason}`);
    this.status.stage = { kind: "needsEnvironment", reason };
    if (this.#asking) {
      return;
    }
    this.#asking = true;
    const outcome = await this.#installer.offer(reason, environmentMakers(probed)).finally(() => {
      this.#asking = false;
    });
    if (outcome === "done") {
      this.#changed.fire();
    } else {
      this.status.stage = { kind: "needsEnvironment", reason };
    }
  }

  #refuse(reason: string): void {
    this.logs.client.error(reason);
    this.status.stage = { kind: "needsEnvironment", reason };
    void fail(`GPAdvisor: ${reason}`, "Open Settings").then(async (chosen) => {
      if (chosen !== undefined) {
        await vscode.commands.executeCommand("workbench.action.openSettings", "gpadvisor.interpreter");
      }
    });
  }

  #own(): Candidate {
    return { command: [environmentPython(this.#folder, process.platform === "win32")], origin: "private" };
  }

  async #probeAll(): Promise<readonly Probed[]> {
    const candidates = await this.#candidates();
    const probed = await Promise.all(
      candidates.map(async (candidate) => ({ candidate, probe: await this.#probe(candidate) })),
    );
    for (const { candidate, probe } of probed) {
      this.logs.client.debug(`${candidate.command.join(" ")} (${candidate.origin}): ${JSON.stringify(probe)}`);
    }
    return probed;
  }

  async #candidates(): Promise<readonly Candidate[]> {
    const [command, ...words] = setting("interpreter");
    if (command !== undefined && command !== "") {
      return [{ command: [command, ...words], origin: "setting" }];
    }
    const chosen = await this.#interpreter.find();
    return [
      ...(chosen === undefined ? [] : [{ command: [chosen], origin: "python extension" } as const]),
      ...NAMES.map((name) => ({ command: [name], origin: "PATH" }) as const),
      this.#own(),
    ];
  }

  async #probe(candidate: Candidate): Promise<Probe> {
    const done = await run([...candidate.command, "-c", PROBE_SCRIPT], {
      cwd: this.context.extensionPath,
      timeoutMilliseconds: PROBE_MILLISECONDS,
    });
    if (done.code !== 0) {
      return { kind: "failed", reason: lastWords(done.errors, 1) };
    }
    return readProbe(done.output);
  }
}

function bundledWheel(context: vscode.ExtensionContext): string {
  const folder = context.asAbsolutePath("bundled");
  const wheel = readdirSync(folder).find((name) => name.endsWith(".whl"));
  if (wheel === undefined) {
    throw new Error(`${folder} has no wheel; the extension is not complete, install it again`);
  }
  return path.join(folder, wheel);
}

/** The version in a wheel's name: gpadvisor-0.1.0-py3-none-any.whl. */
function wheelVersion(wheel: string): string {
  return path.basename(wheel).split("-")[1] ?? "";
}
