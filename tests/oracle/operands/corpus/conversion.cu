// SPDX-License-Identifier: Apache-2.0
// Conversions between every pair of types.
#include <cuda_fp16.h>
template <class T, class F>
__device__ void one(void* o, const void* a, int& k) {
    int i = threadIdx.x;
    ((T*)o)[i + 1024 * k] = (T)((const F*)a)[i + 1024 * k];
    k++;
}
template <class F>
__device__ void row(void* o, const void* a, int& k) {
    one<signed char, F>(o, a, k);
    one<unsigned char, F>(o, a, k);
    one<short, F>(o, a, k);
    one<unsigned short, F>(o, a, k);
    one<int, F>(o, a, k);
    one<unsigned, F>(o, a, k);
    one<long long, F>(o, a, k);
    one<unsigned long long, F>(o, a, k);
    one<float, F>(o, a, k);
    one<double, F>(o, a, k);
}
__global__ void from_integers(void* o, const void* a) {
    int k = 0;
    row<signed char>(o, a, k);
    row<unsigned char>(o, a, k);
    row<short>(o, a, k);
    row<unsigned short>(o, a, k);
    row<int>(o, a, k);
    row<unsigned>(o, a, k);
    row<long long>(o, a, k);
    row<unsigned long long>(o, a, k);
}
__global__ void from_floats(void* o, const void* a) {
    int k = 0;
    row<float>(o, a, k);
    row<double>(o, a, k);
    one<float, __half>(o, a, k);
    one<__half, float>(o, a, k);
    one<__half, double>(o, a, k);
}
__global__ void rounding(const float* a, const double* d, int* o, long long* l) {
    int i = threadIdx.x;
    o[i] = __float2int_rd(a[i]) + __float2int_ru(a[i]) + __float2uint_rn(a[i]) + lrintf(a[i]) + lroundf(a[i]);
    l[i] = __float2ll_rd(a[i]) + __double2ll_ru(d[i]) + __float2ull_rz(a[i]) + llrint(d[i]);
    ((float*)o)[i + 64] = __int2float_rd(o[i + 3]) + __uint2float_ru(o[i + 4]) + __ll2float_rz(l[i + 5]);
    ((double*)l)[i + 64] = __ull2double_rd(l[i + 5]) + __uint2double_rn(o[i + 1]);
    ((int*)l)[i + 256] = __float_as_int(a[i + 9]) + (int)d[i + 9];
}
