// SPDX-License-Identifier: Apache-2.0
// CUDA's device language on the host: a kernel's threads as fibers of one process, in a fixed order.
//
// A block runs at a time. Each of its threads runs until it ends or reaches a barrier or a warp function, which
// let go when all have arrived. What a GPU leaves undefined is made to show: shared memory starts as garbage,
// arrays end at a forbidden page, and a launch runs in ascending and in descending order of threads and blocks, with
// asynchronous copies as late and as early as may be, so that a missing barrier gives other results.

#pragma once

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <type_traits>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __constant__ static
#define __restrict__ __restrict
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __shared__ static __attribute__((section("cuda_shared")))

#include "vector_types.h"

extern "C" char __start_cuda_shared[] __attribute__((weak));
extern "C" char __stop_cuda_shared[] __attribute__((weak));

inline dim3 threadIdx, blockIdx, blockDim, gridDim;
constexpr int warpSize = 32;

namespace emulation {

constexpr size_t kStackBytes = 128 * 1024;
constexpr int kWarp = 32;

enum class State { kReady, kAtBlockBarrier, kAtWarp, kDone };

struct Copy {
    void* to;
    const void* from;
    size_t bytes;
};

struct Thread {
    ucontext_t context;
    char* stack = nullptr;
    dim3 index;
    State state;
    int line;                           // of the barrier or warp function it waits at
    unsigned mask;                      // lanes that a warp function waits for
    unsigned long long given;           // its value for a warp function
    unsigned long long gathered[kWarp]; // those of all lanes, when it goes on
    std::vector<Copy> open;             // asynchronous copies that are not committed yet
    std::vector<std::vector<Copy>> batches;
};

inline std::vector<Thread> threads;
inline ucontext_t scheduler;
inline int running;
inline int live;  // threads of the current block
inline bool descending;
inline void (*body)(const void*);
inline const void* body_argument;

[[noreturn]] inline void fail(const char* what) {
    fprintf(stderr, "%s (block %u,%u,%u", what, blockIdx.x, blockIdx.y, blockIdx.z);
    for (int i = 0; i < live; ++i) {
        if (threads[i].state != State::kDone) {
            fprintf(stderr, "; thread %d waits at line %d", i, threads[i].line);
            break;
        }
    }
    fprintf(stderr, ")\n");
    exit(3);
}

inline void wait(State state, int line) {
    Thread& me = threads[running];
    me.state = state;
    me.line = line;
    swapcontext(&me.context, &scheduler);
}

inline void arrive(std::vector<Copy>& copies) {
    for (const Copy& copy : copies) {
        memcpy(copy.to, copy.from, copy.bytes);
    }
    copies.clear();
}

inline void wait_for_copies(size_t but_last) {
    std::vector<std::vector<Copy>>& batches = threads[running].batches;
    while (batches.size() > but_last) {
        arrive(batches.front());
        batches.erase(batches.begin());
    }
}

inline void entry() {
    body(body_argument);
    threads[running].state = State::kDone;
}

inline void start(int i) {
    Thread& thread = threads[i];
    if (thread.stack == nullptr) {
        thread.stack = static_cast<char*>(malloc(kStackBytes));
    }
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack;
    thread.context.uc_stack.ss_size = kStackBytes;
    thread.context.uc_link = &scheduler;
    thread.index = dim3(i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y));
    thread.state = State::kReady;
    thread.line = 0;
    thread.open.clear();
    thread.batches.clear();
    makecontext(&thread.context, entry, 0);
}

// Let the lanes of a warp go on that wait for one another, with the values of all of them.
inline bool release_warp(int first) {
    const int lanes = live - first < kWarp ? live - first : kWarp;
    bool released = false;
    for (int lane = 0; lane < lanes; ++lane) {
        if (threads[first + lane].state != State::kAtWarp) {
            continue;
        }
        const unsigned mask = threads[first + lane].mask;
        if ((mask >> lane & 1u) == 0) {
            fail("a lane calls a warp function whose mask leaves it out");
        }
        unsigned long long values[kWarp] = {};
        bool complete = true;
        for (int other = 0; other < kWarp && complete; ++other) {
            if ((mask >> other & 1u) == 0) {
                continue;
            }
            complete = other < lanes && threads[first + other].state == State::kAtWarp &&
                       threads[first + other].mask == mask &&
                       threads[first + other].line == threads[first + lane].line;
            values[other] = complete ? threads[first + other].given : 0;
        }
        for (int other = 0; complete && other < lanes; ++other) {
            if (mask >> other & 1u) {
                memcpy(threads[first + other].gathered, values, sizeof values);
                threads[first + other].state = State::kReady;
                released = true;
            }
        }
    }
    return released;
}

inline bool release_block() {
    int line = 0;
    for (int i = 0; i < live; ++i) {
        if (threads[i].state == State::kDone) {
            continue;
        }
        if (threads[i].state != State::kAtBlockBarrier) {
            return false;
        }
        if (line != 0 && threads[i].line != line) {
            fail("threads of a block wait at different barriers");
        }
        line = threads[i].line;
    }
    for (int i = 0; i < live; ++i) {
        if (threads[i].state == State::kAtBlockBarrier) {
            threads[i].state = State::kReady;
        }
    }
    return line != 0;
}

inline void run_block() {
    memset(__start_cuda_shared, 0xff, __stop_cuda_shared - __start_cuda_shared);
    for (int i = 0; i < live; ++i) {
        start(i);
    }
    for (;;) {
        for (int i = 0; i < live; ++i) {
            running = descending ? live - 1 - i : i;
            if (threads[running].state == State::kReady) {
                threadIdx = threads[running].index;
                swapcontext(&scheduler, &threads[running].context);
            }
        }
        bool released = false;
        for (int first = 0; first < live; first += kWarp) {
            released |= release_warp(first);
        }
        if (!released && !release_block()) {
            break;
        }
    }
    for (int i = 0; i < live; ++i) {
        if (threads[i].state != State::kDone) {
            fail("threads wait for one another for ever");
        }
    }
}

template <class Body>
void launch(dim3 grid, dim3 block, const Body& kernel) {
    gridDim = grid;
    blockDim = block;
    live = static_cast<int>(block.x * block.y * block.z);
    if (live < 1 || live > 1024) {
        fprintf(stderr, "a block of %d threads cannot be launched\n", live);
        exit(3);
    }
    if (threads.size() < static_cast<size_t>(live)) {
        threads.resize(live);
    }
    body = [](const void* argument) { (*static_cast<const Body*>(argument))(); };
    body_argument = &kernel;
    const unsigned blocks = grid.x * grid.y * grid.z;
    for (unsigned i = 0; i < blocks; ++i) {
        const unsigned b = descending ? blocks - 1 - i : i;
        blockIdx = dim3(b % grid.x, b / grid.x % grid.y, b / (grid.x * grid.y));
        run_block();
    }
}

template <class T>
unsigned long long to_bits(T value) {
    static_assert(sizeof(T) <= sizeof(unsigned long long));
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T>
T from_bits(unsigned long long bits) {
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

inline int lane() { return running % kWarp; }

// Give a value to the other lanes of the mask and wait for theirs.
template <class T>
const unsigned long long* gather(unsigned mask, T value, int line) {
    threads[running].given = to_bits(value);
    threads[running].mask = mask;
    wait(State::kAtWarp, line);
    return threads[running].gathered;
}

template <class T>
T shuffle(unsigned mask, T value, int source, int line) {
    const unsigned long long* all = gather(mask, value, line);
    if (source != lane() && (mask >> source & 1u) == 0) {
        fail("a shuffle reads a lane that takes no part in it");
    }
    return from_bits<T>(all[source]);
}

template <class T>
T shuffle_down(unsigned mask, T value, unsigned delta, int width, int line) {
    const int source = lane() + static_cast<int>(delta);
    return shuffle(mask, value, source / width == lane() / width ? source : lane(), line);
}

template <class T>
T shuffle_up(unsigned mask, T value, unsigned delta, int width, int line) {
    const int source = lane() - static_cast<int>(delta);
    return shuffle(mask, value, source >= lane() / width * width ? source : lane(), line);
}

template <class T>
T shuffle_xor(unsigned mask, T value, int bits, int width, int line) {
    const int source = lane() ^ bits;
    return shuffle(mask, value, source / width <= lane() / width ? source : lane(), line);
}

template <class T>
T shuffle_from(unsigned mask, T value, int source, int width, int line) {
    return shuffle(mask, value, lane() / width * width + (source & (width - 1)), line);
}

inline unsigned ballot(unsigned mask, bool predicate, int line) {
    const unsigned long long* all = gather(mask, predicate ? 1u : 0u, line);
    unsigned votes = 0;
    for (int i = 0; i < kWarp; ++i) {
        votes |= (mask >> i & 1u) != 0 && all[i] != 0 ? 1u << i : 0u;
    }
    return votes;
}

// The optional last argument of the shuffles.
inline int width_of(int width = kWarp) { return width; }

}  // namespace emulation

#define __syncthreads() emulation::wait(emulation::State::kAtBlockBarrier, __LINE__)
#define __syncwarp(...) emulation::gather(emulation::mask_of(__VA_ARGS__), 0, __LINE__)
#define __shfl_sync(mask, value, lane, ...) \
    emulation::shuffle_from(mask, value, lane, emulation::width_of(__VA_ARGS__), __LINE__)
#define __shfl_down_sync(mask, value, delta, ...) \
    emulation::shuffle_down(mask, value, delta, emulation::width_of(__VA_ARGS__), __LINE__)
#define __shfl_up_sync(mask, value, delta, ...) \
    emulation::shuffle_up(mask, value, delta, emulation::width_of(__VA_ARGS__), __LINE__)
#define __shfl_xor_sync(mask, value, bits, ...) \
    emulation::shuffle_xor(mask, value, bits, emulation::width_of(__VA_ARGS__), __LINE__)
#define __ballot_sync(mask, predicate) emulation::ballot(mask, predicate, __LINE__)
#define __any_sync(mask, predicate) (emulation::ballot(mask, predicate, __LINE__) != 0)
#define __all_sync(mask, predicate) (emulation::ballot(mask, predicate, __LINE__) == (mask))

namespace emulation {
inline unsigned mask_of(unsigned mask = 0xffffffffu) { return mask; }
}  // namespace emulation

#include "intrinsics.h"
