// SPDX-License-Identifier: Apache-2.0
// Indexed local arrays, spills, structures by value, and stack frames.
struct Record {
    float values[12];
    int count;
    long long key;
};
__device__ __noinline__ Record make(int n, float x) {
    Record r;
    for (int i = 0; i < 12; i++) r.values[i] = x * i + n;
    r.count = n;
    r.key = (long long)n << 33;
    return r;
}
__device__ __noinline__ float fold(const Record& r, int at) { return r.values[at % 12] + r.count + r.key; }
__global__ void arrays(const int* index, float* o, int n) {
    float a[32];
    for (int i = 0; i < 32; i++) a[i] = o[threadIdx.x * 32 + i];
    for (int i = 0; i < n; i++) a[index[i] & 31] += a[(index[i] >> 5) & 31];
    float s = 0;
    for (int i = 0; i < 32; i++) s += a[i] * a[31 - i];
    o[threadIdx.x] = s;
}
__global__ void vectors(const int* index, float4* o, double2* d, int n) {
    float4 a[8];
    double2 b[4];
    char c[16];
    short h[16];
    for (int i = 0; i < 16; i++) c[i] = index[i], h[i] = index[i + 16];
    for (int i = 0; i < 8; i++) a[i] = o[i];
    for (int i = 0; i < 4; i++) b[i] = d[i];
    for (int i = 0; i < n; i++) {
        a[index[i] & 7].x += c[index[i + 1] & 15];
        b[index[i] & 3].y *= h[index[i + 2] & 15];
        c[index[i + 3] & 15]++;
        h[index[i + 4] & 15]--;
    }
    o[threadIdx.x] = a[n & 7];
    d[threadIdx.x] = b[n & 3];
    ((char*)(o + 64))[threadIdx.x] = c[n & 15] + h[n & 15];
}
__global__ void records(float* o, int n) {
    Record r = make(n, o[threadIdx.x]);
    o[threadIdx.x] = fold(r, n) + fold(make(n + 1, 2.f), n * 3);
}
__global__ void __launch_bounds__(1024, 2) spills(const float* a, float* o) {
    float r[48];
#pragma unroll
    for (int i = 0; i < 48; i++) r[i] = a[i * 1024 + threadIdx.x];
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
        for (int i = 0; i < 48; i++) r[i] = r[i] * r[(i * 7 + k) % 48] + r[(i + 5) % 48];
#pragma unroll
    for (int i = 0; i < 48; i++) o[i * 1024 + threadIdx.x] = r[i];
}
