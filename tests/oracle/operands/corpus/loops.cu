// SPDX-License-Identifier: Apache-2.0
// Everyday kernels: tiled product, stencil, transpose, reduction, histogram, scan, sparse product, n-body.
template <int T>
__device__ void tile(const float* a, const float* b, float* c, int n) {
    __shared__ float x[T][T + 1], y[T][T];
    int r = blockIdx.y * T + threadIdx.y, k = blockIdx.x * T + threadIdx.x;
    float s = 0;
    for (int t = 0; t < n; t += T) {
        x[threadIdx.y][threadIdx.x] = a[r * n + t + threadIdx.x];
        y[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + k];
        __syncthreads();
        for (int j = 0; j < T; j++) s += x[threadIdx.y][j] * y[j][threadIdx.x];
        __syncthreads();
    }
    c[r * n + k] = s;
}
__global__ void product16(const float* a, const float* b, float* c, int n) { tile<16>(a, b, c, n); }
__global__ void product32(const float* a, const float* b, float* c, int n) { tile<32>(a, b, c, n); }
__global__ void blocked(const float* __restrict__ a, const float* __restrict__ b, float* c, int n) {
    __shared__ float4 x[16][64 / 4], y[16][64 / 4];
    float s[4][4] = {};
    int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
    for (int t = 0; t < n; t += 16) {
        x[ty][tx] = *(const float4*)(a + (t + ty) * n + blockIdx.y * 64 + tx * 4);
        y[ty][tx] = *(const float4*)(b + (t + ty) * n + blockIdx.x * 64 + tx * 4);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k++) {
            float4 p = x[k][ty], q = y[k][tx];
            float u[4] = {p.x, p.y, p.z, p.w}, v[4] = {q.x, q.y, q.z, q.w};
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) s[i][j] += u[i] * v[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        *(float4*)(c + (blockIdx.y * 64 + ty * 4 + i) * n + blockIdx.x * 64 + tx * 4) = make_float4(s[i][0], s[i][1], s[i][2], s[i][3]);
}
__global__ void stencil(const float* a, float* o, int nx, int ny, int nz) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1) return;
    float below = a[y * nx + x], here = a[(ny + y) * nx + x];
    for (int z = 1; z < nz - 1; z++) {
        const float* p = a + ((size_t)z * ny + y) * nx + x;
        float above = p[nx * ny];
        o[((size_t)z * ny + y) * nx + x] = below + above + p[-1] + p[1] + p[-nx] + p[nx] - 6.f * here;
        below = here;
        here = above;
    }
}
__global__ void histogram(const unsigned char* a, int* o, int n) {
    __shared__ int h[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) h[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&h[a[i]], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(o + i, h[i]);
}
__global__ void sparse(const int* row, const int* col, const double* v, const double* x, double* y, int n) {
    int w = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, l = threadIdx.x & 31;
    if (w >= n) return;
    double s = 0;
    for (int j = row[w] + l; j < row[w + 1]; j += 32) s += v[j] * x[col[j]];
    for (int k = 16; k; k >>= 1) s += __shfl_down_sync(~0u, s, k);
    if (l == 0) y[w] = s;
}
__global__ void bodies(const float4* p, float3* f, int n) {
    __shared__ float4 s[128];
    float4 me = p[blockIdx.x * 128 + threadIdx.x];
    float3 a = {0, 0, 0};
    for (int t = 0; t < n; t += 128) {
        s[threadIdx.x] = p[t + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 128; j++) {
            float dx = s[j].x - me.x, dy = s[j].y - me.y, dz = s[j].z - me.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-6f), m = s[j].w * r * r * r;
            a.x += dx * m;
            a.y += dy * m;
            a.z += dz * m;
        }
        __syncthreads();
    }
    f[blockIdx.x * 128 + threadIdx.x] = a;
}
__global__ void scan(const int* a, int* o, int n) {
    __shared__ int s[2][512];
    int i = threadIdx.x, in = 0;
    s[0][i] = i < n ? a[i] : 0;
    __syncthreads();
    for (int d = 1; d < 512; d <<= 1) {
        s[in ^ 1][i] = i >= d ? s[in][i] + s[in][i - d] : s[in][i];
        in ^= 1;
        __syncthreads();
    }
    if (i < n) o[i] = s[in][i];
}
__global__ void mandelbrot(unsigned char* o, int w, int h, int limit, double x0, double y0, double scale) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    double cx = x0 + x * scale, cy = y0 + y * scale, zx = 0, zy = 0;
    int k = 0;
    while (k < limit && zx * zx + zy * zy < 4.0) {
        double t = zx * zx - zy * zy + cx;
        zy = 2 * zx * zy + cy;
        zx = t;
        k++;
    }
    o[y * w + x] = (unsigned char)(k * 255 / limit);
}
