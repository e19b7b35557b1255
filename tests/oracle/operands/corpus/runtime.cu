// SPDX-License-Identifier: Apache-2.0
// printf, assert, device malloc and memcpy, tail calls into the device runtime, exceptions of the compiler's own.
#include <cassert>
#include <cstdio>
#include <cstring>
__global__ void prints(const int* a, const double* d, int n) {
    printf("%d %f %s\n", a[threadIdx.x], d[threadIdx.x], n > 3 ? "more" : "less");
    assert(a[threadIdx.x + 1] > n);
    if (a[2] == 5) printf("nothing\n");
}
__global__ void heap(int** p, int n) {
    int* q = (int*)malloc(n * sizeof(int));
    if (!q) return;
    memset(q, 3, n * sizeof(int));
    memcpy(q + 1, p[threadIdx.x], 40);
    p[threadIdx.x + 64] = q;
    free(p[threadIdx.x + 32]);
}
struct Point {
    double x, y, z;
    int id;
};
__global__ void structures(const Point* a, Point* o, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        Point p = a[i];
        p.x += p.y * p.z;
        p.id ^= i;
        o[n - 1 - i] = p;
    }
}
