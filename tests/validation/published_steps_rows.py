# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - a pattern that is looked for stands on one line
"""Published optimizations in steps: where each version of a kernel is, its launch, and how long it took.

Nothing of these repositories stands here but names and the figures of their README files. ``time`` is in any
unit that a repository uses, alike for all of its versions; of a rate it is one over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

Dimensions = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A kernel as it was at one step, and what the step to it changed."""

    name: str
    files: tuple[str, ...]
    kernel: str
    instance: str = ""  # what stands behind the text, so that a template is compiled
    grid: Dimensions
    block: Dimensions
    shared: int = 0
    arguments: str
    time: float  # as published
    change: str = ""  # from the version before
    accepted: tuple[str, ...] = ()  # rules whose cure is this change, whether it gained or not
    port: tuple[tuple[str, str], ...] = ()  # what is replaced in the text, before and after
    revision: str = ""  # of this version; "": of the chain


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The versions of one kernel in one repository, measured on one GPU."""

    name: str
    repository: str
    revision: str
    device: str
    arch: str
    sms: int
    versions: tuple[Version, ...]
    flags: tuple[str, ...] = ()
    note: str = ""
    port: tuple[tuple[str, str], ...] = field(default=())


_HOST: Final = (r'#include\s*(<cublas_v2\.h>|"[^"]*")', "")
_INSTANCES: Final[Mapping[str, str]] = {
    "const": "(int, int, int, float, const float*, const float*, float, float*);",
    "plain": "(int, int, int, float, float*, float*, float, float*);",
}


def _gemm(size: int) -> str:
    return f"int={size},int={size},int={size},float=1,pointer,pointer,float=0,pointer"


def _sgemm(name: str, file: str, kernel: str, *, kind: str = "const", **rest: object) -> Version:
    values = f"template __global__ void {kernel}{_INSTANCES[kind]}\n" if "<" in kernel else ""
    plain = kernel.partition("<")[0]
    return Version(name=name, files=(file,), kernel=plain, instance=values, arguments=_gemm(4096), **rest)  # type: ignore[arg-type] # fields by name


_SIBOEHM: Final = Chain(
    name="sgemm, siboehm",
    repository="siboehm/SGEMM_CUDA",
    revision="60cba6f9b2",
    device="RTX A6000",
    arch="sm_86",
    sms=84,
    port=(_HOST,),
    versions=(
        _sgemm(
            "1", "src/kernels/1_naive.cuh", "sgemm_naive",
            grid=(128, 128, 1), block=(32, 32, 1), time=1 / 309.0,
        ),
        _sgemm(
            "2", "src/kernels/2_kernel_global_mem_coalesce.cuh", "sgemm_global_mem_coalesce<32>",
            grid=(128, 128, 1), block=(1024, 1, 1), time=1 / 1986.5,
            change="neighbouring threads on neighbouring columns", accepted=("GPA106",),
        ),
        _sgemm(
            "3", "src/kernels/3_kernel_shared_mem_blocking.cuh", "sgemm_shared_mem_block<32>",
            grid=(128, 128, 1), block=(1024, 1, 1), time=1 / 2980.3,
            change="tiles in shared memory", accepted=("GPA107",),
        ),
        _sgemm(
            "4", "src/kernels/4_kernel_1D_blocktiling.cuh", "sgemm1DBlocktiling<64, 64, 8, 8>",
            grid=(64, 64, 1), block=(512, 1, 1), time=1 / 8474.7,
            change="eight results a thread", accepted=("GPA107",),
        ),
        _sgemm(
            "5", "src/kernels/5_kernel_2D_blocktiling.cuh", "sgemm2DBlocktiling<128, 128, 8, 8, 8>",
            grid=(32, 32, 1), block=(256, 1, 1), time=1 / 15971.7,
            change="8 x 8 results a thread", accepted=("GPA107",),
        ),
        _sgemm(
            "6", "src/kernels/6_kernel_vectorize.cuh", "sgemmVectorize<128, 128, 8, 8, 8>", kind="plain",
            grid=(32, 32, 1), block=(256, 1, 1), time=1 / 18237.3,
            change="float4, and the first tile transposed", accepted=("GPA108", "GPA106"),
        ),
    ),
)  # fmt: skip

_WANGZYON: Final = Chain(
    name="sgemm, wangzyon",
    repository="wangzyon/NVIDIA_SGEMM_PRACTICE",
    revision="d6068b13e9",
    device="RTX 3090",
    arch="sm_86",
    sms=82,
    port=(_HOST,),
    note="4,096 instead of 5,120",
    versions=tuple(
        _sgemm(
            str(number), f"src/kernel/kernel_{number}.cuh", f"mysgemm_v{number}{sizes}", kind="plain",
            grid=(side, side, 1), block=block, time=1 / rate, change=change, accepted=codes,
        )
        for number, sizes, side, block, rate, change, codes in (
            (1, "", 128, (32, 32, 1), 2262.168, "", ()),
            (2, "<32>", 128, (1024, 1, 1), 4216.536, "tiles in shared memory", ("GPA107",)),
            (3, "<64, 64, 8, 8>", 64, (512, 1, 1), 7809.629, "eight results a thread", ("GPA107",)),
            (4, "<128, 128, 8, 8, 8>", 32, (256, 1, 1), 12251.3, "8 x 8 results a thread", ("GPA107",)),
            (5, "<128, 128, 8, 8, 8>", 32, (256, 1, 1), 12177.95, "operands in registers by hand", ("GPA107", "GPA202")),
            (6, "<128, 128, 8, 8, 8>", 32, (256, 1, 1), 13161.49, "float4, and the first tile transposed", ("GPA108", "GPA106")),
            (7, "<128, 128, 8, 8, 8>", 32, (256, 1, 1), 13634.98, "two tiles in turn", ("GPA204", "GPA202", "GPA105")),
        )
    ),
)  # fmt: skip


def _reduction(name: str, file: str, blocks: int, time: float, **rest: object) -> Version:
    values = {"kernel": f"reduce_{name}", "arguments": "pointer,pointer", **rest}
    return Version(
        name=name, files=(f"cuda-kernels/reduce/reduce_{file}.cu",),
        grid=(blocks, 1, 1), block=(256, 1, 1), time=time, **values,  # type: ignore[arg-type] # fields by name
    )  # fmt: skip


_BBUF: Final = Chain(
    name="reduction, BBuf",
    repository="BBuf/how-to-optim-algorithm-in-cuda",
    revision="10a3a8d243",
    device="A100-PCIE-40GB",
    arch="sm_80",
    sms=108,
    versions=(
        _reduction("v0", "v0_baseline", 131072, 990.66),
        _reduction(
            "v1", "v1_interleaved_addressing", 131072, 479.58,
            change="active threads are neighbours, no remainder",
            accepted=("GPA102", "GPA109"),
        ),
        _reduction(
            "v2", "v2_bank_conflict_free", 131072, 462.02,
            change="no bank conflicts", accepted=("GPA106", "GPA102"),
        ),
        _reduction(
            "v3", "v3_idle_threads_free", 65536, 244.16,
            change="two elements a thread before the tree", accepted=("GPA105", "GPA109"),
        ),
        _reduction(
            "v4", "v4_unroll_last_warp", 65536, 167.10,
            change="the last warp without barriers", accepted=("GPA105", "GPA109"),
        ),
        _reduction(
            "v5", "v5_completely_unroll", 65536, 158.78,
            change="the tree unrolled by a template", accepted=("GPA201", "GPA105"),
        ),
        _reduction(
            "v6", "v6_multi_add", 1024, 105.47,
            change="128 elements a thread before the tree", accepted=("GPA105", "GPA109", "GPA302", "GPA301"),
        ),
        _reduction(
            "v7", "v7_shfl_down_sync", 1024, 101.7, kernel="reduce7", arguments="pointer,pointer,int=33554432",
            change="sums in registers, then shuffles", accepted=("GPA101", "GPA105", "GPA106"),
        ),
        _reduction(
            "v8", "v8_shfl_down_sync_pack", 864, 99.71, arguments="pointer,pointer,int=33554432",
            change="four elements a load", accepted=("GPA108",),
        ),
    ),
)  # fmt: skip

_TRANSPOSE: Final = Chain(
    name="transpose, ayush-os",
    repository="ayush-os/transpose",
    revision="7f2491a951",
    device="A100",
    arch="sm_80",
    sms=108,
    versions=tuple(
        Version(
            name=name, files=("src/kernels/kernel_baseline.cu",), kernel=kernel, port=port,
            grid=(128, 128, 1), block=(32, 8, 1), arguments="pointer,pointer",
            time=time, change=change, accepted=codes,
        )
        for name, kernel, port, time, change, codes in (
            ("naive", "baseline_transpose_kernel", (), 686.513, "", ()),
            (
                "tile", "smem_transpose_kernel", ((r"TILE_DIM\]\[TILE_DIM\+1\]", "TILE_DIM][TILE_DIM]"),),
                180.476, "through a tile in shared memory", ("GPA106",),
            ),
            ("padded", "smem_transpose_kernel", (), 108.857, "a padded tile", ("GPA106",)),
        )
    ),
)  # fmt: skip

_SUM: Final = Chain(
    name="reduction, ayush-os",
    repository="ayush-os/reduction",
    revision="f09f8ec3bf",
    device="A100",
    arch="sm_80",
    sms=108,
    port=((r"const int warpSize = 32;", ""),),
    note="times hold a small second launch from version 5 on",
    versions=tuple(
        Version(
            name=name, files=("src/kernels.cu",), kernel=kernel, revision=revision,
            grid=(blocks, 1, 1), block=(threads, 1, 1), arguments="pointer,pointer,int=16777216",
            time=time, change=change, accepted=codes,
        )
        for name, kernel, revision, blocks, threads, time, change, codes in (
            ("0", "baseline", "e353cae", 65536, 256, 37289.8, "", ()),
            ("1", "smem", "54f014a", 65536, 256, 179.789, "one addition in memory for each block", ("GPA110",)),
            ("2", "smem", "b8dff9e", 65536, 256, 197.926, "a tree instead of one thread", ("GPA105", "GPA109", "GPA201")),
        )
    ),
)  # fmt: skip

_LOADS: Final = Chain(
    name="reduction 2, ayush-os",
    repository="ayush-os/reduction",
    revision="f09f8ec3bf",
    device="A100",
    arch="sm_80",
    sms=108,
    port=((r"const int warpSize = 32;", ""),),
    note="times hold a small second launch",
    versions=tuple(
        Version(
            name=name, files=("src/kernels.cu",), kernel="reduce", revision=revision,
            grid=(2048, 1, 1), block=(512, 1, 1), arguments="pointer,pointer,int=16777216",
            time=time, change=change, accepted=codes,
        )
        for name, revision, time, change, codes in (
            ("6", "5f1b41f", 78.8283, "", ()),
            ("7", "90bed14", 59.6931, "four elements a load", ("GPA108", "GPA201")),
        )
    ),
)  # fmt: skip

_HISTOGRAM: Final = Chain(
    name="histogram, yencal",
    repository="yencal/gpu-histogram-optimization",
    revision="b71f5c0444",
    device="H100",
    arch="sm_90",
    sms=132,
    note="2^26 elements instead of 2^30",
    versions=tuple(
        Version(
            name=name, files=("src/histogram_kernels.cuh",), kernel=name,
            instance=f"template __global__ void {name}<256>(const unsigned char*, int, int*);\n",
            grid=(4224, 1, 1), block=(512, 1, 1), arguments="pointer,int=67108864,pointer",
            time=time, change=change, accepted=codes,
        )
        for name, time, change, codes in (
            ("HistogramGlobalAtomic", 276.13, "", ()),
            ("HistogramSharedAtomic", 1.53, "counts of a block in shared memory", ("GPA110",)),
            ("HistogramSharedAtomicVec", 0.47, "16 elements a load", ("GPA108", "GPA201")),
        )
    ),
)  # fmt: skip

_SOFTMAX: Final = Chain(
    name="softmax, Maharshi-Pandya",
    repository="Maharshi-Pandya/cudacodes",
    revision="9a459b1007",
    device="GTX 1050 Ti",
    arch="sm_75",
    sms=6,
    note="sm_75 for sm_61, 4,096 columns instead of 32,768",
    port=((r'#include "cuda_utils\.cuh"', ""), (r"void run_kernel_[\s\S]*", "")),
    versions=tuple(
        Version(
            name=str(number), files=(f"softmax/kernels/{file}.cu",), kernel=f"softmax_kernel_{number}",
            grid=(blocks, 1, 1), block=(1024, 1, 1), arguments="pointer,pointer,int=1024,int=4096",
            time=time, change=change, accepted=codes,
            port=((r"__global__", "#define CEIL_DIV(x, y) (((x) + (y) - 1) / (y))\n__global__"),),
        )
        for number, file, blocks, time, change, codes in (
            (0, "naive_0", 1, 124.102112, "", ()),
            (1, "online_1", 1, 88.149567, "two passes instead of three", ("GPA107",)),
            (2, "sharedmem_2", 1024, 6.612160, "a block for each row", ("GPA301", "GPA302", "GPA106")),
            (3, "shfl_3", 1024, 5.174400, "shuffles instead of trees", ("GPA105", "GPA109")),
        )
    ),
)  # fmt: skip

CHAINS: Final = (_SIBOEHM, _WANGZYON, _BBUF, _TRANSPOSE, _SUM, _LOADS, _HISTOGRAM, _SOFTMAX)
