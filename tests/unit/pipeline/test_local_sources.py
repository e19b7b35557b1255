# SPDX-License-Identifier: Apache-2.0
"""Looking for the sources of a report in a project folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpadvisor.pipeline.sources import local as local_sources
from gpadvisor.pipeline.sources.kernels import KernelSources, told_by_name
from gpadvisor.report.names import parameters


def test_candidates_by_name_and_by_size(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "build").mkdir()
    (tmp_path / "src" / "kernel.cu").write_text("one")
    (tmp_path / "src" / "renamed.cuh").write_text("12345")
    (tmp_path / "src" / "notes.txt").write_text("12345")
    (tmp_path / ".git" / "kernel.cu").write_text("two")
    (tmp_path / "build" / "kernel.cu").write_text("three")
    assert local_sources.candidates(tmp_path, ["KERNEL.cu"], []) == [tmp_path / "src" / "kernel.cu"]
    assert local_sources.candidates(tmp_path, [], [5]) == [tmp_path / "src" / "renamed.cuh"]
    assert local_sources.candidates(tmp_path, [], []) == []


def test_a_link_to_itself_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "loop.cu").symlink_to(tmp_path / "loop.cu")
    (tmp_path / "kernel.cu").write_text("__global__ void kernel() {}")
    found = KernelSources(tmp_path, tmp_path / "run.ncu-rep")
    assert [place.path.name for place in found.definitions("kernel", "kernel()")] == ["kernel.cu"]


@pytest.mark.parametrize(("report", "told"), [("run", None), ("v5_fast", "v5.cu")])
def test_of_several_files_with_the_kernel_none_is_where_it_begins(
    tmp_path: Path, report: str, told: str | None
) -> None:
    """As of six versions of one exercise in one folder, of which the first by name was told."""
    (tmp_path / "old").mkdir()
    profile = tmp_path / f"{report}.ncu-rep"

    def first() -> str | None:
        found = KernelSources(tmp_path, profile).definitions("reduce", "reduce(float*, float*)")
        one = told_by_name(found, profile)
        return None if one is None else one.path.name

    for name in ("baseline.cu", "old/first.cu"):
        (tmp_path / name).write_text("__global__ void reduce(float *a, float *b) {}")
    assert first() == "baseline.cu"
    (tmp_path / "v5.cu").write_text("__global__ void reduce(float *a, float *b) {}")
    assert first() == told


@pytest.mark.parametrize(
    ("demangled", "line"),
    [
        ("void gemm<128>(float const*, float const*, float*, int, int, int, float, float, float*)", 2),
        ("gemm(float*, float*, float*, unsigned int)", 1),
        ("gemm(float *, float *, float *, T1)", 1),  # a name that is not followed
        ("gemm(double*, float*, float*, unsigned int)", None),
        ("gemm(float*, float*)", None),
        ("gemm", 1),  # without C++ linkage nothing tells the parameters
    ],
)
def test_a_kernel_of_the_same_name_has_the_same_parameters(
    tmp_path: Path, demangled: str, line: int | None
) -> None:
    """As of two products in one project, one with 4 and one with 9 parameters."""
    (tmp_path / "a.cu").write_text(
        "__global__ void gemm(float *a, float *__restrict__ b, float c[], unsigned n) {}\n"
        "template <int N> __global__ void gemm(const float *a, const float *b, T *c, int m, int n, int k,\n"
        "    float alpha = 1.0f, float beta = 0.0f, float *__restrict__ d = nullptr) {}\n"
    )
    sources = KernelSources(tmp_path, tmp_path / "run.ncu-rep")
    found = sources.definitions("gemm", demangled, parameters(demangled))
    assert next(iter([one.line for one in found]), None) == line


def test_of_several_states_of_a_kernel_that_named_like_the_profile_is_the_likeliest(tmp_path: Path) -> None:
    for name in ("baseline", "relu_v1", "relu_v3", "relu"):
        (tmp_path / f"{name}.cu").write_text("__global__ void relu(float *a) {}\n")
    sources = KernelSources(tmp_path, tmp_path / "app_relu_v3.ncu-rep")
    found = [one.path.stem for one in sources.definitions("relu", "relu(float*)")]
    assert found == ["relu_v3", "relu", "baseline", "relu_v1"]


def test_headers_of_the_library_have_no_suffix() -> None:
    assert local_sources.is_source_name(Path("/usr/include/c++/12/new"))
    assert local_sources.is_source_name(Path("/src/Kernel.CUH"))
    assert not local_sources.is_source_name(Path("/etc/passwd"))
    assert not local_sources.is_source_name(Path("/src/include/secrets.env"))


def test_fingerprint_changes_with_content_and_with_new_files(tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text("one")
    wanted = {"names": ["kernel.cu"], "sizes": []}
    first = local_sources.fingerprint(tmp_path, wanted)
    assert first == local_sources.fingerprint(tmp_path, wanted)
    (tmp_path / "kernel.cu").write_text("two")
    second = local_sources.fingerprint(tmp_path, wanted)
    assert second != first
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "kernel.cu").write_text("two")
    assert local_sources.fingerprint(tmp_path, wanted) != second


def test_a_huge_project_is_searched_in_part(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(local_sources, "MAX_FILES", 3)
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernel.cu").write_text(name)
    assert len(list(local_sources.walk(tmp_path))) < 3
