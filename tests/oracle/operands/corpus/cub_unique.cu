// SPDX-License-Identifier: Apache-2.0
// CUB's selections.
#include <cub/device/device_select.cuh>
void use(void* t, size_t& b, int* k, long long* l, int* m, int n) {
    cub::DeviceSelect::Unique(t, b, k, k + n, m, n);
    cub::DeviceSelect::Flagged(t, b, l, k, l + n, m, n);
}
