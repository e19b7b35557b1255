// SPDX-License-Identifier: Apache-2.0
// Warp matrix functions: every lane holds the whole fragment and computes all of it.

#pragma once

#include "cuda_fp16.h"

namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int m, int n, int k, class T, class Layout = void>
struct fragment {
    static constexpr int kRows = std::is_same_v<Use, matrix_b> ? k : m;
    static constexpr int kColumns = std::is_same_v<Use, matrix_a> ? k : n;
    static constexpr int num_elements = kRows * kColumns;
    T x[num_elements];  // row by row
};

template <class Use, int m, int n, int k, class T, class Layout>
void fill_fragment(fragment<Use, m, n, k, T, Layout>& to, std::type_identity_t<T> value) {
    for (T& element : to.x) {
        element = value;
    }
}

template <class Use, int m, int n, int k, class T, class Layout>
void load_matrix_sync(fragment<Use, m, n, k, T, Layout>& to, const T* from, unsigned pitch) {
    static_assert(!std::is_void_v<Layout>);
    emulation::gather(0xffffffffu, 0, -1);
    for (int row = 0; row < to.kRows; ++row) {
        for (int column = 0; column < to.kColumns; ++column) {
            to.x[row * to.kColumns + column] = std::is_same_v<Layout, row_major> ? from[row * pitch + column]
                                                                                : from[column * pitch + row];
        }
    }
}

template <int m, int n, int k, class T>
void load_matrix_sync(fragment<accumulator, m, n, k, T>& to, const T* from, unsigned pitch, layout_t layout) {
    emulation::gather(0xffffffffu, 0, -2);
    for (int row = 0; row < m; ++row) {
        for (int column = 0; column < n; ++column) {
            to.x[row * n + column] = layout == mem_row_major ? from[row * pitch + column] : from[column * pitch + row];
        }
    }
}

template <int m, int n, int k, class T>
void store_matrix_sync(T* to, const fragment<accumulator, m, n, k, T>& from, unsigned pitch, layout_t layout) {
    emulation::gather(0xffffffffu, 0, -3);
    for (int row = 0; row < m; ++row) {
        for (int column = 0; column < n; ++column) {
            (layout == mem_row_major ? to[row * pitch + column] : to[column * pitch + row]) = from.x[row * n + column];
        }
    }
    emulation::gather(0xffffffffu, 0, -4);
}

template <int m, int n, int k, class LayoutA, class LayoutB>
void mma_sync(fragment<accumulator, m, n, k, float>& d, const fragment<matrix_a, m, n, k, half, LayoutA>& a,
              const fragment<matrix_b, m, n, k, half, LayoutB>& b, const fragment<accumulator, m, n, k, float>& c) {
    emulation::gather(0xffffffffu, 0, -5);
    for (int row = 0; row < m; ++row) {
        for (int column = 0; column < n; ++column) {
            float sum = c.x[row * n + column];
            for (int i = 0; i < k; ++i) {
                sum += __half2float(a.x[row * k + i]) * __half2float(b.x[i * n + column]);
            }
            d.x[row * n + column] = sum;
        }
    }
}

}  // namespace nvcuda::wmma
