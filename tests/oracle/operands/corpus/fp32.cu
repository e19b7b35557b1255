// SPDX-License-Identifier: Apache-2.0
// Single precision: arithmetic, comparisons, special functions, rounding, divisions with slow paths.
#include <cuda_runtime.h>
__global__ void arithmetic(const float* __restrict__ a, const float* __restrict__ b, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = b[i];
    o[i] = x * y + x - y;
    o[i + n] = __fdiv_rn(x, y) + __frcp_ru(x) + __fsqrt_rn(y) + rsqrtf(x);
    o[i + 2 * n] = fminf(x, y) + fmaxf(x, 3.5f) + fabsf(x) - copysignf(y, x);
    o[i + 3 * n] = __saturatef(x) + __fmaf_rz(x, y, 1.f) + __fadd_rd(x, y) + __fmul_ru(x, y);
    o[i + 4 * n] = x < y ? x : (x != x ? y : 2.f);
}
__global__ void functions(const float* a, float* o, int n) {
    int i = threadIdx.x;
    float x = a[i];
    o[i] = sinf(x) + cosf(x) + tanf(x);
    o[i + n] = expf(x) + logf(x) + powf(x, 1.7f);
    o[i + 2 * n] = erff(x) + tgammaf(x) + atan2f(x, o[i]);
    o[i + 3 * n] = fmodf(x, 3.3f) + remainderf(x, 1.1f) + floorf(x) + ceilf(x) + truncf(x) + rintf(x) + roundf(x);
    o[i + 4 * n] = __sinf(x) + __expf(x) + __log2f(x) + __powf(x, 2.2f) + tanhf(x) + cbrtf(x) + hypotf(x, 2.f);
    o[i + 5 * n] = ldexpf(x, i) + frexpf(x, (int*)(o + i + 6 * n)) + (isnan(x) ? 1.f : isinf(x) ? 2.f : 0.f);
}
__global__ void packed(float2* a, float2* b, float2* o) {
    int i = threadIdx.x;
    float2 x = a[i], y = b[i];
#if __CUDA_ARCH__ >= 1000
    unsigned long long p = *(unsigned long long*)&x, q = *(unsigned long long*)&y, r;
    asm volatile("fma.rn.f32x2 %0, %1, %2, %1;" : "=l"(r) : "l"(p), "l"(q));
    asm volatile("add.rn.f32x2 %0, %1, %2;" : "=l"(p) : "l"(r), "l"(q));
    asm volatile("mul.rn.f32x2 %0, %1, %2;" : "=l"(q) : "l"(r), "l"(p));
    *(unsigned long long*)&o[i] = q ^ p;
    float m;
    asm volatile("max.f32 %0, %1, %2, %3;" : "=f"(m) : "f"(x.x), "f"(y.x), "f"(y.y));
    o[i + 64].x = m;
#else
    o[i] = make_float2(x.x * y.x, x.y + y.y);
#endif
}
