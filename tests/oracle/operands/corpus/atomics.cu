// SPDX-License-Identifier: Apache-2.0
// Atomics and reductions of every kind, in global, shared and generic memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda/atomic>
template <class T>
__device__ void all(T* p, T v, T* o) {
    int k = 0;
    o[k++] = atomicAdd(p, v);
    o[k++] = atomicExch(p + 1, v);
    o[k++] = atomicCAS(p + 2, v, v + 1);
    o[k++] = atomicMin(p + 3, v);
    o[k++] = atomicMax(p + 4, v);
    o[k++] = atomicAnd(p + 5, v);
    o[k++] = atomicOr(p + 6, v);
    o[k++] = atomicXor(p + 7, v);
    atomicAdd(p + 8, v);
    atomicMin(p + 9, v);
    atomicMax(p + 10, v);
    atomicAnd(p + 11, v);
    atomicOr(p + 12, v);
    atomicXor(p + 13, v);
    atomicExch(p + 14, v);
    atomicCAS(p + 15, v, T(5));
}
__global__ void global_all(int* a, unsigned* b, unsigned long long* c, int* oa, unsigned* ob, unsigned long long* oc) {
    int i = threadIdx.x;
    all(a + i, oa[i + 99], oa + i * 20);
    all(b + i, ob[i + 99], ob + i * 20);
    all(c + i, oc[i + 99], oc + i * 20);
    ob[i] = atomicInc(b + 40, 7) + atomicDec(b + 41, 9);
    atomicInc(b + 42, 7);
    atomicDec(b + 43, 7);
    oc[i] = atomicAdd((unsigned long long*)a, 3ull);
}
__global__ void shared_all(int* oa, unsigned* ob, unsigned long long* oc) {
    __shared__ int a[64];
    __shared__ unsigned b[64];
    __shared__ unsigned long long c[64];
    int i = threadIdx.x;
    a[i] = b[i] = c[i] = 0;
    __syncthreads();
    all(a + (i & 7), oa[i + 99], oa + i * 20);
    all(b + (i & 7), ob[i + 99], ob + i * 20);
    all(c + (i & 7), oc[i + 99], oc + i * 20);
    atomicInc(b + 42, 7);
    ob[i] = atomicDec(b + 43, 7);
    __syncthreads();
    oa[i] += a[i] + b[i] + c[i];
}
__global__ void generic_all(int** p, unsigned long long** q, float** f, int* o) {
    int i = threadIdx.x;
    __shared__ int s[32];
    __shared__ float t[32];
    int* x = o[i] ? s + i : p[i];
    float* y = o[i] ? t + i : f[i];
    *x = 0;
    *y = 0;
    o[i] = atomicAdd(x, 3) + atomicCAS(x + 1, 2, 5) + atomicExch(x + 2, 5);
    atomicMax(x + 3, i);
    atomicAdd(y, 2.f);
    o[i + 64] = *x + (int)atomicAdd(y + 1, 3.f) + (int)atomicCAS(q[i], 4ull, 6ull);
}
__global__ void floats(float* f, double* d, __half2* h, __nv_bfloat162* b, __half* h1, float* o, double* od) {
    int i = threadIdx.x;
    __shared__ float s[32];
    __shared__ double sd[32];
    s[i] = o[i];
    sd[i] = od[i];
    __syncthreads();
    atomicAdd(f + i, 1.f);
    o[i] = atomicAdd(f + i + 1, 2.f) + atomicExch(f + 3, 2.f);
    atomicAdd(d + i, 1.);
    od[i] = atomicAdd(d + i + 1, 2.);
    atomicAdd(h + i, h[i + 1]);
    h[i + 2] = atomicAdd(h + i + 3, h[i + 4]);
    atomicAdd(h1 + i, h1[i + 1]);
    atomicAdd(b + i, b[i + 1]);
    atomicAdd(s + (i & 3), 1.f);
    atomicAdd(sd + (i & 3), 1.);
    o[i + 64] = atomicAdd(s + (i & 7), 3.f);
    __syncthreads();
    o[i + 128] = s[i] + sd[i];
}
__global__ void ordered(int* a, long long* b, int* o) {
    int i = threadIdx.x;
    cuda::atomic_ref<int, cuda::thread_scope_device> x(a[i]);
    cuda::atomic_ref<long long, cuda::thread_scope_system> y(b[i]);
    x.store(3, cuda::memory_order_release);
    o[i] = x.load(cuda::memory_order_acquire) + x.fetch_add(2, cuda::memory_order_acq_rel);
    int expected = 4;
    while (!x.compare_exchange_weak(expected, expected + 1, cuda::memory_order_seq_cst)) expected ^= 1;
    y.fetch_max(7, cuda::memory_order_relaxed);
    long long e = 5;
    o[i + 64] = y.compare_exchange_strong(e, 9) + (int)e;
    o[i + 128] = atomicAdd_system(a + i, 2) + atomicAdd_block(a + i + 1, 3);
    atomicCAS((unsigned short*)a + i, (unsigned short)3, (unsigned short)4);
    __threadfence();
    __threadfence_block();
    __threadfence_system();
    volatile int* v = a + 77;
    while (*v != 3) __nanosleep(50);
}
#if __CUDA_ARCH__ >= 900
struct alignas(16) Wide { unsigned long long a, b; };
__global__ void vector_atomics(float4* f, float2* g, Wide* w, float* o) {
    int i = threadIdx.x;
    atomicAdd(f + i, f[i + 1]);
    float2 r = atomicAdd(g + i, g[i + 1]);
    o[i] = r.x + r.y;
    float4 t = atomicAdd(f + i + 2, f[i + 3]);
    o[i + 32] = t.x * t.w + t.y;
    Wide e = w[i], v = w[i + 1];
    Wide k = atomicCAS(w + i + 2, e, v);
    o[i + 64] = k.a + k.b;
    Wide x = atomicExch(w + i + 3, k);
    o[i + 96] = x.a - x.b;
}
#endif
