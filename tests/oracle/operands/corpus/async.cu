// SPDX-License-Identifier: Apache-2.0
// cp.async, mbarriers, bulk copies by TMA, and clusters.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;
__global__ void pipeline(const float4* a, float4* o, int n) {
    extern __shared__ float4 s[];
    int i = threadIdx.x;
#if __CUDA_ARCH__ >= 800
    for (int k = 0; k < 4; k++) {
        unsigned at = (unsigned)__cvta_generic_to_shared(s + i + 128 * k);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(a + i + 128 * k));
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at + 16384), "l"(a + i + 128 * k + 1));
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(at + 32768), "l"(a + i + 128 * k + 1), "r"(n));
        asm volatile("cp.async.commit_group;");
    }
    for (int k = 0; k < n; k++) {
        asm volatile("cp.async.wait_group 2;");
        __syncthreads();
        o[i + k * 128] = s[(127 - i) + 128 * (k & 3)];
        __syncthreads();
        unsigned at = (unsigned)__cvta_generic_to_shared(s + i + 128 * (k & 3));
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(at), "l"(a + i + 128 * k + 512));
        asm volatile("cp.async.commit_group;");
    }
    asm volatile("cp.async.wait_all;");
    o[i] = s[i + n];
#else
    s[i] = a[i];
    __syncthreads();
    o[i] = s[n - i];
#endif
}
__global__ void barriers(const int* a, int* o, int n) {
    __shared__ cuda::barrier<cuda::thread_scope_block> b;
    __shared__ int s[256];
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&b, block.size());
    block.sync();
    for (int k = 0; k < n; k++) {
        cuda::memcpy_async(block, s, a + k * 256, sizeof(int) * 256, b);
        b.arrive_and_wait();
        o[k * 256 + threadIdx.x] = s[255 - threadIdx.x];
        auto token = b.arrive();
        b.wait(std::move(token));
    }
}
__global__ void staged(const int* a, int* o, int n) {
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ int s[2][256];
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    for (int k = 0; k < n; k++) {
        pipe.producer_acquire();
        cuda::memcpy_async(block, s[k & 1], a + k * 256, sizeof(int) * 256, pipe);
        pipe.producer_commit();
        pipe.consumer_wait();
        o[threadIdx.x + k * 256] = s[k & 1][255 - threadIdx.x];
        pipe.consumer_release();
    }
}
#if __CUDA_ARCH__ >= 900
__global__ void __cluster_dims__(2, 1, 1) clusters(const float* a, float* o) {
    __shared__ float s[256];
    auto cluster = cg::this_cluster();
    s[threadIdx.x] = a[threadIdx.x];
    cluster.sync();
    float* other = cluster.map_shared_rank(s, cluster.block_rank() ^ 1);
    o[threadIdx.x] = other[255 - threadIdx.x];
    atomicAdd(other + 3, 2.f);
    other[threadIdx.x & 31] = o[threadIdx.x + 9];
    cluster.sync();
    o[threadIdx.x + 64] = s[threadIdx.x] + cluster.num_blocks();
    unsigned at = (unsigned)__cvta_generic_to_shared(s + threadIdx.x), remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(at), "r"(1));
    float v;
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(remote));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(remote), "f"(v + 1));
    asm volatile("barrier.cluster.arrive.relaxed.aligned;");
    asm volatile("barrier.cluster.wait.acquire.aligned;");
    o[threadIdx.x + 128] = v;
}
__global__ void bulk(const __grid_constant__ int map_place, const char* a, char* o, int n) {
    __shared__ alignas(128) char s[4096];
    __shared__ alignas(8) unsigned long long b;
    unsigned at = (unsigned)__cvta_generic_to_shared(s), bar = (unsigned)__cvta_generic_to_shared(&b);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(1));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(n));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at), "l"(a), "r"(n), "r"(bar));
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(a + 4096), "r"(n));
    }
    __syncthreads();
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @p bra D; bra W; D: }" ::"r"(bar), "r"(0));
    s[threadIdx.x] += 3;
    asm volatile("fence.proxy.async.shared::cta;");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(o), "r"(at), "r"(n));
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(o + 4096), "r"(at), "r"(n));
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group.read 0;");
        asm volatile("cp.async.bulk.wait_group 0;");
        asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(bar));
    }
}
__global__ void tensors(const char* map, int* o, int x, int y, int z, int w, int v) {
    __shared__ alignas(128) char s[16384];
    __shared__ alignas(8) unsigned long long b;
    unsigned at = (unsigned)__cvta_generic_to_shared(s), bar = (unsigned)__cvta_generic_to_shared(&b);
    if (threadIdx.x == 0) {
        asm volatile("prefetch.tensormap [%0];" ::"l"(map));
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(1));
#define TO "cp.async.bulk.tensor."
#define FROM ".shared::cluster.global.mbarrier::complete_tx::bytes "
        asm volatile(TO "1d" FROM "[%0], [%1, {%3}], [%2];" ::"r"(at), "l"(map), "r"(bar), "r"(x));
        asm volatile(TO "2d" FROM "[%0], [%1, {%3, %4}], [%2];" ::"r"(at), "l"(map), "r"(bar), "r"(x), "r"(y));
        asm volatile(TO "3d" FROM "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(at), "l"(map), "r"(bar), "r"(x), "r"(y), "r"(z));
        asm volatile(TO "4d" FROM "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(at), "l"(map), "r"(bar), "r"(x), "r"(y), "r"(z), "r"(w));
        asm volatile(TO "5d" FROM "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(at), "l"(map), "r"(bar), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v));
        asm volatile(TO "4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(at), "l"(map), "r"(bar), "r"(x), "r"(y), "r"(z), "r"(w), "h"((short)v), "h"((short)x));
        asm volatile(TO "2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(at), "l"(map), "r"(bar), "r"(x), "r"(y), "h"((short)z));
        asm volatile(TO "2d.global.shared::cta.bulk_group [%1, {%2, %3}], [%0];" ::"r"(at), "l"(map), "r"(x), "r"(y));
        asm volatile(TO "3d.global.shared::cta.bulk_group [%1, {%2, %3, %4}], [%0];" ::"r"(at), "l"(map), "r"(x), "r"(y), "r"(z));
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%1, {%2, %3}], [%0];" ::"r"(at), "l"(map), "r"(x), "r"(y));
        asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(map), "r"(x), "r"(y));
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group.read 1;");
    }
    __syncthreads();
    o[threadIdx.x] = s[threadIdx.x];
}
__global__ void remote(unsigned* o, int n) {
    __shared__ alignas(8) unsigned long long b[4];
    __shared__ unsigned s[64];
    unsigned bar = (unsigned)__cvta_generic_to_shared(b), at = (unsigned)__cvta_generic_to_shared(s), far, far_bar;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far) : "r"(at), "r"(n));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far_bar) : "r"(bar), "r"(n));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(far), "r"(n), "r"(far_bar));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%0], {%1, %3}, [%2];" ::"r"(far), "r"(n), "r"(far_bar), "r"(at));
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(far), "r"(n), "r"(far_bar));
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(far_bar));
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(bar));
    unsigned done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(bar), "l"(state));
    o[threadIdx.x] = done;
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    if (threadIdx.x < 32) {
        unsigned leader;
        asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffffff; @p mov.u32 %0, 7; }" : "=r"(leader));
        o[threadIdx.x + 64] = leader;
    }
}
#endif
