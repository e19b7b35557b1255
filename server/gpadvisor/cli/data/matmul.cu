// SPDX-License-Identifier: Apache-2.0
// Matrix product, one element of C per thread, with threadIdx.x on the rows.
//
// Neighbouring lanes read rows of A and write rows of C that lie a whole pitch apart: 32 sectors per request.

extern "C" __global__ void matmul(const float* __restrict__ a, const float* __restrict__ b,
                                        float* __restrict__ c, int m, int n, int k, float alpha, float beta) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    const int column = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || column >= n) {
        return;
    }
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) {
        const float left = a[row * k + i];
        const float right = b[i * n + column];
        sum = fmaf(left, right, sum);
    }
    c[row * n + column] = alpha * sum + beta * c[row * n + column];
}
