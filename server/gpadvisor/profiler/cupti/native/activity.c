/* SPDX-License-Identifier: Apache-2.0 */
/* When each kernel ran, and on what resources, and for a timeline copies and calls: CUPTI's activity records. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector.h"

#define BUFFER_BYTES ((size_t)256 << 10)

/* The first layout that CUDA 12 knows; the later ones begin with all of it. */
typedef CUpti_ActivityKernel9 kernel_record;
typedef CUpti_ActivityMemcpy5 copy_record;
typedef CUpti_ActivityMemset4 set_record;

static _Atomic uint32_t enabled; /* the activity kind of kernels; 0: none */
static _Atomic uint64_t kept, left_out; /* records of a timeline */

static const struct {
    CUpti_ActivityKind kind;
    const char *name;
} traced[] = {
    {CUPTI_ACTIVITY_KIND_MEMCPY, "copies"},
    {CUPTI_ACTIVITY_KIND_MEMSET, "memsets"},
    {CUPTI_ACTIVITY_KIND_RUNTIME, "calls of the runtime"},
    {CUPTI_ACTIVITY_KIND_DRIVER, "calls of the driver"},
};
#define TRACED (sizeof traced / sizeof *traced)

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

static void record_copy(const copy_record *from) {
    struct gpa_copy to = {
        .correlation = from->correlationId, .device = from->deviceId, .context = from->contextId,
        .stream = from->streamId, .start_ns = from->start, .end_ns = from->end, .bytes = from->bytes,
        .kind = from->copyKind, .from = from->srcKind, .to = from->dstKind,
    };
    gpa_record(GPA_COPY, &to, sizeof to, NULL, 0);
}

static void record_set(const set_record *from) {
    struct gpa_copy to = {
        .correlation = from->correlationId, .device = from->deviceId, .context = from->contextId,
        .stream = from->streamId, .start_ns = from->start, .end_ns = from->end, .bytes = from->bytes, .is_set = 1,
    };
    gpa_record(GPA_COPY, &to, sizeof to, NULL, 0);
}

static void record_call(const CUpti_ActivityAPI *from) {
    bool driver = from->kind == CUPTI_ACTIVITY_KIND_DRIVER;
    CUpti_CallbackDomain domain = driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
    const char *name = NULL;
    if (gpa_cupti.cuptiGetCallbackName(domain, from->cbid, &name) != CUPTI_SUCCESS) name = NULL;
    struct gpa_call to = {
        .correlation = from->correlationId, .thread = from->threadId, .start_ns = from->start, .end_ns = from->end,
        .name = gpa_name(name), .driver = driver,
    };
    gpa_record(GPA_CALL, &to, sizeof to, NULL, 0);
}

static void note_end(uint64_t number) {
    char most[32];
    snprintf(most, sizeof most, "%llu", (unsigned long long)gpa_options.most_records);
    gpa_note(GPA_STAGE_ENOUGH, number > INT32_MAX ? INT32_MAX : (int)number, 0, most);
}

/* A timeline ends where its file would grow without end: what comes then is counted. */
static bool is_enough(void) {
    if (gpa_options.mode != GPA_TIMELINE || atomic_fetch_add(&kept, 1) < gpa_options.most_records) return false;
    if (!atomic_fetch_add(&left_out, 1)) note_end(0);
    return true;
}

static void record_activity(const CUpti_Activity *record) {
    if (is_enough()) return;
    const void *plain = record;
    switch ((int)record->kind) {
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        case CUPTI_ACTIVITY_KIND_KERNEL: record_kernel(plain); break;
        case CUPTI_ACTIVITY_KIND_MEMCPY: record_copy(plain); break;
        case CUPTI_ACTIVITY_KIND_MEMSET: record_set(plain); break;
        case CUPTI_ACTIVITY_KIND_RUNTIME:
        case CUPTI_ACTIVITY_KIND_DRIVER: record_call(plain); break;
        default: break;
    }
}

void gpa_activity_tell(void) {
    uint64_t number = atomic_load(&left_out);
    if (number) note_end(number);
}

static void CUPTIAPI buffer_full(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid) {
    CUpti_Activity *record = NULL;
    size_t dropped = 0;
    (void)bytes;
    while (valid && gpa_recorder_is_open() &&
           gpa_cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        record_activity(record);
    if (gpa_cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS && dropped)
        gpa_note(GPA_STAGE_DROPPED, dropped > INT32_MAX ? INT32_MAX : (int)dropped, 0, "activity records dropped");
    free(buffer);
}

bool gpa_activity_start(void) {
    CUptiResult result = gpa_cupti.cuptiActivityRegisterCallbacks(buffer_wanted, buffer_full);
    /* KERNEL runs one kernel at a time, as serialized sampling does anyway, and goes with samples in every release. */
    bool trace = gpa_options.mode == GPA_TIMELINE; /* beside which there are no samples */
    bool concurrent = trace || (gpa_options.concurrent && gpa_cupti.version >= GPA_CONCURRENT_TIMES);
    if (gpa_options.concurrent && !concurrent) gpa_note(GPA_STAGE_SERIAL_TIMES, (int)gpa_cupti.version, 0, "");
    CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};
    CUpti_ActivityKind kind = kinds[concurrent];
    if (result == CUPTI_SUCCESS) result = gpa_cupti.cuptiActivityEnable(kind);
    if (result != CUPTI_SUCCESS && concurrent) {
        kind = CUPTI_ACTIVITY_KIND_KERNEL;
        result = gpa_cupti.cuptiActivityEnable(kind);
        if (trace && result == CUPTI_SUCCESS) gpa_note(GPA_STAGE_SERIAL_TIMES, (int)gpa_cupti.version, 0, "");
    }
    if (result != CUPTI_SUCCESS) {
        gpa_note_result(GPA_STAGE_TIMES, result, 0);
        return false;
    }
    atomic_store(&enabled, (uint32_t)kind);
    for (size_t i = 0; trace && i < TRACED; i++)
        if ((result = gpa_cupti.cuptiActivityEnable(traced[i].kind)) != CUPTI_SUCCESS)
            gpa_note(GPA_STAGE_TRACE, (int)result, (uint32_t)i, traced[i].name);
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
