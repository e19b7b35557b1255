/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that CUPTI's headers forbid, one for each name: forbidden NAME. Ends with the result where one returns. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_pcsampling.h>

#include "fake_cuda.h"

#undef cuCtxCreate
#undef cuCtxDestroy
CUresult cuCtxCreate(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxDestroy(CUcontext context);
CUresult fake_load(CUmodule *module, const void *image, size_t bytes);

static const char *name;
static CUcontext context;
static CUpti_PCSamplingStallReason reasons[64];
static CUpti_PCSamplingPCData row = {.size = sizeof row, .stallReason = reasons, .stallReasonCount = 64};
static CUpti_PCSamplingData data = {.size = sizeof data, .collectNumPcs = 1, .pPcData = &row};

static int is(const char *which) { return strcmp(name, which) == 0; }

static CUptiResult enable(void) {
    CUpti_PCSamplingEnableParams params = {.size = is("size") ? 1 : CUpti_PCSamplingEnableParamsSize, .ctx = context};
    return cuptiPCSamplingEnable(&params);
}

static CUptiResult disable(void) {
    CUpti_PCSamplingDisableParams params = {.size = CUpti_PCSamplingDisableParamsSize, .ctx = context};
    return cuptiPCSamplingDisable(&params);
}

static CUptiResult get(void) {
    CUpti_PCSamplingGetDataParams params = {
        .size = CUpti_PCSamplingGetDataParamsSize, .ctx = context, .pcSamplingData = &data};
    return cuptiPCSamplingGetData(&params);
}

static CUptiResult configure(CUpti_PCSamplingConfigurationInfo info) {
    CUpti_PCSamplingConfigurationInfoParams params = {.size = CUpti_PCSamplingConfigurationInfoParamsSize,
                                                      .ctx = context,
                                                      .numAttributes = 1,
                                                      .pPCSamplingConfigurationInfo = &info};
    return cuptiPCSamplingSetConfigurationAttribute(&params);
}

static void CUPTIAPI callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *given) {
    (void)user, (void)id, (void)given;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE && is("flush in a resource callback")) cuptiActivityFlushAll(0);
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API && is("enable in a launch")) enable();
}

static void CUPTIAPI buffer_wanted(uint8_t **buffer, size_t *bytes, size_t *records) {
    *bytes = 4096, *records = 0, *buffer = aligned_alloc(8, *bytes);
}

static void CUPTIAPI buffer_full(CUcontext of, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid) {
    (void)of, (void)stream, (void)bytes, (void)valid;
    if (is("flush in a buffer callback")) cuptiActivityFlushAll(0);
    free(buffer);
}

int main(int count, char **arguments) {
    CUpti_SubscriberHandle subscriber, second;
    CUmodule module;
    CUfunction function;
    name = count > 1 ? arguments[1] : "";
    cuInit(0);
    if (is("flush before buffers")) return (int)cuptiActivityFlushAll(0);
    cuptiSubscribe(&subscriber, callback, NULL);
    if (is("second subscriber")) return (int)cuptiSubscribe(&second, callback, NULL);
    cuptiActivityRegisterCallbacks(buffer_wanted, buffer_full);
    bool concurrent = is("samples beside concurrent kernels") || is("disable concurrent kernels");
    cuptiActivityEnable(concurrent ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL : CUPTI_ACTIVITY_KIND_KERNEL);
    if (is("disable concurrent kernels")) return (int)cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
    cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
    cuCtxCreate(&context, 0, 0);
    fake_load(&module, "image", 6);
    cuModuleGetFunction(&function, module, "kernel");
    if (is("read without enabling")) get();
    if (is("disable without enabling")) disable();
    if (!is("enable in a launch")) enable();
    if (is("a second context of a GPU")) {
        cuCtxCreate(&context, 0, 0);
        enable();
    }
    if (is("a period of 16 cycles"))
        return (int)configure((CUpti_PCSamplingConfigurationInfo){
            .attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD,
            .attributeData.samplingPeriodData.samplingPeriod = 4});
    if (is("a reason of another GPU"))
        return (int)configure((CUpti_PCSamplingConfigurationInfo){
            .attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON,
            .attributeData.stallReasonData = {1, (uint32_t[]){99}}});
    configure((CUpti_PCSamplingConfigurationInfo){
        .attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER,
        .attributeData.samplingDataBufferData.samplingDataBuffer = &data});
    if (is("read into CUPTI's buffer")) get();
    if (is("data without a size")) row.size = 0, data.size = 0, get();
    cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    cuptiActivityFlushAll(0);
    if (is("a gone context")) cuCtxDestroy(context), disable();
    return 0;
}
