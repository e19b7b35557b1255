/* SPDX-License-Identifier: Apache-2.0 */
/* Python's frames of the launching thread, read where they lie.
 *
 * Triton, PyTorch, CuPy and ctypes let go of the interpreter's lock before they launch, and waiting for it here
 * could take long. A thread inside a native call does not change its own frames, and they keep their code alive,
 * so this thread may read them without the lock; the offsets are those of each version's headers. An interpreter
 * of another version is asked through its documented functions, where this thread happens to hold the lock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "recorder.h"
#include "stacks.h"

struct layout {
    uint8_t minor;
    uint8_t thread_frame;     /* in the thread state: the frame, or what holds it */
    int8_t holder_frame;      /* in the holder; -1: there is none */
    uint8_t previous, code, instruction; /* in a frame */
    uint8_t instruction_unit; /* 0: a pointer to an instruction; else bytes per unit of an int */
    uint8_t owner, shim;      /* in a frame, and the value that says "not Python's"; 0: no such field */
    uint8_t file, name, first_line, bytecode; /* in a code object; qualified name from 3.11 on */
    uint8_t ascii, compact;   /* sizes of a string's header */
};

/* Read off the headers of CPython 3.9.18, 3.10.13, 3.11.7, 3.12.1 and 3.13.0, 64 bits, with the lock. */
static const struct layout layouts[] = {
    {9, 24, -1, 24, 32, 104, 1, 0, 0, 104, 112, 40, 0, 48, 72},
    {10, 24, -1, 24, 32, 96, 2, 0, 0, 104, 112, 40, 0, 48, 72},
    {11, 56, 8, 48, 32, 56, 0, 0, 0, 112, 128, 72, 184, 48, 72},
    {12, 56, 0, 8, 0, 56, 0, 70, 3, 112, 128, 68, 192, 40, 56},
    {13, 72, -1, 8, 0, 56, 0, 70, 3, 112, 128, 68, 200, 40, 56},
};

static struct {
    const struct layout *layout; /* NULL: ask the interpreter */
    const void *code_type;
    void *(*this_thread)(void);                     /* PyGILState_GetThisThreadState */
    int (*line_of)(void *code, int address);        /* PyCode_Addr2Line */
    int (*is_initialized)(void);                    /* Py_IsInitialized */
    int (*has_lock)(void);                          /* PyGILState_Check, and what follows needs the lock */
    void *(*frame)(void);                           /* PyEval_GetFrame, borrowed */
    void *(*frame_code)(void *);                    /* PyFrame_GetCode, owned */
    void *(*frame_back)(void *);                    /* PyFrame_GetBack, owned */
    int (*frame_line)(void *);                      /* PyFrame_GetLineNumber */
    void *(*attribute)(void *, const char *);       /* PyObject_GetAttrString, owned */
    const char *(*text)(void *, ptrdiff_t *);       /* PyUnicode_AsUTF8AndSize */
    void (*let_go)(void *);                         /* Py_DecRef */
    void (*take_error)(void **, void **, void **);  /* PyErr_Fetch */
    void (*put_error)(void *, void *, void *);      /* PyErr_Restore */
} python;
static _Atomic bool have_python;

#define FIND(place, name)                                  \
    do {                                                   \
        union {                                            \
            void *object;                                  \
            __typeof__(place) function;                    \
        } found = {.object = dlsym(RTLD_DEFAULT, name)};   \
        (place) = found.function;                          \
    } while (0)

static void find_functions(void) {
    FIND(python.this_thread, "PyGILState_GetThisThreadState");
    FIND(python.line_of, "PyCode_Addr2Line");
    FIND(python.is_initialized, "Py_IsInitialized");
    FIND(python.has_lock, "PyGILState_Check");
    FIND(python.frame, "PyEval_GetFrame");
    FIND(python.frame_code, "PyFrame_GetCode");
    FIND(python.frame_back, "PyFrame_GetBack");
    FIND(python.frame_line, "PyFrame_GetLineNumber");
    FIND(python.attribute, "PyObject_GetAttrString");
    FIND(python.text, "PyUnicode_AsUTF8AndSize");
    FIND(python.let_go, "Py_DecRef");
    FIND(python.take_error, "PyErr_Fetch");
    FIND(python.put_error, "PyErr_Restore");
    python.code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
}

void gpa_python_prepare(void) {
    const char *(*version)(void);
    if (atomic_load(&have_python)) return;
    FIND(version, "Py_GetVersion");
    if (!version || sizeof(void *) != 8) return;
    find_functions();
    const char *text = version();
    char *rest = NULL;
    long major = strtol(text, &rest, 10), minor = *rest == '.' ? strtol(rest + 1, NULL, 10) : 0;
    bool no_lock = strstr(text, "free-threading") != NULL; /* objects are laid out otherwise there */
    python.layout = NULL;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (major == 3 && layouts[i].minor == minor && !no_lock && python.this_thread && python.line_of &&
            python.code_type)
            python.layout = &layouts[i];
    bool can_ask = python.has_lock && python.frame && python.frame_code && python.frame_back && python.frame_line &&
                   python.attribute && python.text && python.let_go && python.take_error && python.put_error;
    atomic_store(&have_python, python.is_initialized && (python.layout || can_ask));
}

static const uint8_t *pointer_at(const uint8_t *base, size_t offset) {
    const uint8_t *value;
    memcpy(&value, base + offset, sizeof value);
    return value;
}

static uint32_t number_at(const uint8_t *base, size_t offset) {
    uint32_t value;
    memcpy(&value, base + offset, sizeof value);
    return value;
}

static size_t put_utf8(char *out, uint32_t c) {
    if (c < 0x80) return out[0] = (char)c, 1;
    if (c < 0x800) return out[0] = (char)(0xC0 | c >> 6), out[1] = (char)(0x80 | (c & 63)), 2;
    if (c < 0x10000)
        return out[0] = (char)(0xE0 | c >> 12), out[1] = (char)(0x80 | (c >> 6 & 63)), out[2] = (char)(0x80 | (c & 63)), 3;
    return out[0] = (char)(0xF0 | c >> 18), out[1] = (char)(0x80 | (c >> 12 & 63)),
           out[2] = (char)(0x80 | (c >> 6 & 63)), out[3] = (char)(0x80 | (c & 63)), 4;
}

/* The id of a Python string, by PEP 393: length at 16, state at 32 (kind in bits 2 to 4, ascii bit 6). */
static uint64_t string_name(const uint8_t *string) {
    char out[2048];
    size_t length, used = 0;
    if (!string) return 0;
    memcpy(&length, string + 16, sizeof length);
    uint32_t state = number_at(string, 32), kind = state >> 2 & 7;
    if (!(state >> 5 & 1) || (kind != 1 && kind != 2 && kind != 4)) return 0;
    const uint8_t *data = string + (state >> 6 & 1 ? python.layout->ascii : python.layout->compact);
    for (size_t i = 0; i < length && used + 4 <= sizeof out; i++) {
        uint32_t c = data[i];
        if (kind == 2) c = (uint32_t)data[2 * i] | (uint32_t)data[2 * i + 1] << 8;
        if (kind == 4) c = number_at(data, 4 * i);
        used += put_utf8(out + used, c);
    }
    return gpa_name_of(out, used);
}

static uint64_t read_frame(const uint8_t *frame, const uint8_t *code) {
    const struct layout *at = python.layout;
    uint64_t place;
    if (at->instruction_unit) {
        place = (uint64_t)number_at(frame, at->instruction) * at->instruction_unit;
    } else {
        place = (uint64_t)(pointer_at(frame, at->instruction) - (code + at->bytecode));
    }
    const uint64_t key[] = {(uint64_t)(uintptr_t)code, place, (uint64_t)(uintptr_t)pointer_at(code, at->file),
                            (uint64_t)(uintptr_t)pointer_at(code, at->name), number_at(code, at->first_line)};
    uint64_t id = gpa_hash(2, key, sizeof key);
    if (!gpa_is_news(id)) return id;
    int line = python.line_of((void *)(uintptr_t)code, (int)place);
    struct gpa_frame record = {.id = id, .line = line > 0 ? (uint32_t)line : 0};
    record.file = string_name(pointer_at(code, at->file));
    record.function = string_name(pointer_at(code, at->name));
    gpa_record(GPA_FRAME, &record, sizeof record, NULL, 0);
    return id;
}

static uint32_t read_frames(uint64_t *ids, uint32_t room) {
    const struct layout *at = python.layout;
    const uint8_t *thread = python.this_thread();
    uint32_t count = 0;
    if (!thread) return 0;
    const uint8_t *frame = pointer_at(thread, at->thread_frame);
    if (frame && at->holder_frame >= 0) frame = pointer_at(frame, (size_t)at->holder_frame);
    for (int steps = 0; frame && count < room && steps < 4096; steps++, frame = pointer_at(frame, at->previous)) {
        if (at->shim && frame[at->owner] >= at->shim) continue;
        const uint8_t *code = pointer_at(frame, at->code);
        if (code && pointer_at(code, 8) == python.code_type) ids[count++] = read_frame(frame, code);
    }
    return count;
}

static uint64_t attribute_name(void *object, const char *attribute) {
    void *value = python.attribute(object, attribute);
    ptrdiff_t length = 0;
    const char *text = value ? python.text(value, &length) : NULL;
    uint64_t id = text && length >= 0 ? gpa_name_of(text, (size_t)length) : 0;
    if (value) python.let_go(value);
    return id;
}

static uint32_t ask_frames(uint64_t *ids, uint32_t room) {
    void *type, *value, *trace, *frame = python.frame();
    uint32_t count = 0;
    python.take_error(&type, &value, &trace);
    for (bool borrowed = true; frame && count < room; borrowed = false) {
        struct gpa_frame record = {0};
        void *code = python.frame_code(frame);
        int line = python.frame_line(frame);
        record.line = line > 0 ? (uint32_t)line : 0;
        record.file = attribute_name(code, "co_filename");
        record.function = attribute_name(code, "co_name");
        python.let_go(code);
        record.id = gpa_hash(3, &record, sizeof record);
        if (gpa_is_news(record.id)) gpa_record(GPA_FRAME, &record, sizeof record, NULL, 0);
        ids[count++] = record.id;
        void *back = python.frame_back(frame);
        if (!borrowed) python.let_go(frame);
        frame = back;
    }
    if (frame) python.let_go(frame);
    python.put_error(type, value, trace);
    return count;
}

uint32_t gpa_python_frames(uint64_t *ids, uint32_t room) {
    if (!atomic_load_explicit(&have_python, memory_order_acquire) || !python.is_initialized()) return 0;
    if (python.layout) return read_frames(ids, room);
    return python.has_lock() ? ask_frames(ids, room) : 0;
}
