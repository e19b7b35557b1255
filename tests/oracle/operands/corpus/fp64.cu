// SPDX-License-Identifier: Apache-2.0
// Double precision: arithmetic, divisions, comparisons, conversions and literals.
__global__ void arithmetic(const double* a, const double* b, double* o, int n, double k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = a[i], y = b[i];
    o[i] = x * y + k;
    o[i + n] = x / y + sqrt(x) + 1.0 / y;
    o[i + 2 * n] = fmin(x, y) + fmax(x, 0.25) + fabs(y);
    o[i + 3 * n] = x > y ? x * 2.0 : -y;
    o[i + 4 * n] = __fma_ru(x, y, k) + __dadd_rz(x, k) + __dmul_rd(y, 3.0);
    if (x == k || y <= 0.5) o[i + 5 * n] = rsqrt(x);
}
__global__ void functions(const double* a, double* o, float* f, long long* l, int n) {
    int i = threadIdx.x;
    double x = a[i];
    o[i] = sin(x) + cos(x) + exp(x) + log(x) + pow(x, 1.3);
    o[i + n] = floor(x) + ceil(x) + rint(x) + trunc(x) + fmod(x, 1.7) + atan(x) + tgamma(x);
    f[i] = (float)x;
    f[i + n] = __double2float_ru(x);
    l[i] = (long long)x + __double2ll_rn(x) + (unsigned long long)(x * 2);
    o[i + 2 * n] = (double)f[i + 3] + (double)l[i + 3] + (double)(unsigned)l[i + 4] + (double)(short)l[i + 5];
    o[i + 3 * n] = __hiloint2double(__double2loint(x), __double2hiint(x)) + i;
}
__global__ void sum(const double* a, double* o, int n) {
    __shared__ double s[256];
    double acc = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) acc += a[i] * a[i];
    s[threadIdx.x] = acc;
    __syncthreads();
    for (int w = 128; w; w >>= 1) {
        if (threadIdx.x < w) s[threadIdx.x] += s[threadIdx.x + w];
        __syncthreads();
    }
    if (!threadIdx.x) atomicAdd(o, s[0]);
}
