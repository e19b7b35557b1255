// SPDX-License-Identifier: Apache-2.0
// Reads through an index; two instantiations share their lines and only one of them is hot.

template <int kStep>
__global__ void gather(const float* in, const int* index, float* out, int n) {
    float sum = 0.0f;
    for (int k = threadIdx.x; k + (kStep - 1) * 256 < n; k += kStep * 256) {
        for (int j = 0; j < kStep; ++j) {
            sum += in[index[k + j * 256] % n];
        }
    }
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}

template __global__ void gather<1>(const float*, const int*, float*, int);
template __global__ void gather<4>(const float*, const int*, float*, int);
