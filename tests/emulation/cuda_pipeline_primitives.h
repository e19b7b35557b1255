// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies that arrive as late as they may, and in descending order of threads as early as they may.

#pragma once

#include "cuda_on_host.h"

inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0) {
    if ((bytes != 4 && bytes != 8 && bytes != 16) || zeros != 0 || reinterpret_cast<uintptr_t>(to) % bytes != 0 ||
        reinterpret_cast<uintptr_t>(from) % bytes != 0) {
        emulation::fail("an asynchronous copy has a size or an alignment that it cannot have");
    }
    if (emulation::descending) {
        memcpy(to, from, bytes);
    } else {
        emulation::threads[emulation::running].open.push_back({to, from, bytes});
    }
}

inline void __pipeline_commit() {
    emulation::Thread& me = emulation::threads[emulation::running];
    me.batches.push_back(me.open);
    me.open.clear();
}

inline void __pipeline_wait_prior(size_t but_last) { emulation::wait_for_copies(but_last); }
