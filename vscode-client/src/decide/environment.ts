// SPDX-License-Identifier: Apache-2.0
// Which Python runs the server: the setting, an environment on the machine, or the extension's own.

export type ImportStrategy = "fromEnvironment" | "useBundled";

/** A command that starts a Python, and where it comes from. */
export interface Candidate {
  readonly command: readonly [string, ...string[]];
  readonly origin: "setting" | "python extension" | "PATH" | "private";
}

/** What a candidate said about itself. */
export type Probe =
  | { readonly kind: "ready"; readonly python: string; readonly gpadvisor: string }
  | { readonly kind: "empty"; readonly python: string }
  | { readonly kind: "old"; readonly python: string }
  | { readonly kind: "failed"; readonly reason: string };

export interface Probed {
  readonly candidate: Candidate;
  readonly probe: Probe;
}

export type Choice =
  | { readonly kind: "run"; readonly candidate: Candidate; readonly version: string }
  | { readonly kind: "install"; readonly reason: string }
  | { readonly kind: "refuse"; readonly reason: string };

/** Runs in the candidate: two lines, the versions of Python and of gpadvisor. */
export const PROBE_SCRIPT = [
  "import sys",
  "print('.'.join(map(str, sys.version_info[:3])))",
  "import importlib.metadata as m",
  "print(next((d.version for d in m.distributions(name='gpadvisor')), ''))",
].join("\n");

const OLDEST_PYTHON = [3, 11] as const;

/** Reads what `PROBE_SCRIPT` printed. */
export function readProbe(output: string): Probe {
  const [python = "", gpadvisor = ""] = output.split(/\r?\n/).map((line) => line.trim());
  if (!/^\d+\.\d+\.\d+$/.test(python)) {
    return { kind: "failed", reason: "it did not answer like a Python" };
  }
  if (compareVersions(python, OLDEST_PYTHON.join(".")) < 0) {
    return { kind: "old", python };
  }
  return gpadvisor === "" ? { kind: "empty", python } : { kind: "ready", python, gpadvisor };
}

/** Decides; the probes are in the order in which they are preferred. */
export function chooseEnvironment(
  probed: readonly Probed[],
  bundled: string,
  strategy: ImportStrategy,
): Choice {
  const setting = probed.find(({ candidate }) => candidate.origin === "setting");
  if (setting !== undefined) {
    return fromSetting(setting);
  }
  const own = probed.find(({ candidate }) => candidate.origin === "private");
  const usable = strategy === "useBundled" ? [] : probed.filter((entry) => entry !== own);
  for (const { candidate, probe } of usable) {
    if (probe.kind === "ready" && compareVersions(probe.gpadvisor, bundled) >= 0) {
      return { kind: "run", candidate, version: probe.gpadvisor };
    }
  }
  if (own?.probe.kind === "ready" && compareVersions(own.probe.gpadvisor, bundled) === 0) {
    return { kind: "run", candidate: own.candidate, version: own.probe.gpadvisor };
  }
  return { kind: "install", reason: whyInstall(usable, own, bundled) };
}

function fromSetting({ candidate, probe }: Probed): Choice {
  const named = `gpadvisor.interpreter (${candidate.command.join(" ")})`;
  switch (probe.kind) {
    case "ready":
      return { kind: "run", candidate, version: probe.gpadvisor };
    case "empty":
      return {
        kind: "refuse",
        reason: `${named} has no gpadvisor; install it there, or clear the setting.`,
      };
    case "old":
      return { kind: "refuse", reason: `${named} is Python ${probe.python}; 3.11 or newer is needed.` };
    case "failed":
      return { kind: "refuse", reason: `${named} cannot be run: ${probe.reason}.` };
  }
}

function whyInstall(usable: readonly Probed[], own: Probed | undefined, bundled: string): string {
  if (own?.probe.kind === "ready") {
    return `the extension's environment has gpadvisor ${own.probe.gpadvisor}, the extension brings ${bundled}`;
  }
  for (const { candidate, probe } of usable) {
    if (probe.kind === "ready") {
      return `gpadvisor ${probe.gpadvisor} in ${candidate.command[0]} is older than ${bundled}`;
    }
  }
  return "no Python that was found has gpadvisor";
}

/** Pythons that can make an environment, in the order to use them. */
export function environmentMakers(probed: readonly Probed[]): readonly Candidate[] {
  return probed
    .filter(({ candidate, probe }) => candidate.origin !== "private" && "python" in probe && probe.kind !== "old")
    .map(({ candidate }) => candidate);
}

/** Compares dotted versions; what follows the numbers makes a version older: 1.0.0rc1 < 1.0.0. */
export function compareVersions(one: string, other: string): number {
  const [left, right] = [parts(one), parts(other)];
  for (let at = 0; at < Math.max(left.numbers.length, right.numbers.length); at++) {
    const difference = (left.numbers[at] ?? 0) - (right.numbers[at] ?? 0);
    if (difference !== 0) {
      return Math.sign(difference);
    }
  }
  return (left.early ? 0 : 1) - (right.early ? 0 : 1);
}

function parts(version: string): { numbers: number[]; early: boolean } {
  const [, release = "", rest = ""] = /^(\d+(?:\.\d+)*)(.*)$/.exec(version) ?? [];
  return { numbers: release.split(".").map(Number), early: /^[-.]?(?:a|b|rc|dev|pre)/.test(rest) };
}
