// SPDX-License-Identifier: Apache-2.0
// CUB's histograms.
#include <cub/device/device_histogram.cuh>
void use(void* t, size_t& b, const unsigned char* c, const float* f, int* h, int n) {
    cub::DeviceHistogram::HistogramEven(t, b, c, h, 257, 0, 256, n);
    cub::DeviceHistogram::HistogramEven(t, b, f, h, 65, 0.f, 1.f, n);
}
