// SPDX-License-Identifier: Apache-2.0
// Warpgroup matrix instructions of sm_90a and tensor-memory instructions of sm_100a; elsewhere a plain kernel.
#include <cuda_fp16.h>
__global__ void plain(float* o) { o[threadIdx.x] *= 2.f; }
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define ACC8(d) "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
__global__ void wgmma(float* o, const unsigned* r, unsigned long long x, unsigned long long y) {
    float d[8], e[4];
    int c[8];
    for (int i = 0; i < 8; i++) d[i] = o[threadIdx.x * 8 + i], c[i] = r[i + threadIdx.x];
    for (int i = 0; i < 4; i++) e[i] = o[threadIdx.x + i];
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, 1, 1, 1, 0, 0;" : ACC8(d) : "l"(x), "l"(y));
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7}, {%9,%10,%11,%12}, %8, 1, 1, 1, 0;" : ACC8(d) : "l"(y), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, 1, 1, 1;" : ACC8(d) : "l"(x), "l"(y));
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3 {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, 1, 1, 1;" : ACC8(d) : "l"(x), "l"(y));
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.s8 {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, 1;" : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]), "+r"(c[4]), "+r"(c[5]), "+r"(c[6]), "+r"(c[7]) : "l"(x), "l"(y));
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0,%1}, %2, %3, 1, 1, 1, 0, 0;" : "+r"(c[0]), "+r"(c[1]) : "l"(x), "l"(y));
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%0,%1,%2,%3}, %4, %5, 1;" : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "l"(x), "l"(y));
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;");
    for (int i = 0; i < 8; i++) o[threadIdx.x * 8 + i] = d[i] + c[i] + e[i & 3];
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    o[threadIdx.x + 99] = x + 3;
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    o[threadIdx.x + 999] = x + 5;
}
#endif
#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
__global__ void tcgen05(unsigned* o, unsigned long long x, unsigned long long y, unsigned id, unsigned n) {
    __shared__ unsigned base;
    __shared__ alignas(8) unsigned long long b;
    unsigned at = (unsigned)__cvta_generic_to_shared(&base), bar = (unsigned)__cvta_generic_to_shared(&b);
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(at), "r"(64));
    __syncthreads();
    unsigned t = base, r[8];
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(t), "l"(x), "l"(y), "r"(id), "r"(n));
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p; }" ::"r"(t), "l"(x), "l"(y), "r"(id), "r"(n));
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1.kind::tf32 [%0], [%1], %2, %3, p; }" ::"r"(t), "r"(t + 16), "l"(y), "r"(id), "r"(n));
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1.kind::i8 [%0], %1, %2, %3, p; }" ::"r"(t), "l"(x), "l"(y), "r"(id), "r"(n));
    asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" ::"r"(t), "l"(x));
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%0];" ::"r"(bar));
    asm volatile("tcgen05.fence::before_thread_sync;");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;");
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]) : "r"(t));
    asm volatile("tcgen05.wait::ld.sync.aligned;");
    o[threadIdx.x] = r[0] + r[1] * r[2] + r[3] * r[4] + r[5] * r[6] + r[7];
    asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(t));
    asm volatile("tcgen05.wait::ld.sync.aligned;");
    o[threadIdx.x + 64] = r[0] + r[1] * r[2] + r[3];
    asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], {%1,%2,%3,%4};" ::"r"(t), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
    asm volatile("tcgen05.wait::st.sync.aligned;");
    asm volatile("tcgen05.shift.cta_group::1.down [%0];" ::"r"(t));
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(t), "r"(64));
}
#endif
