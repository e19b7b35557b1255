// SPDX-License-Identifier: Apache-2.0
// What the status item says.

import type { StatusParams } from "../generated/protocol";
import { plain } from "./plain";

/** What the client itself knows. */
export type Stage =
  | { readonly kind: "restricted"; readonly shown: number }
  | { readonly kind: "looking" }
  | { readonly kind: "installing"; readonly step: string }
  | { readonly kind: "needsEnvironment"; readonly reason: string }
  | { readonly kind: "starting" }
  | { readonly kind: "running" }
  | { readonly kind: "stopped"; readonly reason: string };

export interface Shown {
  readonly text: string;
  readonly detail: string;
  readonly busy: boolean;
  readonly severity: "information" | "warning" | "error";
  readonly command: { readonly title: string; readonly command: string } | undefined;
}

const SET_UP = { title: "Set Up", command: "gpadvisor.installEnvironment" };
const RESTART = { title: "Restart", command: "gpadvisor.restart" };
const LOGS = { title: "Show Logs", command: "gpadvisor.showServerLogs" };
const PICK = { title: "Select Kernel", command: "gpadvisor.selectKernel" };
const IMPORT = { title: "Import Profile", command: "gpadvisor.importProfile" };
const TRUST = { title: "Manage Trust", command: "workbench.trust.manage" };
const CANCEL = { title: "Stop", command: "gpadvisor.cancel" };

/** The item for a stage, and once the server runs for what it said last. */
export function statusItem(stage: Stage, said: StatusParams | undefined, now: number): Shown {
  switch (stage.kind) {
    case "restricted":
      return shown("GPA restricted", restricted(stage.shown), { command: TRUST });
    case "looking":
      return shown("GPA", "looking for Python", { busy: true });
    case "installing":
      return shown("GPA set-up", stage.step, { busy: true });
    case "needsEnvironment":
      return shown("GPA not set up", stage.reason, { severity: "warning", command: SET_UP });
    case "starting":
      return shown("GPA", "starting", { busy: true });
    case "stopped":
      return shown("GPA stopped", stage.reason, { severity: "error", command: RESTART });
    case "running":
      return said === undefined ? shown("GPA", "ready", {}) : running(said, now);
  }
}

function restricted(findings: number): string {
  const nothing = "Restricted Mode: nothing is compiled, read or run";
  return findings === 0 ? nothing : `${nothing}; ${count(findings, "finding")} of converted advice shown`;
}

function running(said: StatusParams, now: number): Shown {
  const age = said.collectedAt === null ? undefined : ageOf(said.collectedAt, now);
  const stale = said.staleShare > 0 ? `${Math.max(1, Math.round(said.staleShare * 100))} % stale` : undefined;
  const advice = said.findings > 0 ? `${said.findings} advice` : undefined;
  const parts = [said.device?.replace(BOARD, ""), age, advice, stale].filter((part) => part !== undefined);
  const text = parts.length > 0 ? `GPA ${parts.join(" · ")}` : said.text;
  return shown(text, detailOf(said), look(said.state));
}

/** A data-centre GPU's board and memory. The item is narrow, and its command stands behind the text. */
const BOARD = /-(?:SXM|PCIE|NVL).*/i;

function detailOf(said: StatusParams): string {
  const evidence = said.evidence === "measured" ? null : said.evidence;
  const [first = ""] = said.detail.split("\n"); // the profile, or what is wrong; the rest is the hover's
  const parts = [said.kernel, evidence, first].filter((part) => part !== null && part !== "");
  return parts.join(" · ");
}

function look(state: StatusParams["state"]): Partial<Shown> {
  switch (state) {
    case "busy":
      return { busy: true, command: CANCEL };
    case "error":
      return { severity: "error", command: LOGS };
    case "noProfile":
      return { command: IMPORT };
    case "untrusted":
      return { command: TRUST };
    case "disabled":
      return {};
    case "noKernel":
      return {};
    case "idle":
    case "stale":
      return { command: PICK };
  }
}

function shown(text: string, detail: string, rest: Partial<Shown>): Shown {
  return { text: plain(text), detail: plain(detail), busy: false, severity: "information", command: undefined, ...rest };
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

const STEPS = [
  { unit: "y", seconds: 31_557_600 },
  { unit: "d", seconds: 86_400 },
  { unit: "h", seconds: 3_600 },
  { unit: "min", seconds: 60 },
] as const;

/** "3 h ago"; nothing for a date that cannot be read. */
export function ageOf(collected: string, now: number): string | undefined {
  const seconds = (now - Date.parse(collected)) / 1000;
  if (Number.isNaN(seconds)) {
    return undefined;
  }
  const step = STEPS.find((entry) => seconds >= entry.seconds);
  return step === undefined ? "just now" : `${Math.floor(seconds / step.seconds)} ${step.unit} ago`;
}
