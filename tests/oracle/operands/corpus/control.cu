// SPDX-License-Identifier: Apache-2.0
// Control flow: jump tables, recursion, function pointers, virtual calls, divergent loops, early exits.
__global__ void jump_table(const int* a, float* o, int n) {
    int i = threadIdx.x;
    float x = o[i];
    switch (a[i]) {
        case 0: x += 1.f; break;
        case 1: x = sinf(x); break;
        case 2: x = x * x; break;
        case 3: x = sqrtf(x); break;
        case 4: o[i + n] = x; break;
        case 5: x = expf(x); break;
        case 6: x = 1.f / x; break;
        case 7: return;
        case 8: x = fmodf(x, 3.f); break;
        default: x = 0;
    }
    o[i] = x;
}
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ long long ackermann(long long m, long long n) {
    return m == 0 ? n + 1 : ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}
__global__ void recursion(int* o, long long* l) {
    o[threadIdx.x] = fibonacci(threadIdx.x);
    l[threadIdx.x] = ackermann(l[threadIdx.x], 3);
}
typedef float (*Op)(float, float);
__device__ __noinline__ float add(float a, float b) { return a + b; }
__device__ __noinline__ float mul(float a, float b) { return a * b; }
__device__ __noinline__ float divide(float a, float b) { return a / b; }
__device__ Op table[3] = {add, mul, divide};
__global__ void pointers(const int* a, float* o) {
    float x = o[threadIdx.x];
    for (int i = 0; i < 8; i++) x = table[a[i] % 3](x, 1.5f);
    o[threadIdx.x] = x;
}
struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    float s;
    __device__ Square(float s) : s(s) {}
    __device__ float area() const override { return s * s; }
};
struct Disc : Shape {
    float r;
    __device__ Disc(float r) : r(r) {}
    __device__ float area() const override { return 3.14159f * r * r; }
};
__global__ void virtuals(float* o, int n) {
    Shape* s = n & threadIdx.x ? (Shape*)new Square(o[0]) : (Shape*)new Disc(o[1]);
    o[threadIdx.x] = s->area();
    delete s;
}
__global__ void divergence(const int* a, int* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, c = 0;
    for (int k = i; k < n; k++) {
        int v = a[k];
        if (v < 0) break;
        if (v & 1) continue;
        while (v > 1) {
            v = v & 1 ? 3 * v + 1 : v >> 1;
            if (c > 10000) goto out;
            c++;
        }
        do { c += v--; } while (v > -3 && a[c & 255] != v);
    }
out:
    o[i] = c;
    if (c == 17) asm volatile("exit;");
    if (c == 19) __trap();
    o[i + n] = c + 1;
}
__global__ void many_predicates(const int* a, int* o) {
    int i = threadIdx.x;
    int x = a[i], y = a[i + 32], z = a[i + 64], w = a[i + 96];
    bool p = x > y, q = y > z, r = z > w, s = w > x, t = x == z, u = y == w, v = x + y > z, k = z * w > 4;
    int c = 0;
    for (int j = 0; j < 16; j++) {
        if (p) c += a[j];
        if (q && !r) c ^= a[j + 1];
        if (s || t) c -= a[j + 2];
        if (u ^ v) c |= a[j + 3];
        if (k) c += __syncthreads_count(c > j);
        p = !p && c > 3;
        q = r || c < 9;
    }
    o[i] = c + p * 2 + q * 4 + r * 8 + s * 16 + t * 32 + u * 64 + v * 128 + k * 256;
}
