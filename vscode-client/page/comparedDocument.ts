// SPDX-License-Identifier: Apache-2.0
// What the page is given of an earlier profile, made by editor/contents/compared.py.

import type { Estimate, Location } from "./document";

export interface Prediction {
  readonly code: string;
  readonly name: string;
  readonly predicted: Estimate;
  readonly achieved: number | null;
  readonly time_before_ns: number | null;
  readonly time_after_ns: number | null;
  readonly changed: boolean;
  readonly verdict: string;
}

interface Change {
  readonly samples_before: number;
  readonly samples_after: number;
  readonly time_before_ns: number | null;
  readonly time_after_ns: number | null;
  readonly change_ns: number | null;
}

export interface ComparedLine extends Change {
  readonly before: Location | null;
  readonly after: Location | null;
  readonly edited: boolean;
  readonly place: readonly [number, number] | null;
  readonly text: string | null;
  readonly predicted: readonly number[];
}

export interface ComparedKernel {
  readonly kernel: number;
  readonly duration_before_ns: number | null;
  readonly duration_after_ns: number | null;
  readonly achieved: number | null;
  readonly evidence_before: string;
  readonly evidence_after: string;
  readonly device_before: string;
  readonly device_after: string;
  readonly differences: readonly string[];
  readonly same_code: boolean | null;
  readonly predictions: readonly Prediction[];
  readonly stalls: readonly (Change & { readonly reason: string })[];
  readonly lines: readonly ComparedLine[];
  readonly line_mapping: string | null;
}

/** What `compare` prints as JSON, with the kernels and files of this document by number. */
export interface Compared {
  readonly before: string;
  readonly kernels: readonly ComparedKernel[];
  readonly only_before: readonly string[];
  readonly only_after: readonly string[];
}
