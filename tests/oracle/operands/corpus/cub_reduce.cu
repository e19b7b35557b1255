// SPDX-License-Identifier: Apache-2.0
// CUB's reductions.
#include <cub/device/device_reduce.cuh>
void use(void* t, size_t& b, float* k, double* d, long long* l, int* i, int n) {
    cub::DeviceReduce::Sum(t, b, k, k + n, n);
    cub::DeviceReduce::Max(t, b, d, d + n, n);
    cub::DeviceReduce::ReduceByKey(t, b, i, i + n, l, l + n, i + 2 * n, cuda::std::plus<>{}, n);
}
