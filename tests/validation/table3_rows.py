# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - a pattern that is looked for stands on one line
"""The rows of GPA's Table III whose kernels are Rodinia's: where each kernel is, its launch, and the change.

Nothing of Rodinia stands here but names: a change is told as what is looked for and what takes its place,
and is applied to the text of the folder that the run is given. Where the paper's own change moves more than
a few words, the row has the same idea in its smallest form, and ``note`` says so. Launches are those of
Rodinia's ``run`` scripts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

Dimensions = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: a kernel before, and what turns it into the kernel after."""

    name: str
    kernel: str
    code: str  # of the rule that the paper's optimizer is
    achieved: float  # in Table III, on a V100
    estimated: float  # by GPA
    file: str  # below Rodinia's cuda folder
    begin: str = ""  # the kernel's text begins and ends at the first match of these; "": of the file
    end: str = ""
    prelude: str = ""  # what the rest of the application declares for it
    includes: tuple[str, ...] = ()  # in front of the kernel's text
    port: tuple[tuple[str, str], ...] = ()  # what no longer compiles, before and after
    grid: Dimensions
    block: Dimensions
    shared: int = 0
    arguments: str  # kinds with values, as --arguments takes them
    loops: Mapping[str, int] = field(default_factory=dict)  # passes by a word of the loop's line
    change: tuple[tuple[str, str], ...] = ()  # regular expressions and what takes the place of their matches
    told: tuple[tuple[str, str], ...] = ()  # what the advice asks for, by hand, where that is another change
    flag: str | None = None
    grid_after: Dimensions | None = None
    block_after: Dimensions | None = None
    note: str = ""


_P: Final = "pointer"


def _kinds(*given: str) -> str:
    return ",".join(given)


_UNROLLED: Final = r"\n#pragma unroll {n}\n\g<0>"

ROWS: Final = (
    Row(
        name="backprop",
        kernel="bpnn_layerforward_CUDA",
        code="GPA105",
        achieved=1.15,
        estimated=1.14,
        file="backprop/backprop_cuda_kernel.cu",
        grid=(1, 4096, 1),
        block=(16, 16, 1),
        arguments=_kinds(*[_P] * 4, "int=65536", "int=16"),
        loops={"__log2f": 4},
        change=(
            (r"= input_hidden_cuda\[index\];\s*__syncthreads\(\);", "= input_hidden_cuda[index] * input_node[ty];"),
            (r"weight_matrix\[ty\]\[tx\] = weight_matrix\[ty\]\[tx\] \* input_node\[ty\];", ""),
            (r"__syncthreads\(\);(\s*if \( tx == 0 \) \{)", r"\1"),
        ),
        note="two of the paper's four barriers: the others are needed",
    ),
    Row(
        name="backprop 2",
        kernel="bpnn_layerforward_CUDA",
        code="GPA102",
        achieved=1.21,
        estimated=1.24,
        file="backprop/backprop_cuda_kernel.cu",
        grid=(1, 4096, 1),
        block=(16, 16, 1),
        arguments=_kinds(*[_P] * 4, "int=65536", "int=16"),
        loops={"for ( int i = 1": 4},
        change=(
            (r"i <= __log2f\(HEIGHT\)", "i <= 4"),
            (r"= __powf\(2, i\)", "= 1 << i"),
            (r"ty % power_two == 0", "(ty & (power_two - 1)) == 0"),
        ),
    ),
    Row(
        name="bfs",
        kernel="Kernel",
        code="GPA201",
        achieved=1.12,
        estimated=1.59,
        file="bfs/kernel.cu",
        prelude="#define MAX_THREADS_PER_BLOCK 512\nstruct Node { int starting; int no_of_edges; };\n",
        grid=(1954, 1, 1),
        block=(512, 1, 1),
        arguments=_kinds(*[_P] * 6, "int=1000000"),
        loops={"g_graph_nodes[tid].starting; i<": 6},
        change=((r"for\(int i=g_graph_nodes", _UNROLLED.format(n=4)),),
    ),
    Row(
        name="b+tree",
        kernel="findRangeK",
        code="GPA202",
        achieved=1.16,
        estimated=1.28,
        file="b+tree/kernel/kernel_gpu_cuda_2.cu",
        prelude="#define DEFAULT_ORDER 256\n"
        "typedef struct knode { int location; int indices[DEFAULT_ORDER + 1]; int keys[DEFAULT_ORDER + 1];"
        " bool is_leaf; int num_keys; } knode;\n",
        grid=(6000, 1, 1),
        block=(256, 1, 1),
        arguments=_kinds("long=4", _P, "long=7874", *[_P] * 8),
        change=(
            (
                r"for\(i = 0; i < height; i\+\+\)\{",
                (r"\g<0> const knode& one = knodesD[currKnodeD[bid]]; const knode& two = knodesD[lastKnodeD[bid]];"
                " const int least = startD[bid], most = endD[bid];"
                " const int a = one.keys[thid], b = one.keys[thid+1], c = two.keys[thid], d = two.keys[thid+1];"),
            ),
            (r"knodesD\[currKnodeD\[bid\]\]\.keys\[thid\] <= startD\[bid\]", "a <= least"),
            (r"knodesD\[currKnodeD\[bid\]\]\.keys\[thid\+1\] > startD\[bid\]", "b > least"),
            (r"knodesD\[lastKnodeD\[bid\]\]\.keys\[thid\] <= endD\[bid\]", "c <= most"),
            (r"knodesD\[lastKnodeD\[bid\]\]\.keys\[thid\+1\] > endD\[bid\]", "d > most"),
        ),
        note="row pointers and bounds in locals; the next node's are not fetched ahead",
    ),
    Row(
        name="cfd",
        kernel="cuda_compute_flux",
        code="GPA104",
        achieved=1.60,
        estimated=1.68,
        file="cfd/euler3d.cu",
        begin=r"#define NDIM",
        end=r"void compute_flux\(int nelr",
        prelude="#include <fstream>\n#define GAMMA 1.4f\n#define getLastCudaError(x)\n#define checkCudaErrors(x) x\n",
        grid=(506, 1, 1),
        block=(192, 1, 1),
        arguments=_kinds("int=97152", *[_P] * 4),
        flag="--use_fast_math",
        note="the benchmark's change; the paper names Code Reorder",
    ),
    Row(
        name="gaussian",
        kernel="Fan2",
        code="GPA302",
        achieved=3.58,
        estimated=3.32,
        file="gaussian/gaussian.cu",
        begin=r"__global__ void Fan2\(float \*m_cuda",
        end=r"/\*-+\s*\*\* ForwardSub",
        grid=(256, 256, 1),
        block=(4, 4, 1),
        arguments=_kinds(*[_P] * 3, "int=1024", "int=1024", "int=0"),
        grid_after=(128, 128, 1),
        block_after=(8, 8, 1),
    ),
    Row(
        name="heartwall",
        kernel="kernel",
        code="GPA201",
        achieved=1.17,
        estimated=1.18,
        file="heartwall/kernel.cu",
        includes=("heartwall/define.c",),
        prelude="__constant__ params_common_change d_common_change;\n__constant__ params_common d_common;\n"
        "__constant__ params_unique d_unique[ALL_POINTS];\n",
        grid=(51, 1, 1),
        block=(256, 1, 1),
        arguments="",
        loops={"for(ja=ja1": 16, "for(ia=ia1": 16},
        change=((r"for\(ja=ja1; ja<=ja2; ja\+\+\)", _UNROLLED.format(n=8)),),
        note="every loop 16 passes: their bounds are data",
    ),
    Row(
        name="hotspot",
        kernel="calculate_temp",
        code="GPA102",
        achieved=1.14,
        estimated=1.09,
        file="hotspot/hotspot.cu",
        begin=r"#define IN_RANGE",
        end=r"/\*\s*compute N time steps",
        prelude="#define BLOCK_SIZE 16\n",
        grid=(43, 43, 1),
        block=(16, 16, 1),
        arguments=_kinds("int=2", *[_P] * 3, "int=512", "int=512", "int=2", "int=2", *["float=0.5"] * 6),
        change=((r"2\.0\*temp", "2.0f*temp"),),
    ),
    Row(
        name="huffman",
        kernel="vlc_encode_kernel_sm64huff",
        code="GPA105",
        achieved=1.07,
        estimated=1.17,
        file="huffman/vlc_kernel_sm64huff.cu",
        prelude="#define SMATOMICS\n#define CACHECWLUT\n#define NUM_SYMBOLS 256\n",
        port=((r'#include "[^"]*"', ""), (r"__global__ static", "__global__")),
        grid=(1024, 1, 1),
        block=(256, 1, 1),
        shared=3072,
        arguments=_kinds(*[_P] * 5),
        change=(
            (
                r"for \(unsigned int d = 1; d < blockDim\.x; d \*= 2\)\s*\{\s*offset >>= 1;\s*__syncthreads\(\);",
                ("if (k >= 32) offset >>= 6; for (unsigned int d = k < 32 ? 1 : 64; d < blockDim.x; d *= 2) {"
                " offset >>= 1; if (d > 32) __syncthreads(); else __syncwarp();"),
            ),
        ),
        told=(
            (
                r"unsigned int offset = 1;\s*/\* Build the sum[\s\S]*?__syncthreads\(\);\s*if \(k == blockDim\.x-1\)",
                ("unsigned int sum = codewordlen, part; __shared__ unsigned int sums[32];"
                " for (int d = 1; d < 32; d *= 2)"
                " { part = __shfl_up_sync(~0u, sum, d); if ((k & 31) >= d) sum += part; }"
                " if ((k & 31) == 31) sums[k >> 5] = sum; __syncthreads();"
                " if (k < 32) { unsigned int all = k < blockDim.x >> 5 ? sums[k] : 0;"
                " for (int d = 1; d < 32; d *= 2) { part = __shfl_up_sync(~0u, all, d); if (k >= d) all += part; }"
                " sums[k] = all; } __syncthreads();"
                " as[k] = sum - codewordlen + (k >= 32 ? sums[(k >> 5) - 1] : 0); __syncthreads();"
                " if (k == blockDim.x-1)"),
            ),
        ),
        note="the first six levels of the way down are the first warp's alone, as published; shuffles are told",
    ),
    Row(
        name="kmeans",
        kernel="kmeansPoint",
        code="GPA201",
        achieved=1.11,
        estimated=1.20,
        file="kmeans/kmeans_cuda_kernel.cu",
        prelude="#include <cfloat>\n#define THREADS_PER_BLOCK 256\n",
        port=(
            (r'#include "[^"]*"', ""),
            (r"texture<[^;]*;", ""),
            (r"tex1Dfetch\(t_features,addr\)", "features[addr]"),
        ),
        grid=(44, 44, 1),
        block=(256, 1, 1),
        arguments=_kinds(_P, "int=34", "int=494020", "int=5", *[_P] * 4),
        change=((r"for \(j=0; j < nfeatures; j\+\+\)", _UNROLLED.format(n=8)),),
        note="textures are read as global memory: CUDA 13 has no texture references",
    ),
    Row(
        name="lavaMD",
        kernel="kernel_gpu_cuda",
        code="GPA201",
        achieved=1.11,
        estimated=1.12,
        file="lavaMD/kernel/kernel_gpu_cuda.cu",
        includes=("lavaMD/main.h",),
        grid=(1000, 1, 1),
        block=(128, 1, 1),
        arguments="",
        loops={"for (k=0": 3, "for (j=0": 100},
        change=((r"for \(j=0; j<NUMBER_PAR_PER_BOX; j\+\+\)", _UNROLLED.format(n=8)),),
        note="three neighbour boxes instead of 27: each takes as long",
    ),
    Row(
        name="lud",
        kernel="lud_diagonal",
        code="GPA202",
        achieved=1.41,
        estimated=1.48,
        file="lud/cuda/lud_kernel.cu",
        end=r"__global__ void\s*lud_perimeter",
        grid=(1, 1, 1),
        block=(16, 1, 1),
        arguments=_kinds(_P, "int=256", "int=0"),
        change=(
            (r"for\(j=0; j < i; j\+\+\)\s*shadow\[threadIdx\.x\]\[i\] -=",
             "float sum = shadow[threadIdx.x][i]; for(j=0; j < i; j++) sum -="),
            (r"shadow\[threadIdx\.x\]\[i\] /= shadow\[i\]\[i\];", "shadow[threadIdx.x][i] = sum / shadow[i][i];"),
            (r"for\(j=0; j < i\+1; j\+\+\)\s*shadow\[i\+1\]\[threadIdx\.x\] -=([^;]*);",
             r"float sum = shadow[i+1][threadIdx.x]; for(j=0; j < i+1; j++) sum -=\1; shadow[i+1][threadIdx.x] = sum;"),
        ),
    ),
    Row(
        name="myocyte",
        kernel="solver_2",
        code="GPA104",
        achieved=1.22,
        estimated=1.13,
        file="myocyte/solver_2.cu",
        includes=(
            *("myocyte/define.c", "myocyte/kernel_fin_2.cu", "myocyte/kernel_ecc_2.cu", "myocyte/kernel_cam_2.cu"),
            *("myocyte/kernel_2.cu", "myocyte/embedded_fehlberg_7_8_2.cu"),
        ),
        grid=(1, 1, 1),
        block=(32, 1, 1),
        arguments=_kinds("int=32", "int=1", *[_P] * 9),
        loops={"j < ATTEMPTS": 1},
        flag="--use_fast_math",
        note="one time step of 100, of the first attempt: each takes as long",
    ),
    Row(
        name="myocyte 2",
        kernel="solver_2",
        code="GPA103",
        achieved=1.02,
        estimated=1.01,
        file="myocyte/solver_2.cu",
        includes=(
            *("myocyte/define.c", "myocyte/kernel_fin_2.cu", "myocyte/kernel_ecc_2.cu", "myocyte/kernel_cam_2.cu"),
            *("myocyte/kernel_2.cu", "myocyte/embedded_fehlberg_7_8_2.cu"),
        ),
        grid=(1, 1, 1),
        block=(32, 1, 1),
        arguments=_kinds("int=32", "int=1", *[_P] * 9),
        loops={"j < ATTEMPTS": 1},
        change=((r"__device__ void kernel_cam_2", "__noinline__ __device__ void kernel_cam_2"),),
    ),
    Row(
        name="nw",
        kernel="needle_cuda_shared_1",
        code="GPA105",
        achieved=1.07,
        estimated=1.09,
        file="nw/needle_kernel.cu",
        end=r"__global__ void\s*needle_cuda_shared_2",
        grid=(128, 1, 1),
        block=(16, 1, 1),
        arguments=_kinds(_P, _P, "int=2049", "int=10", "int=128", "int=128"),
        change=(
            (r"__syncthreads\(\);(\s*temp\[tx \+ 1\]\[0\])", r"\1"),
            (r"__syncthreads\(\);(\s*temp\[0\]\[tx \+ 1\])", r"\1"),
        ),
    ),
    Row(
        name="particlefilter",
        kernel="likelihood_kernel",
        code="GPA301",
        achieved=1.75,
        estimated=1.92,
        file="particlefilter/ex_particle_CUDA_float_seq.cu",
        begin=r"__device__ double calcLikelihoodSum",
        end=r"/\*\*\s*\n \* Takes in a double",
        prelude="#include <climits>\n#include <cmath>\nextern long M;\nextern int A, C;\nconst int threads_per_block = 512;\n#define PI 3.1415926535897932\n",
        grid=(2, 1, 1),
        block=(512, 1, 1),
        arguments=_kinds(*[_P] * 11, "int=1000", "int=69", "int=163840", "int=1", "int=128", "int=10", _P, _P),
        grid_after=(8, 1, 1),
        block_after=(128, 1, 1),
    ),
    Row(
        name="streamcluster",
        kernel="kernel_compute_cost",
        code="GPA301",
        achieved=1.52,
        estimated=1.35,
        file="streamcluster/streamcluster_cuda.cu",
        begin=r"//=+\s*// Euclidean Distance",
        end=r"//=+\s*// Allocate Device Memory",
        prelude="typedef struct { float weight; float *coord; long assign; float cost; } Point;\n",
        grid=(128, 1, 1),
        block=(512, 1, 1),
        arguments=_kinds("int=65536", "int=256", "long=5", _P, "int=10", "int=11", *[_P] * 4),
        grid_after=(512, 1, 1),
        block_after=(128, 1, 1),
    ),
    Row(
        name="srad_v1",
        kernel="reduce",
        code="GPA105",
        achieved=1.02,
        estimated=1.10,
        file="srad/srad_v1/reduce_kernel.cu",
        prelude="#define fp float\n#define NUMBER_THREADS 512\n",
        grid=(450, 1, 1),
        block=(512, 1, 1),
        arguments=_kinds("long=229916", "int=229916", "int=1", _P, _P),
        change=(
            (r"i<=NUMBER_THREADS; i=2\*i\)\{(\s*(?://)?\s*// sum of elements)", r"i<=NUMBER_THREADS/8; i=2*i){\1"),
            (
                r"if\(tx==\(NUMBER_THREADS-1\)\)\{",
                (r"\g<0> for (i = 1; i < 8; i++) { d_psum[tx] += d_psum[tx - i * (NUMBER_THREADS / 8)];"
                " d_psum2[tx] += d_psum2[tx - i * (NUMBER_THREADS / 8)]; }"),
            ),
        ),
    ),
    Row(
        name="pathfinder",
        kernel="dynproc_kernel",
        code="GPA202",
        achieved=1.04,
        estimated=1.31,
        file="pathfinder/pathfinder.cu",
        begin=r"#define IN_RANGE",
        end=r"/\*\s*compute N time steps",
        prelude="#define BLOCK_SIZE 256\n#define HALO 1\n",
        grid=(463, 1, 1),
        block=(256, 1, 1),
        arguments=_kinds("int=20", *[_P] * 3, "int=100000", "int=100", "int=0", "int=20"),
        change=(
            (
                r"computed = false;",
                ("const int at = cols * (startStep + i) + xidx;"
                " const int wall = xidx >= 0 && xidx < cols ? gpuWall[at] : 0; computed = false;"),
            ),
            (r"shortest \+ gpuWall\[index\]", "shortest + wall"),
        ),
    ),
)  # fmt: skip
