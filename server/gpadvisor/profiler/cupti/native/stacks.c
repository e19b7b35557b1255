/* SPDX-License-Identifier: Apache-2.0 */
/* Native call stacks by the compiler's unwind tables. Addresses are written as they are; what they mean is found
 * by the service thread, since asking the loader may wait for a thread that is just loading a library. */
#define _GNU_SOURCE
#include "stacks.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unwind.h>

#include "recorder.h"

#define MAX_NATIVE 96
#define MAX_PYTHON 64
#define PENDING 4096 /* addresses waiting for their names; a power of two */

static _Atomic uint64_t pending[PENDING];
static _Atomic uint64_t named[PENDING];

struct walk {
    uint64_t *frames;
    uint32_t count;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *data) {
    struct walk *walk = data;
    uint64_t address = (uint64_t)_Unwind_GetIP(context);
    if (!address || walk->count == MAX_NATIVE) return _URC_END_OF_STACK;
    walk->frames[walk->count++] = address;
    return _URC_NO_REASON;
}

void gpa_stacks_prepare(void) {
    uint64_t frames[MAX_NATIVE];
    struct walk walk = {frames, 0};
    _Unwind_Backtrace(step, &walk); /* the first one allocates */
    gpa_python_prepare();
}

static size_t place_of(uint64_t address, size_t attempt) {
    return (size_t)((address ^ address >> 12) + attempt) & (PENDING - 1);
}

static void ask_for_name(uint64_t address) {
    for (size_t attempt = 0; attempt < 8; attempt++) {
        size_t at = place_of(address, attempt);
        uint64_t known = atomic_load_explicit(&named[at], memory_order_relaxed), none = 0;
        if (known == address) return;
        if (known || !atomic_compare_exchange_strong(&pending[at], &none, address)) {
            if (none == address) return;
            continue;
        }
        return;
    }
    /* The table is crowded: whoever had the first place is named again when it is met again. */
    atomic_store(&pending[place_of(address, 0)], address);
}

uint64_t gpa_stack_here(void) {
    struct {
        struct gpa_path head;
        uint64_t frames[MAX_PYTHON + MAX_NATIVE];
    } path = {.head = {0, 0, 0}};
    path.head.python = gpa_python_frames(path.frames, MAX_PYTHON);
    struct walk walk = {path.frames + path.head.python, 0};
    _Unwind_Backtrace(step, &walk);
    path.head.native = walk.count;
    uint32_t all = path.head.python + path.head.native;
    if (!all) return 0;
    path.head.id = gpa_hash(path.head.python, path.frames, all * sizeof *path.frames);
    if (!gpa_is_news(path.head.id)) return path.head.id;
    gpa_record(GPA_PATH, &path.head, sizeof path.head, path.frames, all * sizeof *path.frames);
    for (uint32_t i = path.head.python; i < all; i++) {
        uint64_t address = path.frames[i];
        ask_for_name(address);
    }
    return path.head.id;
}

static void name_address(uint64_t address) {
    Dl_info info;
    struct link_map *map = NULL;
    struct gpa_symbol symbol = {.address = address};
    /* A return address may be the first of the next function; the call lies before it. */
    union {
        uintptr_t number;
        void *pointer;
    } at = {.number = (uintptr_t)address - 1};
    if (dladdr1(at.pointer, &info, (void **)&map, RTLD_DL_LINKMAP)) {
        /* The loader does not know the path of the program itself. */
        symbol.module = gpa_name(map && map->l_name && *map->l_name ? map->l_name : "/proc/self/exe");
        symbol.function = gpa_name(info.dli_sname);
        symbol.offset = (uint64_t)at.number - (map ? (uint64_t)map->l_addr : (uint64_t)(uintptr_t)info.dli_fbase);
    }
    gpa_record(GPA_SYMBOL, &symbol, sizeof symbol, NULL, 0);
}

void gpa_stacks_name_addresses(void) {
    for (size_t i = 0; i < PENDING; i++) {
        if (!atomic_load_explicit(&pending[i], memory_order_relaxed)) continue;
        uint64_t address = atomic_exchange(&pending[i], 0);
        if (!address || atomic_load(&named[i]) == address) continue;
        atomic_store(&named[i], address);
        name_address(address);
    }
}

void gpa_stacks_forget(void) {
    for (size_t i = 0; i < PENDING; i++) atomic_store(&named[i], 0);
}
