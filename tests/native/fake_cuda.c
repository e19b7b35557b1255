/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for libcuda.so.1 and libcupti.so.13 with events known in advance, for tests of the injection library.
 *
 * FAKE_TRUTH names a file for what was delivered. FAKE_CUPTI lists misbehaviour, separated by commas:
 *   subscribe=N enable=N configure=N attribute=N reasons=N data=N activity=N  that call fails with result N
 *   stuck         disabling never comes back
 *   late_exclusive  reading samples fails in continuous mode while CONCURRENT_KERNEL activity is on
 *   fatal=N       the N-th launch is followed by CUPTI's fatal error
 *   full=N        the N-th read of a context finds the hardware buffer full
 *   exclusive     sampling and kernel activity do not go together
 *   dropped=N     N samples are dropped in each read
 *   slow=N        each read takes N microseconds
 *   gate=N        reading waits until N launches are through; if they are held up by it, the process aborts
 *   non_user=N    N samples of each read lie in kernels of the driver's own
 *   unequal=N     the first read of a context counts N samples more in its total than in its rows
 *   pcs=N         instructions of each kernel that are sampled
 *   nodes=N       kernels of each graph, 2 without a wish
 *   unread        the GPU's buffer is not consumed before sampling is disabled
 *   copies        each read has names of its own
 *   version=N     what cuptiGetVersion says
 *   lost=N        each completed buffer comes with N activity records that were dropped
 *   untraced=N    enabling of copies, memsets and calls fails with result N
 *
 * What the headers and the manual forbid aborts, or loses samples as they say:
 *   cuptiActivityFlushAll in a callback that is none of an API call
 *   cuptiPCSamplingEnable in a callback of a launch, whose stream may be captured
 *   more PCs at once than the scratch buffer takes: 5500 in its default of 1 MB
 *   more PCs than the buffer of the configuration has room for when sampling is disabled
 *   parameters and data without their size, with a private pointer, or of a context that is gone
 *   reading samples, or disabling them, where sampling is not enabled
 *   cuptiEnableCallback in two threads at once
 *   cuptiActivityFlushAll in a callback of activity buffers, or before those are registered
 *   data of a callback, or the image of a module, used after the callback: they are overwritten and freed
 *
 * What CUPTI's release notes say of some releases aborts in those (`version`):
 *   samples beside CONCURRENT_KERNEL activity: "made compatible" in CUDA 12.8 Update 1, whose number is that of 12.8
 *   CONCURRENT_KERNEL disabled: "a potential deadlock" until CUDA 13.0 Update 1
 *   no buffer for activity records: "a crash when the client fails to provide a buffer" until CUDA 12.9 */
#define _GNU_SOURCE
#include "fake_cuda.h"

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_pcsampling.h>
#include <cupti_runtime_cbid.h>
#include <cupti_version.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_FUNCTIONS 16
#define MAX_COUNTS 4096
#define STALLS 4u
#define PC_BYTES 190u /* of the scratch buffer: "1 MB [...] approximately 5500 PCs with all stall reasons" */

struct CUfunc_st {
    char *name, *given;
    uint32_t index;
    uint64_t *rows; /* where the count of each instruction is, if it is still there: rows moved before, and those now */
    struct CUmod_st *module;
};
struct CUmod_st {
    uint32_t id;
    char *image;
    size_t bytes;
    uint64_t crc;
    struct CUctx_st *context;
    struct CUfunc_st functions[MAX_FUNCTIONS];
    uint32_t count;
    struct CUmod_st *next;
};
struct count {
    struct CUfunc_st *function;
    uint32_t pc, correlation, samples[STALLS];
};
struct CUctx_st {
    uint32_t id;
    int device;
    bool sampling, alive;
    CUpti_PCSamplingCollectionMode mode;
    uint32_t period;
    size_t buffer, scratch, asked;
    uint32_t wanted[8];
    CUpti_PCSamplingData *configured; /* CUPTI's to write: rows go there first where there is an occasion */
    bool unloaded;
    struct count *counts;
    size_t used, room;
    uint64_t unconfirmed, aside, reads, moved;
    struct CUctx_st *next;
};

static const char *const reason_names[] = {
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard",
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
    "smsp__pcsamp_warps_issue_stalled_selected",
    "smsp__pcsamp_warps_issue_stalled_a_reason_of_tomorrow",
    /* "total and dropped sample counts are collected by default" */
    "smsp__pcsamp_sample_count",
    "smsp__pcsamp_samples_data_dropped",
};
#define REASONS 6u
/* Kinds of GPU number them differently. */
static const uint32_t reason_indexes[][REASONS] = {{7, 8, 20, 31, 40, 41}, {31, 20, 8, 7, 41, 40}};
static const uint32_t *indexes_of(const struct CUctx_st *context) { return reason_indexes[context->device % 2]; }
static bool is_latency(size_t reason) { return reason == 1; }

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_truth nowhere, *truth = &nowhere;
static struct CUctx_st *contexts;
static struct CUmod_st *modules;
static _Atomic uint32_t next_id = 1, next_correlation = 100, next_module = 1;
static _Atomic(CUpti_CallbackFunc) subscriber;
static _Atomic bool enabled[8][1024];
static _Atomic uint32_t activity; /* the kind of kernels */
static _Atomic bool traces[64];   /* other kinds */
static CUpti_BuffersCallbackRequestFunc wanted;
static CUpti_BuffersCallbackCompleteFunc completed;
static uint8_t *activity_buffer;
static size_t activity_used, activity_room;
static __thread CUcontext current;
static __thread int in_launch, in_other; /* depth of callbacks of API calls, and of others */
static __thread bool ended; /* a fatal error was told in this thread, which may not call CUPTI any more */

static long wish(const char *name, long otherwise) {
    const char *list = getenv("FAKE_CUPTI");
    size_t length = strlen(name);
    while (list && *list) {
        if (strncmp(list, name, length) == 0 && (list[length] == '=' || list[length] == ',' || !list[length]))
            return list[length] == '=' ? strtol(list + length + 1, NULL, 10) : 1;
        list = strchr(list, ',');
        if (list) list++;
    }
    return otherwise;
}

static void must(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "stand-in: %s\n", what);
    abort();
}

/* "CUPTI client should set the size of the structure"; pPriv: "Assign to NULL". */
#define PARAMETERS(of, type) \
    must((of) && (of)->size == type##Size && !(of)->pPriv, #type ": size or pPriv"), \
        must((of)->ctx && (of)->ctx->alive, #type ": no living context")

static void check_data(const CUpti_PCSamplingData *data) {
    must(data && data->size == sizeof *data && data->pPcData && data->collectNumPcs, "CUpti_PCSamplingData: size");
    for (size_t i = 0; i < data->collectNumPcs; i++)
        must(data->pPcData[i].size == sizeof *data->pPcData && data->pPcData[i].stallReason,
             "CUpti_PCSamplingPCData: size");
}

#define CUDA_12_9 27u
#define CUDA_13_0_1 130001u
static bool older_than(uint32_t version) { return (uint32_t)wish("version", CUPTI_API_VERSION) < version; }

static void *copy_of(const void *from, size_t bytes) { return from ? memcpy(malloc(bytes), from, bytes) : NULL; }

static void spoil(void *data, size_t bytes) {
    if (data) memset(data, 0xA5, bytes);
    free(data);
}

static void add(uint64_t *counter, uint64_t amount) { __atomic_fetch_add(counter, amount, __ATOMIC_SEQ_CST); }

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void call_back(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
    CUpti_CallbackFunc function = atomic_load(&subscriber);
    if (!function || !atomic_load(&enabled[domain][id])) return;
    bool api = domain == CUPTI_CB_DOMAIN_DRIVER_API || domain == CUPTI_CB_DOMAIN_RUNTIME_API;
    *(api ? &in_launch : &in_other) += 1;
    if (api) { /* "valid only within the invocation of the callback function" */
        const CUpti_CallbackData *given = data;
        CUpti_CallbackData *lent = copy_of(given, sizeof *given);
        size_t name = given->symbolName ? strlen(given->symbolName) + 1 : 0;
        char *symbol = copy_of(given->symbolName, name);
        lent->symbolName = symbol;
        function(NULL, domain, id, lent);
        spoil(symbol, name);
        spoil(lent, sizeof *lent);
    } else {
        function(NULL, domain, id, data);
    }
    *(api ? &in_launch : &in_other) -= 1;
}

/* Rows that were counted, as many as there is room for; the caller holds the lock. */
static uint64_t move_rows(struct CUctx_st *context, CUpti_PCSamplingData *data) {
    size_t room = data->collectNumPcs - data->totalNumPcs, count = context->used < room ? context->used : room;
    uint64_t given = 0;
    if (!count) return 0; /* there may be no rows at all yet */
    for (size_t i = 0; i < count; i++) {
        struct count *from = &context->counts[i];
        CUpti_PCSamplingPCData *to = &data->pPcData[data->totalNumPcs++];
        if (to->stallReasonCount < REASONS) abort(); /* the room for reasons, to some releases */
        to->cubinCrc = from->function->module->crc;
        to->pcOffset = 16u * from->pc;
        to->functionIndex = from->function->index;
        /* Shared by the rows of a function until sampling is disabled, or of those that stand together; the reader's
         * to free, which a leak checker notices. */
        bool same = i && context->counts[i - 1].function == from->function;
        if (!from->function->given || (wish("copies", 0) && !same)) from->function->given = strdup(from->function->name);
        to->functionName = from->function->given;
        to->correlationId = from->correlation;
        to->stallReasonCount = 0;
        uint32_t all = 0;
        for (size_t r = 0; r < STALLS; r++) {
            all += is_latency(r) ? 0 : from->samples[r];
            for (size_t asked = 0; asked < context->asked; asked++)
                if (context->wanted[asked] == indexes_of(context)[r] && from->samples[r])
                    to->stallReason[to->stallReasonCount++] =
                        (CUpti_PCSamplingStallReason){indexes_of(context)[r], from->samples[r]};
        }
        to->stallReason[to->stallReasonCount++] = (CUpti_PCSamplingStallReason){indexes_of(context)[STALLS], all};
        given += all;
    }
    memmove(context->counts, context->counts + count, (context->used - count) * sizeof *context->counts);
    context->used -= count;
    context->moved += count;
    data->totalSamples += given;
    if (data == context->configured) context->aside += given;
    return given;
}

/* What CUPTI does by itself: rows into the buffer of the configuration. */
static void put_aside(struct CUctx_st *context) {
    pthread_mutex_lock(&lock);
    if (context->sampling && context->configured) move_rows(context, context->configured);
    pthread_mutex_unlock(&lock);
}

/* Out of there again, into the buffer of a read; the caller holds the lock. */
static uint64_t take_aside(struct CUctx_st *context, CUpti_PCSamplingData *data) {
    CUpti_PCSamplingData *kept = context->configured;
    size_t count = kept->totalNumPcs < data->collectNumPcs ? kept->totalNumPcs : data->collectNumPcs;
    uint64_t given = 0;
    for (size_t i = 0; i < kept->totalNumPcs; i++) {
        CUpti_PCSamplingPCData *from = &kept->pPcData[i], *to = i < count ? &data->pPcData[i] : from - count;
        if (to->stallReasonCount < REASONS && i < count) abort();
        CUpti_PCSamplingStallReason *reasons = to->stallReason;
        memcpy(reasons, from->stallReason, from->stallReasonCount * sizeof *reasons);
        *to = *from;
        to->stallReason = reasons;
        for (size_t r = 0; r < from->stallReasonCount && i < count; r++)
            if (reasons[r].pcSamplingStallReasonIndex == indexes_of(context)[STALLS]) given += reasons[r].samples;
    }
    kept->totalNumPcs -= count;
    for (size_t i = 0; i < count; i++) kept->pPcData[kept->totalNumPcs + i].stallReasonCount = REASONS;
    kept->totalSamples -= given;
    context->aside -= given;
    data->totalNumPcs = count;
    data->totalSamples = given;
    return given;
}

/* --- driver --- */

/* How cuda-python finds the rest. */
EXPORT CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *how) {
    (void)version, (void)flags;
    *function = dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name);
    if (how) *how = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuInit(unsigned flags) {
    static _Atomic bool done;
    (void)flags;
    if (atomic_exchange(&done, true)) return CUDA_SUCCESS;
    const char *path = getenv("FAKE_TRUTH"), *library = getenv("CUDA_INJECTION64_PATH");
    if (path) {
        int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (file >= 0 && ftruncate(file, sizeof *truth) == 0) {
            void *map = mmap(NULL, sizeof *truth, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            if (map != MAP_FAILED) truth = map;
        }
        if (file >= 0) close(file);
    }
    if (library && *library) {
        void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        union {
            void *object;
            int (*function)(void);
        } begin = {.object = handle ? dlsym(handle, "InitializeInjection") : NULL};
        if (begin.object) {
            add(&truth->injected, 1);
            begin.function();
        } else {
            fprintf(stderr, "fake driver: %s\n", dlerror());
        }
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version) { return *version = 13000, CUDA_SUCCESS; }
EXPORT CUresult cuDeviceGetCount(int *count) { return *count = 2, CUDA_SUCCESS; }
EXPORT CUresult cuDeviceGet(CUdevice *device, int index) { return *device = index, CUDA_SUCCESS; }
EXPORT CUresult cuDeviceGetName(char *name, int room, CUdevice device) {
    snprintf(name, (size_t)room, "Fake GPU %d", device);
    return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device) {
    (void)device;
    switch ((int)which) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 8; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 108; break;
        case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1410000; break;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: *value = 65536; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = 167936; break;
        case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 41943040; break;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxGetCurrent(CUcontext *context) { return *context = current, CUDA_SUCCESS; }
EXPORT CUresult cuCtxSetCurrent(CUcontext context) { return current = context, CUDA_SUCCESS; }

#undef cuCtxCreate
EXPORT CUresult cuCtxCreate(CUcontext *context, unsigned flags, CUdevice device);
EXPORT CUresult cuCtxCreate(CUcontext *context, unsigned flags, CUdevice device) {
    (void)flags;
    struct CUctx_st *fresh = calloc(1, sizeof *fresh);
    fresh->id = atomic_fetch_add(&next_id, 1);
    fresh->device = device;
    fresh->alive = true;
    pthread_mutex_lock(&lock);
    fresh->next = contexts;
    contexts = fresh;
    pthread_mutex_unlock(&lock);
    *context = current = fresh;
    add(&truth->contexts, 1);
    CUpti_ResourceData data = {.context = fresh};
    call_back(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED, &data);
    return CUDA_SUCCESS;
}

#undef cuCtxDestroy
EXPORT CUresult cuCtxDestroy(CUcontext context);
EXPORT CUresult cuCtxDestroy(CUcontext context) {
    CUpti_ResourceData data = {.context = context};
    call_back(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, &data);
    pthread_mutex_lock(&lock);
    context->alive = false;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static uint64_t number_of(const char *image, size_t bytes) {
    uint64_t number = 1469598103934665603u;
    for (size_t i = 0; i < bytes; i++) number = (number ^ (uint8_t)image[i]) * 1099511628211u;
    return number;
}

EXPORT CUresult fake_load(CUmodule *module, const void *image, size_t bytes);
EXPORT CUresult fake_load(CUmodule *module, const void *image, size_t bytes) {
    struct CUmod_st *fresh = calloc(1, sizeof *fresh);
    fresh->id = atomic_fetch_add(&next_module, 1);
    fresh->image = malloc(bytes);
    memcpy(fresh->image, image, bytes);
    fresh->bytes = bytes;
    fresh->crc = number_of(image, bytes);
    fresh->context = current;
    pthread_mutex_lock(&lock);
    fresh->next = modules;
    modules = fresh;
    pthread_mutex_unlock(&lock);
    *module = fresh;
    if (current->unloaded) put_aside(current); /* addresses may mean something else from here on */
    add(&truth->modules, 1);
    char *lent = copy_of(image, bytes);
    CUpti_ModuleResourceData loaded = {.moduleId = fresh->id, .cubinSize = bytes, .pCubin = lent};
    CUpti_ResourceData data = {.context = current, .resourceDescriptor = &loaded};
    call_back(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED, &data);
    spoil(lent, bytes);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule module) {
    module->context->unloaded = true;
    CUpti_ModuleResourceData loaded = {.moduleId = module->id};
    CUpti_ResourceData data = {.context = current, .resourceDescriptor = &loaded};
    call_back(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, &data);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    CUresult result = CUDA_ERROR_NOT_FOUND;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < module->count; i++)
        if (strcmp(module->functions[i].name, name) == 0) *function = &module->functions[i], result = CUDA_SUCCESS;
    if (result != CUDA_SUCCESS && module->count < MAX_FUNCTIONS) {
        struct CUfunc_st *fresh = &module->functions[module->count];
        *fresh = (struct CUfunc_st){.name = strdup(name), .index = module->count++, .module = module};
        *function = fresh;
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static size_t bytes_of(CUpti_ActivityKind kind) {
    switch ((int)kind) {
        case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy5);
        case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
        case CUPTI_ACTIVITY_KIND_RUNTIME:
        case CUPTI_ACTIVITY_KIND_DRIVER: return (sizeof(CUpti_ActivityAPI) + 7) / 8 * 8;
        default: return sizeof(CUpti_ActivityKernel9);
    }
}

static void deliver(uint8_t *buffer, size_t room, size_t used) {
    for (size_t at = 0; at < used;) {
        CUpti_ActivityKind kind = ((CUpti_Activity *)(void *)(buffer + at))->kind;
        bool call = kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER;
        bool copy = kind == CUPTI_ACTIVITY_KIND_MEMCPY || kind == CUPTI_ACTIVITY_KIND_MEMSET;
        add(call ? &truth->calls : copy ? &truth->copies : &truth->kernels, 1);
        at += bytes_of(kind);
    }
    in_other++;
    completed(NULL, 0, buffer, room, used);
    in_other--;
}

static void add_activity(const void *record, size_t bytes, CUpti_ActivityKind kind) {
    uint8_t *full = NULL;
    size_t full_used = 0, full_room = 0, room = bytes_of(kind);
    pthread_mutex_lock(&lock);
    if (activity_buffer && activity_used + room > activity_room) {
        full = activity_buffer, full_used = activity_used, full_room = activity_room;
        activity_buffer = NULL;
    }
    if (!activity_buffer) {
        size_t records = 0;
        in_other++;
        wanted(&activity_buffer, &activity_room, &records);
        in_other--;
        must((uintptr_t)activity_buffer % 8 == 0, "an activity buffer that is not aligned");
        must(activity_buffer || !older_than(CUDA_12_9), "no activity buffer in a release that crashes then");
        activity_used = 0;
    }
    if (activity_buffer) {
        memcpy(activity_buffer + activity_used, record, bytes);
        activity_used += room;
    }
    pthread_mutex_unlock(&lock);
    if (full) deliver(full, full_room, full_used);
}

static void make_activity(struct CUfunc_st *function, const unsigned grid[3], const unsigned block[3], unsigned shared,
                          CUcontext context, uint32_t stream, uint32_t correlation, uint64_t node) {
    uint32_t kind = atomic_load(&activity);
    uint64_t now = now_ns();
    if (!kind) return;
    CUpti_ActivityKernel9 record = {
        .kind = (CUpti_ActivityKind)kind, .registersPerThread = 40, .start = now, .end = now + 1000 + function->index,
        .deviceId = (uint32_t)context->device, .contextId = context->id, .streamId = stream,
        .gridX = (int)grid[0], .gridY = (int)grid[1], .gridZ = (int)grid[2],
        .blockX = (int)block[0], .blockY = (int)block[1], .blockZ = (int)block[2],
        .staticSharedMemory = 512, .dynamicSharedMemory = (int)shared, .correlationId = correlation,
        .name = function->name, .sharedMemoryExecuted = 32768, .graphNodeId = node, .graphId = node ? 1 : 0};
    add_activity(&record, sizeof record, record.kind);
}

static void make_call(CUpti_ActivityKind kind, CUpti_CallbackId id, uint64_t start, uint32_t correlation) {
    CUpti_ActivityAPI record = {.kind = kind, .cbid = id, .start = start, .end = now_ns(), .processId = (uint32_t)getpid(),
                                .threadId = (uint32_t)(uintptr_t)pthread_self(), .correlationId = correlation};
    if (atomic_load(&traces[kind])) add_activity(&record, sizeof record, kind);
}

static void make_samples(struct CUfunc_st *function, CUcontext context, uint32_t correlation) {
    pthread_mutex_lock(&lock);
    bool serialized = context->mode == CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED;
    uint32_t pcs = (uint32_t)wish("pcs", FAKE_PCS);
    size_t counted = serialized ? 0 : context->used;
    if (!function->rows) function->rows = calloc(pcs, sizeof *function->rows);
    for (uint32_t pc = 0; context->sampling && pc < pcs; pc++) {
        struct count *found = NULL;
        uint64_t row = function->rows[pc] - context->moved;
        if (row < counted && context->counts[row].function == function && context->counts[row].pc == pc)
            found = &context->counts[row];
        const uint32_t more[STALLS] = {FAKE_LONG(function->index, pc), FAKE_LONG_LATENCY(function->index, pc),
                                       FAKE_SELECTED(pc), pc == 4 ? 1u : 0u};
        for (size_t i = 0; i < STALLS; i++)
            if (!is_latency(i)) add(&truth->samples_made, more[i]);
        if (!found) {
            if (context->used >= context->scratch / PC_BYTES) continue; /* lost without a word */
            if (context->used == context->room) {
                context->room = context->room ? 2 * context->room : 64;
                context->counts = realloc(context->counts, context->room * sizeof *context->counts);
            }
            function->rows[pc] = context->moved + context->used;
            found = &context->counts[context->used++];
            *found = (struct count){.function = function, .pc = pc, .correlation = serialized ? correlation : 0};
        }
        for (size_t i = 0; i < STALLS; i++) found->samples[i] += more[i];
    }
    pthread_mutex_unlock(&lock);
}

static CUresult launch(CUpti_CallbackId id, const void *parameters, struct CUfunc_st *function, const unsigned grid[3],
                       const unsigned block[3], unsigned shared, CUstream stream, uint32_t kernel_correlation) {
    uint32_t correlation = atomic_fetch_add(&next_correlation, 1);
    uint64_t began = now_ns();
    CUresult result = block[0] > 1024 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    CUcontext context = current;
    CUpti_CallbackData data = {.callbackSite = CUPTI_API_ENTER,
                               .functionName = "cuLaunchKernel",
                               .functionParams = parameters,
                               .functionReturnValue = &result,
                               .symbolName = function->name,
                               .context = context,
                               .contextUid = context->id,
                               .correlationId = correlation};
    call_back(CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
    if (result == CUDA_SUCCESS) {
        make_activity(function, grid, block, shared, context, (uint32_t)(uintptr_t)stream,
                      kernel_correlation ? kernel_correlation : correlation, 0);
        make_samples(function, context, correlation);
    }
    if (context->mode == CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED) put_aside(context);
    data.callbackSite = CUPTI_API_EXIT;
    call_back(CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
    make_call(CUPTI_ACTIVITY_KIND_DRIVER, id, began, correlation);
    add(&truth->launches, 1);
    if (__atomic_load_n(&truth->launches, __ATOMIC_SEQ_CST) == (uint64_t)wish("fatal", 0)) {
        CUpti_StateData state = {.notification = {.result = CUPTI_ERROR_UNKNOWN, .message = "the GPU fell off the bus"}};
        call_back(CUPTI_CB_DOMAIN_STATE, CUPTI_CBID_STATE_FATAL_ERROR, &state);
        ended = true;
    }
    return result;
}

struct parameters {
    CUfunction f;
    unsigned grid[3], block[3], shared;
    CUstream stream;
    void **arguments, **extra;
};

static CUresult launch_plain(CUpti_CallbackId id, const struct parameters *all, uint32_t kernel_correlation) {
    return launch(id, all, all->f, all->grid, all->block, all->shared, all->stream, kernel_correlation);
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned shared, CUstream stream, void **arguments, void **extra) {
    struct parameters all = {f, {gx, gy, gz}, {bx, by, bz}, shared, stream, arguments, extra};
    return launch_plain(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &all, 0);
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **arguments, void **extra) {
    struct {
        const CUlaunchConfig *configuration;
        CUfunction f;
        void **arguments, **extra;
    } all = {c, f, arguments, extra};
    const unsigned grid[] = {c->gridDimX, c->gridDimY, c->gridDimZ}, block[] = {c->blockDimX, c->blockDimY, c->blockDimZ};
    return launch(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, &all, f, grid, block, c->sharedMemBytes, c->hStream, 0);
}

EXPORT CUresult fake_runtime_launch(CUfunction function, unsigned grid, unsigned block, CUstream stream) {
    uint32_t correlation = atomic_fetch_add(&next_correlation, 1);
    uint64_t began = now_ns();
    CUpti_CallbackData data = {.callbackSite = CUPTI_API_ENTER,
                               .functionName = "cudaLaunchKernel",
                               .symbolName = function->name,
                               .context = current,
                               .contextUid = current->id,
                               .correlationId = correlation};
    struct parameters all = {function, {grid, 1, 1}, {block, 1, 1}, 0, stream, NULL, NULL};
    call_back(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, &data);
    CUresult result = launch_plain(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &all, correlation);
    data.callbackSite = CUPTI_API_EXIT;
    call_back(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, &data);
    make_call(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, began, correlation);
    return result;
}

/* A call of the runtime that launches nothing itself; its correlation. */
static uint32_t runtime_call(CUpti_CallbackId id, const char *name, unsigned lasts_us) {
    uint32_t correlation = atomic_fetch_add(&next_correlation, 1);
    uint64_t began = now_ns();
    CUpti_CallbackData data = {.callbackSite = CUPTI_API_ENTER, .functionName = name, .context = current,
                               .contextUid = current->id, .correlationId = correlation};
    call_back(CUPTI_CB_DOMAIN_RUNTIME_API, id, &data);
    usleep(lasts_us);
    data.callbackSite = CUPTI_API_EXIT;
    call_back(CUPTI_CB_DOMAIN_RUNTIME_API, id, &data);
    make_call(CUPTI_ACTIVITY_KIND_RUNTIME, id, began, correlation);
    return correlation;
}

EXPORT void fake_runtime_wait(unsigned lasts_us) {
    runtime_call(CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020, "cudaDeviceSynchronize", lasts_us);
}

EXPORT void fake_runtime_copy(unsigned lasts_us) {
    uint64_t start = now_ns();
    uint32_t correlation = runtime_call(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020, "cudaMemcpy", lasts_us);
    CUpti_ActivityMemcpy5 record = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY, .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
                                    .srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE,
                                    .dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, .bytes = 4096, .start = start,
                                    .end = now_ns(), .deviceId = (uint32_t)current->device, .contextId = current->id,
                                    .streamId = 7, .correlationId = correlation};
    if (atomic_load(&traces[record.kind])) add_activity(&record, sizeof record, record.kind);
}

EXPORT void fake_runtime_set(void) {
    uint64_t start = now_ns();
    uint32_t correlation = runtime_call(CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020, "cudaMemset", 1);
    CUpti_ActivityMemset4 record = {.kind = CUPTI_ACTIVITY_KIND_MEMSET, .bytes = 4096, .start = start, .end = now_ns(),
                                    .deviceId = (uint32_t)current->device, .contextId = current->id, .streamId = 7,
                                    .correlationId = correlation};
    if (atomic_load(&traces[record.kind])) add_activity(&record, sizeof record, record.kind);
}

/* A graph is a function to this driver; launching it runs the function once for each node. */
EXPORT CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
    struct CUfunc_st *function = (struct CUfunc_st *)(void *)graph;
    const unsigned grid[] = {7, 1, 1}, block[] = {64, 1, 1};
    struct {
        CUgraphExec graph;
        CUstream stream;
    } all = {graph, stream};
    uint32_t correlation = atomic_fetch_add(&next_correlation, 1);
    CUresult result = CUDA_SUCCESS;
    CUpti_CallbackData data = {.callbackSite = CUPTI_API_ENTER, .functionParams = &all, .functionReturnValue = &result,
                               .context = current, .contextUid = current->id, .correlationId = correlation};
    call_back(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, &data);
    for (uint64_t node = 1, nodes = (uint64_t)wish("nodes", 2); node <= nodes; node++) {
        make_activity(function, grid, block, 0, current, (uint32_t)(uintptr_t)stream, correlation, node);
        make_samples(function, current, correlation);
    }
    if (current->mode == CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED) put_aside(current);
    data.callbackSite = CUPTI_API_EXIT;
    call_back(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, &data);
    add(&truth->launches, 1);
    return CUDA_SUCCESS;
}

/* --- CUPTI --- */

EXPORT CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc function, void *user) {
    long result = wish("subscribe", 0);
    (void)user;
    if (result) return (CUptiResult)result;
    if (atomic_load(&subscriber)) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    *handle = (CUpti_SubscriberHandle)(void *)&subscriber;
    atomic_store(&subscriber, function);
    return CUPTI_SUCCESS;
}
EXPORT CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle handle) {
    if (handle != (CUpti_SubscriberHandle)(void *)&subscriber) return CUPTI_ERROR_INVALID_PARAMETER;
    atomic_store(&subscriber, NULL);
    return CUPTI_SUCCESS;
}
EXPORT CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                                                CUpti_CallbackId id) {
    static _Atomic bool busy; /* "a subscriber must serialize access" */
    must(!atomic_exchange(&busy, true), "cuptiEnableCallback in two threads at once");
    atomic_store(&busy, false);
    must(handle == (CUpti_SubscriberHandle)(void *)&subscriber && atomic_load(&subscriber), "no subscriber");
    if ((unsigned)domain >= 8 || id >= 1024) return CUPTI_ERROR_INVALID_PARAMETER;
    atomic_store(&enabled[domain][id], on != 0);
    return CUPTI_SUCCESS;
}
EXPORT CUptiResult CUPTIAPI cuptiGetVersion(uint32_t *version) {
    return *version = (uint32_t)wish("version", CUPTI_API_VERSION), CUPTI_SUCCESS;
}
EXPORT CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char **name) {
#define NAMED(of, function) \
    if (id == CUPTI_##of##_TRACE_CBID_##function) return *name = #function, CUPTI_SUCCESS
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
        NAMED(RUNTIME, cudaLaunchKernel_v7000);
        NAMED(RUNTIME, cudaMemcpy_v3020);
        NAMED(RUNTIME, cudaMemset_v3020);
        NAMED(RUNTIME, cudaDeviceSynchronize_v3020);
    } else if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
        NAMED(DRIVER, cuLaunchKernel);
        NAMED(DRIVER, cuLaunchKernelEx);
        NAMED(DRIVER, cuGraphLaunch);
    }
    return CUPTI_ERROR_INVALID_PARAMETER;
}
EXPORT CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t *time) { return *time = now_ns(), CUPTI_SUCCESS; }
EXPORT CUptiResult CUPTIAPI cuptiGetContextId(CUcontext context, uint32_t *id) {
    if (!context) return CUPTI_ERROR_INVALID_CONTEXT;
    return *id = context->id, CUPTI_SUCCESS;
}
EXPORT CUptiResult CUPTIAPI cuptiGetDeviceId(CUcontext context, uint32_t *id) {
    return *id = (uint32_t)context->device, CUPTI_SUCCESS;
}
EXPORT CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char **text) {
    switch ((int)result) {
        case CUPTI_ERROR_OUT_OF_MEMORY: *text = "CUPTI_ERROR_OUT_OF_MEMORY"; break;
        case CUPTI_ERROR_NOT_COMPATIBLE: *text = "CUPTI_ERROR_NOT_COMPATIBLE"; break;
        case CUPTI_ERROR_HARDWARE_BUSY: *text = "CUPTI_ERROR_HARDWARE_BUSY"; break;
        case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: *text = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"; break;
        case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
            *text = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
            break;
        default: return CUPTI_ERROR_INVALID_PARAMETER;
    }
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                           CUpti_BuffersCallbackCompleteFunc complete) {
    if (!request || !complete) return CUPTI_ERROR_INVALID_PARAMETER;
    wanted = request;
    completed = complete;
    return CUPTI_SUCCESS;
}
EXPORT CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
    long result = wish("activity", 0);
    for (struct CUctx_st *context = contexts; kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && context; context = context->next)
        must(!context->sampling || !older_than(CUDA_12_9), "CONCURRENT_KERNEL beside samples in an older release");
    if (kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && kind != CUPTI_ACTIVITY_KIND_KERNEL) {
        result = wish("untraced", 0);
        if (!result) atomic_store(&traces[kind], true);
    } else if (!result) {
        atomic_store(&activity, (uint32_t)kind);
    }
    return (CUptiResult)result;
}
EXPORT CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
    must(kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || !older_than(CUDA_13_0_1), "CONCURRENT_KERNEL disabled");
    atomic_store(&activity, 0);
    return CUPTI_SUCCESS;
}
EXPORT CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record) {
    uint8_t *next = *record ? (uint8_t *)*record + bytes_of((*record)->kind) : buffer;
    if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)next;
    return CUPTI_SUCCESS;
}
EXPORT CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped) {
    (void)context, (void)stream;
    return *dropped = (size_t)wish("lost", 0), CUPTI_SUCCESS;
}
EXPORT CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag) {
    uint8_t *buffer;
    size_t used, room;
    (void)flag;
    must(!ended && !in_other, "cuptiActivityFlushAll in a callback that is none of an API call");
    if (!wanted) return CUPTI_ERROR_INVALID_OPERATION;
    pthread_mutex_lock(&lock);
    buffer = activity_buffer, used = activity_used, room = activity_room;
    activity_buffer = NULL;
    pthread_mutex_unlock(&lock);
    if (buffer) deliver(buffer, room, used);
    return CUPTI_SUCCESS;
}
EXPORT CUptiResult CUPTIAPI cuptiGetCubinCrc(CUpti_GetCubinCrcParams *params) {
    if (!params->cubin || !params->cubinSize || params->size != CUpti_GetCubinCrcParamsSize)
        return CUPTI_ERROR_INVALID_PARAMETER;
    params->cubinCrc = number_of(params->cubin, params->cubinSize);
    return CUPTI_SUCCESS;
}
EXPORT CUptiResult CUPTIAPI cuptiPCSamplingEnable(CUpti_PCSamplingEnableParams *params) {
    long result = wish("enable", 0);
    PARAMETERS(params, CUpti_PCSamplingEnableParams);
    if (result) return (CUptiResult)result;
    must(!in_launch, "cuptiPCSamplingEnable in a callback of a launch");
    must(atomic_load(&activity) != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || !older_than(CUDA_12_9),
         "samples beside CONCURRENT_KERNEL in an older release");
    if (wish("exclusive", 0) && atomic_load(&activity)) return CUPTI_ERROR_NOT_COMPATIBLE;
    pthread_mutex_lock(&lock);
    for (struct CUctx_st *other = contexts; other; other = other->next)
        must(!other->sampling || other->device != params->ctx->device, "a second context of a GPU"); /* by the manual */
    params->ctx->mode = CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
    params->ctx->period = 12;
    params->ctx->buffer = (size_t)512 << 20;
    params->ctx->scratch = (size_t)1 << 20;
    params->ctx->asked = STALLS;
    memcpy(params->ctx->wanted, indexes_of(params->ctx), STALLS * sizeof(uint32_t));
    params->ctx->sampling = true;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiPCSamplingDisable(CUpti_PCSamplingDisableParams *params) {
    CUcontext context = params->ctx;
    PARAMETERS(params, CUpti_PCSamplingDisableParams);
    must(!ended && context->sampling, "cuptiPCSamplingDisable where nothing is enabled");
    while (wish("stuck", 0)) pause();
    pthread_mutex_lock(&lock);
    add(&truth->samples, context->unconfirmed);
    context->unconfirmed = 0;
    if (context->configured) {
        move_rows(context, context->configured);
        add(&truth->samples, context->aside);
        context->aside = 0;
    }
    context->sampling = false;
    for (struct CUmod_st *module = modules; module; module = module->next)
        for (uint32_t i = 0; i < module->count && module->context == context; i++) module->functions[i].given = NULL;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}
EXPORT CUptiResult CUPTIAPI cuptiPCSamplingGetData(CUpti_PCSamplingGetDataParams *params) {
    CUcontext context = params->ctx;
    CUpti_PCSamplingData *data = params->pcSamplingData;
    long result = wish("data", 0), slow = wish("slow", 0);
    if (slow) usleep((useconds_t)slow);
    uint64_t gate = (uint64_t)wish("gate", 0);
    for (int patience = 0; __atomic_load_n(&truth->launches, __ATOMIC_SEQ_CST) < gate; patience++) {
        if (patience > 200000) abort();
        usleep(1000);
    }
    PARAMETERS(params, CUpti_PCSamplingGetDataParams);
    must(!ended && context->sampling, "cuptiPCSamplingGetData where nothing is enabled");
    must(data != context->configured, "a read into the buffer that is CUPTI's to write");
    check_data(data);
    if (wish("late_exclusive", 0) && atomic_load(&activity) == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        return CUPTI_ERROR_UNKNOWN;
    if (result) return (CUptiResult)result;
    pthread_mutex_lock(&lock);
    add(&truth->samples, context->unconfirmed);
    context->unconfirmed = 0;
    if (++context->reads == (uint64_t)wish("full", 0)) {
        data->hardwareBufferFull = 1;
        data->totalNumPcs = data->remainingNumPcs = 0;
        result = CUPTI_ERROR_OUT_OF_MEMORY;
    } else {
        uint64_t given = take_aside(context, data);
        if (!wish("unread", 0)) given += move_rows(context, data);
        data->remainingNumPcs = context->configured->totalNumPcs + (wish("unread", 0) ? 0 : context->used);
        data->droppedSamples = (uint64_t)wish("dropped", 0);
        data->nonUsrKernelsTotalSamples = (uint64_t)wish("non_user", 0);
        data->totalSamples += data->droppedSamples + data->nonUsrKernelsTotalSamples;
        if (context->reads == 1) data->totalSamples += (uint64_t)wish("unequal", 0);
        data->hardwareBufferFull = 0;
        add(&truth->dropped, data->droppedSamples);
        context->unconfirmed += given;
    }
    pthread_mutex_unlock(&lock);
    return (CUptiResult)result;
}
EXPORT CUptiResult CUPTIAPI cuptiPCSamplingGetNumStallReasons(CUpti_PCSamplingGetNumStallReasonsParams *params) {
    PARAMETERS(params, CUpti_PCSamplingGetNumStallReasonsParams);
    *params->numStallReasons = REASONS;
    return (CUptiResult)wish("reasons", 0);
}
EXPORT CUptiResult CUPTIAPI cuptiPCSamplingGetStallReasons(CUpti_PCSamplingGetStallReasonsParams *params) {
    PARAMETERS(params, CUpti_PCSamplingGetStallReasonsParams);
    for (size_t i = 0; i < params->numStallReasons && i < REASONS; i++) {
        params->stallReasonIndex[i] = indexes_of(params->ctx)[i];
        snprintf(params->stallReasons[i], CUPTI_STALL_REASON_STRING_SIZE, "%s", reason_names[i]);
    }
    return CUPTI_SUCCESS;
}
/* "attributeStatus [...] CUPTI_ERROR_INVALID_OPERATION if attributeData is not valid" */
static bool is_valid(const CUpti_PCSamplingConfigurationInfo *info, const struct CUctx_st *context) {
    switch ((int)info->attributeType) {
        case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD:
            return info->attributeData.samplingPeriodData.samplingPeriod >= 5 &&
                   info->attributeData.samplingPeriodData.samplingPeriod <= 31;
        case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE:
            return info->attributeData.collectionModeData.collectionMode == CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS ||
                   info->attributeData.collectionModeData.collectionMode ==
                       CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED;
        case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON:
            for (size_t i = 0; i < info->attributeData.stallReasonData.stallReasonCount; i++) {
                bool known = false;
                for (size_t r = 0; r < REASONS; r++)
                    known |= indexes_of(context)[r] == info->attributeData.stallReasonData.pStallReasonIndex[i];
                if (!known) return false;
            }
            return info->attributeData.stallReasonData.stallReasonCount != 0;
        default:
            return true;
    }
}

EXPORT CUptiResult CUPTIAPI cuptiPCSamplingSetConfigurationAttribute(CUpti_PCSamplingConfigurationInfoParams *params) {
    long result = wish("configure", 0);
    PARAMETERS(params, CUpti_PCSamplingConfigurationInfoParams);
    if (result) return (CUptiResult)result;
    for (size_t i = 0; i < params->numAttributes; i++) {
        CUpti_PCSamplingConfigurationInfo *info = &params->pPCSamplingConfigurationInfo[i];
        CUcontext context = params->ctx;
        info->attributeStatus = is_valid(info, context) ? (CUptiResult)wish("attribute", 0) : CUPTI_ERROR_INVALID_OPERATION;
        if (info->attributeStatus == CUPTI_ERROR_INVALID_OPERATION) return CUPTI_ERROR_INVALID_OPERATION;
        switch ((int)info->attributeType) {
            case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD:
                context->period = info->attributeData.samplingPeriodData.samplingPeriod;
                break;
            case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE:
                context->buffer = info->attributeData.hardwareBufferSizeData.hardwareBufferSize;
                break;
            case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE:
                context->mode = info->attributeData.collectionModeData.collectionMode;
                break;
            case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON:
                context->asked = info->attributeData.stallReasonData.stallReasonCount;
                if (context->asked > REASONS) return CUPTI_ERROR_INVALID_PARAMETER;
                memcpy(context->wanted, info->attributeData.stallReasonData.pStallReasonIndex,
                       context->asked * sizeof *context->wanted);
                break;
            case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE:
                context->scratch = info->attributeData.scratchBufferSizeData.scratchBufferSize;
                break;
            case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER:
                context->configured = info->attributeData.samplingDataBufferData.samplingDataBuffer;
                check_data(context->configured);
                break;
            default:
                return CUPTI_ERROR_INVALID_PARAMETER;
        }
    }
    return CUPTI_SUCCESS;
}
EXPORT CUptiResult CUPTIAPI cuptiPCSamplingGetConfigurationAttribute(CUpti_PCSamplingConfigurationInfoParams *params) {
    PARAMETERS(params, CUpti_PCSamplingConfigurationInfoParams);
    for (size_t i = 0; i < params->numAttributes; i++) {
        CUpti_PCSamplingConfigurationInfo *info = &params->pPCSamplingConfigurationInfo[i];
        if (info->attributeType != CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD &&
            info->attributeType != CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE)
            return CUPTI_ERROR_INVALID_OPERATION; /* others are "[w]", or nobody asks for them */
        if (info->attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD)
            info->attributeData.samplingPeriodData.samplingPeriod = 12; /* "queries [...] default configuration" */
        else
            info->attributeData.hardwareBufferSizeData.hardwareBufferSize = (size_t)512 << 20;
    }
    return CUPTI_SUCCESS;
}

/* Nothing of this is a leak of the library under test. */
__attribute__((destructor)) static void tidy(void) {
    while (modules) {
        struct CUmod_st *next = modules->next;
        for (uint32_t i = 0; i < modules->count; i++) free(modules->functions[i].name), free(modules->functions[i].rows);
        free(modules->image);
        free(modules);
        modules = next;
    }
    while (contexts) {
        struct CUctx_st *next = contexts->next;
        free(contexts->counts);
        free(contexts);
        contexts = next;
    }
}
