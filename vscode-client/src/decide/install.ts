// SPDX-License-Identifier: Apache-2.0
// The steps that make the extension's own environment, and how a person would take them.

export interface Step {
  readonly title: string;
  readonly command: readonly [string, ...string[]];
}

export interface Plan {
  readonly python: readonly [string, ...string[]];
  readonly folder: string;
  readonly wheel: string;
  /** Versions and hashes of everything that the wheel needs. */
  readonly requirements: string;
  readonly wheelFolder: string;
  readonly windows: boolean;
  /** The maker's own pip installs into other environments: saves unpacking another pip, a good part of the time. */
  readonly ownPip: boolean;
}

/** What is done first, and while it is found out how. */
export const MAKING = "making a Python environment";

/** The Python of an environment. */
export function environmentPython(folder: string, windows: boolean): string {
  return windows ? `${folder}\\Scripts\\python.exe` : `${folder}/bin/python`;
}

/** Makes an environment without pip, and asks the maker's pip (22.3 and newer can) whether it works on it. */
export function pipChecks(plan: Omit<Plan, "ownPip">): readonly Step["command"][] {
  return [makeCommand({ ...plan, ownPip: true }), [...pipCommand({ ...plan, ownPip: true }), "--version"]];
}

function makeCommand(plan: Plan): Step["command"] {
  return [...plan.python, "-m", "venv", "--clear", ...(plan.ownPip ? ["--without-pip"] : []), plan.folder];
}

function pipCommand(plan: Plan): Step["command"] {
  const python = environmentPython(plan.folder, plan.windows);
  return plan.ownPip ? [...plan.python, "-m", "pip", "--python", python] : [python, "-m", "pip"];
}

/** Make the environment, fill it. Nothing is built: only wheels are taken, and from the network only those known here. */
export function installSteps(plan: Plan): readonly Step[] {
  const install = (...words: readonly string[]): Step => ({
    title: "installing gpadvisor",
    command: [
      ...pipCommand(plan),
      ...["install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"],
      // Python compiles what is imported when it is; of all there is that would be a third of the time.
      ...["--no-compile", "--only-binary", ":all:"],
      ...words,
    ],
  });
  // A folder of wheels holds the versions that whoever filled it chose; from the network come those tested.
  const fill =
    plan.wheelFolder === ""
      ? [install("--require-hashes", "-r", plan.requirements), install("--no-index", "--no-deps", plan.wheel)]
      : [install("--no-index", "--find-links", plan.wheelFolder, `${plan.wheel}[compile]`)];
  return [{ title: MAKING, command: makeCommand(plan) }, ...fill];
}

/** The same commands for a terminal. */
export function byHand(steps: readonly Step[]): string {
  return steps.map(({ command }) => command.map(quoted).join(" ")).join(" && ");
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** What pip is at, by the last line it printed that says so: the name of a package, or that it unpacks them all. */
export function packageIn(output: string): string | undefined {
  return output.split(/\r?\n/).reduce<string | undefined>((found, line) => {
    if (line.startsWith("Installing collected packages")) {
      return "unpacking";
    }
    const file = /^(?:Collecting|Processing|\s+Downloading) (\S+)/.exec(line)?.[1];
    return file === undefined ? found : (/^[A-Za-z][\w.]*(?:-(?!\d)\w+)*/.exec(file.split("/").at(-1) ?? "")?.[0] ?? found);
  }, undefined);
}

/** The last lines of what a step printed: where pip says what is wrong. */
export function lastWords(output: string, lines = 4): string {
  return output.trimEnd().split(/\r?\n/).slice(-lines).join("\n");
}
