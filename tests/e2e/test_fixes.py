# SPDX-License-Identifier: Apache-2.0
"""Quick fixes on real compiles: each applies, compiles, and says truly whether the pattern is gone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.emulation.runner import build, compiler, run
from tests.fix_values import finding
from tests.kernels import FOLDER, KERNELS

from gpadvisor.errors import CancelledError, SourceError
from gpadvisor.model.finding import Finding
from gpadvisor.model.fix import Change, Fix, FixCheck, LaunchFacts, PatternState, TextEdit, apply_edits
from gpadvisor.model.remedy import Remedy
from gpadvisor.pipeline.advise import advise_file
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.fixes.find import check_fix, find_fixes
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.usefixtures("reads_here")]

SCALE = """\
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = in[i];
    out[i] = v * 0.5 + 1.0;
    if (v > 0.25) out[i + n] = v;
}
"""
DIVIDE = """\
__global__ void k(const float* x, float* y, int n, float w) {
    float v = 0.0f;
    for (int i = threadIdx.x; i < n; i += 128) {
        v += x[i] / w;
        y[i] = v;
    }
}
"""
ALIAS = """\
__global__ void k(float* x, float* y, float* z, int n) {
    for (int i = threadIdx.x; i < n; i += 128) {
        z[i] = x[i] + 1.0f;
        y[i] = x[i + 128] * 2.0f;
    }
}
"""
SUM = """\
__global__ void k(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int j = 0; j < n; ++j) {
        y[i] += x[j] * x[j + n];
    }
}
"""
BLOCK = """\
constexpr int kThreads = 256;
__global__ void k(float* x) {
    __shared__ float part[kThreads];
    part[threadIdx.x] = x[blockIdx.x * kThreads + threadIdx.x];
    __syncthreads();
    x[blockIdx.x * kThreads + threadIdx.x] = part[(threadIdx.x + 1) % kThreads];
}
void run(float* x, int n) { k<<<n / kThreads, kThreads>>>(x); }
"""
BETWEEN = """\
__global__ void k(const int* keys, int* found, int w) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (keys[i] <= w && keys[i + 1] > w) {
        found[0] = i;
    }
}
"""
KEPT = (Remedy.KEEP_ELEMENT,)
SPILL = """\
__global__ void __launch_bounds__(1024) k(const float* x, float* y, int n) {
    float part[96];
#pragma unroll
    for (int i = 0; i < 96; ++i) part[i] = x[i * n + threadIdx.x];
    for (int r = 0; r < n; ++r) {
#pragma unroll
        for (int i = 0; i < 96; ++i) part[i] = part[i] * part[(i + 7) % 96] + y[r];
    }
#pragma unroll
    for (int i = 0; i < 96; ++i) y[i * n + threadIdx.x] = part[i];
}
"""
TABLES = """\
struct Tables { float* out; float eps[9]; int count; };
__global__ void k(Tables t, const int* kind, const float* x) {
    float sum = 0.0f;
    for (int j = 0; j < t.count; ++j) sum += t.eps[kind[j]] * x[j];
    t.out[threadIdx.x] = sum;
}
"""
GENERIC = """\
template <typename T>
__global__ void k(T* x, int n) {
    for (int i = 0; i < n; ++i) {
        x[i] = x[i] * 0.5;
    }
}
template __global__ void k<double>(double*, int);
"""


def request_for(root: Path) -> Request:
    return Request(settings=Settings(arch="sm_80"), root=root)


def offered(path: Path, text: str, one: Finding, change: str, launch: LaunchFacts | None = None) -> Fix:
    launches = {} if launch is None else {one.kernel: launch}
    found = find_fixes(path, text, [one], request=request_for(path.parent), launches=launches)
    return next(fix for fix in found if fix.change == change)


def checked(path: Path, text: str, fix: Fix, root: Path | None = None, **more: object) -> FixCheck:
    return check_fix(
        path,
        text,
        fix,
        request=request_for(root or path.parent),
        progress=lambda _: None,
        cache=Cache(None),
        **more,  # type: ignore[arg-type] # as the test names them
    )


@pytest.fixture
def source(tmp_path: Path) -> Callable[[str], Path]:
    """Write a source of a project of its own."""

    def write(text: str) -> Path:
        path = tmp_path / "project" / "kernel.cu"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_float_literals(source: Callable[[str], Path]) -> None:
    path = source("this is not what the editor shows")
    fix = offered(path, SCALE, finding("GPA102", 5, "scale"), "float_literals")
    check = checked(path, SCALE, fix)
    assert check.pattern is PatternState.GONE
    assert not check.bad
    (kernel,) = check.kernels
    assert dict(kernel.gone)["F2F"] == 2
    assert dict(kernel.gone)["DFMA"] == 1
    assert dict(kernel.added) == {"FFMA": 1}
    assert check.message.startswith("GPA102: recompiled for sm_80: F2F x2")
    assert "gone on line 5, FFMA added, registers " in check.message
    assert check.message.endswith("; the pattern is gone")
    assert "| registers |" in check.details
    assert "profile again" in check.details
    assert path.read_text() == "this is not what the editor shows"
    assert sorted(path.parent.iterdir()) == [path]


def test_an_exact_comparison_changes_no_value(source: Callable[[str], Path]) -> None:
    path = source(SCALE)
    fix = offered(path, SCALE, finding("GPA102", 6, "scale"), "float_literals")
    assert not fix.needs_confirmation
    # This compiler sees for itself that single precision is enough.
    assert checked(path, SCALE, fix).kernels[0].unchanged


@pytest.mark.parametrize(
    ("text", "one", "change", "launch", "pattern"),
    [
        (DIVIDE, finding("GPA102", 4), "reciprocal", None, PatternState.GONE),
        (ALIAS, finding("GPA202", 4), "restrict", None, PatternState.GONE),
        (SUM, finding("GPA202", 4, remedies=KEPT), "keep_element", None, PatternState.GONE),
        (SUM, finding("GPA106", 4, remedies=KEPT), "keep_element", None, PatternState.GONE),
        (
            *(BETWEEN, finding("GPA202", 3, remedies=(Remedy.BOTH_SIDES,)), "both_sides"),
            *(None, PatternState.FEWER),
        ),
        (SPILL, finding("GPA101", 7), "launch_bounds", LaunchFacts(block_threads=128), PatternState.GONE),
        (BLOCK, finding("GPA302", 2), "block_size", LaunchFacts(threads_new=512), PatternState.UNKNOWN),
    ],
    ids=["reciprocal", "restrict", "kept", "stored", "both", "launch_bounds", "block_size"],
)
def test_each_kind(
    source: Callable[[str], Path],
    text: str,
    one: Finding,
    change: str,
    launch: LaunchFacts | None,
    pattern: PatternState,
) -> None:
    path = source(text)
    fix = offered(path, text, one, change, launch)
    assert fix.needs_confirmation
    check = checked(path, text, fix)
    assert check.compiles, check.message
    assert check.pattern is pattern, check.message
    (kernel,) = check.kernels
    assert not kernel.unchanged
    # Offered once: not again where it was applied.
    new = apply_edits(text, fix.edits)
    again = find_fixes(
        path, new, [one], request=request_for(path.parent), launches={"k": launch or LaunchFacts()}
    )
    assert change not in {other.change for other in again}


def test_a_launch_bound_frees_registers(source: Callable[[str], Path]) -> None:
    path = source(SPILL)
    launch = LaunchFacts(block_threads=128)
    fix = offered(path, SPILL, finding("GPA101", 7), "launch_bounds", launch)
    (kernel,) = checked(path, SPILL, fix).kernels
    assert kernel.local_bytes.before is not None
    assert kernel.local_bytes.before > 0
    assert kernel.local_bytes.after == 0
    assert kernel.local_accesses.after == 0


def test_a_parameter_that_is_read_in_place_is_not_copied(source: Callable[[str], Path]) -> None:
    path, one = source(TABLES), finding("GPA101", 4, remedies=(Remedy.GRID_CONSTANT,))
    fix = offered(path, TABLES, one, "grid_constant")
    assert fix.title == "Read t in place (__grid_constant__) [GPA101]"
    assert not fix.needs_confirmation
    check = checked(path, TABLES, fix)
    assert check.pattern is PatternState.GONE, check.message
    (kernel,) = check.kernels
    assert kernel.local_bytes.before
    assert kernel.local_bytes.after == kernel.local_accesses.after == 0
    assert not find_fixes(path, apply_edits(TABLES, fix.edits), [one], request=request_for(path.parent))


def test_a_block_size_changes_what_is_shared(source: Callable[[str], Path]) -> None:
    path = source(BLOCK)
    fix = offered(path, BLOCK, finding("GPA302", 2), "block_size", LaunchFacts(threads_new=512))
    check = checked(path, BLOCK, fix)
    assert check.kernels[0].shared_bytes == Change(before=1024, after=2048)
    assert "only a new profile tells" in check.message


@pytest.mark.parametrize(
    ("name", "code", "change"),
    [
        ("thermal_stencil", "GPA102", "float_literals"),
        ("kmeans_assign", "GPA201", "unroll"),
        ("cross_section", "GPA203", "force_inline"),
        ("facet_distance", "GPA203", "force_inline"),
        ("antenna_field", "GPA104", "flag"),
        pytest.param("reaction_rates", "GPA103", "no_inline", marks=pytest.mark.slow),
    ],
)
def test_planted_patterns(name: str, code: str, change: str) -> None:
    path = FOLDER / name / "before.cu"
    text = path.read_text(encoding="utf-8")
    advice = advise_file(path, request_for(path.parent), lambda _: None, Cache(None)).advice
    places = [
        (kernel, hotspot.use.location.line)
        for kernel in advice.kernels
        for suggestion in kernel.suggestions
        for hotspot in suggestion.hotspots
        if suggestion.code == code and hotspot.use is not None and hotspot.use.location is not None
    ]
    assert places
    found = [
        (kernel, fix)
        for kernel, line in places
        for fix in find_fixes(
            path, text, [finding(code, line, kernel.mangled)], request=request_for(path.parent)
        )
        if fix.change == change
    ]
    kernel, fix = found[0]
    check = checked(path, text, fix)
    assert check.pattern is PatternState.GONE, check.message
    assert check.kernels[0].kernel == kernel.mangled


def test_a_fix_that_does_not_remove_the_pattern_says_so(source: Callable[[str], Path]) -> None:
    path = source(GENERIC)
    one = finding("GPA102", 4, remedies=(Remedy.IN_FLOAT,))
    fix = offered(path, GENERIC, one, "float_literals")
    check = checked(path, GENERIC, fix)
    assert check.pattern is PatternState.STAYS
    assert check.bad
    assert "the pattern is still there" in check.message


def test_a_fix_that_does_not_compile_is_bad(source: Callable[[str], Path]) -> None:
    path = source(SCALE)
    fix = offered(path, SCALE, finding("GPA102", 5, "scale"), "float_literals")
    edit = TextEdit(start_line=5, start_column=4, end_line=5, end_column=4, new_text="nonsense ")
    check = checked(path, SCALE, replace(fix, edits=(edit,)))
    assert not check.compiles
    assert check.bad
    assert "nonsense" in str(check.error)
    assert "does not compile" in check.message
    with pytest.raises(SourceError, match="does not compile"):
        checked(path, SCALE.replace("{", "{ nonsense ", 1), replace(fix, edits=()))


def test_a_fix_without_effect_changes_no_machine_code(source: Callable[[str], Path]) -> None:
    text = SCALE.replace("void scale", "void __launch_bounds__(512) scale")
    path = source(text)
    fix = offered(path, text, finding("GPA101", 5, "scale"), "launch_bounds", LaunchFacts(block_threads=256))
    check = checked(path, text, fix)
    assert check.kernels[0].unchanged
    assert "the machine code is the same" in check.message


def test_options_and_includes_are_those_of_the_original(source: Callable[[str], Path]) -> None:
    text = '#include "half.cuh"\n#include <more.h>\n' + SCALE.replace("0.5", "HALF * 0.5")
    path = source(text)
    (path.parent / "half.cuh").write_text('#include "../outside.h"\n', encoding="utf-8")
    (path.parent.parent / "outside.h").write_text("#define OUTSIDE 1\n", encoding="utf-8")
    (path.parent / "include").mkdir()
    (path.parent / "include" / "more.h").write_text("#if !OUTSIDE\n#error no\n#endif\n", encoding="utf-8")
    command = {
        "directory": str(path.parent),
        "file": "kernel.cu",
        "arguments": ["nvcc", "-Iinclude", "-DHALF=1.0f", "-c", "kernel.cu"],
    }
    (path.parent / "compile_commands.json").write_text(json.dumps([command]), encoding="utf-8")
    one = finding("GPA102", 7, "scale", remedies=(Remedy.IN_FLOAT,))
    check = checked(path, text, offered(path, text, one, "float_literals"))
    assert check.pattern is PatternState.GONE, check.message


@pytest.mark.parametrize("include", ["half.cuh", "../project/deep/half.cuh"])
def test_a_header_is_tried_in_a_source_that_includes_it(source: Callable[[str], Path], include: str) -> None:
    folder = "deep/" if "deep" in include else ""
    text = (
        '#include "between.h"\n__global__ void k(float* x, int n) {\n'
        "    for (int i = 0; i < n; ++i) x[i] = half_of(x[i]);\n}\n"
    )
    path = source(text)
    header = path.parent / folder / "half.cuh"
    header.parent.mkdir(exist_ok=True)
    half = "#pragma once\n__device__ inline float half_of(float v) { return v * 0.5 + 0.25; }\n"
    header.write_text("nothing that compiles", encoding="utf-8")
    (path.parent / "between.h").write_text(f'#include "{include}"\n', encoding="utf-8")
    fix = find_fixes(header, half, [finding("GPA102", 2)], request=request_for(path.parent))[0]
    check = checked(header, half, fix, root=path.parent)
    assert check.pattern is PatternState.GONE, check.message
    assert check.unit == str(path)
    assert "gone on line 2" in check.message
    assert header.read_text(encoding="utf-8") == "nothing that compiles"


def test_a_header_that_nothing_includes(tmp_path: Path) -> None:
    header = tmp_path / "half.cuh"
    half = "__device__ inline float half_of(float v) { return v * 0.5; }\n"
    header.write_text(half, encoding="utf-8")
    (fix,) = find_fixes(header, half, [finding("GPA102", 1)], request=request_for(tmp_path))
    with pytest.raises(SourceError, match="no source below"):
        checked(header, half, fix)


def test_a_check_that_is_cancelled_stops(source: Callable[[str], Path]) -> None:
    path = source(SCALE)
    fix = offered(path, SCALE, finding("GPA102", 5, "scale"), "float_literals")
    with pytest.raises(CancelledError):
        checked(path, SCALE, fix, cancelled=lambda: True)


@pytest.mark.skipif(compiler() is None, reason="no C++ compiler for the host")
@pytest.mark.parametrize(
    ("name", "code", "change", "same"),
    [
        ("kmeans_assign", "GPA201", "unroll", True),
        ("cross_section", "GPA203", "force_inline", True),
        ("facet_distance", "GPA203", "force_inline", True),
        ("cell_voltage", "GPA103", "no_inline", True),
        ("lattice_energy", "GPA202", "restrict", True),
        ("thermal_stencil", "GPA102", "float_literals", False),  # rounds, within what the reference allows
    ],
)
def test_values_after_a_fix(name: str, code: str, change: str, same: bool, tmp_path: Path) -> None:
    """Every fix of a kind applied in turn; the kernel computes on the host what it did."""
    path = FOLDER / name / "before.cu"
    whole = path.read_text(encoding="utf-8")
    start = whole.replace("__restrict__ ", "") if change == "restrict" else whole
    text = start
    for line in range(1, whole.count("\n")):
        found = find_fixes(path, text, [finding(code, line)], request=request_for(path.parent))
        text = next((apply_edits(text, fix.edits) for fix in found if fix.change == change), text)
    assert text != start
    for shared in (one for one in FOLDER.iterdir() if one.is_file()):  # what references include
        shutil.copy(shared, tmp_path)
    results = []
    for folder, content in (("whole", whole), ("fixed", text)):
        shutil.copytree(FOLDER / name, tmp_path / folder)
        (tmp_path / folder / "before.cu").write_text(content, encoding="utf-8")
        (tmp_path / folder / "out").mkdir()
        program = build(tmp_path / folder, KERNELS[name].entry, tmp_path / folder / "out")
        results.append(run(program, "before", "ascending"))
    before, after = results
    assert all(one.agrees for one in after), after
    assert not same or before == after
