// SPDX-License-Identifier: Apache-2.0
// Generated from server/gpadvisor/lsp by `make docs`; do not edit.

export const TOOLS = [
  { name: "list_kernels", title: "List the kernels of a profile", runs: false },
  { name: "advise", title: "What to change in a kernel", runs: false },
  { name: "why", title: "How an estimate came about", runs: false },
  { name: "explain", title: "The page of a rule or a stall reason", runs: false },
  { name: "blame", title: "Why a line waits, and what it makes wait", runs: false },
  { name: "source", title: "Source and machine code of a line", runs: false },
  { name: "limits", title: "What limits a kernel", runs: false },
  { name: "compare", title: "Compare two profiles", runs: false },
  { name: "simulate", title: "Advice on a source by simulating it", runs: false },
  { name: "doctor", title: "What works on this machine", runs: false },
  { name: "profile", title: "Profile a program", runs: true },
] as const;
