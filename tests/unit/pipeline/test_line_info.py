# SPDX-License-Identifier: Apache-2.0
"""What to do for line information, by the build files beside an application; and that it works."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.kernels import KERNELS

from gpadvisor.pipeline.line_info import LineInfoChange, line_info_change, script_line_info
from gpadvisor.profiler.doctor import CheckStatus, render_text
from gpadvisor.profiler.doctor.examine import examine_machine
from gpadvisor.profiler.doctor.verdicts import Check
from gpadvisor.toolchain.discovery import find_tools


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def _change(project: Path, files: dict[str, str], application: str = "app") -> LineInfoChange:
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    return line_info_change(project / application, project)


def test_cmake_in_its_source_folder(project: Path) -> None:
    found = _change(project, {"CMakeLists.txt": "add_executable(other a.cu)\nadd_executable(app b.cu)\n"})
    assert found.command == "NVCC_APPEND_FLAGS=-lineinfo cmake --build build --clean-first"
    assert found.change == (
        f"in {project}/CMakeLists.txt: "
        "target_compile_options(app PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>)"
    )


def test_a_build_folder_elsewhere_leads_to_its_project(project: Path, tmp_path: Path) -> None:
    lists = {
        "CMakeLists.txt": "add_subdirectory(tools)\n",
        "tools/CMakeLists.txt": "add_executable(bench b.cu)",
    }
    _change(project, lists)
    build = tmp_path / "away" / "my build"
    (build / "tools").mkdir(parents=True)
    (build / "CMakeCache.txt").write_text(f"A:B=C\nCMAKE_HOME_DIRECTORY:INTERNAL={project}\n")
    (build / "Makefile").write_text("# CMAKE generated file: DO NOT EDIT!\n\tnvcc\n")
    found = line_info_change(build / "tools" / "bench", tmp_path)
    assert found.command == f"NVCC_APPEND_FLAGS=-lineinfo cmake --build '{build}' --clean-first"
    assert found.change.startswith(f"in {project}/tools/CMakeLists.txt: target_compile_options(bench PRIVATE")


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("CXX = g++\nNVCCFLAGS ?= -O3\n", "on line 2 of {}: add -lineinfo to NVCCFLAGS"),
        ("app: a.cu\n\t$(NVCC) -o $@ $<\n", "on line 2 of {}: add -lineinfo to the options of nvcc"),
    ],
)
def test_make(project: Path, text: str, change: str) -> None:
    found = _change(project, {"Makefile": text, "bin/app": ""}, "bin/app")
    assert found.command == f"NVCC_APPEND_FLAGS=-lineinfo make -B -C {project}"
    assert found.change == change.format(project / "Makefile")


@pytest.mark.parametrize(
    ("text", "change"),
    [
        (
            "setup(\n  ext_modules=[CUDAExtension('x', ['x.cu'])])",
            "on line 2 of {}: extra_compile_args={{'nvcc': ['-lineinfo']}} for CUDAExtension",
        ),
        (
            "CUDAExtension('x', ['x.cu'],\nextra_compile_args={'nvcc': ['-O3']})",
            "on line 2 of {}: '-lineinfo' in the list of 'nvcc'",
        ),
    ],
)
def test_setuptools(project: Path, text: str, change: str) -> None:
    found = _change(project, {"setup.py": text}, "x.so")
    assert found.command.startswith("NVCC_APPEND_FLAGS=-lineinfo python -m pip install --no-build-isolation")
    assert found.change == change.format(project / "setup.py")


def test_bazel(project: Path) -> None:
    rule = 'cc_binary(name = "app")\n\ncuda_library(\n    name = "kernels",\n    srcs = ["k.cu"],\n)\n'
    found = _change(project, {"MODULE.bazel": 'bazel_dep(name = "rules_cuda")', "pkg/BUILD": rule}, "pkg/app")
    assert found.command == "bazel build --@rules_cuda//cuda:copts=-lineinfo //..."
    assert found.change.startswith(
        f'on line 3 of {project}/pkg/BUILD: copts = ["-lineinfo"] in cuda_library('
    )
    top = line_info_change(project / "app", project)
    assert f"in {project}/.bazelrc: build --@rules_cuda//cuda:copts=-lineinfo" in top.change


def test_meson(project: Path) -> None:
    found = _change(project, {"meson.build": "project('x', 'cuda')"})
    assert "-Dcuda_args=-lineinfo" in found.command


def test_files_that_say_nothing_and_folders_above_the_repository(project: Path) -> None:
    (project.parent / "CMakeLists.txt").write_text("add_executable(app a.cu)")
    found = _change(project, {"setup.py": "setup(name='x')", "Makefile": "all:\n\tcc x.c\n", "BUILD": "x()"})
    assert found.command == "NVCC_APPEND_FLAGS=-lineinfo nvcc ..."


def test_text_of_the_project_cannot_steer_a_terminal(project: Path, tmp_path: Path) -> None:
    build = tmp_path / "b\x1b[31m;id"
    build.mkdir()
    (build / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={project}\n")
    (project / "CMakeLists.txt").write_text("add_executable(x\x1b[2J y)")
    found = line_info_change(build / "app", tmp_path)
    assert "\x1b" not in found.command + found.change
    assert "'" in found.command


def test_python_programs(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import numba\nfrom torch.utils import cpp_extension\n")
    assert script_line_info(script) == (
        'Numba: @cuda.jit(lineinfo=True); PyTorch: load(..., extra_cuda_cflags=["-lineinfo"])'
    )
    script.write_text("print()")
    assert script_line_info(script) is None


@pytest.mark.toolkit
@pytest.mark.slow
def test_the_command_that_doctor_gives_brings_line_information(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not find_tools("cuobjdump") or shutil.which("make") is None or shutil.which("g++") is None:
        pytest.skip("needs cuobjdump, make and g++")
    nvcc = find_tools("nvcc")[0].path
    kernel = KERNELS["thermal_stencil"].source("before").read_text()
    (project / "k.cu").write_text(kernel)
    make = f"NVCCFLAGS = -arch=sm_80 -cubin\napp: k.cu\n\t{nvcc} $(NVCCFLAGS) -o $@ k.cu\n"
    (project / "Makefile").write_text(make)
    monkeypatch.chdir(project)
    subprocess.run(["make"], check=True, capture_output=True)
    before = _line_check(project / "app")
    assert before.status is CheckStatus.WARNING
    assert "for good, on line 1 of" in before.meaning
    assert f"$ {before.action}" in render_text(examine_machine(project / "app"))
    subprocess.run(before.action, shell=True, check=True, capture_output=True)
    assert _line_check(project / "app").status is CheckStatus.OK


def _line_check(application: Path) -> Check:
    (found,) = (one for one in examine_machine(application).checks if one.name == "line information")
    return found
