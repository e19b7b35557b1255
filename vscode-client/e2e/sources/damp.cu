// SPDX-License-Identifier: Apache-2.0
// Single precision but for two literals; the second folder's kernel.

__global__ void damp(const float* __restrict__ in, float* __restrict__ out, int n) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * n;
    float speed = 0.0f;
    for (int k = first; k < first + n; ++k) {
        speed = speed * 0.75 + in[k] * 0.5;
        out[k] = speed;
    }
}
