/* SPDX-License-Identifier: Apache-2.0 */
/* When each kernel ran, and on what resources: CUPTI's activity records. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "collector.h"

#define BUFFER_BYTES ((size_t)256 << 10)

/* The first layout that CUDA 12 knows; the later ones begin with all of it. */
typedef CUpti_ActivityKernel9 kernel_record;

static _Atomic uint32_t enabled; /* the activity kind; 0: none */

static void CUPTIAPI buffer_wanted(uint8_t **buffer, size_t *bytes, size_t *records) {
    *records = 0;
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    *bytes = *buffer ? BUFFER_BYTES : 0;
}

static uint32_t positive(int32_t value) { return value > 0 ? (uint32_t)value : 0; }

static void record_kernel(const kernel_record *from) {
    struct gpa_kernel to = {
        .correlation = from->correlationId,
        .device = from->deviceId,
        .context = from->contextId,
        .stream = from->streamId,
        .start_ns = from->start,
        .end_ns = from->end,
        .name = gpa_name(from->name),
        .graph_node = from->graphNodeId,
        .graph = from->graphId,
        .registers = from->registersPerThread,
        .grid = {positive(from->gridX), positive(from->gridY), positive(from->gridZ)},
        .block = {positive(from->blockX), positive(from->blockY), positive(from->blockZ)},
        .cluster = {from->clusterX, from->clusterY, from->clusterZ},
        .static_shared = positive(from->staticSharedMemory),
        .dynamic_shared = positive(from->dynamicSharedMemory),
        .shared_executed = from->sharedMemoryExecuted,
        .local_per_thread = from->localMemoryPerThread,
    };
    gpa_record(GPA_KERNEL, &to, sizeof to, NULL, 0);
    gpa_count(GPA_COUNT_KERNELS, 1);
}

static void CUPTIAPI buffer_full(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid) {
    CUpti_Activity *record = NULL;
    size_t dropped = 0;
    (void)bytes;
    while (valid && gpa_recorder_is_open() &&
           gpa_cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL)
            record_kernel((const kernel_record *)(const void *)record);
    if (gpa_cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS && dropped)
        gpa_note(GPA_STAGE_DROPPED, dropped > INT32_MAX ? INT32_MAX : (int)dropped, 0, "activity records dropped");
    free(buffer);
}

bool gpa_activity_start(void) {
    CUptiResult result = gpa_cupti.cuptiActivityRegisterCallbacks(buffer_wanted, buffer_full);
    /* KERNEL runs one kernel at a time, as serialized sampling does anyway, and goes with samples in every release. */
    bool concurrent = gpa_options.concurrent && gpa_cupti.version >= GPA_CONCURRENT_TIMES;
    if (gpa_options.concurrent && !concurrent) gpa_note(GPA_STAGE_SERIAL_TIMES, (int)gpa_cupti.version, 0, "");
    CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};
    CUpti_ActivityKind kind = kinds[concurrent];
    if (result == CUPTI_SUCCESS) result = gpa_cupti.cuptiActivityEnable(kind);
    if (result != CUPTI_SUCCESS && concurrent) {
        kind = CUPTI_ACTIVITY_KIND_KERNEL;
        result = gpa_cupti.cuptiActivityEnable(kind);
    }
    if (result != CUPTI_SUCCESS) {
        gpa_note_result(GPA_STAGE_TIMES, result, 0);
        return false;
    }
    atomic_store(&enabled, (uint32_t)kind);
    return true;
}

bool gpa_activity_stop(void) {
    uint32_t kind = atomic_exchange(&enabled, 0);
    if (kind) gpa_cupti.cuptiActivityDisable((CUpti_ActivityKind)kind);
    return kind != 0;
}

uint32_t gpa_activity_kind(void) { return atomic_load(&enabled); }

void gpa_activity_forsake(void) { atomic_store(&enabled, 0); }

void gpa_activity_flush(bool forced) {
    if (atomic_load(&enabled)) gpa_cupti.cuptiActivityFlushAll(forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
}
