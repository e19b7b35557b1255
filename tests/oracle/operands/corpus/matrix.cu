// SPDX-License-Identifier: Apache-2.0
// Warp-wide matrix instructions: wmma of all types, ldmatrix, stmatrix, mma.sync of all shapes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda::wmma;
__global__ void half_wmma(const __half* a, const __half* b, float* c, __half* d) {
    fragment<matrix_a, 16, 16, 16, __half, row_major> x;
    fragment<matrix_b, 16, 16, 16, __half, col_major> y;
    fragment<accumulator, 16, 16, 16, float> z;
    fragment<accumulator, 16, 16, 16, __half> w;
    fill_fragment(z, 0.f);
    load_matrix_sync(w, d, 16, mem_row_major);
    for (int k = 0; k < 8; k++) {
        load_matrix_sync(x, a + k * 256, 16);
        load_matrix_sync(y, b + k * 256, 16);
        mma_sync(z, x, y, z);
        mma_sync(w, x, y, w);
    }
    store_matrix_sync(c, z, 16, mem_row_major);
    store_matrix_sync(d, w, 16, mem_col_major);
}
__global__ void shapes_wmma(const __half* a, const __half* b, float* c) {
    fragment<matrix_a, 32, 8, 16, __half, col_major> x;
    fragment<matrix_b, 32, 8, 16, __half, row_major> y;
    fragment<accumulator, 32, 8, 16, float> z;
    load_matrix_sync(x, a, 32);
    load_matrix_sync(y, b, 16);
    load_matrix_sync(z, c, 16, mem_row_major);
    mma_sync(z, x, y, z);
    store_matrix_sync(c, z, 16, mem_row_major);
}
__global__ void integer_wmma(const signed char* a, const signed char* b, int* c) {
    fragment<matrix_a, 16, 16, 16, signed char, row_major> x;
    fragment<matrix_b, 16, 16, 16, signed char, col_major> y;
    fragment<accumulator, 16, 16, 16, int> z;
    load_matrix_sync(x, a, 16);
    load_matrix_sync(y, b, 16);
    load_matrix_sync(z, c, 16, mem_row_major);
    mma_sync(z, x, y, z);
    store_matrix_sync(c, z, 16, mem_row_major);
}
#define OUT4 "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3)
__global__ void asm_mma(const unsigned* a, unsigned* o, double* e) {
    int i = threadIdx.x;
    unsigned a0 = a[i], a1 = a[i + 1], a2 = a[i + 2], a3 = a[i + 3], b0 = a[i + 4], b1 = a[i + 5];
    unsigned c0 = a[i + 6], c1 = a[i + 7], c2 = a[i + 8], c3 = a[i + 9], d0, d1, d2 = 0, d3 = 0;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};" : OUT4 : "r"(a0), "r"(a1), "r"(b0), "r"(c0), "r"(c1), "r"(c2), "r"(c3));
    o[i] = d0 ^ d1 ^ d2 ^ d3;
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {%0,%1}, {%2}, {%3}, {%4,%5};" : "=r"(d0), "=r"(d1) : "r"(a0), "r"(b0), "r"(c0), "r"(c1));
    o[i + 32] = d0 ^ d1;
    asm volatile("mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {%0,%1}, {%2}, {%3}, {%4,%5};" : "=r"(d0), "=r"(d1) : "r"(a0), "r"(b0), "r"(c0), "r"(c1));
    o[i + 64] = d0 ^ d1;
    asm volatile("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%0,%1}, {%2}, {%3}, {%4,%5};" : "=r"(d0), "=r"(d1) : "r"(a0), "r"(b0), "r"(c0), "r"(c1));
    o[i + 96] = d0 ^ d1;
    __shared__ unsigned s[1024];
    s[i] = o[i + 128];
    __syncthreads();
    unsigned at = (unsigned)__cvta_generic_to_shared(s + i * 4);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : OUT4 : "r"(at));
    o[i + 160] = d0 + d1 * d2 + d3;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(d0), "=r"(d1) : "r"(at));
    o[i + 192] = d0 + d1;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(d0) : "r"(at));
    o[i + 224] = d0;
#if __CUDA_ARCH__ >= 800
#define ABC "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
#define SHAPE(name) asm volatile("mma.sync.aligned." name " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};" : OUT4 : ABC); o[i + 256] += d0 ^ d1 ^ d2 ^ d3;
    SHAPE("m16n8k16.row.col.f32.f16.f16.f32")
    SHAPE("m16n8k16.row.col.f32.bf16.bf16.f32")
    SHAPE("m16n8k8.row.col.f32.tf32.tf32.f32")
    SHAPE("m16n8k32.row.col.s32.s8.s8.s32")
    SHAPE("m16n8k64.row.col.s32.u4.u4.s32")
    SHAPE("m16n8k256.row.col.s32.b1.b1.s32.and.popc")
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};" : "=r"(d0), "=r"(d1) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(c0), "r"(c1));
    o[i + 288] = d0 ^ d1;
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};" : OUT4 : "r"(a0), "r"(a1), "r"(b0), "r"(c0), "r"(c1), "r"(c2), "r"(c3));
    o[i + 320] = d0 ^ d1 ^ d2 ^ d3;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};" : OUT4 : "r"(a0), "r"(a1), "r"(b0), "r"(c0), "r"(c1), "r"(c2), "r"(c3));
    o[i + 352] = d0 ^ d1 ^ d2 ^ d3;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};" : OUT4 : "r"(a0), "r"(a1), "r"(b0), "r"(c0), "r"(c1), "r"(c2), "r"(c3));
    o[i + 384] = d0 ^ d1 ^ d2 ^ d3;
    asm volatile("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%12,%13,%14,%15}, %16, 0x0;" : OUT4 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(c3), "r"(c2), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(a2));
    o[i + 416] = d0 ^ d1 ^ d2 ^ d3;
    asm volatile("mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%12,%13,%14,%15}, %16, 0x0;" : OUT4 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(c3), "r"(c2), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(a2));
    o[i + 448] = d0 ^ d1 ^ d2 ^ d3;
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%4,%5};" : "=d"(e[i]), "=d"(e[i + 32]) : "d"(e[i + 64]), "d"(e[i + 96]), "d"(e[i + 128]), "d"(e[i + 160]));
#endif
#if __CUDA_ARCH__ >= 890
    SHAPE("m16n8k32.row.col.f32.e4m3.e5m2.f32")
#endif
#if __CUDA_ARCH__ >= 900
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(a0), "r"(a1), "r"(a2), "r"(a3));
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1,%2};" ::"r"(at), "r"(a0), "r"(a1));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%16,%17,%18,%19};"
        : "=d"(e[i + 200]), "=d"(e[i + 201]), "=d"(e[i + 202]), "=d"(e[i + 203])
        : "d"(e[i]), "d"(e[i + 1]), "d"(e[i + 2]), "d"(e[i + 3]), "d"(e[i + 4]), "d"(e[i + 5]), "d"(e[i + 6]), "d"(e[i + 7]),
          "d"(e[i + 8]), "d"(e[i + 9]), "d"(e[i + 10]), "d"(e[i + 11]), "d"(e[i + 12]), "d"(e[i + 13]), "d"(e[i + 14]), "d"(e[i + 15]));
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
        : "=d"(e[i + 210]), "=d"(e[i + 211]), "=d"(e[i + 212]), "=d"(e[i + 213])
        : "d"(e[i + 20]), "d"(e[i + 21]), "d"(e[i + 22]), "d"(e[i + 23]), "d"(e[i + 24]), "d"(e[i + 25]), "d"(e[i + 26]));
#endif
    __syncthreads();
    o[i + 480] = s[i + 3];
    unsigned t;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(t) : "r"(a0));
    o[i + 512] = t;
}
#if __CUDA_ARCH__ >= 800
__global__ void double_wmma(const double* a, const double* b, double* c) {
    fragment<matrix_a, 8, 8, 4, double, row_major> x;
    fragment<matrix_b, 8, 8, 4, double, col_major> y;
    fragment<accumulator, 8, 8, 4, double> z;
    load_matrix_sync(x, a, 4);
    load_matrix_sync(y, b, 4);
    load_matrix_sync(z, c, 8, mem_row_major);
    mma_sync(z, x, y, z);
    store_matrix_sync(c, z, 8, mem_row_major);
}
__global__ void tf32_wmma(const float* a, const float* b, float* c) {
    fragment<matrix_a, 16, 16, 8, precision::tf32, row_major> x;
    fragment<matrix_b, 16, 16, 8, precision::tf32, col_major> y;
    fragment<accumulator, 16, 16, 8, float> z;
    load_matrix_sync(x, a, 8);
    load_matrix_sync(y, b, 8);
    load_matrix_sync(z, c, 16, mem_row_major);
    for (int k = 0; k < x.num_elements; k++) x.x[k] = __float_to_tf32(x.x[k]);
    mma_sync(z, x, y, z);
    store_matrix_sync(c, z, 16, mem_row_major);
}
#endif
#if __CUDA_ARCH_SPECIFIC__ == 1200 || __CUDA_ARCH_SPECIFIC__ == 1210
__global__ void block_scaled(const unsigned* a, float* o) {
    int i = threadIdx.x;
    float d0, d1, d2, d3;
    asm volatile("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};" : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3) : "r"(a[i]), "r"(a[i + 1]), "r"(a[i + 2]), "r"(a[i + 3]), "r"(a[i + 4]), "r"(a[i + 5]), "f"(o[i]), "f"(o[i + 1]), "f"(o[i + 2]), "f"(o[i + 3]));
    o[i + 9] = d0 + d1 + d2 + d3;
    asm volatile("mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13}, {%14}, {0, 1}, {%15}, {0, 1};" : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3) : "r"(a[i]), "r"(a[i + 1]), "r"(a[i + 2]), "r"(a[i + 3]), "r"(a[i + 4]), "r"(a[i + 5]), "f"(o[i]), "f"(o[i + 1]), "f"(o[i + 2]), "f"(o[i + 3]), "r"(a[i + 20]), "r"(a[i + 21]));
    o[i + 99] = d0 + d1 + d2 + d3;
    asm volatile("mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13}, {%14}, {0, 0}, {%15}, {0, 0};" : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3) : "r"(a[i]), "r"(a[i + 1]), "r"(a[i + 2]), "r"(a[i + 3]), "r"(a[i + 4]), "r"(a[i + 5]), "f"(o[i]), "f"(o[i + 1]), "f"(o[i + 2]), "f"(o[i + 3]), "r"(a[i + 20]), "r"(a[i + 21]));
    o[i + 199] = d0 + d1 + d2 + d3;
}
#endif
