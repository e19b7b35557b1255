// SPDX-License-Identifier: Apache-2.0
// Host code of a simulation: each step waits for its kernel.
#include <cuda_runtime.h>
#include <vector>

void launch_stencil(const float *before, float *after, int size);
void smooth_boundary(std::vector<float> &boundary);

void advance(float *before, float *after, int size, std::vector<float> &boundary) {
    launch_stencil(before, after, size);
    cudaDeviceSynchronize();
    smooth_boundary(boundary);
}

void simulate(float *before, float *after, int size, int steps) {
    std::vector<float> boundary(size);
    for (int step = 0; step < steps; step++) {
        advance(before, after, size, boundary);
        std::swap(before, after);
    }
}
