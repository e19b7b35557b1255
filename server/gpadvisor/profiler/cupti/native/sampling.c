/* SPDX-License-Identifier: Apache-2.0 */
/* PC sampling, per context: enabling, configuring, reading. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector.h"

#define PCS_AT_ONCE 512       /* of one read */
/* That CUPTI puts aside itself, and at the end of a context: "PC records which can't be accommodated in the buffer
 * are discarded" (cuptiPCSamplingDisable), and how many those are is known only then. */
#define PCS_KEPT ((size_t)65536)
#define MAX_READS 4096        /* of one drain: far more than a buffer holds */
/* CUPTI's default of 1 MB "can accommodate approximately 5500 PCs with all stall reasons". */
#define SCRATCH_BYTES ((size_t)16 << 20)
#define STALLED "smsp__pcsamp_warps_issue_stalled_"
#define ROWS_PER_RECORD 1024
#define MAX_DEVICES 256
#define PATIENCE_NS UINT64_C(5000000000) /* for another thread that is reading this context, at its end only */

struct context {
    struct context *next;
    _Atomic(CUcontext) handle; /* NULL once it is destroyed: the driver may give the address again */
    uint32_t id, device;
    _Atomic bool ready, reading, again, unloaded;
    /* CUPTI moves samples into `kept` by itself, after each kernel in serialized mode and when a module replaces
     * another; reading takes them out of there again, so that it needs a buffer of its own. */
    CUpti_PCSamplingData read, kept;
    uint32_t *reason_indexes; /* those of stalls first */
    size_t reasons, stalls;   /* rows may hold the others, too: CUPTI's own counts are sampled by default */
    char **names; /* every name that CUPTI gave, once: a set of addresses */
    size_t names_used, names_room;
};

static _Atomic(struct context *) contexts;
static _Atomic(struct context *) sampled[MAX_DEVICES]; /* CUPTI samples one context of a GPU at a time */
static struct context *volatile inherited; /* of the parent of a fork: kept in sight of leak checkers */
static _Atomic bool device_known[MAX_DEVICES];
static _Atomic(CUcontext) awaited[MAX_DEVICES]; /* seen in a launch callback, where nothing may be begun */

static struct context *find(CUcontext handle) {
    for (struct context *at = atomic_load_explicit(&contexts, memory_order_acquire); at; at = at->next)
        if (atomic_load_explicit(&at->handle, memory_order_relaxed) == handle) return at;
    return NULL;
}

static uint32_t attribute(CUdevice device, CUdevice_attribute which) {
    int value = 0;
    return gpa_driver.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS && value > 0 ? (uint32_t)value : 0;
}

static void record_device(uint32_t index) {
    CUdevice device;
    char name[256] = "";
    if (index < MAX_DEVICES && atomic_exchange(&device_known[index], true)) return;
    if (gpa_driver.cuDeviceGet(&device, (int)index) != CUDA_SUCCESS) return;
    if (gpa_driver.cuDeviceGetName(name, sizeof name, device) != CUDA_SUCCESS) *name = 0;
    struct gpa_device record = {
        .index = index,
        .major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        .minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        .sms = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        .clock_khz = attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        .max_threads_per_sm = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
        .registers_per_sm = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
        .shared_bytes_per_sm = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        .l2_bytes = attribute(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
        .warp_size = attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE),
        .name_bytes = (uint32_t)strnlen(name, sizeof name),
    };
    gpa_record(GPA_DEVICE, &record, sizeof record, name, record.name_bytes);
}

static CUptiResult enable(CUcontext handle) {
    CUpti_PCSamplingEnableParams params = {.size = CUpti_PCSamplingEnableParamsSize, .ctx = handle};
    return gpa_cupti.cuptiPCSamplingEnable(&params);
}

/* The names of all reasons: recorded, and those kept that are stalls and not counts of CUPTI's own. */
static CUptiResult read_reasons(struct context *context, CUcontext handle) {
    size_t count = 0;
    CUpti_PCSamplingGetNumStallReasonsParams ask = {
        .size = CUpti_PCSamplingGetNumStallReasonsParamsSize, .ctx = handle, .numStallReasons = &count};
    CUptiResult result = gpa_cupti.cuptiPCSamplingGetNumStallReasons(&ask);
    if (result != CUPTI_SUCCESS) return result;
    if (!count || count > 4096) return CUPTI_ERROR_NOT_SUPPORTED;
    uint32_t *indexes = calloc(count, sizeof *indexes);
    char **names = calloc(count, sizeof *names);
    char *text = calloc(count, CUPTI_STALL_REASON_STRING_SIZE);
    uint8_t *record = malloc(count * (CUPTI_STALL_REASON_STRING_SIZE + 8));
    result = CUPTI_ERROR_OUT_OF_MEMORY;
    if (indexes && names && text && record) {
        for (size_t i = 0; i < count; i++) names[i] = text + i * CUPTI_STALL_REASON_STRING_SIZE;
        CUpti_PCSamplingGetStallReasonsParams params = {.size = CUpti_PCSamplingGetStallReasonsParamsSize,
                                                        .ctx = handle,
                                                        .numStallReasons = count,
                                                        .stallReasonIndex = indexes,
                                                        .stallReasons = names};
        result = gpa_cupti.cuptiPCSamplingGetStallReasons(&params);
    }
    if (result == CUPTI_SUCCESS) {
        struct gpa_reasons head = {context->id, (uint32_t)count};
        size_t used = 0;
        for (size_t i = 0; i < count; i++) {
            const uint32_t row[] = {indexes[i], (uint32_t)strnlen(names[i], CUPTI_STALL_REASON_STRING_SIZE)};
            memcpy(record + used, row, sizeof row);
            memcpy(record + used + sizeof row, names[i], row[1]);
            used += sizeof row + row[1];
        }
        gpa_record(GPA_REASONS, &head, sizeof head, record, used);
        context->reasons = count;
        context->reason_indexes = indexes;
        for (size_t i = 0; i < count; i++)
            if (strncmp(names[i], STALLED, sizeof STALLED - 1) == 0) {
                uint32_t other = indexes[context->stalls];
                indexes[context->stalls++] = indexes[i];
                indexes[i] = other;
            }
        if (!context->stalls) context->stalls = count; /* names of another release */
    } else {
        free(indexes);
    }
    free(names);
    free(text);
    free(record);
    return result;
}

static bool make_buffer(CUpti_PCSamplingData *data, size_t pcs, size_t reasons_of_pc) {
    CUpti_PCSamplingStallReason *reasons = calloc(pcs * reasons_of_pc, sizeof *reasons);
    data->size = sizeof *data;
    data->collectNumPcs = pcs;
    data->pPcData = calloc(pcs, sizeof *data->pPcData);
    if (!data->pPcData || !reasons) {
        free(reasons);
        free(data->pPcData);
        data->pPcData = NULL;
        return false;
    }
    for (size_t i = 0; i < pcs; i++) {
        data->pPcData[i].size = sizeof *data->pPcData;
        data->pPcData[i].stallReasonCount = reasons_of_pc; /* the room, to releases that look */
        data->pPcData[i].stallReason = reasons + i * reasons_of_pc;
    }
    return true;
}

static void free_buffer(CUpti_PCSamplingData *data) {
    if (!data->pPcData) return;
    free(data->pPcData[0].stallReason);
    free(data->pPcData);
    data->pPcData = NULL;
}

static void free_buffers(struct context *context) {
    free_buffer(&context->read);
    free_buffer(&context->kept);
    free(context->reason_indexes);
    context->reason_indexes = NULL;
}

static CUptiResult configure(struct context *context, CUcontext handle) {
    CUpti_PCSamplingConfigurationInfo wish[6] = {0};
    size_t count = 0;
    wish[count].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON;
    wish[count].attributeData.stallReasonData.stallReasonCount = context->stalls;
    wish[count++].attributeData.stallReasonData.pStallReasonIndex = context->reason_indexes;
    wish[count].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER;
    wish[count++].attributeData.samplingDataBufferData.samplingDataBuffer = &context->kept;
    wish[count].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE;
    wish[count++].attributeData.scratchBufferSizeData.scratchBufferSize = SCRATCH_BYTES;
    wish[count].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE;
    wish[count++].attributeData.collectionModeData.collectionMode =
        gpa_options.mode == GPA_SERIALIZED ? CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED
                                           : CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
    if (gpa_options.period) {
        wish[count].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
        wish[count++].attributeData.samplingPeriodData.samplingPeriod = gpa_options.period;
    }
    if (gpa_options.buffer_bytes) {
        wish[count].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE;
        wish[count++].attributeData.hardwareBufferSizeData.hardwareBufferSize = (size_t)gpa_options.buffer_bytes;
    }
    CUpti_PCSamplingConfigurationInfoParams params = {.size = CUpti_PCSamplingConfigurationInfoParamsSize,
                                                      .ctx = handle,
                                                      .numAttributes = count,
                                                      .pPCSamplingConfigurationInfo = wish};
    CUptiResult result = gpa_cupti.cuptiPCSamplingSetConfigurationAttribute(&params);
    /* The call may succeed where an attribute is refused: another mode than the one that is recorded. */
    for (size_t i = 0; i < count && result == CUPTI_SUCCESS; i++) result = wish[i].attributeStatus;
    return result;
}

/* What was set; for the rest the defaults, which is what the header promises of reading. */
static void read_configuration(CUcontext handle, struct gpa_context *record) {
    record->period = gpa_options.period;
    record->buffer_bytes = gpa_options.buffer_bytes;
    CUpti_PCSamplingConfigurationInfo found[2] = {0};
    found[0].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
    found[1].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE;
    CUpti_PCSamplingConfigurationInfoParams params = {.size = CUpti_PCSamplingConfigurationInfoParamsSize,
                                                      .ctx = handle,
                                                      .numAttributes = 2,
                                                      .pPCSamplingConfigurationInfo = found};
    if (gpa_cupti.cuptiPCSamplingGetConfigurationAttribute(&params) != CUPTI_SUCCESS) return;
    if (!record->period && found[0].attributeStatus == CUPTI_SUCCESS)
        record->period = found[0].attributeData.samplingPeriodData.samplingPeriod;
    if (!record->buffer_bytes && found[1].attributeStatus == CUPTI_SUCCESS)
        record->buffer_bytes = found[1].attributeData.hardwareBufferSizeData.hardwareBufferSize;
}

static void stop_sampling(CUcontext handle) {
    CUpti_PCSamplingDisableParams params = {.size = CUpti_PCSamplingDisableParamsSize, .ctx = handle};
    gpa_cupti.cuptiPCSamplingDisable(&params);
}

static CUptiResult start_sampling(struct context *context, CUcontext handle) {
    CUptiResult result = enable(handle);
    /* The samples are worth more than the times, which some releases do not give beside them. */
    if ((result == CUPTI_ERROR_NOT_COMPATIBLE || result == CUPTI_ERROR_INVALID_OPERATION) && gpa_activity_stop()) {
        CUptiResult alone = enable(handle);
        if (alone == CUPTI_SUCCESS) gpa_note_result(GPA_STAGE_TIMES, CUPTI_ERROR_NOT_COMPATIBLE, context->id);
        else gpa_activity_start();
        result = alone;
    }
    if (result != CUPTI_SUCCESS) {
        gpa_note_result(GPA_STAGE_SAMPLING, result, context->id);
        return result;
    }
    result = read_reasons(context, handle);
    if (result == CUPTI_SUCCESS)
        result = make_buffer(&context->read, PCS_AT_ONCE, context->reasons) &&
                         make_buffer(&context->kept, PCS_KEPT, context->reasons)
                     ? configure(context, handle)
                     : CUPTI_ERROR_OUT_OF_MEMORY;
    if (result != CUPTI_SUCCESS) {
        gpa_note_result(GPA_STAGE_CONFIGURE, result, context->id);
        stop_sampling(handle);
        free_buffers(context);
    }
    return result;
}

/* Whether this context may be sampled: until it ends, no other one of its GPU is. */
static bool take_device(struct context *context) {
    struct context *none = NULL;
    return context->device >= MAX_DEVICES ||
           atomic_compare_exchange_strong(&sampled[context->device], &none, context);
}

static void leave_device(struct context *context) {
    struct context *own = context;
    if (context->device < MAX_DEVICES) atomic_compare_exchange_strong(&sampled[context->device], &own, NULL);
}

void gpa_sampling_context(CUcontext handle, uint32_t id) {
    if (!handle || find(handle)) return;
    struct context *context = calloc(1, sizeof *context);
    if (!context) return;
    if (!id && gpa_cupti.cuptiGetContextId(handle, &id) != CUPTI_SUCCESS) id = 0;
    context->id = id;
    if (gpa_cupti.cuptiGetDeviceId(handle, &context->device) != CUPTI_SUCCESS) context->device = UINT32_MAX;
    atomic_store(&context->handle, handle);
    /* In the list before it is ready: a launch in another thread does not begin it a second time. */
    context->next = atomic_load(&contexts);
    do {
        if (find(handle)) {
            free(context);
            return;
        }
    } while (!atomic_compare_exchange_weak(&contexts, &context->next, context));
    record_device(context->device);
    struct gpa_context record = {.context = id, .device = context->device, .mode = gpa_options.mode};
    CUptiResult result = CUPTI_ERROR_MAX_LIMIT_REACHED;
    if (take_device(context)) {
        result = start_sampling(context, handle);
        if (result != CUPTI_SUCCESS) leave_device(context);
    } else {
        gpa_note(GPA_STAGE_CONTEXT, (int)context->device, id, "another context of this GPU is sampled");
    }
    record.sampling = (int32_t)result;
    if (result == CUPTI_SUCCESS) read_configuration(handle, &record);
    record.times = gpa_activity_kind();
    gpa_record(GPA_CONTEXT, &record, sizeof record, NULL, 0);
    atomic_store(&context->ready, result == CUPTI_SUCCESS);
}

void gpa_sampling_await(CUcontext handle) {
    if (!handle || find(handle)) return;
    for (int i = 0; i < MAX_DEVICES; i++) {
        CUcontext none = NULL;
        if (atomic_load(&awaited[i]) == handle || atomic_compare_exchange_strong(&awaited[i], &none, handle)) return;
    }
}

void gpa_sampling_begin_awaited(void) {
    for (int i = 0; i < MAX_DEVICES; i++) {
        CUcontext handle = atomic_load(&awaited[i]);
        if (!handle) continue;
        gpa_sampling_context(handle, 0);
        atomic_store(&awaited[i], NULL);
    }
}

static char **slot_of(char **names, size_t room, char *text) {
    size_t at = gpa_hash(1, &text, sizeof text) % room;
    while (names[at] && names[at] != text) at = (at + 1) % room;
    return &names[at];
}

/* A name "might be shared across all the records including records from activity APIs", so that it is kept until
 * the collection ends: then it is ours to free. */
static void keep_name(struct context *context, char *text) {
    if (!text) return;
    if (2 * context->names_used >= context->names_room) {
        size_t room = context->names_room ? 2 * context->names_room : 256;
        char **more = calloc(room, sizeof *more);
        if (!more) return;
        for (size_t i = 0; i < context->names_room; i++)
            if (context->names[i]) *slot_of(more, room, context->names[i]) = context->names[i];
        free(context->names);
        context->names = more;
        context->names_room = room;
    }
    char **slot = slot_of(context->names, context->names_room, text);
    if (!*slot) *slot = text, context->names_used++;
}

static int by_address(const void *one, const void *other) {
    char *const *a = one, *const *b = other;
    return *a < *b ? -1 : *a > *b;
}

void gpa_sampling_free_names(void) {
    size_t count = 0, used = 0;
    for (struct context *at = atomic_load(&contexts); at; at = at->next) count += at->names_used;
    char **all = malloc((count + 1) * sizeof *all);
    if (!all) return;
    for (struct context *at = atomic_load(&contexts); at; at = at->next) {
        for (size_t i = 0; i < at->names_room; i++)
            if (at->names[i]) all[used++] = at->names[i];
        free(at->names);
        at->names = NULL;
        at->names_used = at->names_room = 0;
    }
    qsort(all, used, sizeof *all, by_address); /* contexts may share some, too */
    for (size_t i = 0; i < used; i++)
        if (!i || all[i] != all[i - 1]) free(all[i]);
    free(all);
}

static uint32_t correlation_of(const CUpti_PCSamplingPCData *pc) {
#if CUPTI_API_VERSION >= GPA_ROWS_WITH_CORRELATION
    return pc->correlationId;
#else
    return (void)pc, 0;
#endif
}

/* Rows of what CUPTI has just filled in; the totals go with the first record. */
static void record_data(struct context *context, const CUpti_PCSamplingData *data) {
    size_t pcs = data->totalNumPcs < data->collectNumPcs ? data->totalNumPcs : data->collectNumPcs;
    struct {
        struct gpa_samples head;
        struct gpa_sample rows[ROWS_PER_RECORD];
    } *record = malloc(sizeof *record);
    if (!record) {
        gpa_count(GPA_COUNT_LOST, 1);
        return;
    }
    memset(&record->head, 0, sizeof record->head);
    record->head.context = context->id;
    record->head.range = data->rangeId;
    record->head.total = data->totalSamples;
    record->head.dropped = data->droppedSamples;
    record->head.non_user = data->nonUsrKernelsTotalSamples;
    record->head.buffer_full = data->hardwareBufferFull;
    gpa_count(GPA_COUNT_SAMPLES, data->totalSamples);
    for (size_t i = 0; i < pcs; i++) {
        const CUpti_PCSamplingPCData *pc = &data->pPcData[i];
        size_t reasons = pc->stallReasonCount < context->reasons ? pc->stallReasonCount : context->reasons;
        uint64_t name = gpa_name(pc->functionName);
        keep_name(context, pc->functionName);
        for (size_t j = 0; j < reasons; j++) {
            if (!pc->stallReason[j].samples) continue;
            if (record->head.rows == ROWS_PER_RECORD) {
                gpa_record(GPA_SAMPLES, record, sizeof *record, NULL, 0);
                record->head = (struct gpa_samples){.context = context->id, .range = data->rangeId};
            }
            record->rows[record->head.rows++] =
                (struct gpa_sample){.crc = pc->cubinCrc,
                                    .pc = pc->pcOffset,
                                    .function_name = name,
                                    .function = pc->functionIndex,
                                    .correlation = correlation_of(pc),
                                    .reason = pc->stallReason[j].pcSamplingStallReasonIndex,
                                    .samples = pc->stallReason[j].samples};
        }
    }
    if (record->head.rows || record->head.total || record->head.dropped || record->head.buffer_full)
        gpa_record(GPA_SAMPLES, &record->head, sizeof record->head, record->rows,
                   record->head.rows * sizeof *record->rows);
    free(record);
}

static void clear_read(struct context *context) {
    CUpti_PCSamplingData *data = &context->read;
    for (size_t i = 0; i < data->totalNumPcs && i < PCS_AT_ONCE; i++)
        data->pPcData[i].stallReasonCount = context->reasons;
    data->collectNumPcs = PCS_AT_ONCE;
    data->totalNumPcs = data->remainingNumPcs = 0;
    data->totalSamples = data->droppedSamples = data->nonUsrKernelsTotalSamples = 0;
    data->hardwareBufferFull = 0;
}

/* Until a read brings nothing and nothing remains elsewhere. */
static void read_all(struct context *context, CUcontext handle) {
    for (int reads = 0; reads < MAX_READS; reads++) {
        clear_read(context);
        CUpti_PCSamplingGetDataParams params = {
            .size = CUpti_PCSamplingGetDataParamsSize, .ctx = handle, .pcSamplingData = &context->read};
        CUptiResult result = gpa_cupti.cuptiPCSamplingGetData(&params);
        if (context->read.hardwareBufferFull) {
            gpa_note_result(GPA_STAGE_BUFFER, CUPTI_ERROR_OUT_OF_MEMORY, context->id);
        } else if (result != CUPTI_SUCCESS) {
            gpa_note_result(GPA_STAGE_DATA, result, context->id);
            return;
        }
        record_data(context, &context->read);
        if ((!context->read.totalNumPcs && !context->read.remainingNumPcs) || result != CUPTI_SUCCESS) return;
    }
}

/* One thread reads a context at a time. Whoever comes meanwhile leaves word and goes on. */
static void drain(struct context *context) {
    CUcontext handle = atomic_load(&context->handle);
    if (!handle || !atomic_load(&context->ready)) return;
    atomic_store(&context->again, true);
    while (atomic_load(&context->again) && !atomic_exchange(&context->reading, true)) {
        if (atomic_exchange(&context->again, false) && atomic_load(&context->ready)) read_all(context, handle);
        atomic_store(&context->reading, false);
    }
}

void gpa_sampling_drain_context(CUcontext handle) {
    struct context *context = find(handle);
    if (context) drain(context);
}

/* Its addresses may go to another module: CUPTI wants samples read before, and after that one is loaded. */
void gpa_sampling_module_unloading(CUcontext handle) {
    struct context *context = find(handle);
    if (!context) return;
    atomic_store(&context->unloaded, true);
    drain(context);
}

void gpa_sampling_module_loaded(CUcontext handle) {
    struct context *context = find(handle);
    if (context && atomic_exchange(&context->unloaded, false)) drain(context);
}

void gpa_sampling_drain_all(void) {
    for (struct context *at = atomic_load(&contexts); at; at = at->next) drain(at);
}

/* The end of a context: the last samples, then what disabling brings. Waits for a reader, but not for ever. */
static void end_context(struct context *context) {
    CUcontext handle = atomic_load(&context->handle);
    if (!handle) return;
    uint64_t begun = gpa_monotonic_ns();
    while (atomic_exchange(&context->reading, true)) {
        if (gpa_monotonic_ns() - begun > PATIENCE_NS) {
            /* Whoever reads it does not come back; it is gone soon, and not touched again. */
            atomic_store(&context->ready, false);
            atomic_store(&context->handle, NULL);
            gpa_note(GPA_STAGE_DATA, 0, context->id, "reading did not end in time");
            return;
        }
        sched_yield();
    }
    if (atomic_exchange(&context->ready, false)) {
        read_all(context, handle);
        stop_sampling(handle); /* what was still on its way is in `kept` then */
        if (context->kept.totalNumPcs) record_data(context, &context->kept);
        if (context->kept.totalNumPcs >= PCS_KEPT) gpa_note(GPA_STAGE_KEPT, 0, context->id, "");
        free_buffers(context);
        leave_device(context);
    }
    atomic_store(&context->handle, NULL);
    atomic_store(&context->reading, false);
}

void gpa_sampling_destroying(CUcontext handle) {
    struct context *context = find(handle);
    if (context) end_context(context);
}

void gpa_sampling_finish(void) {
    for (struct context *at = atomic_load(&contexts); at; at = at->next) end_context(at);
}

void gpa_sampling_forsake(void) {
    for (struct context *at = atomic_load(&contexts); at; at = at->next) atomic_store(&at->ready, false);
}

void gpa_sampling_after_fork(void) {
    /* CUPTI is of no use in the child: the contexts are the parent's, and malloc's lock may be held. */
    inherited = atomic_exchange(&contexts, NULL);
    gpa_sampling_again();
}

void gpa_sampling_again(void) {
    for (int i = 0; i < MAX_DEVICES; i++) {
        atomic_store(&device_known[i], false);
        atomic_store(&sampled[i], NULL);
        atomic_store(&awaited[i], NULL);
    }
}
