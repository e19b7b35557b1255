/* SPDX-License-Identifier: Apache-2.0 */
/* What host programs call of the stand-in for driver and CUPTI beyond the real interface. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <cuda.h>
#include <stdint.h>

/* Shared with the test through the file that FAKE_TRUTH names, so that it outlives the process. */
struct fake_truth {
    uint64_t launches;          /* whose callbacks have returned */
    uint64_t samples;           /* counts whose reader has come back, or has disabled sampling */
    uint64_t kernels;           /* activity records in completed buffers */
    uint64_t modules;
    uint64_t contexts;
    uint64_t injected;          /* InitializeInjection was called */
    uint64_t samples_made;      /* by all launches that were executed */
    uint64_t dropped;
    uint64_t copies;            /* records of copies and memsets in completed buffers */
    uint64_t calls;             /* of calls */
};

/* A launch through a runtime call around the driver's, each with a correlation id of its own. */
CUresult fake_runtime_launch(CUfunction function, unsigned grid, unsigned block, CUstream stream);
void fake_runtime_wait(unsigned lasts_us);
void fake_runtime_copy(unsigned lasts_us); /* of pageable memory to the device */
void fake_runtime_set(void);
/* The samples that one launch of the i-th function of a module leaves at its p-th instruction. */
#define FAKE_PCS 5u
#define FAKE_LONG(function, pc) (3u + (function) + (pc))
#define FAKE_LONG_LATENCY(function, pc) (1u + (pc))
#define FAKE_SELECTED(pc) ((pc) % 2u ? 2u : 0u)

#endif
