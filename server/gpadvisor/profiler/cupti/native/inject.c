/* SPDX-License-Identifier: Apache-2.0 */
/* The driver calls InitializeInjection() from cuInit in every process whose environment names this library in
 * CUDA_INJECTION64_PATH. From then on CUPTI calls back: contexts, modules, launches. A service thread reads the
 * samples and finds names, so that launching threads do neither. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "collector.h"
#include "stacks.h"

#define EXPORT __attribute__((visibility("default")))
#define SERVICE_MS 50              /* between two looks at the samples */
#define FLUSH_EVERY 10             /* looks between two flushes of activity records */
#define JOIN_SECONDS 5
#define SECOND_NS UINT64_C(1000000000)
#define MOST_RECORDS UINT64_C(20000000) /* of a timeline; as many are read */

struct gpa_options gpa_options;

enum phase { ASIDE, COLLECTING, FORKED, FINISHED };
static _Atomic int phase = ASIDE;
static _Atomic bool started, late, opening, finishing;
static CUpti_SubscriberHandle subscriber;

static pthread_t service_thread;
static _Atomic bool service_runs, service_stops, service_ended;
static _Atomic int service_wakes = -1; /* an eventfd: poll's patience does not follow a clock that is set */
static _Atomic int deadly_signal;

/* The runtime call that this thread is in. */
static __thread uint32_t outer_correlation;

/* --- what the driver's calls look like: their documented parameters, in order --- */

struct launch_parameters {
    CUfunction function;
    unsigned grid[3], block[3], shared_bytes;
    CUstream stream;
};
struct launch_ex_parameters {
    const CUlaunchConfig *configuration;
    CUfunction function;
};
struct graph_parameters {
    CUgraphExec graph;
    CUstream stream;
};

static const CUpti_CallbackId driver_launches[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
};
static const CUpti_CallbackId runtime_launches[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_ptsz_v9000,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000,
#if CUPTI_API_VERSION >= 130000
    CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000,
    CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_ptsz_v13000,
#endif
};
static const CUpti_CallbackId resources[] = {
    CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
    CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
    CUPTI_CBID_RESOURCE_MODULE_LOADED,
    CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING,
};

static void from_launch(struct gpa_launch *to, const struct launch_parameters *from) {
    memcpy(to->grid, from->grid, sizeof to->grid);
    memcpy(to->block, from->block, sizeof to->block);
    to->shared_bytes = from->shared_bytes;
    to->stream = (uint64_t)(uintptr_t)from->stream;
}

static void from_configuration(struct gpa_launch *to, const CUlaunchConfig *from) {
    if (!from) return;
    const uint32_t grid[] = {from->gridDimX, from->gridDimY, from->gridDimZ};
    const uint32_t block[] = {from->blockDimX, from->blockDimY, from->blockDimZ};
    memcpy(to->grid, grid, sizeof grid);
    memcpy(to->block, block, sizeof block);
    to->shared_bytes = from->sharedMemBytes;
    to->stream = (uint64_t)(uintptr_t)from->hStream;
}

static void read_parameters(struct gpa_launch *to, CUpti_CallbackId id, const void *parameters) {
    to->kind = GPA_LAUNCH_KERNEL;
    switch (id) {
        case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
        case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz:
            from_configuration(to, ((const struct launch_ex_parameters *)parameters)->configuration);
            break;
        case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch:
        case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz:
            to->kind = GPA_LAUNCH_GRAPH;
            to->stream = (uint64_t)(uintptr_t)((const struct graph_parameters *)parameters)->stream;
            break;
        case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice:
            to->kind = GPA_LAUNCH_MANY;
            break;
        case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
        case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
            to->kind = GPA_LAUNCH_COOPERATIVE;
            from_launch(to, parameters);
            break;
        default:
            from_launch(to, parameters);
    }
}

static void record_launch(CUpti_CallbackId id, const CUpti_CallbackData *data) {
    struct gpa_launch launch = {
        .correlation = data->correlationId,
        .outer = outer_correlation,
        .context = data->contextUid,
        .time_ns = gpa_monotonic_ns(),
        .thread = gpa_thread_id(),
    };
    if (data->functionParams) read_parameters(&launch, id, data->functionParams);
    if (launch.kind != GPA_LAUNCH_GRAPH) launch.name = gpa_name(data->symbolName);
    if (gpa_options.stacks) launch.path = gpa_stack_here();
    gpa_record(GPA_LAUNCH, &launch, sizeof launch, NULL, 0);
    gpa_count(GPA_COUNT_LAUNCHES, 1);
}

static void after_launch(const CUpti_CallbackData *data) {
    CUresult result = data->functionReturnValue ? *(const CUresult *)data->functionReturnValue : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) {
        struct gpa_failed failed = {data->correlationId, (int32_t)result};
        gpa_record(GPA_FAILED, &failed, sizeof failed, NULL, 0);
    } else if (gpa_options.mode == GPA_SERIALIZED && atomic_load(&phase) == COLLECTING) {
        gpa_sampling_drain_context(data->context); /* the kernel has ended: this mode waits for it */
    }
}

/* In a timeline: where the application makes a call, for calls that launch, copy, wait or allocate. */
static void record_caller(const CUpti_CallbackData *data) {
    struct gpa_caller caller = {.correlation = data->correlationId, .path = gpa_options.stacks ? gpa_stack_here() : 0};
    if (caller.path) gpa_record(GPA_CALLER, &caller, sizeof caller, NULL, 0);
}

static void trace_callback(CUpti_CallbackDomain domain, const CUpti_CallbackData *call) {
    bool enters = call->callbackSite == CUPTI_API_ENTER;
    bool runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
    if (enters && (runtime || !outer_correlation)) record_caller(call);
    if (runtime) outer_correlation = enters ? call->correlationId : 0;
    /* The service thread and the header's counter see that there is something. */
    if (enters && call->functionName && strstr(call->functionName, "Launch") && (runtime || !outer_correlation))
        gpa_count(GPA_COUNT_LAUNCHES, 1);
}

static void resource_callback(CUpti_CallbackId id, const CUpti_ResourceData *data) {
    uint32_t context = 0;
    switch (id) {
        case CUPTI_CBID_RESOURCE_CONTEXT_CREATED:
            gpa_sampling_context(data->context, 0);
            break;
        case CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING:
            /* No flush: cuptiActivityFlushAll must not be called from a callback of this domain. */
            gpa_sampling_destroying(data->context);
            break;
        case CUPTI_CBID_RESOURCE_MODULE_LOADED: {
            const CUpti_ModuleResourceData *module = data->resourceDescriptor;
            if (gpa_cupti.cuptiGetContextId(data->context, &context) != CUPTI_SUCCESS) context = 0;
            if (module) gpa_module_loaded(context, module->moduleId, module->pCubin, module->cubinSize);
            gpa_sampling_module_loaded(data->context);
            break;
        }
        case CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING:
            gpa_sampling_module_unloading(data->context);
            break;
        default:
            break;
    }
}

static bool open_file(bool forked);

static bool may_record(void) {
    int now = atomic_load_explicit(&phase, memory_order_acquire);
    if (now == COLLECTING) return true;
    if (now != FORKED) return false;
    /* The child of a process that used CUDA: a file of its own, on its first call. */
    if (!gpa_recorder_is_open() && !atomic_exchange(&opening, true)) open_file(true);
    return gpa_recorder_is_open();
}

/* CUPTI ends itself after a fatal error: from here on it is not called any more. */
static void state_callback(const void *data) {
#if CUPTI_API_VERSION >= GPA_FATAL_ERRORS
    const CUpti_StateData *state = data;
    const char *message = state->notification.message;
    gpa_note(GPA_STAGE_DRIVER, (int)state->notification.result, 0, message ? message : "");
    gpa_sampling_forsake();
    gpa_activity_forsake();
#else
    (void)data;
#endif
}

static void CUPTIAPI callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
    (void)user;
    if (!may_record()) return;
    const CUpti_CallbackData *call = data;
    bool forked = atomic_load(&phase) == FORKED;
    if (gpa_options.mode == GPA_TIMELINE && domain != CUPTI_CB_DOMAIN_STATE) {
        trace_callback(domain, call);
    } else if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
        if (call->callbackSite == CUPTI_API_EXIT) {
            after_launch(call);
            return;
        }
        if (atomic_load(&late) && !forked) gpa_sampling_await(call->context);
        record_launch(id, call);
    } else if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
        outer_correlation = call->callbackSite == CUPTI_API_ENTER ? call->correlationId : 0;
    } else if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
        if (!forked) resource_callback(id, data);
    } else {
        state_callback(data);
    }
}

/* --- beginning --- */

static uint64_t number_from(const char *name) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : 0;
}

static bool read_options(void) {
    const char *mode = getenv("GPADVISOR_COLLECT_MODE"), *directory = getenv("GPADVISOR_COLLECT_DIR");
    const char *stacks = getenv("GPADVISOR_COLLECT_STACKS"), *times = getenv("GPADVISOR_COLLECT_TIMES");
    if (!directory || !*directory) return false;
    gpa_options.directory = strdup(directory); /* the application may change its environment */
    gpa_options.mode = mode && strcmp(mode, "serialized") == 0 ? GPA_SERIALIZED : GPA_CONTINUOUS;
    if (mode && strcmp(mode, "timeline") == 0) gpa_options.mode = GPA_TIMELINE;
    gpa_options.most_records = number_from("GPADVISOR_COLLECT_RECORDS");
    if (!gpa_options.most_records) gpa_options.most_records = MOST_RECORDS;
    gpa_options.period = (uint32_t)number_from("GPADVISOR_COLLECT_PERIOD");
    gpa_options.buffer_bytes = number_from("GPADVISOR_COLLECT_BUFFER");
    gpa_options.stacks = !stacks || strcmp(stacks, "0") != 0;
    gpa_options.times = !times || strcmp(times, "0") != 0;
    gpa_options.concurrent = times && strcmp(times, "concurrent") == 0;
    return gpa_options.directory != NULL;
}

static size_t read_text(const char *path, char *text, size_t room) {
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    size_t size = fread(text, 1, room, file);
    fclose(file);
    while (size && !text[size - 1]) size--;
    for (size_t i = 0; i < size; i++)
        if (!text[i]) text[i] = ' ';
    return size;
}

static void record_process(bool forked) {
    struct {
        struct gpa_process head;
        char text[4096 + 256 + 4096];
    } record;
    memset(&record.head, 0, sizeof record.head);
    struct gpa_process *head = &record.head;
    int driver = 0;
    head->process_id = (uint32_t)getpid();
    head->parent_id = (uint32_t)getppid();
    head->started_ns = gpa_real_ns();
    head->monotonic_ns = gpa_monotonic_ns();
    if (!forked && gpa_cupti.cuptiGetTimestamp) gpa_cupti.cuptiGetTimestamp(&head->cupti_ns);
    head->cupti_version = gpa_cupti.version;
    if (gpa_driver.cuDriverGetVersion && gpa_driver.cuDriverGetVersion(&driver) == CUDA_SUCCESS)
        head->driver_version = (uint32_t)driver;
    head->mode = gpa_options.mode;
    head->forked = forked;
    head->late = atomic_load(&late);
    char *text = record.text;
    head->command_bytes = (uint32_t)read_text("/proc/self/cmdline", text, 4096);
    text += head->command_bytes;
    if (gethostname(text, 255) == 0) head->host_bytes = (uint32_t)strnlen(text, 255);
    text += head->host_bytes;
    ssize_t length = readlink("/proc/self/exe", text, 4096);
    if (length > 0) head->executable_bytes = (uint32_t)length;
    text += head->executable_bytes;
    gpa_record(GPA_PROCESS, head, sizeof *head, record.text, (size_t)(text - record.text));
}

static bool open_file(bool forked) {
    if (!gpa_recorder_open(gpa_options.directory)) {
        gpa_say("nothing is collected in process %ld, since %s cannot be written: %s", (long)getpid(),
                gpa_options.directory, strerror(errno));
        return false;
    }
    record_process(forked);
    return true;
}

static void enable_callbacks(CUpti_CallbackDomain domain, const CUpti_CallbackId *ids, size_t count) {
    for (size_t i = 0; i < count; i++) {
        CUptiResult result = gpa_cupti.cuptiEnableCallback(1, subscriber, domain, ids[i]);
        /* An older library does not know the newest calls. */
        if (result != CUPTI_SUCCESS && result != CUPTI_ERROR_INVALID_PARAMETER)
            gpa_note_result(GPA_STAGE_CALLBACKS, result, 0);
    }
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The calls whose place a timeline wants, by their names: those that launch, copy, wait or allocate. */
static void enable_traced(CUpti_CallbackDomain domain, CUpti_CallbackId end) {
    static const char *const words[] = {"Launch", "Memcpy", "Memset", "Synchronize", "Alloc", "Free"};
    for (CUpti_CallbackId id = 1; id < end; id++) {
        const char *name = NULL;
        if (gpa_cupti.cuptiGetCallbackName(domain, id, &name) != CUPTI_SUCCESS || !name) continue;
        for (size_t i = 0; i < COUNT(words); i++)
            if (strstr(name, words[i])) {
                enable_callbacks(domain, &id, 1);
                break;
            }
    }
}

static bool subscribe(void) {
    CUptiResult result = gpa_cupti.cuptiSubscribe(&subscriber, callback, NULL);
    if (result != CUPTI_SUCCESS) {
        gpa_note_result(GPA_STAGE_SUBSCRIBE, result, 0);
        gpa_say("nothing is collected in process %ld, since CUPTI refuses to start: %s%s", (long)getpid(),
                gpa_result_text(result),
                result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? "; another profiler is attached" : "");
        return false;
    }
    if (gpa_options.mode == GPA_TIMELINE) {
        enable_traced(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE);
        enable_traced(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE);
    } else {
        enable_callbacks(CUPTI_CB_DOMAIN_RESOURCE, resources, COUNT(resources));
        enable_callbacks(CUPTI_CB_DOMAIN_DRIVER_API, driver_launches, COUNT(driver_launches));
        enable_callbacks(CUPTI_CB_DOMAIN_RUNTIME_API, runtime_launches, COUNT(runtime_launches));
    }
#if CUPTI_API_VERSION >= GPA_FATAL_ERRORS
    static const CUpti_CallbackId fatal[] = {CUPTI_CBID_STATE_FATAL_ERROR};
    enable_callbacks(CUPTI_CB_DOMAIN_STATE, fatal, COUNT(fatal));
#endif
    return true;
}

/* --- the service thread --- */

static void finish(void);

static void die_of(int number) {
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(number, &plain, NULL);
    kill(getpid(), number);
}

/* Disabling waits in the driver for a launch that itself may wait: the signal has its way nevertheless. */
static void *lose_patience(void *unused) {
    struct timespec patience = {.tv_sec = JOIN_SECONDS};
    while (nanosleep(&patience, &patience)) {}
    die_of(atomic_load(&deadly_signal));
    return unused;
}

static void *serve(void *unused) {
    (void)unused;
    for (unsigned turn = 1; !atomic_load(&service_stops); turn++) {
        struct pollfd wakes = {.fd = atomic_load(&service_wakes), .events = POLLIN};
        uint64_t times;
        if (poll(&wakes, 1, SERVICE_MS) > 0 && read(wakes.fd, &times, sizeof times) < 0) continue;
        int number = atomic_load(&deadly_signal);
        if (number) {
            pthread_t other;
            if (pthread_create(&other, NULL, lose_patience, NULL) == 0) pthread_detach(other);
            finish();
            die_of(number);
            return NULL;
        }
        if (atomic_load(&late)) gpa_sampling_begin_awaited();
        if (gpa_options.mode == GPA_CONTINUOUS) gpa_sampling_drain_all();
        if (gpa_options.stacks) gpa_stacks_name_addresses();
        if (turn % FLUSH_EVERY == 0) gpa_activity_flush(false);
    }
    atomic_store(&service_ended, true);
    return NULL;
}

/* Safe in a handler of signals. */
static void wake_service(void) {
    const uint64_t one = 1;
    if (write(atomic_load(&service_wakes), &one, sizeof one) < 0) return; /* it looks soon anyway */
}

static void start_service(void) {
    sigset_t all, before;
    if (atomic_load(&service_wakes) < 0) atomic_store(&service_wakes, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (atomic_load(&service_wakes) < 0) return;
    atomic_store(&service_ended, false);
    sigfillset(&all); /* the application's signals are for the application's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool runs = pthread_create(&service_thread, NULL, serve, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    atomic_store(&service_runs, runs);
}

static void stop_service(void) {
    if (!atomic_load(&service_runs) || pthread_equal(service_thread, pthread_self())) return;
    atomic_store(&service_stops, true);
    wake_service();
    const struct timespec moment = {.tv_nsec = 1000000};
    /* It may hang in the driver; then the process ends without it. */
    for (uint64_t begun = gpa_monotonic_ns(); !atomic_load(&service_ended); nanosleep(&moment, NULL))
        if (gpa_monotonic_ns() - begun > JOIN_SECONDS * SECOND_NS) return;
    pthread_join(service_thread, NULL);
    atomic_store(&service_runs, false);
}

/* --- endings --- */

static void finish(void) {
    if (atomic_load(&phase) == FORKED) {
        gpa_recorder_finish();
        return;
    }
    if (atomic_load(&phase) != COLLECTING || atomic_exchange(&finishing, true)) return;
    stop_service();
    gpa_sampling_finish();
    gpa_activity_flush(true);
    gpa_activity_tell();
    if (gpa_options.stacks) gpa_stacks_name_addresses();
    atomic_store(&phase, FINISHED);
    gpa_recorder_finish();
}

static void on_signal(int number) {
    int none = 0;
    bool first = atomic_compare_exchange_strong(&deadly_signal, &none, number);
    if (first && atomic_load(&phase) == COLLECTING && atomic_load(&service_runs)) {
        int kept = errno;
        wake_service(); /* the service thread saves what there is, and then lets the signal have its way */
        errno = kept;
    } else {
        die_of(number);
    }
}

/* Signals that would end the process at once; one that the application handles is its own affair. */
static void catch_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        struct sigaction now, ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        if (sigaction(numbers[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
            sigaction(numbers[i], &ours, NULL);
    }
}

static void in_child(void) {
    if (atomic_load(&phase) == ASIDE) return;
    atomic_store(&phase, FORKED);
    atomic_store(&service_runs, false);
    atomic_store(&opening, false);
    outer_correlation = 0;
    gpa_recorder_abandon();
    gpa_notes_forget();
    gpa_sampling_after_fork();
    gpa_stacks_forget();
}

static bool begin_collecting(void) {
    if (gpa_options.stacks) gpa_stacks_prepare();
    atomic_store(&phase, COLLECTING);
    if (!subscribe()) {
        atomic_store(&phase, ASIDE);
        gpa_recorder_finish();
        return false;
    }
    if (gpa_options.times || gpa_options.mode == GPA_TIMELINE) gpa_activity_start();
    start_service();
    return true;
}

static bool start(void) {
    char why[512] = "";
    if (!read_options()) {
        gpa_say("nothing is collected, since GPADVISOR_COLLECT_DIR names no directory; start the application with"
                " gpadvisor profile");
        return false;
    }
    bool loaded = gpa_interface_load(why, sizeof why);
    if (!open_file(false)) return false;
    if (!loaded) {
        gpa_note(GPA_STAGE_LOAD, 0, 0, why);
        gpa_say("nothing is collected in process %ld: %s", (long)getpid(), why);
        gpa_recorder_finish();
        return false;
    }
    if (!begin_collecting()) return false;
    pthread_atfork(NULL, NULL, in_child);
    atexit(finish);
    catch_signals();
    return true;
}

/* A further collection in a process that has ended one with gpadvisor_stop. */
static bool start_again(void) {
    const char *before = gpa_options.directory;
    if (!read_options()) return false;
    gpa_notes_forget();
    gpa_stacks_forget();
    gpa_sampling_again();
    if (!gpa_recorder_reopen(gpa_options.directory)) return false;
    record_process(false);
    gpa_modules_again(before);
    atomic_store(&finishing, false);
    atomic_store(&service_stops, false);
    return begin_collecting();
}

/* Called by the driver from cuInit; its result is not used for anything but good manners. */
EXPORT int InitializeInjection(void);
EXPORT int InitializeInjection(void) {
    if (!atomic_exchange(&started, true)) start();
    return 1;
}

/* For a process that began without: modules loaded earlier stay unseen. 1: collecting. */
EXPORT int gpadvisor_start(void);
EXPORT int gpadvisor_start(void) {
    bool first = !atomic_exchange(&started, true);
    if (!first && atomic_load(&phase) != FINISHED) return 0;
    atomic_store(&late, true);
    if (!(first ? start() : start_again())) return 0;
    CUcontext current = NULL;
    if (gpa_driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current) gpa_sampling_context(current, 0);
    return 1;
}

/* End the collection before the process does. Another profiler may come after it. */
EXPORT void gpadvisor_stop(void);
EXPORT void gpadvisor_stop(void) {
    if (atomic_load(&phase) != COLLECTING) return;
    finish();
    gpa_activity_stop();
    gpa_cupti.cuptiUnsubscribe(subscriber);
    gpa_sampling_free_names();
}
