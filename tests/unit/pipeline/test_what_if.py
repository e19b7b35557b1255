# SPDX-License-Identifier: Apache-2.0
"""What-ifs: the estimate of a modelled suggestion is the pair of simulations that anybody can run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpadvisor.model.advice import Estimate, ParallelTarget
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.pipeline.advise import advise_file
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.code import open_code
from gpadvisor.pipeline.launches import StatedLaunch, dimensions, stated_argument
from gpadvisor.pipeline.machines import machine_model
from gpadvisor.pipeline.modelled import configuration, model_kernel
from gpadvisor.pipeline.programs import kernel_program
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.same_work import same_work
from gpadvisor.pipeline.settings import Settings
from gpadvisor.pipeline.sources.local import MAX_SOURCE_BYTES
from gpadvisor.pipeline.what_if import launch_as, reads_block_size
from gpadvisor.simulator import SimulationConfig

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.usefixtures("reads_here")]

_TILES = """
extern "C" __global__ void k(const float* m, float* a, int size) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < size && y < size) a[size * y + x] -= m[size * y] * a[x];
}
"""
_FIXED = _TILES.replace("blockDim.x", "4").replace("blockDim.y", "4")
_ROWS = """
extern "C" __global__ void k(const float* x, float* y, int rows) {
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        float sum = 0.0f;
#pragma unroll 1
        for (int i = threadIdx.x; i < 1024; i += 64) sum += x[row * 1024 + i];
        y[row * 64 + threadIdx.x] = sum;
    }
}
"""
_LOOP = """
extern "C" __global__ void k(const float* x, float* y, const int* end, int n) {
    float sum = 0.0f;
    const int last = end[blockIdx.x];
#pragma unroll 1
    for (int i = 0; i < last; ++i)
        sum += x[i * n + threadIdx.x];
    y[threadIdx.x] = sum;
}
"""
_DIVISION = """
extern "C" __global__ void k(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int j = 0; j < 64; ++j) sum = sum / (x[i] + sum) + sinf(sum);
    if (i < n) y[i] = sum;
}
"""
_LEVELS = """
extern "C" __global__ void k(const float* x, float* y, int n) {
    __shared__ float s[256];
    s[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
    }
    if (threadIdx.x == 0) y[blockIdx.x] = s[0];
}
"""
_STAGED = """
extern "C" __global__ void k(const float* x, const float* w, float* y, int n) {
    __shared__ float rows[16][65], line[64];
    const int t = threadIdx.x;
    for (int r = 0; r < 16; ++r) rows[r][t] = x[(blockIdx.x * 16 + r) * n + t];
    __syncthreads();
    line[t] = w[blockIdx.x * n + t];
    __syncthreads();
    float sum = 0.0f;
    for (int r = 0; r < 16; ++r) sum += rows[r][63 - t] * line[(t + r) & 63];
    y[blockIdx.x * n + t] = sum;
}
"""
_SUMS = """
extern "C" __global__ void k(const float* m, float* out) {
    __shared__ float s[16][16];
    const int t = threadIdx.x;
    for (int i = 0; i < 16; ++i) s[i][t] = m[16 * i + t];
    __syncthreads();
    for (int i = 1; i < 16; ++i) {
        for (int j = 0; j < i; ++j)
            s[t][i] -= s[t][j] * s[j][i];
        __syncthreads();
    }
    for (int i = 0; i < 16; ++i) out[16 * i + t] = s[i][t];
}
"""

_BETWEEN = """
extern "C" __global__ void k(const int* nodes, const int* wanted, int* found) {
    const int w = wanted[blockIdx.x];
    const int* keys = nodes + 257 * blockIdx.x;
    if (keys[threadIdx.x] <= w && keys[threadIdx.x + 1] > w) found[blockIdx.x] = threadIdx.x;
}
"""


def _request(grid: list[int], block: list[int], loops: dict[int, int], *kinds: object) -> Request:
    arguments = tuple(
        stated_argument("pointer", None, "") if kind == "pointer" else stated_argument("int", kind, "")
        for kind in kinds
    )
    stated = StatedLaunch(
        grid=dimensions(grid, ""), block=dimensions(block, ""), loops=loops, arguments=arguments
    )
    return Request(settings=Settings(arch="sm_80"), model=True, stated=stated, show_all=True)


def _promised(path: Path, request: Request, code: str) -> Estimate:
    return _told(path, request, code)[0]


def _told(path: Path, request: Request, code: str) -> tuple[Estimate, str]:
    """What a suggestion promises, and its words."""
    advised = advise_file(path, request, lambda _: None, Cache(None))
    (kernel,) = advised.advice.kernels
    (found,) = [one for one in kernel.suggestions if one.code == code]
    assert found.speedup is not None
    return found.speedup, found.advice


def _seconds(path: Path, request: Request, **changes: object) -> float:
    """A simulation of its own, on what is compiled anew."""
    code = open_code(path, request, lambda _: None, Cache(None))
    config = configuration("k", request)
    assert config is not None
    program = kernel_program(code.source, {code.kernels["k"]})
    if changes.pop("barriers", None):
        changes["passed_barriers"] = frozenset(
            int(one.pc)
            for one in program.functions[0].instructions
            if one.info.opclass is OpcodeClass.BARRIER
        )
    table = machine_model("sm_80", request)
    found = model_kernel(program, "k", table, replace(config, **changes), None)  # type: ignore[arg-type] # fields by name
    assert found.duration_seconds is not None
    return found.duration_seconds


def _written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_another_launch_is_simulated_in_the_shape_of_the_one_there_is(tmp_path: Path) -> None:
    path = _written(tmp_path, "k.cu", _TILES)
    request = _request([128, 128], [4, 4], {}, "pointer", "pointer", 512)
    found, advice = _told(path, request, "GPA302")
    assert "simulated, " in found.reason
    assert found.paper is not None
    shape = found.reason.partition(" blocks of ")[2].partition(" threads")[0]
    assert f"of {shape} threads instead of 128 x 128 of 4 x 4" in advice  # the launch that the words name
    wide, high = (int(size) for size in shape.split(" x "))
    after = _seconds(path, request, grid=(512 // wide, 512 // high, 1), block=(wide, high, 1))
    assert found.expected == pytest.approx(_seconds(path, request) / after)
    assert found.low < found.expected < found.high


def test_code_that_takes_its_block_for_granted_is_not_simulated_with_another(tmp_path: Path) -> None:
    path = _written(tmp_path, "k.cu", _FIXED)
    request = _request([128, 128], [4, 4], {}, "pointer", "pointer", 512)
    code = open_code(path, request, lambda _: None, Cache(None))
    program = kernel_program(code.source, {code.kernels["k"]})
    assert not reads_block_size(program, (4, 4, 1))
    advised = advise_file(path, request, lambda _: None, Cache(None))
    (kernel,) = advised.advice.kernels
    reasons = [one.speedup.reason for one in kernel.suggestions if one.code == "GPA302" and one.speedup]
    assert not any("simulated, " in reason for reason in reasons)


def test_more_blocks_of_the_size_that_the_code_takes_for_granted_are_simulated(tmp_path: Path) -> None:
    path = _written(tmp_path, "k.cu", _ROWS)
    request = _request([108, 1], [64, 1], {}, "pointer", "pointer", 4096)
    found, advice = _told(path, request, "GPA301")
    blocks = int(advice.split("Launch ")[1].split()[0])
    assert "simulated" in found.reason
    assert found.expected == pytest.approx(
        _seconds(path, request) / _seconds(path, request, grid=(blocks, 1, 1))
    )


def test_an_edit_is_compiled_and_simulated_with_its_loops_where_they_are_then(tmp_path: Path) -> None:
    # An end that depends on the sum is why the compiler unrolls nothing by itself: there is an edit to try.
    text = _LOOP.replace("#pragma unroll 1\n", "").replace("i < last;", "i < last && sum >= 0.0f;")
    path = _written(tmp_path, "k.cu", text)
    request = _request([108], [128], {5: 64}, "pointer", "pointer", "pointer", 128)
    found = _promised(path, request, "GPA201")
    assert "simulated, add #pragma unroll 4: " in found.reason
    head = "    for (int i"
    edited = _written(tmp_path, "edited.cu", text.replace(head, f"#pragma unroll 4\n{head}"))
    stated = request.stated._replace(loops={6: 64})
    after = _seconds(edited, request._replace(stated=stated))
    assert found.expected == pytest.approx(_seconds(path, request) / after)


def test_an_element_that_is_kept_in_a_register_is_compiled_and_simulated(tmp_path: Path) -> None:
    path = _written(tmp_path, "k.cu", _SUMS)
    request = _request([1], [16], {}, "pointer", "pointer")
    found = _promised(path, request, "GPA202")
    assert "simulated, keep s[t][i] in " in found.reason
    kept = _SUMS.replace("for (int j", "float v = s[t][i]; for (int j").replace(
        "s[t][i] -= s[t][j] * s[j][i];", "v -= s[t][j] * s[j][i]; s[t][i] = v;"
    )
    edited = _written(tmp_path, "edited.cu", kept)
    assert found.expected == pytest.approx(_seconds(path, request) / _seconds(edited, request), rel=0.02)
    assert found.expected > 1.1


def test_both_sides_of_a_condition_are_compiled_and_simulated(tmp_path: Path) -> None:
    path = _written(tmp_path, "k.cu", _BETWEEN)
    request = _request([8640], [256], {}, "pointer", "pointer", "pointer")
    found, advice = _told(path, request, "GPA202")
    assert "load it together with the value of k.cu:5, before the condition on that" in advice
    assert "simulated, evaluate both sides of the condition (& for &&): " in found.reason
    edited = _written(tmp_path, "edited.cu", _BETWEEN.replace("&&", "&"))
    assert found.expected == pytest.approx(_seconds(path, request) / _seconds(edited, request))
    assert found.expected > 1.05


def test_a_flag_is_compiled_and_simulated(tmp_path: Path) -> None:
    path = _written(tmp_path, "k.cu", _DIVISION)
    request = _request([108], [128], {}, "pointer", "pointer", 1 << 20)
    found = _promised(path, request, "GPA104")
    assert "simulated, compiled with --use_fast_math: " in found.reason
    fast = request._replace(settings=Settings(arch="sm_80", extra_flags=("--use_fast_math",)))
    assert found.expected == pytest.approx(_seconds(path, request) / _seconds(path, fast))
    assert found.expected > 1.1


def test_waiting_at_barriers_is_what_goes_without_them(tmp_path: Path) -> None:
    path = _written(tmp_path, "k.cu", _LEVELS)
    request = _request([432], [256], {}, "pointer", "pointer", 1 << 20)
    found = _promised(path, request, "GPA105")
    whole = _seconds(path, request) / _seconds(path, request, barriers=True)
    assert whole > 1.0
    assert f"simulated, no waiting at barriers: {whole:.3f}x" in found.reason
    assert 1.0 < found.expected <= whole


def test_a_barrier_that_is_named_to_go_is_compiled_away(tmp_path: Path) -> None:
    path = _written(tmp_path, "k.cu", _STAGED)
    request = _request([216], [64], {}, "pointer", "pointer", "pointer", 64)
    found, advice = _told(path, request, "GPA105")
    assert "Remove the barrier at k.cu:6" in advice
    assert "simulated, compiled without the barriers that are named: " in found.reason
    without = _written(tmp_path, "without.cu", _STAGED.replace("    __syncthreads();\n", "    ;\n", 1))
    assert found.expected == pytest.approx(_seconds(path, request) / _seconds(without, request))


@pytest.mark.parametrize(("code", "text"), [("GPA105", _STAGED), ("GPA104", _DIVISION)])
def test_a_source_that_has_grown_beyond_what_is_read_has_no_change_simulated(
    tmp_path: Path, code: str, text: str
) -> None:
    path = _written(tmp_path, "k.cu", text)
    kinds = ("pointer", "pointer", "pointer", 64) if code == "GPA105" else ("pointer", "pointer", 1 << 20)

    def grow(step: str) -> None:
        if step.startswith("simulating") and path.stat().st_size < MAX_SOURCE_BYTES:
            path.write_text(f"{text}//{' ' * MAX_SOURCE_BYTES}\n")

    advised = advise_file(path, _request([216], [64], {}, *kinds), grow, Cache(None))
    (kernel,) = advised.advice.kernels
    (speedup,) = [told.speedup for told in kernel.suggestions if told.code == code]
    assert speedup is not None
    assert "simulated, compiled" not in speedup.reason


def test_what_no_words_ask_for_is_not_simulated(tmp_path: Path) -> None:
    steps = "\n".join(f"    v = v * {1 + number / 4096}f + {number}.5f;" for number in range(1500))
    text = f"""
__device__ float step(float v) {{
{steps}
    return v;
}}
extern "C" __global__ void k(float* a, int n) {{
#pragma unroll 1
    for (int i = 0; i < n; ++i) a[(i + 1) * 32 + threadIdx.x] = step(a[i * 32 + threadIdx.x]);
}}
"""
    path = _written(tmp_path, "k.cu", text)
    advised = advise_file(path, _request([1], [32], {}, "pointer", 16), lambda _: None, Cache(None))
    (kernel,) = advised.advice.kernels
    (note,) = [note for note in kernel.notes if note.code == "GPA103"]
    assert "Its passes may read what earlier ones wrote" in note.advice  # no change is told
    assert note.speedup is not None
    assert "simulated" not in note.speedup.reason


def test_runs_that_do_not_do_the_same_work_say_nothing(tmp_path: Path) -> None:
    path = _written(tmp_path, "k.cu", _LOOP)
    request = _request([108], [128], {6: 64}, "pointer", "pointer", "pointer", 128)
    code = open_code(path, request, lambda _: None, Cache(None))
    program, table = kernel_program(code.source, {code.kernels["k"]}), machine_model("sm_80", request)
    config = configuration("k", request)
    assert config is not None
    one, same, more = (
        (program, model_kernel(program, "k", table, replace(config, **changes), None).profile)  # type: ignore[arg-type] # fields by name
        for changes in ({}, {"seed": 2}, {"loop_trips": {6: 96}})
    )
    assert same_work(one, same)
    assert not same_work(one, more)
    assert same_work(more, one)  # loads may go; that passes went with them does not show in stores


@pytest.mark.parametrize(
    ("grid", "block", "threads", "grid_after", "block_after"),
    [
        ((10, 1, 1), (128, 1, 1), 256, (5, 1, 1), (256, 1, 1)),
        ((10, 3, 1), (100, 1, 1), 96, (11, 3, 1), (96, 1, 1)),
        ((64, 64, 1), (4, 4, 1), 64, (32, 32, 1), (8, 8, 1)),
        ((64, 64, 1), (4, 4, 1), 128, (16, 32, 1), (16, 8, 1)),
        ((2, 2, 1), (32, 32, 1), 256, (4, 4, 1), (16, 16, 1)),
    ],
)
def test_a_launch_covers_as_much_as_before(
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    threads: int,
    grid_after: tuple[int, int, int],
    block_after: tuple[int, int, int],
) -> None:
    now = SimulationConfig(grid=grid, block=block, dynamic_shared_bytes=block[0] * block[1] * 4)
    found = launch_as(now, _target(now.threads_per_block, threads))
    assert found is not None
    assert (found.grid, found.block) == (grid_after, block_after)
    covered = [blocks * size for blocks, size in zip(found.grid, found.block, strict=True)]
    assert all(new >= blocks * size for new, blocks, size in zip(covered, grid, block, strict=True))
    assert found.dynamic_shared_bytes == threads * 4


def test_a_size_without_that_shape_is_none() -> None:
    now = SimulationConfig(grid=(64, 64, 1), block=(4, 4, 1))
    assert launch_as(now, _target(16, 96)) is None
    assert launch_as(now, _target(32, 64)) is None  # of another launch


def _target(now: int, new: int) -> ParallelTarget:
    return ParallelTarget(
        warps_now=1.0,
        warps_new=2.0,
        issue_ratio=0.1,
        factor=1.0,
        factor_reason="",
        blocks_now=1,
        blocks_new=1,
        threads_now=now,
        threads_new=new,
        limiter=None,
        busy_sms_now=None,
        busy_sms_new=None,
    )
