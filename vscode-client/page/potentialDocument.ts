// SPDX-License-Identifier: Apache-2.0
// One kernel as `gpadvisor potential --format json` has it.

/** Inputs of the model of `potential`; cycles and counts are of one SM over the whole run. */
export interface ModelInputs {
  readonly issue_width: number;
  readonly instructions: number;
  readonly loads: number;
  readonly requests: number;
  readonly stall_cycles: number;
  readonly resident_warps: number;
  readonly mlp: number;
  readonly latency: number;
  readonly l1_latency: number;
  readonly request_cycles: number;
  readonly request_in_l1: boolean;
  readonly pipe_cycles: number;
  readonly serial_cycles: number;
  readonly essential_cycles: number;
  readonly data_cycles: number;
}

export type BenefitName = "memlp" | "itilp" | "serial" | "fp";

export interface Potential {
  readonly cycles: number;
  readonly essential: string;
  readonly inputs: ModelInputs;
  readonly parts: { readonly execution: number; readonly ideal_compute: number; readonly memory: number; readonly overlap: number };
  readonly benefits: Readonly<
    Record<
      BenefitName,
      {
        readonly cycles: number;
        readonly share: number;
        readonly share_by_samples: number | null;
        readonly speedup_at_most: number | null;
        readonly suggestion: string | null;
      }
    >
  >;
  readonly unexplained_cycles: number;
  readonly says: readonly string[];
  readonly notes: readonly string[];
  readonly missing_inputs: readonly string[];
}
