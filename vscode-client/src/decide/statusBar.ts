// SPDX-License-Identifier: Apache-2.0
// What the status bar says: the state in a few words, what stands behind them, and what to do next.

import type { NextStep, OverviewChangedParams, StatusParams } from "../generated/protocol";
import { isKnown } from "./commands";
import { count, fileName } from "./figures";
import { plain, visible } from "./plain";
import { type Stage, statusItem } from "./status";

export interface Bar {
  /** Without its icon. */
  readonly text: string;
  readonly icon: string | undefined;
  readonly lines: readonly string[];
  readonly steps: readonly NextStep[];
  readonly severity: "information" | "warning" | "error";
}

const FINDINGS: NextStep = { title: "Show Findings", command: "gpadvisor.findings.focus", argument: null };
const IMPORT: NextStep = { title: "Import Profile", command: "gpadvisor.importProfile", argument: null };
const LOGS: NextStep = { title: "Show Logs", command: "gpadvisor.showLogs", argument: null };
/** In a narrow window VS Code leaves out an item that does not fit. */
const MOST_LETTERS = 18;

/** Codicons by state; what is well needs none. */
const ICONS: Partial<Record<StatusParams["state"], string>> = {
  busy: "loading~spin",
  error: "warning",
  stale: "history",
  untrusted: "shield",
};

/**
 * The item, or nothing where it would not concern the user.
 *
 * @param stage What the client itself knows.
 * @param said What the server said of the document, if one is shown.
 * @param isCuda Whether that document is a CUDA source: others concern us once something is known of them.
 * @param known How many profiles and sources there are and the best of them, for where no document is shown.
 */
export function statusBar(
  stage: Stage,
  said: StatusParams | undefined,
  isCuda: boolean,
  known: OverviewChangedParams | undefined,
): Bar | undefined {
  if (stage.kind !== "running") {
    return ofStage(stage);
  }
  if (said === undefined) {
    if (isCuda) {
      return { ...bar("GPA: starting", []), icon: ICONS.busy };
    }
    return ofInputs(known);
  }
  const nothing = said.state === "noProfile" || said.state === "noKernel";
  if (nothing && !isCuda) {
    return said.uri === null ? ofInputs(known) : undefined;
  }
  const knows = said.state === "idle" || said.state === "stale";
  const from = said.profile === null ? "" : ` · ${cut(fileName(said.profile).replace(/\.ncu-repz?$/, ""))}`;
  const next = said.next.filter(({ command }) => isKnown(command));
  return {
    text: plain(knows ? `${said.bar}${from}` : said.bar),
    icon: ICONS[said.state],
    lines: said.detail.split("\n").filter((line) => line !== "").map(visible),
    steps: knows ? [FINDINGS, ...next] : next,
    severity: said.state === "error" ? "warning" : "information",
  };
}

function ofInputs(known: OverviewChangedParams | undefined): Bar | undefined {
  if (known === undefined || known.inputs === 0) {
    return undefined;
  }
  const best = known.best === null ? "" : `, best ${known.best}`;
  return bar(plain(`GPA: ${count(known.inputs, "input")}${best}`), [FINDINGS, IMPORT]);
}

function ofStage(stage: Stage): Bar {
  const { text, detail, busy, severity, command } = statusItem(stage, undefined, 0);
  const steps = command === undefined ? [] : [{ ...command, argument: null }];
  return {
    text: text === "GPA" ? `GPA: ${detail}` : text,
    icon: busy ? "loading~spin" : severity === "information" ? "shield" : "error",
    lines: [detail],
    steps: severity === "information" ? steps : [...steps, LOGS],
    severity,
  };
}

function bar(text: string, steps: readonly NextStep[]): Bar {
  return { text, icon: undefined, lines: [], steps, severity: "information" };
}

function cut(name: string): string {
  const most = (MOST_LETTERS - 3) / 2;
  return name.length <= MOST_LETTERS ? name : `${name.slice(0, Math.floor(most))}...${name.slice(-Math.ceil(most))}`;
}
