// SPDX-License-Identifier: Apache-2.0
// CUDA's math and atomic functions on the host. The fast ones are accurate here: tolerances make up for it.

#pragma once

template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
    using T = std::common_type_t<A, B>;
    return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
}

template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
    using T = std::common_type_t<A, B>;
    return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}

namespace emulation {

inline unsigned high_product(unsigned a, unsigned b) {
    return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}

inline int high_product(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }

template <class T>
T load(const T* address) {
    return *address;
}

template <class T, class Operation>
T update(T* address, const Operation& operation) {
    const T old = *address;
    *address = operation(old);
    return old;
}

}  // namespace emulation

// The C library declares some of these names itself, hence macros.
#define rsqrtf(x) (1.0f / sqrtf(x))
#define __expf(x) expf(x)
#define __exp2f(x) exp2f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __powf(x, y) powf(x, y)
#define __fdividef(x, y) ((x) / (y))
#define __frcp_rn(x) (1.0f / (x))
#define __fsqrt_rn(x) sqrtf(x)
#define __frsqrt_rn(x) (1.0f / sqrtf(x))
#define __fmaf_rn(x, y, z) fmaf(x, y, z)
#define __fdiv_rn(x, y) ((x) / (y))
#define __saturatef(x) fminf(fmaxf(x, 0.0f), 1.0f)
#define __float2int_rd(x) static_cast<int>(floorf(x))
#define __float2int_rn(x) static_cast<int>(rintf(x))
#define __float2int_rz(x) static_cast<int>(x)
#define __int2float_rn(x) static_cast<float>(x)
#define __float_as_int(x) emulation::from_bits<int>(emulation::to_bits<float>(x))
#define __float_as_uint(x) emulation::from_bits<unsigned>(emulation::to_bits<float>(x))
#define __int_as_float(x) emulation::from_bits<float>(emulation::to_bits<int>(x))
#define __uint_as_float(x) emulation::from_bits<float>(emulation::to_bits<unsigned>(x))
#define __umulhi(x, y) emulation::high_product(static_cast<unsigned>(x), static_cast<unsigned>(y))
#define __mulhi(x, y) emulation::high_product(static_cast<int>(x), static_cast<int>(y))
#define __popc(x) __builtin_popcount(x)
#define __clz(x) ((x) == 0 ? 32 : __builtin_clz(x))
#define __ffs(x) __builtin_ffs(x)
#define __ldg(address) emulation::load(address)

template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
    return emulation::update(address, [&](T old) { return static_cast<T>(old + value); });
}

template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
    return emulation::update(address, [&](T old) { return value < old ? value : old; });
}

template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
    return emulation::update(address, [&](T old) { return old < value ? value : old; });
}

template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
    return emulation::update(address, [&](T) { return value; });
}

template <class T>
T atomicOr(T* address, std::type_identity_t<T> value) {
    return emulation::update(address, [&](T old) { return old | value; });
}

template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
    return emulation::update(address, [&](T old) { return old == expected ? value : old; });
}
