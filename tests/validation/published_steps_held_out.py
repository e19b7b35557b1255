# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - a pattern that is looked for stands on one line
"""Published optimizations of repositories that nothing was shaped by when they were first run.

As in ``published_steps_rows``: names, patterns and the figures of README files. What the next change is was
written down before any advice was read.
"""

from __future__ import annotations

from typing import Final

from tests.validation.published_steps_rows import Chain, Dimensions, Version

Change = tuple[str, tuple[str, ...]]  # what the step to a version changed, and the rules whose cure that is
_NO_CHANGE: Final[Change] = ("", ())
_NO_HEADERS: Final = (r'#include\s*(<torch/[^>]*>|"[^"]*")', "")


def _version(
    name: str, file: str, grid: Dimensions, block: Dimensions, time: float, change: Change, **rest: object
) -> Version:
    said, codes = change
    return Version(
        name=name, files=(file,), grid=grid, block=block, time=time, change=said, accepted=codes, **rest
    )  # type: ignore[arg-type] # fields by name


_TREES: Final = Chain(
    name="reduction, MasterSkepticista",
    repository="MasterSkepticista/parallel_reductions_cuda",
    revision="1f21e8e",
    device="RTX 3090",
    arch="sm_86",
    sms=82,
    flags=("--use_fast_math",),
    note="blocks of 256 of the sizes that were tried",
    port=(_NO_HEADERS, (r"void reduce_sum\([\s\S]*", "")),
    versions=tuple(
        _version(
            str(number), "reduce_sum.cu", (blocks, 1, 1), (256, 1, 1), 1 / rate, change,
            kernel=f"reduce_sum_kernel{number}", arguments="pointer,pointer,int=33554432", shared=shared,
        )
        for number, blocks, shared, rate, change in (
            (1, 32768, 0, 9.9, _NO_CHANGE),
            (2, 131072, 1024, 223, ("a tree, and one addition in memory for each block", ("GPA110",))),
            (3, 131072, 1024, 317, ("active threads are neighbours, no remainder", ("GPA102", "GPA109"))),
            (4, 131072, 1024, 331, ("no bank conflicts", ("GPA106",))),
            (5, 65536, 1024, 618, ("two elements a thread before the tree", ("GPA105", "GPA109"))),
            (6, 65536, 1024, 859, ("the last warp without barriers", ("GPA105", "GPA109"))),
        )
    ),
)  # fmt: skip

_DEBNATH: Final = Chain(
    name="reduction, debnath2109",
    repository="debnath2109/Cuda-Optimization-Studies",
    revision="682e570",
    device="RTX 2000 Ada Laptop",
    arch="sm_89",
    sms=24,
    port=((r"int main\(\)[\s\S]*", ""),),
    versions=tuple(
        _version(
            name, f"reduction/{file}.cu", (blocks, 1, 1), (256, 1, 1), time, change,
            kernel=kernel, arguments="pointer,pointer,int=32000000",
        )
        for name, file, kernel, blocks, time, change in (
            ("1", "01_naive_atomic", "reduceNaive", 125000, 65.7, _NO_CHANGE),
            ("2", "02_shared_tree", "reduceShared", 125000, 1.74, ("a tree, and one addition in memory for each block", ("GPA110",))),
            ("3", "03_gridstride_shuffle", "reduceOptimized", 256, 0.529, ("488 elements a thread before the tree", ("GPA105", "GPA109", "GPA302", "GPA301"))),
            ("4", "04_float4_vectorized", "float4Optimized", 120, 0.529, ("four elements a load", ("GPA108",))),
        )
    ),
)  # fmt: skip

_WIDER: Final = (
    (r"#define TM 4\n#define TN 4", "#define TM 8\n#define TN 8"),
    (r"int tid = ty \* 16 \+ tx; ", "int tid = ty * 8 + tx; "),
    (r"i \+= 256", "i += 64"),
)
_MATMUL: Final = Chain(
    name="matrix product, debnath2109",
    repository="debnath2109/Cuda-Optimization-Studies",
    revision="682e570",
    device="RTX 2000 Ada Laptop",
    arch="sm_89",
    sms=24,
    port=((r"int main\(\)[\s\S]*", ""),),
    versions=tuple(
        _version(
            name, f"matmul/{file}.cu", (side, side, 1), (threads, threads, 1), time, change,
            kernel=kernel, arguments="pointer,pointer,pointer,int=4096", port=port,
        )
        for name, file, kernel, side, threads, time, change, port in (
            ("1", "01_matmul_naive", "matmulNaive", 256, 16, 342, _NO_CHANGE, ()),
            ("2", "02_matmul_tiled", "matmulTiled", 256, 16, 200, ("tiles in shared memory", ("GPA107",)), ()),
            ("3", "03_matmul_register_tiling", "matmulRegisterTiled", 64, 16, 46, ("4 x 4 results a thread", ("GPA107",)), ()),
            ("4", "03_matmul_register_tiling", "matmulRegisterTiled", 64, 8, 54.6, ("8 x 8 results a thread", ("GPA107",)), _WIDER),
        )
    ),
)  # fmt: skip


def _filter(width: int, size: int, block: Dimensions, times: tuple[float, float, float]) -> Chain:
    columns, rows, _ = block
    grid = (width // columns, width // rows, 1)
    half = size // 2
    image = f"pointer,pointer,int={width},int={width}"
    tile = columns + 2 * half
    tiled = f"template __global__ void conv2d_kernel_v2_shared<{size}>(const float*, float*, int, int, int, int, int);\n"
    return Chain(
        name=f"{size} x {size} filter of {width}, kiril-buga",
        repository="kiril-buga/CUDA-Optimized-Convolution-Stencils",
        revision="fb8f17a",
        device="Tesla T4",
        arch="sm_75",
        sms=40,
        note="times from the second version on hold the copy of the filter to constant memory",
        port=(_NO_HEADERS, (r"\nvoid (conv2d_cuda|print_device)\w*\([\s\S]*?\n}\n", "\n")),
        versions=tuple(
            _version(name, "src/cuda_convolution.cu", grid, block, time, change, **rest)  # type: ignore[arg-type] # fields by name
            for name, time, change, rest in (
                ("1", times[0], _NO_CHANGE, {"kernel": "conv2d_kernel_v1", "arguments": f"{image},pointer,int={size}"}),
                (
                    "2", times[1], ("the filter in constant memory", ("GPA107",)),
                    {"kernel": "conv2d_kernel_v1_const", "arguments": f"{image},int={size}"},
                ),
                (
                    "3", times[2], ("a tile in shared memory, loops unrolled", ("GPA107", "GPA201")),
                    {
                        "kernel": "conv2d_kernel_v2_shared", "instance": tiled, "shared": 4 * tile * (rows + 2 * half),
                        "arguments": f"{image},int={columns},int={rows},int={tile}",
                    },
                ),
            )
        ),
    )  # fmt: skip


def _inference(name: str, file: str, arguments: str, *versions: tuple[object, ...]) -> Chain:
    return Chain(
        name=f"{name}, Abhisheklearn12",
        repository="Abhisheklearn12/inference-cuda-kernels",
        revision="a9237138b6",
        device="RTX 3060",
        arch="sm_86",
        sms=28,
        port=((r'#include\s*"[^"]*"|#pragma once', ""),),
        versions=tuple(
            Version(
                name=kernel.split("_")[1], files=("src/common.cuh", f"src/kernels/{file}.cuh"), kernel=kernel,
                grid=grid, block=(threads, 1, 1), time=1 / rate, change=change[0], accepted=change[1],
                shared=rest[0] if rest else 0, arguments=rest[1] if rest[1:] else arguments,
            )
            for kernel, grid, threads, rate, change, *rest in versions  # type: ignore[misc] # a row is of several types
        ),
    )  # fmt: skip


_A_WARP: Final[Change] = ("a warp for each row", ("GPA106", "GPA301"))
_ONLINE: Final[Change] = ("two passes instead of three", ("GPA107",))
_GEMV: Final = _inference(
    "matrix times vector", "gemv", "pointer,pointer,pointer,int=4096,int=4096",
    ("gemv_k1_naive", (16, 1, 1), 256, 106.8, _NO_CHANGE),
    ("gemv_k2_warp", (512, 1, 1), 256, 303.3, _A_WARP),
    ("gemv_k3_vec4", (512, 1, 1), 256, 308.6, ("four elements a load", ("GPA108",))),
    ("gemv_k4_block", (4096, 1, 1), 256, 301.7, ("a block for each row", ("GPA301", "GPA302"))),
    ("gemv_k5_tuned", (1024, 1, 1), 128, 292.7, ("a warp for each row again, unrolled", ("GPA201", "GPA302"))),
)  # fmt: skip
_MANY_ROWS: Final = _inference(
    "softmax", "softmax", "pointer,pointer,int=4096,int=4096",
    ("softmax_k1_naive", (16, 1, 1), 256, 33.6, _NO_CHANGE),
    ("softmax_k2_warp", (512, 1, 1), 256, 159.8, _A_WARP),
    ("softmax_k3_block_vec4", (4096, 1, 1), 256, 171.0, ("a block for each row, four elements a load", ("GPA108", "GPA301", "GPA302"))),
    ("softmax_k4_online_vec4", (4096, 1, 1), 256, 212.1, _ONLINE),
)  # fmt: skip
_FEW_ROWS: Final = _inference(
    "softmax of 32 rows", "softmax", "pointer,pointer,int=32,int=32000",
    ("softmax_k1_naive", (1, 1, 1), 256, 0.9, _NO_CHANGE),
    ("softmax_k2_warp", (4, 1, 1), 256, 37.6, _A_WARP),
    ("softmax_k3_block_vec4", (32, 1, 1), 256, 144.3, ("a block for each row, four elements a load", ("GPA301", "GPA302", "GPA108"))),
    ("softmax_k4_online_vec4", (32, 1, 1), 256, 185.3, _ONLINE),
)  # fmt: skip
_RMSNORM: Final = _inference(
    "RMS norm", "rmsnorm", "pointer,pointer,pointer,int=4096,int=4096,float=0.00001",
    ("rmsnorm_k1_naive", (16, 1, 1), 256, 44.7, _NO_CHANGE),
    ("rmsnorm_k2_block", (4096, 1, 1), 256, 191.2, ("a block for each row", ("GPA106", "GPA301"))),
    ("rmsnorm_k3_block_vec4", (4096, 1, 1), 256, 211.0, ("four elements a load", ("GPA108",))),
)  # fmt: skip
_SILU: Final = _inference(
    "SiLU", "silu", "pointer,pointer,long=67108864",
    ("silu_k1_naive", (262144, 1, 1), 256, 303.2, _NO_CHANGE),
    ("silu_k2_gridstride", (2048, 1, 1), 256, 299.2, ("2,048 blocks that loop", ("GPA301", "GPA302"))),
    ("silu_k3_vec4", (65536, 1, 1), 256, 281.1, ("four elements a load", ("GPA108",))),
)  # fmt: skip
_SHAPE: Final = "int=32,int=4096,int=128,float=0.0883883"
_ATTENTION: Final = _inference(
    "attention of one query", "attention", f"pointer,pointer,pointer,pointer,{_SHAPE}",
    ("attention_k1_naive", (32, 1, 1), 128, 149.7, _NO_CHANGE, 17024),
    ("attention_k2_flash", (32, 1, 1), 128, 166.3, ("rows of keys by a warp, four elements a load", ("GPA106", "GPA108")), 1664),
    (
        "attention_k3_split", (32, 8, 1), 128, 302.5, ("eight blocks for each head", ("GPA301",)), 1664,
        f"pointer,pointer,pointer,pointer,pointer,pointer,{_SHAPE},int=8",
    ),
)  # fmt: skip

_TURNED: Final = Chain(
    name="transpose, yencal",
    repository="yencal/gpu-matrix-transpose",
    revision="cab465026e",
    device="H100",
    arch="sm_90",
    sms=132,
    note="a side of 8,192 instead of 32,768",
    versions=tuple(
        _version(
            name, "transpose_kernels.cuh", (256, 256, 1), block, time, change, arguments="pointer,pointer,int=8192",
            kernel=kernel.partition("<")[0],
            instance=f"template __global__ void {kernel}(const float*, float*, int);\n" if "<" in kernel else "",
        )
        for name, kernel, block, time, change in (
            ("Naive", "TransposeNaive", (32, 32, 1), 18.0645, _NO_CHANGE),
            ("Tiled", "TransposeBankConflicts<32>", (32, 32, 1), 8.6235, ("through a tile in shared memory", ("GPA106",))),
            ("TiledPadded", "TransposeNoBankConflicts<32>", (32, 32, 1), 5.0724, ("a padded tile", ("GPA106",))),
            ("Coarsen4", "TransposeNoBankConflictsCoarsen<32, 8>", (32, 8, 1), 3.0984, ("256 threads with four elements each", ("GPA302", "GPA105"))),
            ("Vec4Coarsen4", "TransposeVec4Coarsen<32, 8>", (8, 8, 1), 3.0960, ("four elements a load", ("GPA108",))),
        )
    ),
)  # fmt: skip

_TENSORS: Final = "const float*, const float*, const float*, float*, "
_SIZES: Final = "int, int, int, int, int, int, float"
_FLASH: Final = Chain(
    name="attention, ayush-os",
    repository="ayush-os/flash-attn-one-cuda",
    revision="9475795",
    device="A100",
    arch="sm_80",
    sms=108,
    port=(_NO_HEADERS, (r"void launch_flash_attn_kernel[\s\S]*", "")),
    versions=tuple(
        _version(
            name, "flash_attn_kernel.cu", (4, 8, blocks), (threads, 1, 1), time, change,
            kernel="flash_attn_kernel", revision=revision, shared=shared,
            instance=f"template __global__ void flash_attn_kernel<64>({_TENSORS}{'float*, float*, ' if sums else ''}{_SIZES});\n",
            arguments=f"pointer,pointer,pointer,pointer,{'pointer,pointer,' if sums else ''}int=4,int=8,int=1024,int=64,int={columns},int={threads},float=0.125",
        )
        for name, revision, blocks, threads, columns, shared, sums, time, change in (
            ("1", "46e65ee", 1, 32, 46, 31744, True, 155.466, _NO_CHANGE),
            ("2", "8279aa2", 32, 32, 46, 31744, True, 22.979, ("a block for every 32 rows", ("GPA301",))),
            ("3", "b79c72b", 32, 32, 46, 32240, True, 9.386, ("padded tiles", ("GPA106",))),
            ("4", "6d9417d", 16, 64, 62, 48880, True, 9.360, ("neighbouring threads on neighbouring elements", ("GPA106",))),
            ("5", "ecb5ef5", 16, 64, 58, 48960, True, 6.318, ("four elements a load", ("GPA108",))),
            ("6", "9475795", 16, 64, 58, 48960, False, 5.304, ("two results less, one division a row", ("GPA102",))),
        )
    ),
)  # fmt: skip

HELD_OUT: Final = (
    _TREES,
    _DEBNATH,
    _MATMUL,
    _filter(1024, 7, (16, 16, 1), (0.463, 0.338, 0.350)),
    _filter(2048, 5, (32, 8, 1), (0.855, 0.821, 0.688)),
    _filter(2048, 3, (16, 16, 1), (0.407, 0.383, 0.470)),
    _GEMV,
    _MANY_ROWS,
    _FEW_ROWS,
    _RMSNORM,
    _SILU,
    _ATTENTION,
    _TURNED,
    _FLASH,
)
