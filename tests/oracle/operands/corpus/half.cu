// SPDX-License-Identifier: Apache-2.0
// Half precision and bfloat16: scalar, packed, comparisons, conversions, eight-bit formats.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
__global__ void packed(const __half2* a, const __half2* b, __half2* o, int n) {
    int i = threadIdx.x;
    __half2 x = a[i], y = b[i];
    o[i] = __hfma2(x, y, x);
    o[i + n] = __hadd2(x, y) * __hsub2(x, __float2half2_rn(2.f));
    o[i + 2 * n] = __hgt2(x, y);
    o[i + 3 * n] = __h2div(x, y) + h2sqrt(x) + h2exp(x);
    o[i + 4 * n] = __hmul2_sat(x, y) + __habs2(x) + __hneg2(y);
    if (__hbgt2(x, y)) o[i + 5 * n] = __lowhigh2highlow(x);
    o[i + 6 * n] = __hmax2(x, y) + __hmin2(x, y);
    o[i + 7 * n] = __hfma2_relu(x, y, x);
}
__global__ void scalar(const __half* a, __half* o, float* f, short* s, int n) {
    int i = threadIdx.x;
    __half x = a[i], y = a[i + n];
    o[i] = x * y + x;
    f[i] = __half2float(x) + (float)y;
    s[i] = __half2short_rz(x) + __half2int_rn(y);
    o[i + 2 * n] = __short2half_rn(s[i + 3]) + __int2half_rn(i) + __float2half(f[i + 4]);
    o[i + 3 * n] = hsin(x) + hlog(y) + hrcp(x) + htrunc(x);
    if (x < y) o[i + 4 * n] = __hadd(x, y);
    o[i + 5 * n] = __double2half((double)f[i + 9]);
}
__global__ void brain(const __nv_bfloat162* a, __nv_bfloat162* o, float* f, int n) {
    int i = threadIdx.x;
    __nv_bfloat162 x = a[i], y = a[i + n];
#if __CUDA_ARCH__ >= 800
    o[i] = __hfma2(x, y, x);
#endif
    o[i + n] = x * y + x - y;
    f[i] = __bfloat162float(x.x) + __low2float(y);
    o[i + 2 * n] = __floats2bfloat162_rn(f[i + 2], f[i + 3]);
    o[i + 3 * n] = __hgt2(x, y);
    o[i + 4 * n] = __hmax2(x, y);
}
__global__ void eight(const __nv_fp8x4_e4m3* a, __nv_fp8x4_e4m3* o, float4* f, __nv_fp8_e5m2* e, int n) {
    int i = threadIdx.x;
    float4 v = static_cast<float4>(a[i]);
    v.x *= 2.f;
    f[i] = v;
    o[i] = __nv_fp8x4_e4m3(f[i + n]);
    e[i] = __nv_fp8_e5m2(v.y);
    f[i + n].x = static_cast<float>(e[i + 3]);
}
