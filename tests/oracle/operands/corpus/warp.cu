// SPDX-License-Identifier: Apache-2.0
// Shuffles, votes, matches, warp reductions, special registers, cooperative groups, named barriers.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
__global__ void shuffles(const int* a, const double* d, int* o, double* e, int n) {
    int i = threadIdx.x;
    int x = a[i];
    o[i] = __shfl_sync(~0u, x, n) + __shfl_up_sync(~0u, x, 1) + __shfl_down_sync(~0u, x, n) + __shfl_xor_sync(~0u, x, 16);
    e[i] = __shfl_down_sync(~0u, d[i], 2) + __shfl_xor_sync(~0u, d[i + 1], i, 8);
    int y;
    asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %1, %2, 0, -1; @!p mov.b32 %0, 9; }" : "=r"(y) : "r"(x), "r"(n));
    o[i + 32] = y;
    if (i & 3) o[i + 64] = __shfl_sync(__activemask(), x, 3, 16);
}
__global__ void votes(const int* a, int* o, unsigned long long* l) {
    int i = threadIdx.x, x = a[i];
    o[i] = __all_sync(~0u, x > 3) + 2 * __any_sync(~0u, x < 9) + __ballot_sync(~0u, x & 1) + __uni_sync(~0u, x == 2);
    o[i + 32] = __match_any_sync(~0u, x) + __match_any_sync(~0u, l[i]);
    int p, q;
    o[i + 64] = __match_all_sync(~0u, x, &p) + __match_all_sync(~0u, l[i + 1], &q);
    o[i + 96] = p + q;
    if (__any_sync(~0u, x == 7)) o[i + 128] = __activemask();
    if (__all_sync(0xffu, x == 8)) o[i + 160] = 3;
#if __CUDA_ARCH__ >= 800
    o[i + 192] = __reduce_add_sync(~0u, x) + __reduce_max_sync(~0u, x) + __reduce_min_sync(~0u, (unsigned)x) + __reduce_and_sync(~0u, x) + __reduce_xor_sync(~0u, x) + __reduce_or_sync(0xffffu, x);
#endif
#if __CUDA_ARCH_SPECIFIC__ == 1000
    float f;
    asm volatile("redux.sync.max.f32 %0, %1, 0xffffffff;" : "=f"(f) : "f"((float)x));
    o[i + 256] = f;
#endif
}
__global__ void special(unsigned* o, unsigned long long* l) {
    unsigned v;
    int i = threadIdx.x;
    o[i] = threadIdx.y + threadIdx.z + blockIdx.x + blockIdx.y * blockIdx.z + gridDim.x + blockDim.y + warpSize;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(v));
    o[i + 32] = v;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(v));
    o[i + 64] = v;
    asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(v));
    o[i + 96] = __popc(v);
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(v));
    o[i + 128] = v;
    l[i] = clock64();
    o[i + 160] = clock();
    unsigned long long g;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g));
    l[i + 32] = g;
}
__global__ void groups(const int* a, int* o, int n) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    auto warp = cg::tiled_partition<32>(block);
    int x = a[block.thread_rank()];
    o[block.thread_rank()] = cg::reduce(tile, x, cg::plus<int>()) + cg::reduce(warp, x, cg::greater<int>());
    o[block.thread_rank() + 64] = cg::inclusive_scan(warp, x) + tile.shfl(x, n);
    if (x > n) {
        auto active = cg::coalesced_threads();
        o[active.thread_rank()] = active.shfl(x, 0) + active.size();
        active.sync();
    }
    auto binary = cg::binary_partition(warp, (x & 1) != 0);
    o[block.thread_rank() + 128] = binary.meta_group_rank() + cg::reduce(binary, x, cg::plus<int>());
    warp.sync();
    block.sync();
}
__global__ void grid(int* a, int n) {
    auto g = cg::this_grid();
    for (int k = 0; k < n; k++) {
        a[g.thread_rank()] += a[(g.thread_rank() + 1) % g.size()];
        g.sync();
    }
}
__global__ void named(int* a, int n) {
    __shared__ int s[64];
    s[threadIdx.x & 63] = a[threadIdx.x];
    if (threadIdx.x < 64) asm volatile("bar.sync 1, 64;");
    else asm volatile("bar.arrive 2, 128;");
    asm volatile("bar.sync %0, %1;" ::"r"(n), "r"(128));
    a[threadIdx.x] = s[63 - (threadIdx.x & 63)];
    a[threadIdx.x + 64] = __syncthreads_and(a[threadIdx.x] > 3) + __syncthreads_or(a[threadIdx.x + 1] < 3) + __syncthreads_count(n > a[threadIdx.x + 2]);
    __syncwarp(n);
    __nanosleep(a[threadIdx.x + 5]);
}
