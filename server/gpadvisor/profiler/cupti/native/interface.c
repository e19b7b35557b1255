/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "interface.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct gpa_cupti gpa_cupti;
struct gpa_driver gpa_driver;

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#if CUPTI_API_VERSION >= 130000
#define CUPTI_NAME "libcupti.so.13"
#else
#define CUPTI_NAME "libcupti.so.12"
#endif

/* A function pointer through a union, as ISO C knows no cast from what dlsym gives. */
#define FIND(library, place, name)                        \
    do {                                                  \
        union {                                           \
            void *object;                                 \
            __typeof__(place) function;                   \
        } found = {.object = dlsym(library, name)};       \
        (place) = found.function;                         \
    } while (0)

static bool load_driver(char *why, size_t size) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, size, "this machine has no NVIDIA driver (%s)", dlerror());
        return false;
    }
    FIND(library, gpa_driver.cuDriverGetVersion, "cuDriverGetVersion");
    FIND(library, gpa_driver.cuDeviceGet, "cuDeviceGet");
    FIND(library, gpa_driver.cuDeviceGetName, "cuDeviceGetName");
    FIND(library, gpa_driver.cuDeviceGetAttribute, "cuDeviceGetAttribute");
    FIND(library, gpa_driver.cuCtxGetCurrent, "cuCtxGetCurrent");
    FIND(library, gpa_driver.cuFuncGetName, "cuFuncGetName");
    if (!gpa_driver.cuDriverGetVersion || !gpa_driver.cuDeviceGet || !gpa_driver.cuDeviceGetName ||
        !gpa_driver.cuDeviceGetAttribute || !gpa_driver.cuCtxGetCurrent) {
        snprintf(why, size, "libcuda.so.1 is no NVIDIA driver that is understood");
        return false;
    }
    return true;
}

static bool find_all(void *library, char *why, size_t size) {
#define X(name)                                                              \
    FIND(library, gpa_cupti.name, #name);                                    \
    if (!gpa_cupti.name) {                                                   \
        snprintf(why, size, "libcupti lacks %s: it is older than CUDA 12", #name); \
        return false;                                                        \
    }
    GPA_CUPTI_FUNCTIONS(X)
#undef X
    return true;
}

bool gpa_interface_load(char *why, size_t size) {
    if (!load_driver(why, size)) return false;
    /* A copy that the application has loaded comes first: two of them do not get along. */
    void *library = dlopen(CUPTI_NAME, RTLD_NOW | RTLD_NOLOAD);
    const char *path = getenv("GPADVISOR_CUPTI");
    if (!library && path && *path) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) library = dlopen(CUPTI_NAME, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, size, "CUPTI cannot be loaded (%s); install nvidia-cuda-cupti", dlerror());
        return false;
    }
    if (!find_all(library, why, size)) return false;
    CUptiResult result = gpa_cupti.cuptiGetVersion(&gpa_cupti.version);
    if (result != CUPTI_SUCCESS) {
        snprintf(why, size, "CUPTI does not work with this driver (%s); it must not be of a newer CUDA release",
                 gpa_result_text(result));
        return false;
    }
    if ((gpa_cupti.version >= GPA_ROWS_WITH_CORRELATION) != (CUPTI_API_VERSION >= GPA_ROWS_WITH_CORRELATION)) {
        snprintf(why, size, "libcupti has version %u, which does not fit the headers of version " TEXT(CUPTI_API_VERSION)
                 " this library was built with", gpa_cupti.version);
        return false;
    }
    return true;
}

const char *gpa_result_text(CUptiResult result) {
    const char *text = NULL;
    if (gpa_cupti.cuptiGetResultString && gpa_cupti.cuptiGetResultString(result, &text) == CUPTI_SUCCESS && text)
        return text;
    return "unknown result";
}
