/* SPDX-License-Identifier: Apache-2.0 */
/* Appending records to the collection file from any thread, without locks. */
#ifndef GPADVISOR_RECORDER_H
#define GPADVISOR_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format.h"

enum gpa_counter { GPA_COUNT_LAUNCHES, GPA_COUNT_SAMPLES, GPA_COUNT_KERNELS, GPA_COUNT_LOST };

/* Open a file of this process in `directory`; errno says why not. Once per process, and again after a fork. */
bool gpa_recorder_open(const char *directory);
/* Begin anew in another directory: later records of every thread go there. Threads that are just writing to the old
 * file are not disturbed, so that its mappings stay and its descriptor lives until the next time. */
bool gpa_recorder_reopen(const char *directory);
/* Forget the parent's file in the child of a fork; async-signal-safe. */
void gpa_recorder_abandon(void);
bool gpa_recorder_is_open(void);
/* Mark the file as complete. Records may still follow. */
void gpa_recorder_finish(void);

/* Room for a payload, or NULL where there is none (counted as lost). One record at a time per thread. */
void *gpa_record_begin(enum gpa_kind kind, size_t bytes);
void gpa_record_end(void);
/* A record from up to two pieces. */
void gpa_record(enum gpa_kind kind, const void *head, size_t head_bytes, const void *tail, size_t tail_bytes);

/* The id of a name; the name itself is recorded when this thread has not done so lately. 0 for NULL. */
uint64_t gpa_name(const char *text);
uint64_t gpa_name_of(const char *text, size_t bytes);
/* Whether this thread has not met the id lately; it counts as met from now on. */
bool gpa_is_news(uint64_t id);
uint64_t gpa_hash(uint64_t seed, const void *data, size_t bytes);

void gpa_count(enum gpa_counter counter, uint64_t amount);
uint64_t gpa_monotonic_ns(void);
uint64_t gpa_real_ns(void);
uint64_t gpa_thread_id(void);

#endif
