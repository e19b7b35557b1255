/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the injection library know of each other. */
#ifndef GPADVISOR_COLLECTOR_H
#define GPADVISOR_COLLECTOR_H

#include "interface.h"
#include "recorder.h"

struct gpa_options {
    const char *directory; /* of the collection */
    uint32_t mode;         /* 1 continuous, 2 serialized, 3 timeline */
    uint32_t period;       /* exponent; 0: CUPTI's choice */
    uint64_t buffer_bytes; /* on the device; 0: CUPTI's choice */
    uint64_t most_records; /* of a timeline */
    bool stacks, times, concurrent; /* times of kernels that overlap, where CUPTI gives them */
};

#define GPA_CONTINUOUS 1u
#define GPA_SERIALIZED 2u
#define GPA_TIMELINE 3u

extern struct gpa_options gpa_options;

/* notes.c: something that the reader of the profile should know; each stage, code and context once. */
void gpa_note(enum gpa_stage stage, int code, uint32_t context, const char *text);
void gpa_note_result(enum gpa_stage stage, CUptiResult result, uint32_t context);
void gpa_notes_forget(void);
/* One sentence for the user, on standard error. */
void gpa_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* modules.c */
void gpa_module_loaded(uint32_t context, uint32_t module, const void *image, size_t bytes);
/* In another directory: the modules of earlier collections, whose images lie in the one before. */
void gpa_modules_again(const char *before);

/* activity.c */
bool gpa_activity_start(void);
bool gpa_activity_stop(void); /* whether there was anything to stop */
void gpa_activity_flush(bool forced);
void gpa_activity_tell(void); /* what was left out */
void gpa_activity_forsake(void); /* CUPTI has ended itself */
uint32_t gpa_activity_kind(void); /* what times come from; 0: there are none */

/* sampling.c */
void gpa_sampling_context(CUcontext context, uint32_t id);   /* a context that may be new */
void gpa_sampling_await(CUcontext context);   /* one seen in a launch callback: begun by the service thread */
void gpa_sampling_begin_awaited(void);
void gpa_sampling_destroying(CUcontext context);
void gpa_sampling_drain_context(CUcontext context);          /* never waits */
void gpa_sampling_module_unloading(CUcontext context);
void gpa_sampling_module_loaded(CUcontext context);
void gpa_sampling_drain_all(void);
void gpa_sampling_finish(void);
void gpa_sampling_free_names(void); /* after everything else: CUPTI is not to use them any more */
void gpa_sampling_forsake(void); /* CUPTI has ended itself */
void gpa_sampling_after_fork(void);
void gpa_sampling_again(void); /* another collection: every device is described anew */

#endif
