// SPDX-License-Identifier: Apache-2.0
// Integers: division, modulo, wide products, bit operations, video-like operations, carries.
__global__ void division(const int* a, const unsigned* b, int* o, unsigned* u, int n, int d, unsigned e) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    o[i] = a[i] / d + a[i] % d;
    u[i] = b[i] / e + b[i] % e;
    o[i + n] = a[i] / 7 + a[i] % 10;
    u[i + n] = b[i] / 7u + b[i] % 10u;
    o[i + 2 * n] = (short)a[i] / (short)d + (signed char)a[i] % 3;
    u[i + 2 * n] = (b[i] >> (e & 31)) | (b[i] << 3);
}
__global__ void wide(const long long* a, const unsigned long long* b, long long* o, unsigned long long* u, int n) {
    int i = threadIdx.x;
    long long x = a[i];
    unsigned long long y = b[i];
    o[i] = x * (long long)y + x - (long long)y;
    u[i] = y / (unsigned long long)(x | 1) + y % 1000003ull;
    o[i + n] = x / 12345 + x % (long long)(y | 1);
    u[i + n] = __umul64hi(y, b[i + 1]) + (y << (i & 63)) + (y >> 5);
    o[i + 2 * n] = __mul64hi(x, a[i + 1]) + (x >> i);
    o[i + 3 * n] = min(x, a[i + 2]) + max(x, 17ll) + llabs(x);
    u[i + 3 * n] = (x < (long long)y) + (y > 99ull) + (x == a[i + 4]) + __popcll(y) + __clzll(x) + __ffsll(x) + __brevll(y);
    o[i + 4 * n] = x & a[i + 5] | x ^ ~a[i + 6];
    if (x > a[i + 7] && y != b[i + 8]) u[i + 4 * n] = y + 3;
}
__global__ void bits(const unsigned* a, unsigned* o, int n) {
    int i = threadIdx.x;
    unsigned x = a[i], y = a[i + 1], z = a[i + 2];
    o[i] = __popc(x) + __clz(y) + __ffs(z) + __brev(x);
    o[i + n] = __byte_perm(x, y, 0x3715) ^ __byte_perm(x, y, z);
    o[i + 2 * n] = __funnelshift_l(x, y, z) + __funnelshift_r(x, y, 7) + __funnelshift_lc(x, y, z);
    o[i + 3 * n] = (x & y) | (~x & z);
    o[i + 4 * n] = __sad(x, y, z) + __usad(x, y, z) + __mulhi(x, y) + __umulhi(x, y) + __mul24(x, y) + __umul24(y, z);
    o[i + 5 * n] = __dp4a((int)x, (int)y, (int)z) + __dp2a_lo((int)x, (int)y, (int)z) + __dp4a(x, y, z);
    o[i + 6 * n] = __vadd4(x, y) + __vmaxs4(x, y) + __vabsdiffu4(x, y) + __vcmpgtu4(x, z) + __vsads4(x, y) + __vavgu2(x, y);
    asm volatile("bfe.u32 %0, %1, %2, 5;" : "=r"(x) : "r"(y), "r"(z));
    asm volatile("bfi.b32 %0, %1, %2, %3, 9;" : "=r"(y) : "r"(x), "r"(z), "r"(i));
    asm volatile("bmsk.clamp.b32 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
    asm volatile("szext.clamp.s32 %0, %1, %2;" : "=r"(x) : "r"(z), "r"(i));
    o[i + 7 * n] = x + y + z;
    int p = max(min((int)x + 5, (int)y), 0), q = max(max((int)y, (int)z), p);
    o[i + 8 * n] = p + q + abs((int)x - (int)z);
}
__global__ void carry(unsigned* a, unsigned* o) {
    int i = threadIdx.x;
    unsigned r0, r1, r2, r3;
    asm volatile(
        "add.cc.u32 %0, %4, %8; addc.cc.u32 %1, %5, %9; addc.cc.u32 %2, %6, %10; addc.u32 %3, %7, %11;"
        : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
        : "r"(a[i]), "r"(a[i + 1]), "r"(a[i + 2]), "r"(a[i + 3]), "r"(a[i + 4]), "r"(a[i + 5]), "r"(a[i + 6]), "r"(a[i + 7]));
    asm volatile(
        "mad.lo.cc.u32 %0, %4, %5, %0; madc.hi.cc.u32 %1, %4, %5, %1; madc.lo.cc.u32 %2, %4, %6, %2; madc.hi.u32 %3, %4, %6, %3;"
        : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3)
        : "r"(a[i + 8]), "r"(a[i + 9]), "r"(a[i + 10]));
    asm volatile("sub.cc.u32 %0, %0, %2; subc.u32 %1, %1, %3;" : "+r"(r0), "+r"(r1) : "r"(r2), "r"(r3));
    o[i] = r0;
    o[i + 1] = r1;
    o[i + 2] = r2;
    o[i + 3] = r3;
}
__global__ void bignum(const unsigned long long* a, const unsigned long long* b, unsigned long long* o) {
    int i = threadIdx.x * 8;
    unsigned long long r[8] = {};
    for (int j = 0; j < 4; j++) {
        unsigned long long c = 0;
        for (int k = 0; k < 4; k++) {
            unsigned __int128 t = (unsigned __int128)a[i + j] * b[i + k] + r[j + k] + c;
            r[j + k] = (unsigned long long)t;
            c = (unsigned long long)(t >> 64);
        }
        r[j + 4] = c;
    }
    for (int j = 0; j < 8; j++) o[i + j] = r[j];
}
