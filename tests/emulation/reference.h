// SPDX-License-Identifier: Apache-2.0
// What a kernel's reference.hpp works with: arrays, random inputs, and comparisons that are printed as JSON.

#pragma once

#include "cuda_on_host.h"

// An array that ends at a forbidden page.
template <class T>
class Array {
   public:
    explicit Array(size_t elements) : size_(elements) {
        const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        const size_t bytes = (elements * sizeof(T) + page - 1) / page * page;
        mapped_ = bytes + page;
        base_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        if (base_ == MAP_FAILED || mprotect(base_ + bytes, page, PROT_NONE) != 0) {
            emulation::fail("no memory for an array");
        }
        memset(base_, 0xff, bytes);
        data_ = reinterpret_cast<T*>(base_ + bytes - elements * sizeof(T));
    }
    Array(size_t elements, T value) : Array(elements) {
        for (T& element : *this) {
            element = value;
        }
    }
    Array(const Array& other) : Array(other.size_) { memcpy(data_, other.data_, size_ * sizeof(T)); }
    Array& operator=(const Array&) = delete;
    ~Array() { munmap(base_, mapped_); }

    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }
    T* data() { return data_; }
    const T* data() const { return data_; }
    T* begin() { return data_; }
    T* end() { return data_ + size_; }
    size_t size() const { return size_; }

   private:
    size_t size_, mapped_;
    char* base_;
    T* data_;
};

// The same numbers on every machine.
class Random {
   public:
    explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
    uint32_t bits() {
        state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
        return static_cast<uint32_t>(state_ >> 32);
    }
    int below(int limit) { return static_cast<int>(bits() % static_cast<uint32_t>(limit)); }
    float in(float low, float high) { return low + (high - low) * (static_cast<float>(bits() >> 8) * 0x1p-24f); }
    Array<float> array(size_t elements, float low, float high) {
        Array<float> values(elements);
        for (float& value : values) {
            value = in(low, high);
        }
        return values;
    }

   private:
    uint64_t state_;
};

// One line of JSON per output: how far it is from what it should be, in units of what is allowed.
template <class Got, class Expected>
void compare(const char* output, size_t elements, double relative, double absolute, const Got& got,
             const Expected& expected) {
    double worst = 0.0;
    size_t where = 0;
    double lowest = INFINITY;
    double highest = -INFINITY;
    for (size_t i = 0; i < elements; ++i) {
        const double want = static_cast<double>(expected(i));
        const double gap = fabs(static_cast<double>(got(i)) - want);
        const double allowed = absolute + relative * fabs(want);
        const double share = gap == 0.0 ? 0.0 : isfinite(gap) ? fmin(gap / allowed, 1.0e300) : 1.0e300;
        if (share > worst) {
            worst = share;
            where = i;
        }
        lowest = fmin(lowest, want);
        highest = fmax(highest, want);
    }
    printf("{\"output\": \"%s\", \"elements\": %zu, \"relative\": %g, \"absolute\": %g, \"worst\": %g, "
           "\"at\": %zu, \"got\": \"%.9g\", \"expected\": \"%.9g\", \"varied\": %s}\n",
           output, elements, relative, absolute, worst, where, elements > 0 ? static_cast<double>(got(where)) : 0.0,
           elements > 0 ? static_cast<double>(expected(where)) : 0.0, lowest < highest ? "true" : "false");
}

template <class T, class U>
void compare(const char* output, const Array<T>& got, const std::vector<U>& expected, double relative,
             double absolute) {
    if (got.size() != expected.size()) {
        emulation::fail("the reference has another size than the output");
    }
    compare(output, got.size(), relative, absolute, [&](size_t i) { return got[i]; },
            [&](size_t i) { return expected[i]; });
}

// Integers, which have to be the same.
template <class T, class U>
void compare(const char* output, const Array<T>& got, const std::vector<U>& expected) {
    compare(output, got, expected, 0.0, 0.5);
}
