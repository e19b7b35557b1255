// SPDX-License-Identifier: Apache-2.0
// CUB's radix sort.
#include <cub/device/device_radix_sort.cuh>
void use(void* t, size_t& b, int* k, int* v, unsigned long long* l, int n) {
    cub::DeviceRadixSort::SortPairs(t, b, k, k + n, v, v + n, n);
    cub::DeviceRadixSort::SortKeys(t, b, l, l + n, n);
}
