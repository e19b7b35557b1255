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

#include "checks.hpp"
