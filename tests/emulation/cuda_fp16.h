// SPDX-License-Identifier: Apache-2.0
// Half precision as a storage format: conversions to and from float, rounded to nearest even.

#pragma once

#include "cuda_on_host.h"

struct alignas(2) __half {
    unsigned short bits;
};
using half = __half;

inline __half __float2half(float value) {
    unsigned bits = __float_as_uint(value);
    const unsigned sign = bits >> 16 & 0x8000u;
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) {
        return {static_cast<unsigned short>(sign | 0x7e00u)};
    }
    if (bits >= 0x477ff000u) {
        return {static_cast<unsigned short>(sign | 0x7c00u)};
    }
    if (bits < 0x38800000u) {  // below the smallest normal number: let the addition round
        const float shifted = fabsf(value) + 0.5f;
        return {static_cast<unsigned short>(sign | (__float_as_uint(shifted) - 0x3f000000u))};
    }
    bits += 0xc8000fffu + (bits >> 13 & 1u);
    return {static_cast<unsigned short>(sign | bits >> 13)};
}

inline float __half2float(__half value) {
    const unsigned sign = (value.bits & 0x8000u) << 16;
    const unsigned exponent = value.bits >> 10 & 31u;
    const unsigned fraction = value.bits & 0x3ffu;
    if (exponent == 0) {
        const float small = static_cast<float>(fraction) * 5.9604645e-8f;
        return sign != 0 ? -small : small;
    }
    return __uint_as_float(sign | (exponent == 31 ? 0x7f800000u : (exponent + 112u) << 23) | fraction << 13);
}
