// SPDX-License-Identifier: Apache-2.0
// The documents that are shown to the server: CUDA sources, and what a line table may name beside them.

export const SELECTOR = [
  { scheme: "file", language: "cuda-cpp" },
  { scheme: "file", language: "cpp" },
  { scheme: "file", language: "c" },
  { scheme: "file", language: "python" },
] as const;
