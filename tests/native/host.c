/* SPDX-License-Identifier: Apache-2.0 */
/* An application for tests of the injection library: host MODE IMAGE [COUNT].
 *
 * It launches the two kernels of each image, and then does what MODE says. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fake_cuda.h"

#undef cuCtxCreate
#undef cuCtxDestroy
CUresult cuCtxCreate(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxDestroy(CUcontext context);
CUresult fake_load(CUmodule *module, const void *image, size_t bytes);

static char *image;
static size_t image_bytes;
static unsigned count = 10;
static const char *self;

static void check(int good, const char *what) {
    if (good) return;
    fprintf(stderr, "host: %s failed\n", what);
    exit(3);
}

static void read_image(const char *path) {
    FILE *file = fopen(path, "rb");
    check(file != NULL, path);
    image = malloc(1 << 20);
    image_bytes = fread(image, 1, 1 << 20, file);
    fclose(file);
}

static CUfunction function_of(CUmodule module, const char *name) {
    CUfunction function = NULL;
    check(cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS, name);
    return function;
}

__attribute__((noinline)) void launch_some(CUfunction function, unsigned launches, unsigned grid, unsigned block) {
    for (unsigned i = 0; i < launches; i++)
        check(cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 256, (CUstream)(uintptr_t)(1 + i % 3), NULL, NULL) ==
                  CUDA_SUCCESS, "launch");
}

static CUmodule new_module(void) {
    CUmodule module = NULL;
    check(fake_load(&module, image, image_bytes) == CUDA_SUCCESS, "load");
    return module;
}

static CUmodule begin(CUcontext *context, int device) {
    check(cuInit(0) == CUDA_SUCCESS, "cuInit");
    check(cuCtxCreate(context, 0, device) == CUDA_SUCCESS, "cuCtxCreate");
    return new_module();
}

static void *thread_main(void *number) {
    CUcontext context;
    long index = (long)(intptr_t)number;
    check(cuCtxCreate(&context, 0, (CUdevice)(index % 2)) == CUDA_SUCCESS, "cuCtxCreate");
    CUmodule module = new_module();
    for (unsigned i = 0; i < count; i++) {
        launch_some(function_of(module, "alpha"), 1, 100, 128);
        launch_some(function_of(module, "beta"), 1, 10, 256);
    }
    if (index % 2) check(cuCtxDestroy(context) == CUDA_SUCCESS, "cuCtxDestroy");
    return NULL;
}

static void run_threads(void) {
    pthread_t threads[8];
    check(cuInit(0) == CUDA_SUCCESS, "cuInit");
    for (long i = 0; i < 8; i++) check(!pthread_create(&threads[i], NULL, thread_main, (void *)(intptr_t)i), "thread");
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
}

/* One context, many threads that each come and go. */
static CUmodule shared_module;
static CUcontext shared_context;
static void *brief_main(void *unused) {
    (void)unused;
    cuCtxSetCurrent(shared_context);
    launch_some(function_of(shared_module, "alpha"), 2, 100, 128);
    return NULL;
}

static void run_brief_threads(void) {
    shared_module = begin(&shared_context, 0);
    for (unsigned round = 0; round < count; round++) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) check(!pthread_create(&threads[i], NULL, brief_main, NULL), "thread");
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    }
}

static void wait_for(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0) {}
}

static void forget_nothing(const char *mode, CUmodule module, const char *path) {
    pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
        if (strcmp(mode, "fork_exec") == 0) {
            execl(self, self, "plain", path, "4", (char *)NULL);
            _exit(9);
        }
        if (strcmp(mode, "fork_use") == 0) launch_some(function_of(module, "alpha"), 3, 100, 128);
        if (strcmp(mode, "fork_quiet") == 0) exit(0);
        _exit(0);
    }
    launch_some(function_of(module, "beta"), count, 10, 256);
    wait_for(child);
}

static void end_badly(const char *mode) {
    if (strcmp(mode, "segv") == 0) raise(SIGSEGV);
    if (strcmp(mode, "abort") == 0) abort();
    if (strcmp(mode, "killed") == 0) kill(getpid(), SIGKILL);
    if (strcmp(mode, "_exit") == 0) _exit(5);
    if (strcmp(mode, "interrupted") == 0) kill(getpid(), SIGINT), pause();
    if (strcmp(mode, "waits") == 0) puts("ready"), fflush(stdout);
    if (strcmp(mode, "waits") == 0 || strcmp(mode, "stubborn") == 0)
        for (;;) pause();
    if (strcmp(mode, "orphan") == 0 && fork() == 0)
        for (;;) pause();
}

/* A race and a leak, for a test that the sanitizers would find one. */
static unsigned raced;
static void *race(void *unused) {
    (void)unused;
    for (int i = 0; i < 1000; i++) raced++;
    return NULL;
}
static void be_faulty(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) check(!pthread_create(&threads[i], NULL, race, NULL), "thread");
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    void *volatile lost = malloc(100 + raced % 2);
    lost = NULL;
    (void)lost;
}

/* For bench/injection.py: nanoseconds per launch at some depth of calls, and per system call, in turns. */
static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

__attribute__((noinline)) static uint64_t timed_launches(CUfunction function, unsigned depth) {
    if (depth) {
        uint64_t time = timed_launches(function, depth - 1);
        return time + (time == 1); /* something to do after the call, so that each frame stays */
    }
    uint64_t begun = now_ns();
    launch_some(function, 1000, 100, 128);
    return now_ns() - begun;
}

static void *measure(void *function) {
    cuCtxSetCurrent(shared_context);
    uint64_t launches = 0, calls = 0;
    for (unsigned round = 0; round < count; round++) {
        launches += timed_launches(function, 20);
        uint64_t begun = now_ns();
        for (int i = 0; i < 1000; i++) (void)getppid();
        calls += now_ns() - begun;
    }
    printf("%.1f %.1f\n", (double)launches / (1000.0 * count), (double)calls / (1000.0 * count));
    return NULL;
}

static void run_measure(long threads) {
    pthread_t others[16];
    shared_module = begin(&shared_context, 0);
    CUfunction alpha = function_of(shared_module, "alpha");
    for (long i = 0; i < threads; i++) check(!pthread_create(&others[i], NULL, measure, alpha), "thread");
    for (long i = 0; i < threads; i++) pthread_join(others[i], NULL);
}

static void run_for_ever(CUmodule module) {
    puts("ready");
    fflush(stdout);
    for (;;) launch_some(function_of(module, "alpha"), 1, 100, 128);
}

static void print_most_memory(void) {
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    check(file != NULL, "/proc/self/status");
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0) printf("%ld\n", strtol(line + 6, NULL, 10));
    fclose(file);
}

/* Not static: exported, so that the loader knows its name. */
__attribute__((noinline)) void step(CUfunction function) {
    fake_runtime_launch(function, 100, 128, NULL);
    fake_runtime_wait(200);
    usleep(300);
}

static void run_steps(CUfunction function) {
    fake_runtime_copy(100);
    fake_runtime_set();
    for (unsigned i = 0; i < count; i++) step(function);
}

static void run_one(const char *mode, const char *path) {
    CUcontext context;
    if (strcmp(mode, "stubborn") == 0) signal(SIGINT, SIG_IGN), signal(SIGTERM, SIG_IGN); /* before its launches */
    CUmodule module = begin(&context, 0);
    CUfunction alpha = function_of(module, "alpha"), beta = function_of(module, "beta");
    launch_some(alpha, count, 100, 128);
    launch_some(beta, 2 * count, 10, 256);
    if (strncmp(mode, "fork", 4) == 0) forget_nothing(mode, module, path);
    if (strcmp(mode, "runtime") == 0)
        for (unsigned i = 0; i < count; i++) fake_runtime_launch(alpha, 100, 128, NULL);
    if (strcmp(mode, "steps") == 0) run_steps(alpha);
    if (strcmp(mode, "mixed") == 0) launch_some(alpha, count, 50, 512);
    if (strcmp(mode, "graph") == 0 || strcmp(mode, "graphs") == 0)
        for (unsigned i = 0; i < count; i++) cuGraphLaunch((CUgraphExec)(void *)alpha, NULL);
    if (strcmp(mode, "graphs") == 0) print_most_memory();
    if (strcmp(mode, "failing") == 0) cuLaunchKernel(alpha, 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL);
    if (strcmp(mode, "unload") == 0) {
        cuModuleUnload(module);
        launch_some(function_of(new_module(), "alpha"), count, 100, 128);
    }
    if (strcmp(mode, "ex") == 0) {
        CUlaunchConfig configuration = {.gridDimX = 33, .gridDimY = 2, .gridDimZ = 1, .blockDimX = 96, .blockDimY = 1,
                                        .blockDimZ = 1, .sharedMemBytes = 1024};
        cuLaunchKernelEx(&configuration, alpha, NULL, NULL);
    }
    if (strcmp(mode, "for_ever") == 0) run_for_ever(module);
    if (strcmp(mode, "destroyed") == 0) cuCtxDestroy(context);
    if (strcmp(mode, "faulty") == 0) be_faulty();
    if (strcmp(mode, "slowly") == 0) usleep(400000);
    end_badly(mode);
}

int main(int argc, char **argv) {
    check(argc >= 3, "usage");
    self = argv[0];
    read_image(argv[2]);
    if (argc > 3) count = (unsigned)strtoul(argv[3], NULL, 10);
    if (strcmp(argv[1], "threads") == 0) run_threads();
    else if (strcmp(argv[1], "brief_threads") == 0) run_brief_threads();
    else if (strncmp(argv[1], "measure", 7) == 0) run_measure(argv[1][7] - '0'); /* measure1 to measure9 */
    else run_one(argv[1], argv[2]);
    free(image);
    return strcmp(argv[1], "status7") == 0 ? 7 : 0;
}
