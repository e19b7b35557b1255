// SPDX-License-Identifier: Apache-2.0
// The model of `gpadvisor potential` and its what-if: the equations of views/potential/adapted.py and what_if.py.
// tests/what_if_cases.json holds them together.

import type { BenefitName, ModelInputs } from "./potentialDocument";

export interface CycleParts {
  readonly execution: number;
  readonly compute: number;
  readonly memory: number;
  readonly overlap: number;
  readonly mwp: number;
  readonly cwp: number;
  readonly ideal_compute: number;
  readonly ideal_memory: number;
  readonly benefits: Readonly<Record<BenefitName, number>>;
}

/** Factors of a run's inputs, each above zero. */
export interface Change {
  readonly warps: number;
  readonly in_flight: number;
  readonly transactions: number;
  readonly clock: number;
  readonly bandwidth: number;
}

export const NO_CHANGE: Change = { warps: 1, in_flight: 1, transactions: 1, clock: 1, bandwidth: 1 };

/** The parts of a kernel's cycles. */
export function parts(of: ModelInputs): CycleParts {
  const full = Math.max(of.instructions / of.issue_width, of.pipe_cycles);
  const parallel = Math.max(full, (of.instructions * of.stall_cycles) / of.resident_warps); // Eqs. 3 to 5
  const compute = parallel + of.serial_cycles; // Eq. 2
  const bounded = of.latency >= 1 && of.request_cycles > 0;
  const peak = bounded ? of.latency / of.request_cycles : Infinity; // Eq. A.5
  const mwp = Math.min(peak, of.resident_warps); // Eq. A.4
  const waiting = (of.loads * of.latency) / of.mlp;
  const cwp = Math.min((waiting + parallel) / parallel, of.resident_warps); // Eq. A.1
  const itmlp = Math.min(of.mlp * Math.min(Math.max(1, cwp - 1), mwp), peak); // Eqs. 14, 15
  const memory = Math.max((of.loads * of.latency) / itmlp, of.requests * of.request_cycles); // Eq. 11
  const overlap = Math.min((compute * Math.max(0, of.resident_warps - 1)) / of.resident_warps, memory); // Eqs. 16, 17
  const exposed = memory - overlap;
  const essential = Math.min(of.essential_cycles, full);
  return {
    execution: compute + memory - overlap, // Eq. 1
    compute,
    memory,
    overlap,
    mwp,
    cwp,
    ideal_compute: essential, // Eq. 18
    ideal_memory: Math.min(of.data_cycles, exposed), // Eq. 19
    benefits: {
      memlp: Math.max(exposed - of.data_cycles, 0), // Eq. 23
      itilp: parallel - full, // Eq. 20
      serial: of.serial_cycles, // Eq. 21
      fp: full - essential, // Eq. 22
    },
  };
}

/** The inputs; those in cycles are of the changed clock. */
export function changed(of: ModelInputs, change: Change): ModelInputs {
  const near = Math.min(of.l1_latency, of.latency);
  const outside = (change.transactions / change.bandwidth) * change.clock;
  const inside = change.transactions / change.bandwidth;
  return {
    ...of,
    resident_warps: of.resident_warps * change.warps,
    mlp: of.mlp * change.in_flight,
    latency: near + (of.latency - near) * change.clock,
    request_cycles: of.request_cycles * (of.request_in_l1 ? inside : outside),
    data_cycles: of.data_cycles * outside,
  };
}

/** The model with some inputs changed; what it does not explain of the measured cycles takes as long as before. */
export function whatIf(of: ModelInputs, cycles: number, change: Change): { readonly parts: CycleParts; readonly speedup: number } {
  const before = parts(of);
  const after = parts(changed(of, change));
  const kept = Math.max(0, cycles - before.execution);
  return { parts: after, speedup: (before.execution + kept) / (after.execution / change.clock + kept) };
}
