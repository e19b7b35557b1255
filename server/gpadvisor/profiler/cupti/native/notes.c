/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector.h"

#define SLOTS 256

static _Atomic uint64_t noted[SLOTS];

static bool first_time(uint64_t key) {
    for (int i = 0; i < SLOTS; i++) {
        uint64_t found = 0;
        if (atomic_compare_exchange_strong(&noted[i], &found, key)) return true;
        if (found == key) return false;
    }
    return false;
}

void gpa_note(enum gpa_stage stage, int code, uint32_t context, const char *text) {
    const uint64_t key[] = {(uint64_t)stage, (uint64_t)(uint32_t)code, context};
    if (!first_time(gpa_hash(4, key, sizeof key))) return;
    struct gpa_note note = {(uint32_t)stage, code, context, (uint32_t)strlen(text)};
    gpa_record(GPA_NOTE, &note, sizeof note, text, note.text_bytes);
}

void gpa_note_result(enum gpa_stage stage, CUptiResult result, uint32_t context) {
    gpa_note(stage, (int)result, context, gpa_result_text(result));
}

void gpa_notes_forget(void) {
    for (int i = 0; i < SLOTS; i++) atomic_store(&noted[i], 0);
}

void gpa_say(const char *format, ...) {
    char line[1024] = "gpadvisor: ";
    size_t used = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + used, sizeof line - used - 1, format, arguments);
    va_end(arguments);
    if (length < 0) return;
    used = strlen(line);
    line[used] = '\n';
    /* Straight to the descriptor: the application's buffers are its own. */
    if (write(STDERR_FILENO, line, used + 1) < 0) return;
}
