/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI and the driver, found at run time, so that this library loads where neither is. */
#ifndef GPADVISOR_INTERFACE_H
#define GPADVISOR_INTERFACE_H

/* The driver's header is read as a system header: it is not ours to be clean. */
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_pcsampling.h>
#include <cupti_runtime_cbid.h>
#include <cupti_version.h>
#include <stdbool.h>

/* CUPTI_API_VERSION is 19 to 28 for CUDA 12, and 130000 and more from CUDA 13 on. From CUDA 12.4 on a row of
 * samples ends with a correlation id, and so has another size; from 12.2 on CUPTI tells its own fatal errors. By the
 * release notes samples and CONCURRENT_KERNEL "have been made compatible" in CUDA 12.8 Update 1, and disabling that
 * kind had "a potential deadlock" until 13.0 Update 1. */
#define GPA_ROWS_WITH_CORRELATION 22
#define GPA_FATAL_ERRORS 20
#define GPA_CONCURRENT_TIMES 130001

#define GPA_CUPTI_FUNCTIONS(X)              \
    X(cuptiSubscribe)                       \
    X(cuptiUnsubscribe)                     \
    X(cuptiEnableCallback)                  \
    X(cuptiGetVersion)                      \
    X(cuptiGetTimestamp)                    \
    X(cuptiGetCallbackName)                 \
    X(cuptiGetContextId)                    \
    X(cuptiGetDeviceId)                     \
    X(cuptiGetResultString)                 \
    X(cuptiActivityEnable)                  \
    X(cuptiActivityDisable)                 \
    X(cuptiActivityRegisterCallbacks)       \
    X(cuptiActivityGetNextRecord)           \
    X(cuptiActivityGetNumDroppedRecords)    \
    X(cuptiActivityFlushAll)                \
    X(cuptiGetCubinCrc)                     \
    X(cuptiPCSamplingEnable)                \
    X(cuptiPCSamplingDisable)               \
    X(cuptiPCSamplingGetData)               \
    X(cuptiPCSamplingGetNumStallReasons)    \
    X(cuptiPCSamplingGetStallReasons)       \
    X(cuptiPCSamplingGetConfigurationAttribute) \
    X(cuptiPCSamplingSetConfigurationAttribute)

struct gpa_cupti {
#define X(name) __typeof__(&name) name;
    GPA_CUPTI_FUNCTIONS(X)
#undef X
    uint32_t version; /* of the library that was loaded */
};

struct gpa_driver {
    CUresult (*cuDriverGetVersion)(int *);
    CUresult (*cuDeviceGet)(CUdevice *, int);
    CUresult (*cuDeviceGetName)(char *, int, CUdevice);
    CUresult (*cuDeviceGetAttribute)(int *, CUdevice_attribute, CUdevice);
    CUresult (*cuCtxGetCurrent)(CUcontext *);
    CUresult (*cuFuncGetName)(const char **, CUfunction); /* NULL before CUDA 12.3 */
};

extern struct gpa_cupti gpa_cupti;
extern struct gpa_driver gpa_driver;

/* Find both; on failure `why` (at least 512 bytes) holds a reason without a final stop. */
bool gpa_interface_load(char *why, size_t size);
/* What a CUPTI result means, in CUPTI's words. */
const char *gpa_result_text(CUptiResult result);

#endif
