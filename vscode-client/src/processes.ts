// SPDX-License-Identifier: Apache-2.0
// Runs a program without a shell, with a limit of time; its output is kept up to a bound.

import { spawn } from "node:child_process";

export interface Outcome {
  /** 0 where it succeeded. */
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

export interface RunOptions {
  readonly cwd: string;
  readonly timeoutMilliseconds: number;
  readonly signal?: AbortSignal;
  readonly hear?: (text: string) => void;
}

const MOST_OUTPUT = 1 << 20;

export async function run(command: readonly [string, ...string[]], options: RunOptions): Promise<Outcome> {
  const [program, ...words] = command;
  return new Promise((resolve) => {
    let output = "";
    let errors = "";
    const limit = AbortSignal.timeout(options.timeoutMilliseconds);
    const signal = options.signal === undefined ? limit : AbortSignal.any([limit, options.signal]);
    const child = spawn(program, words, {
      cwd: options.cwd,
      env: { ...process.env, PYTHONUTF8: "1", PYTHONSAFEPATH: "1" },
      stdio: ["ignore", "pipe", "pipe"],
      windowsHide: true,
      signal,
      killSignal: "SIGKILL",
    });
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(0, MOST_OUTPUT);
      options.hear?.(text);
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      errors = (errors + text).slice(-MOST_OUTPUT);
      options.hear?.(text);
    });
    child.on("error", (error) => {
      resolve({ code: -1, output, errors: failure(error, limit, options) });
    });
    child.on("close", (code) => {
      resolve({ code: code ?? -1, output, errors });
    });
  });
}

function failure(error: Error, limit: AbortSignal, options: RunOptions): string {
  if (limit.aborted) {
    return `no answer within ${options.timeoutMilliseconds / 1000} seconds`;
  }
  return options.signal?.aborted === true ? "cancelled" : error.message;
}
