# SPDX-License-Identifier: Apache-2.0
"""Sources of other people's projects: headers that are elsewhere or nowhere, host code that fails."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gpadvisor.cubin import read_cubin, section_lines
from gpadvisor.errors import ToolFailedError
from gpadvisor.model.problem import ProblemCode
from gpadvisor.toolchain import compile as compiling
from gpadvisor.toolchain import nvrtc
from gpadvisor.toolchain.compile import compile_source
from gpadvisor.toolchain.compile_job import CompileSettings
from gpadvisor.toolchain.compiler_messages import CompileError
from gpadvisor.toolchain.discovery import find_tools

pytestmark = pytest.mark.toolkit

KERNEL = "__global__ void k(float *a) {\n    a[threadIdx.x] *= 2;\n}\n"


@pytest.fixture(params=["nvcc", "nvrtc"])
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "nvcc" and not (find_tools("nvcc") and shutil.which("gcc")):
        pytest.skip("toolkit: neither nvcc with a host compiler")
    if request.param == "nvrtc":
        if not nvrtc.find_nvrtc():
            pytest.skip("toolkit: no NVRTC library")
        monkeypatch.setattr(compiling, "find_tools", lambda *_, **__: ())
    return str(request.param)


def project(folder: Path, **files: str) -> Path:
    """A repository with files; `__` stands for a slash, the first is the source."""
    (folder / ".git").mkdir()
    places = [folder / name.replace("__", "/") for name in files]
    for place, text in zip(places, files.values(), strict=True):
        place = place.with_suffix(".cu" if place == places[0] else ".h")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return places[0].with_suffix(".cu")


def kernels(cubin: bytes) -> dict[str, set[int]]:
    """The lines of the source that each kernel has code of."""
    image = read_cubin(cubin)
    return {
        section.name.removeprefix(".text."): {
            entry.location.line for entry in section_lines(image, section) if entry is not None
        }
        for section in image.sections
    }


def said(path: Path) -> tuple[dict[str, set[int]], str]:
    made = compile_source(path, arch="sm_80")
    return kernels(made.cubin), "; ".join(problem.message for problem in made.problems)


@pytest.mark.usefixtures("compiler")
def test_a_header_elsewhere_in_the_project_is_found(tmp_path: Path) -> None:
    path = project(
        tmp_path,
        src__deep__k="#include <part/twice.h>\n" + KERNEL.replace("2", "TWICE"),
        other__part__twice='#pragma once\n#include "more.h"\n#define TWICE MORE\n',
        other__part__more="#define MORE 2\n",
        other__twice="#error not this one\n",
    )
    found, words = said(path)
    assert found == {"_Z1kPf": {2, 3, 4}}
    assert "part/twice.h" in words
    assert f"was found in {tmp_path / 'other'}" in words


@pytest.mark.usefixtures("compiler")
def test_host_code_that_does_not_compile_stops_no_kernel(tmp_path: Path) -> None:
    path = project(
        tmp_path,
        k=f'#include <vision/core.hpp>\n#include "part.h"\n{KERNEL}'
        "template <class T, int N> __global__ void of(T *a) { *a = N; }\n"
        "static vision::Image image;\n"
        "int main() {\n"
        "    vision::check(image.empty());\n"
        "    float *a = 0;\n"
        "    k<<<1, 32>>>(a);\n"
        "    of<double, 7><<<1, vision::size()>>>(a);\n"
        "    return vision::done();\n"
        "}\n",
        part="#pragma once\nvision::Image load(int);\ninline float once(float x) { return x; }\n",
    )
    found, words = said(path)
    assert found == {"_Z1kPf": {3, 4, 5}, "_Z2ofIdLi7EEvPT_": {6}}
    assert "k.cu was compiled without vision/core.hpp, not found here" in words


def test_how_much_of_the_host_code_was_left_out_is_said(tmp_path: Path, compiler: str) -> None:
    path = project(tmp_path, k=f"{KERNEL}int main() {{\n    missing();\n    other();\n}}\n")
    words = said(path)[1]
    left_out = "2 lines of host code that do not compile" if compiler == "nvcc" else "its host functions"
    assert words == f"k.cu was compiled without {left_out}"


@pytest.mark.usefixtures("compiler")
def test_a_damaged_database_is_a_problem_of_its_own(tmp_path: Path) -> None:
    path = project(tmp_path, k=KERNEL)
    (tmp_path / "compile_commands.json").write_text('{"a": 1')
    problem = compile_source(path, arch="sm_80").problems[0]
    assert problem.code is ProblemCode.COMPILE_DATABASE
    assert problem.message.endswith("; k.cu was compiled with the flags of the settings")


@pytest.mark.usefixtures("compiler")
def test_device_code_that_does_not_compile_is_told_with_the_header_it_needs(tmp_path: Path) -> None:
    path = project(
        tmp_path,
        k="#include <maths/fast.h>\n__global__ void k(float *a) {\n    *a = fast(2);\n}\nmissing m;\n",
    )
    with pytest.raises(CompileError, match=r"needs maths/fast\.h, .*; name its folder with -I") as caught:
        compile_source(path, arch="sm_80")
    assert caught.value.messages[0].missing_header == "maths/fast.h"
    assert (caught.value.messages[1].file, caught.value.messages[1].line) == (str(path), 3)


@pytest.mark.usefixtures("compiler")
def test_a_change_of_a_source_is_reduced_like_the_source(tmp_path: Path) -> None:
    path = project(tmp_path, k="not compiled\n")
    made = compile_source(path, arch="sm_80", text=f"#include <no.h>\n{KERNEL}missing global;\n")
    assert kernels(made.cubin) == {"_Z1kPf": {2, 3, 4}}


@pytest.mark.usefixtures("compiler")
def test_kernels_that_launch_kernels_are_compiled_for_that(tmp_path: Path) -> None:
    path = project(tmp_path, k=f"{KERNEL}__global__ void parent(float *a) {{ k<<<1, 32>>>(a); }}\n")
    found, words = said(path)
    assert {"_Z1kPf", "_Z6parentPf"} <= found.keys()
    assert "compiled with --relocatable-device-code=true" in words


CONCEPT = (
    "template <typename T>\nconcept Small = sizeof(T) < 8;\n"
    "template <Small T> __device__ T half(T a) { return a / 2; }\n"
)


@pytest.mark.usefixtures("compiler")
def test_a_source_with_concepts_is_compiled_as_the_standard_that_has_them(tmp_path: Path) -> None:
    path = project(tmp_path, k=CONCEPT + KERNEL.replace("*= 2", "= half(*a)"))
    found, words = said(path)
    assert found.keys() == {"_Z1kPf"}
    assert "compiled with --std=c++20, which it needs" in words
    with pytest.raises(CompileError, match="concept"):
        compile_source(path, arch="sm_80", settings=CompileSettings(flags=("-std=c++17",)))


@pytest.mark.usefixtures("compiler")
def test_code_for_another_architecture_names_the_next_step(tmp_path: Path) -> None:
    asm = 'asm volatile("setmaxnreg.inc.sync.aligned.u32 64;");'
    path = project(tmp_path, k=KERNEL.replace("{", f"{{ {asm}"))
    with pytest.raises(CompileError, match=r"not supported on .target 'sm_80'.*such as --arch sm_90a"):
        compile_source(path, arch="sm_80")
    assert kernels(compile_source(path, arch="sm_90a").cubin).keys() == {"_Z1kPf"}


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("shuffle", ["__shfl(*a, 0)", "__shfl_xor(*a, 1)"])
def test_a_shuffle_without_a_mask_names_the_next_step(tmp_path: Path, shuffle: str) -> None:
    """As in sources from before CUDA 9, which are many."""
    path = project(tmp_path, k=KERNEL.replace("*= 2", f"= {shuffle}"))
    with pytest.raises(CompileError, match=r"is undefined; from sm_70 on .*use __shfl_sync"):
        compile_source(path, arch="sm_80")


@pytest.mark.usefixtures("compiler")
def test_headers_of_the_libraries_bring_what_device_code_takes_of_them(tmp_path: Path) -> None:
    path = project(
        tmp_path,
        k="#include <cstdint>\n#include <cmath>\n#include <limits>\n#include <cfloat>\n#include <vector>\n"
        "#include <cooperative_groups.h>\n#include <cub/block/block_reduce.cuh>\n#include <cuda_fp16.h>\n"
        "#include <cublas_v2.h>\nusing namespace std;\n"
        "__global__ void k(uint32_t *a, float *b, __nv_bfloat16 *c) {\n"
        "    *a = numeric_limits<int>::max(); *b = std::sqrt(*b) + sqrt(FLT_MAX);\n}\n"
        "std::vector<int> kept(cublasHandle_t);\n",
    )
    assert len(said(path)[0]) == 1


@pytest.mark.usefixtures("compiler")
def test_callbacks_of_a_library_that_is_not_here_are_device_code(tmp_path: Path) -> None:
    path = project(
        tmp_path,
        k="#include <cufft.h>\n#include <cufftXt.h>\n"
        "__device__ cufftComplex load(void *a, size_t i, void *, void *) { return ((cufftComplex *)a)[i]; }\n"
        "__device__ cufftCallbackLoadC pointer = load;\n"
        "__global__ void k(cufftReal *a, cufftDoubleComplex *b) { *a = b->x; }\n"
        "void plan(cufftHandle h) { cufftExecC2C(h, 0, 0, CUFFT_FORWARD); }\n",
    )
    assert len(said(path)[0]) == 1


def test_a_compiler_without_memory_says_so_and_nothing_is_cut(tmp_path: Path, compiler: str) -> None:
    if compiler == "nvrtc":
        pytest.skip("the limit is nvcc's")
    path = project(tmp_path, k=f"#include <cub/cub.cuh>\n{KERNEL}")
    with pytest.raises(ToolFailedError, match=r"needs more memory for k\.cu than the 0\.098 GiB"):
        compile_source(path, arch="sm_80", settings=CompileSettings(memory_bytes=100 << 20))


@pytest.mark.usefixtures("compiler")
def test_a_header_with_another_name_above_its_folder_is_not_written_elsewhere(tmp_path: Path) -> None:
    path = project(tmp_path, k='#include "' + 30 * "../" + f'gone/no.h"\n{KERNEL}')
    with pytest.raises(CompileError, match=r"no\.h"):
        compile_source(path, arch="sm_80")
    assert not (tmp_path.parent / "gone").exists()


@pytest.mark.usefixtures("compiler")
def test_what_nvcc_includes_first_is_there_without_being_included(tmp_path: Path) -> None:
    path = project(
        tmp_path,
        k="#include <cstdlib>\n__global__ void k(double *a) {\n"
        "    *a = INFINITY * M_PI + INT_MAX + sqrt(*a);\n}\nint main() { return rand(); }\n",
    )
    assert len(said(path)[0]) == 1


def test_the_machine_code_is_that_of_the_whole_source(tmp_path: Path, compiler: str) -> None:
    if compiler == "nvrtc":
        pytest.skip("NVRTC takes no whole source")
    whole = (
        f"{KERNEL}template <class T> __global__ void of(T *a) {{ for (int i = 0; i < 9; i++) a[i] /= 3; }}\n"
        "struct Both { float f; Both(float g) : f(g) {} __device__ float twice() const { return 2 * f; } };\n"
        "__global__ void with(Both b, float *a) { *a = b.twice(); }\n"
        "int main() {\n    of<float><<<1, 1>>>(0);\n    with<<<1, 1>>>(Both(2), 0);\n    return 0;\n}\n"
    )
    path = project(tmp_path, k=whole)
    code = {one.name: one.code for one in read_cubin(compile_source(path, arch="sm_80").cubin).sections}
    path.write_text(
        whole.replace("return 0", "missing(); return gone::value").replace("f(g) {}", "f(gone(g)) {}")
    )
    made = compile_source(path, arch="sm_80")
    assert len(code) == 3
    assert {one.name: one.code for one in read_cubin(made.cubin).sections} == code
    assert "was compiled without" in made.problems[0].message


def test_templates_of_classes_with_a_library_handle_keep_their_kernels(tmp_path: Path, compiler: str) -> None:
    if compiler == "nvrtc":
        pytest.skip("NVRTC gets no host functions")
    path = project(
        tmp_path,
        k="#include <cublas_v2.h>\n#include <cublasLt.h>\n"
        "template <class T> __global__ void k(T *a) { *a = 1; }\n"
        "struct Context { cublasHandle_t handle; cublasLtHandle_t lt; float *a; };\n"
        "template <class T> void run(Context &c) { cublasSgemm(c.handle); k<T><<<1, 1>>>((T *)c.a); }\n"
        "template void run<float>(Context &);\n",
    )
    assert said(path)[0].keys() == {"_Z1kIfEvPT_"}
