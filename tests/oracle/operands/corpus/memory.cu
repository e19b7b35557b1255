// SPDX-License-Identifier: Apache-2.0
// Loads and stores of every width, cache operator and address form.
#include <cuda_runtime.h>
struct alignas(32) Big { unsigned long long v[4]; };
struct alignas(16) Wide { int v[4]; };
__constant__ float table[1024];
__constant__ double doubles[64];
__constant__ int4 quads[64];
template <class T>
__device__ void forms(T* a, const T* __restrict__ b, T* o, int i) {
    o[i] = a[i];
    o[i + 1024] = b[i];
    o[i + 2048] = __ldcs(a + i + 2);
    o[i + 3072] = __ldcg(a + i + 3);
    __stcs(o + i + 4096, __ldca(a + i + 4));
    __stcg(o + i + 5120, __ldcv(a + i + 5));
    __stwt(o + i + 6144, __ldlu(a + i + 6));
}
__global__ void widths(char* a, const char* __restrict__ b, char* o) {
    int i = threadIdx.x;
    forms((unsigned char*)a, (const unsigned char*)b, (unsigned char*)o, i);
    forms((short*)a, (const short*)b, (short*)o, i);
    forms((int*)a, (const int*)b, (int*)o, i);
    forms((int2*)a, (const int2*)b, (int2*)o, i);
    forms((float4*)a, (const float4*)b, (float4*)o, i);
    forms((double2*)a, (const double2*)b, (double2*)o, i);
    *(Big*)(o + 65536 + i * 32) = *(Big*)(a + 65536 + i * 32);
    *(Wide*)(o + 131072 + i * 16) = *(Wide*)(a + 131072 + i * 16);
}
__global__ void constants(const int* a, float* f, double* d, int4* q, float scale) {
    int i = threadIdx.x;
    f[i] = table[a[i]] * scale + table[3];
    d[i] = doubles[a[i + 1] & 63] + doubles[5];
    q[i] = quads[a[i + 2] & 63];
    f[i + 64] = table[blockIdx.x];
}
__global__ void uniform_indices(const float* __restrict__ a, float* o, int n, int stride) {
    for (int k = blockIdx.x; k < n; k += gridDim.x) {
        const float* row = a + (size_t)k * stride;
        float s = row[0];
        for (int j = threadIdx.x; j < stride; j += 32) s += row[j] * row[blockIdx.y];
        o[k] = s;
    }
}
__global__ void shared_forms(const char* a, char* o, int n) {
    extern __shared__ char s[];
    int i = threadIdx.x;
    s[i] = a[i];
    ((short*)s)[i + 128] = ((const short*)a)[i];
    ((int*)s)[i + 256] = ((const int*)a)[i];
    ((double*)s)[i + 256] = ((const double*)a)[i];
    ((int4*)s)[i + 256] = ((const int4*)a)[i];
    __syncthreads();
    o[i] = s[n - i];
    ((short*)o)[i + 128] = ((short*)s)[n - i + 128];
    ((unsigned short*)o)[i + 512] = ((unsigned char*)s)[n + i + 128];
    ((int*)o)[i + 256] = ((int*)s)[n * i + 256] + ((int*)s)[blockIdx.x];
    ((double*)o)[i + 256] = ((double*)s)[n - i + 256];
    ((int4*)o)[i + 256] = ((int4*)s)[n - i + 256];
}
__global__ void hints(const float* a, float* o, float4* v) {
    int i = threadIdx.x;
    float x;
    asm volatile("ld.global.L1::no_allocate.f32 %0, [%1];" : "=f"(x) : "l"(a + i));
    o[i] = x;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(a + i + 64));
    asm volatile("prefetch.global.L1 [%0];" ::"l"(a + i + 96));
#if __CUDA_ARCH__ >= 800
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 0.5;" : "=l"(policy));
    asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(x) : "l"(a + i + 7), "l"(policy));
    asm volatile("st.global.L2::cache_hint.f32 [%0], %1, %2;" ::"l"(o + i + 9), "f"(x), "l"(policy));
    float4 q;
    asm volatile("ld.global.L2::cache_hint.v4.f32 {%0,%1,%2,%3}, [%4], %5;" : "=f"(q.x), "=f"(q.y), "=f"(q.z), "=f"(q.w) : "l"(v + i), "l"(policy));
    asm volatile("red.global.add.L2::cache_hint.u32 [%0], %1, %2;" ::"l"(o + i + 5), "r"(i), "l"(policy));
    unsigned r;
    asm volatile("atom.global.add.L2::cache_hint.u32 %0, [%1], %2, %3;" : "=r"(r) : "l"(o + i + 6), "r"(i), "l"(policy));
    o[i + 400] = r + q.x * q.y + q.z * q.w;
    asm volatile("discard.global.L2 [%0], 128;" ::"l"(o));
    asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(o));
#endif
#if __CUDA_ARCH__ >= 1000
    unsigned long long w[4];
    asm volatile("ld.global.v4.b64 {%0,%1,%2,%3}, [%4];" : "=l"(w[0]), "=l"(w[1]), "=l"(w[2]), "=l"(w[3]) : "l"(v + 2 * i));
    asm volatile("st.global.v4.b64 [%0], {%1,%2,%3,%4};" ::"l"(v + 64 + 2 * i), "l"(w[3]), "l"(w[2]), "l"(w[1] + 1), "l"(w[0]));
    unsigned u[8];
    asm volatile("ld.global.nc.v8.b32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];" : "=r"(u[0]), "=r"(u[1]), "=r"(u[2]), "=r"(u[3]), "=r"(u[4]), "=r"(u[5]), "=r"(u[6]), "=r"(u[7]) : "l"(v + 128 + 2 * i));
    o[i + 500] = u[0] + u[1] * u[2] + u[3] * u[4] + u[5] * u[6] + u[7];
#endif
    o[i + 700] = __isShared(a) + 2 * __isGlobal(a) + 4 * __isLocal(a) + 8 * __isConstant(a);
}
