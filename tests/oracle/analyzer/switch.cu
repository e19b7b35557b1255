// SPDX-License-Identifier: Apache-2.0
// Dense switches in loops and behind a call, which compile to indirect branches through tables.
__device__ __noinline__ float folded(const int* op, float x, int k) {
    switch (op[k]) {
        case 0: return sinf(x);
        case 1: return x * x + op[0];
        case 2: return expf(x) - op[1];
        case 3: return sqrtf(x);
        case 4: return x / 3.0f + op[2];
        case 5: return logf(x);
        case 6: return x - op[5];
        case 7: return fmaxf(x, op[7]) * 7.0f;
        case 8: return atanf(x);
    }
    return x;
}

__global__ void interpreted(const int* op, const float* a, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i];
    for (int k = 0; k < n; k++) {
        switch (op[i + k]) {
            case 0: x = sinf(x); break;
            case 1: x = x * x + a[0]; break;
            case 2: x = expf(x) - a[1]; break;
            case 3: x = sqrtf(x); break;
            case 4: x = x / 3.0f + a[2]; break;
            case 5: x = logf(x); break;
            case 6: x = x - a[5]; break;
            case 7: x = fmaxf(x, a[7]) * 7.0f; break;
            case 8: x = atanf(x); break;
            case 9: x = x * a[3]; break;
            case 10: x = rsqrtf(x); o[n + i] = x; break;
            case 11: x = folded(op, x, k); break;
            default: x = 0.0f;
        }
    }
    o[i] = x;
}

__global__ void early_exits(const unsigned char* op, float* o, int n) {
    float x = o[threadIdx.x];
    for (int k = 0; k < n; k++) {
        switch (op[k]) {
            case 0: return;
            case 1: x *= 2.0f; o[2] = x; break;
            case 2: x -= 3.0f; o[3] = x; break;
            case 3: x = cosf(x); break;
            case 5: x = tanf(x); break;
            case 6: o[k] = x; return;
            case 7: x = expf(x); break;
            case 8: x = logf(x); break;
        }
    }
    o[threadIdx.x] = x;
}
