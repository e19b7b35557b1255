// SPDX-License-Identifier: Apache-2.0
// Textures and surfaces: every dimension, level of detail, gather, gradients, queries.
#include <cuda_runtime.h>
__global__ void fetches(cudaTextureObject_t t, float4* o, float* f, float2* g, int* n, float x, float y) {
    int i = threadIdx.x;
    float u = f[i], v = f[i + 32], w = f[i + 64];
    o[i] = tex1D<float4>(t, u);
    o[i + 32] = tex2D<float4>(t, u, v);
    o[i + 64] = tex3D<float4>(t, u, v, w);
    f[i + 96] = tex2D<float>(t, u, v);
    g[i] = tex2D<float2>(t, v, w);
    f[i + 128] = tex1Dfetch<float>(t, n[i]);
    o[i + 96] = tex1Dfetch<float4>(t, n[i + 32]);
    o[i + 128] = tex2DLod<float4>(t, u, v, w);
    f[i + 160] = tex3DLod<float>(t, u, v, w, x);
    o[i + 160] = tex2DGrad<float4>(t, u, v, make_float2(x, y), make_float2(y, w));
    o[i + 192] = tex2DLayered<float4>(t, u, v, n[i + 64]);
    o[i + 224] = texCubemap<float4>(t, u, v, w);
    o[i + 256] = texCubemapLayered<float4>(t, u, v, w, n[i + 96]);
    o[i + 288] = tex2Dgather<float4>(t, u, v, 0);
    o[i + 320] = tex2Dgather<float4>(t, v, u, 2);
    f[i + 192] = tex1DLayered<float>(t, u, n[i + 3]);
    f[i + 224] = tex1DLod<float>(t, u, v);
    f[i + 256] = tex2DLayeredLod<float>(t, u, v, 3, w);
    f[i + 288] = tex1DGrad<float>(t, u, v, w);
    f[i + 320] = tex3DGrad<float>(t, u, v, w, make_float4(x, y, u, v), make_float4(y, x, w, u));
}
__global__ void queries(cudaTextureObject_t t, int* o, float* f) {
    int i = threadIdx.x, w, h;
    asm volatile("txq.width.b32 %0, [%1];" : "=r"(w) : "l"(t));
    asm volatile("txq.height.b32 %0, [%1];" : "=r"(h) : "l"(t));
    o[i] = w * h;
    float x, y, z, q;
    asm volatile("tld4.g.2d.v4.f32.f32 {%0,%1,%2,%3}, [%4, {%5,%6}];" : "=f"(x), "=f"(y), "=f"(z), "=f"(q) : "l"(t), "f"(f[i]), "f"(f[i + 1]));
    f[i + 64] = x + q;
    bool resident;
    float4 r = tex2D<float4>(t, f[i], f[i + 2], &resident);
    if (resident) f[i + 96] = r.x + r.y * r.z - r.w;
}
__global__ void surfaces(cudaSurfaceObject_t s, int* o, float4* v, short* h, double* d, int x, int y, int z) {
    int i = threadIdx.x;
    o[i] = surf1Dread<int>(s, x);
    o[i + 32] = surf2Dread<int>(s, x, y);
    o[i + 64] = surf3Dread<int>(s, x, y, z);
    v[i] = surf2Dread<float4>(s, i, y);
    h[i] = surf2Dread<short>(s, x, i);
    v[i + 32] = surf2DLayeredread<float4>(s, x, y, i);
    v[i + 64] = surfCubemapread<float4>(s, x, y, 3);
    int2 t = surf2Dread<int2>(s, x, i + 1, cudaBoundaryModeZero);
    o[i + 96] = t.x * t.y;
    surf1Dwrite(o[i + 3], s, x);
    surf2Dwrite(v[i + 3], s, x, y, cudaBoundaryModeClamp);
    surf3Dwrite(h[i + 3], s, x, y, z);
    surf2Dwrite(make_int2(x, y), s, i, x);
    surf2DLayeredwrite(o[i + 4], s, x, y, z);
    surf1DLayeredwrite(v[i + 4], s, x, y);
    surf2Dwrite((signed char)x, s, y, x);
}
__constant__ cudaTextureObject_t handles[16];
__global__ void indexed(const cudaTextureObject_t* t, const cudaSurfaceObject_t* s, const int* n, float4* o, float* f, int2* p) {
    int i = threadIdx.x;
    float u = f[i], v = f[i + 32], w = f[i + 64];
    o[i] = tex2D<float4>(t[n[i]], u, v);
    o[i + 32] = tex2DLod<float4>(handles[n[i + 32] & 15], u, v, w);
    o[i + 64] = tex3D<float4>(t[n[i + 64]], u, v, w);
    f[i + 96] = tex1Dfetch<float>(t[n[i + 96]], n[i]);
    o[i + 96] = tex2DGrad<float4>(t[n[i + 3]], u, v, make_float2(w, v), make_float2(v, w));
    o[i + 128] = tex2Dgather<float4>(t[n[i + 4]], u, v, 1);
    o[i + 160] = texCubemapLayered<float4>(t[n[i + 5]], u, v, w, 3);
    f[i + 128] = tex2DLayered<float>(t[n[i + 6]], u, v, n[i + 7]);
    p[i] = surf2Dread<int2>(s[n[i + 8]], i, 3);
    surf2Dwrite(p[i + 32], s[n[i + 9]], i, 5);
}
__global__ void offsets(cudaTextureObject_t t, float* f, int n) {
    int i = threadIdx.x;
    float a, b, c, d, u = f[i], v = f[i + 1];
    asm volatile("tex.2d.v4.f32.f32 {%0,%1,%2,%3}, [%4, {%5,%6}], {%7,%8};" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(t), "f"(u), "f"(v), "r"(n), "r"(n + 1));
    f[i + 64] = a + b * c - d;
    asm volatile("tex.2d.v4.f32.f32 {%0,%1,%2,%3}, [%4, {%5,%6}], {%7,%8}, %9;" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(t), "f"(u), "f"(v), "r"(n), "r"(n + 1), "f"(f[i + 2]));
    f[i + 96] = a;
    asm volatile("tex.level.2d.v4.f32.f32 {%0,%1,%2,%3}, [%4, {%5,%6}], %7, {%8,%9};" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(t), "f"(u), "f"(v), "f"(a), "r"(n), "r"(2));
    f[i + 128] = a + b * c - d;
    asm volatile("tex.3d.v4.f32.f32 {%0,%1,%2,%3}, [%4, {%5,%6,%7,%7}], {1,2,3,0};" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(t), "f"(u), "f"(v), "f"(a));
    f[i + 160] = a + b * c - d;
    asm volatile("tld4.r.2d.v4.f32.f32 {%0,%1,%2,%3}, [%4, {%5,%6}], {1,2};" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(t), "f"(u), "f"(v));
    f[i + 192] = a + b * c - d;
    asm volatile("tex.2d.v4.f32.s32 {%0,%1,%2,%3}, [%4, {%5,%6}];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(t), "r"(n), "r"(n + 3));
    f[i + 224] = a + b * c - d;
    asm volatile("tex.2dms.v4.f32.s32 {%0,%1,%2,%3}, [%4, {%7,%5,%6,%6}];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(t), "r"(n), "r"(n + 3), "r"(i));
    f[i + 256] = a + b * c - d;
    asm volatile("tex.grad.3d.v4.f32.f32 {%0,%1,%2,%3}, [%4, {%5,%6,%7,%7}], {%5,%6,%7,%7}, {%6,%7,%5,%5};" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(t), "f"(u), "f"(v), "f"(a));
    f[i + 288] = a + b * c - d;
}
__global__ void reductions(cudaSurfaceObject_t s, int* o, int x, int y) {
    asm volatile("sured.b.add.2d.u32.trap [%0, {%1,%2}], %3;" ::"l"(s), "r"(x), "r"(y), "r"(o[threadIdx.x]));
    asm volatile("sured.b.or.1d.b32.clamp [%0, {%1}], %2;" ::"l"(s), "r"(x), "r"(o[threadIdx.x + 32]));
    int w;
    asm volatile("suq.width.b32 %0, [%1];" : "=r"(w) : "l"(s));
    o[threadIdx.x + 64] = w;
    asm volatile("sust.p.2d.v4.b32.trap [%0, {%1,%2}], {%1,%2,%1,%2};" ::"l"(s), "r"(x), "r"(y));
}
