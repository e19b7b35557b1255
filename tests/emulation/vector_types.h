// SPDX-License-Identifier: Apache-2.0
// CUDA's vector types, as far as our kernels use them.

#pragma once

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

#define EMULATED_VECTORS(scalar, name)                                                                     \
    struct alignas(2 * sizeof(scalar)) name##2 {                                                           \
        scalar x, y;                                                                                       \
    };                                                                                                     \
    struct name##3 {                                                                                       \
        scalar x, y, z;                                                                                    \
    };                                                                                                     \
    struct alignas(sizeof(scalar) < 8 ? 4 * sizeof(scalar) : 16) name##4 {                                 \
        scalar x, y, z, w;                                                                                 \
    };                                                                                                     \
    constexpr name##2 make_##name##2(scalar x, scalar y) { return {x, y}; }                                \
    constexpr name##3 make_##name##3(scalar x, scalar y, scalar z) { return {x, y, z}; }                   \
    constexpr name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; }

EMULATED_VECTORS(float, float)
EMULATED_VECTORS(double, double)
EMULATED_VECTORS(int, int)
EMULATED_VECTORS(unsigned, uint)
EMULATED_VECTORS(short, short)
EMULATED_VECTORS(unsigned char, uchar)
