# SPDX-License-Identifier: Apache-2.0
"""Sources to cubins by the real compilers, and by none, and by ones that misbehave."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pytest
from tests.tools import tool

from gpadvisor.cubin import read_cubin, section_lines
from gpadvisor.errors import CancelledError, SourceError, ToolNotFoundError, ToolTimeoutError
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.toolchain import compile as compiling
from gpadvisor.toolchain import discovery, nvrtc
from gpadvisor.toolchain.compile import compile_source
from gpadvisor.toolchain.compile_job import CompileSettings
from gpadvisor.toolchain.compile_options import reduce_command
from gpadvisor.toolchain.discovery import find_tools

SOURCE = """
#include "part.cuh"
#ifndef N
#define N 2
#endif
extern "C" __global__ void k(float *a) {
    #pragma unroll 1
    for (int i = 0; i < N; i++) a[i] = part(a[i + threadIdx.x]);
}
"""
PART = "__device__ __forceinline__ float part(float x) { return x * x; }\n"

needs_nvcc = [
    pytest.mark.toolkit,
    pytest.mark.skipif(
        not find_tools("nvcc") or not (shutil.which("gcc") or shutil.which("cc")),
        reason="toolkit: neither nvcc with a host compiler",
    ),
]
needs_nvrtc = [
    pytest.mark.toolkit,
    pytest.mark.skipif(not nvrtc.find_nvrtc(), reason="toolkit: no NVRTC library"),
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "src" / "k.cu"
    (tmp_path / "include").mkdir()
    path.parent.mkdir()
    path.write_text(SOURCE)
    (path.parent / "part.cuh").write_text(PART)
    return path


@pytest.fixture
def no_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "find_tools", lambda *_, **__: ())


def lines_in(cubin: bytes) -> set[str]:
    image = read_cubin(cubin)
    return {Path(e.location.file).name for e in section_lines(image, image.sections[0]) if e is not None}


class TestNvcc:
    pytestmark = needs_nvcc

    def test_a_source_alone(self, source: Path) -> None:
        made = compile_source(source)
        assert made.arch == "sm_80"
        assert made.compiler.startswith("nvcc ")
        assert read_cubin(made.cubin).arch == "sm_80"
        assert lines_in(made.cubin) == {"k.cu", "part.cuh"}
        assert [p.code for p in made.problems] == [ProblemCode.COMPILE_ASSUMPTION]
        assert "sm_80" in made.problems[0].message
        assert {entry.name for entry in source.parent.iterdir()} == {"k.cu", "part.cuh"}

    @pytest.mark.parametrize("arch", ["sm_75", "sm_90a", "sm_120"])
    def test_the_architecture_asked_for(self, source: Path, arch: str) -> None:
        made = compile_source(source, arch=arch)
        assert made.problems == ()
        assert read_cubin(made.cubin).arch == arch

    def test_the_command_of_the_database(self, source: Path, tmp_path: Path) -> None:
        (source.parent / "part.cuh").rename(tmp_path / "include" / "part.cuh")
        build = tmp_path / "build"
        build.mkdir()
        (build / "inc.rsp").write_text("-I../include")
        text = (
            "/no/such/nvcc -forward-unknown-to-linker --options-file inc.rsp -DN=7 -O3 -Xcompiler=-fPIC "
            "'--generate-code=arch=compute_86,code=[compute_86,sm_86]' -gencode arch=compute_90,code=sm_90 "
            "-x cu -c ../src/k.cu -o k.o"
        )
        entry = {"directory": str(build), "file": "../src/k.cu", "command": text}
        (build / "compile_commands.json").write_text(json.dumps([entry]))
        made = compile_source(source)
        assert read_cubin(made.cubin).arch == made.arch == "sm_90"
        assert "--define-macro=N=7" in made.command
        assert [p.code for p in made.problems] == [ProblemCode.COMPILE_ASSUMPTION] * 2
        assert "-Xcompiler" in made.problems[0].message
        assert "the newest of the command's architectures, not for sm_86" in made.problems[1].message
        assert compile_source(source, arch="sm_86").arch == "sm_86"
        assert not (build / "k.o").exists()

    def test_settings_add_to_it(self, source: Path, tmp_path: Path) -> None:
        (source.parent / "part.cuh").rename(tmp_path / "include" / "part.cuh")
        settings = CompileSettings(
            arch="sm_89",
            flags=("--use_fast_math", "-ccbin", "/tmp/evil"),
            extra_flags=(f"-I{tmp_path / 'include'}", "-DN=9"),
        )
        made = compile_source(source, settings=settings)
        assert made.arch == "sm_89"
        assert {"--use_fast_math", "--define-macro=N=9"} <= set(made.command)
        assert "/tmp/evil" not in " ".join(made.command)
        assert [p.code for p in made.problems] == [ProblemCode.COMPILE_ASSUMPTION]

    def test_what_does_not_compile_says_why(self, source: Path) -> None:
        source.write_text(SOURCE.replace("part(a", "missing(a"))
        with pytest.raises(
            SourceError, match=r"k\.cu does not compile for sm_80 by nvcc .*missing"
        ) as caught:
            compile_source(source)
        assert "\n" not in str(caught.value)

    def test_stopped_in_the_middle_it_leaves_nothing_behind(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place = tmp_path / "temporary"
        place.mkdir()
        monkeypatch.setenv("TMPDIR", str(place))
        monkeypatch.setattr(tempfile, "tempdir", None)
        slow = (
            "template <int N, int K> struct T\n"
            "{ static const int v = T<N - 1, 2 * K>::v + T<N - 1, 2 * K + 1>::v; };\n"
            "template <int K> struct T<0, K> { static const int v = 1; };\n"
            "__global__ void k(int *p) { *p = T<20, 0>::v; }\n"
        )
        (tmp_path / "slow.cu").write_text(slow)
        with pytest.raises(ToolTimeoutError):
            compile_source(tmp_path / "slow.cu", settings=CompileSettings(arch="sm_80", timeout_seconds=4))
        assert not list(place.iterdir())


class TestNvrtc:
    pytestmark = needs_nvrtc

    @pytest.mark.parametrize("arch", ["sm_75", "sm_90a", "sm_120"])
    @pytest.mark.usefixtures("no_nvcc")
    def test_device_code_without_nvcc(self, source: Path, arch: str) -> None:
        made = compile_source(source, arch=arch)
        assert made.compiler.startswith("NVRTC ")
        assert made.problems == ()
        assert read_cubin(made.cubin).arch == arch
        assert lines_in(made.cubin) == {"k.cu", "part.cuh"}

    @pytest.mark.usefixtures("no_nvcc")
    def test_an_architecture_that_none_knows(self, source: Path) -> None:
        with pytest.raises(ToolNotFoundError, match=r"no compiler for sm_71 .*nvidia-cuda-nvrtc-cu12"):
            compile_source(source, arch="sm_71")

    def test_without_a_host_compiler(self, source: Path, tmp_path: Path) -> None:
        body = "sys.exit('nvcc fatal   : Failed to preprocess host compiler properties.')"
        fake = tool(tmp_path / "bin" / "nvcc", body, known="'sm_80'")
        made = compile_source(source, arch="sm_80", settings=CompileSettings(nvcc=fake))
        assert made.compiler.startswith("NVRTC")
        assert [p.code for p in made.problems] == [ProblemCode.TOOL_FALLBACK]
        assert "host compiler" in made.problems[0].message

    @pytest.mark.usefixtures("no_nvcc")
    def test_a_library_that_is_none_is_passed_over(
        self, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broken = tmp_path / "libnvrtc.so.99"
        broken.write_bytes(b"no library")
        copies = (nvrtc.Nvrtc(broken, 99, ()), *nvrtc.find_nvrtc())
        monkeypatch.setattr(compiling, "find_nvrtc", lambda: copies)
        assert read_cubin(compile_source(source, arch="sm_80").cubin).arch == "sm_80"


def test_no_source(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is no file"):
        compile_source(tmp_path / "nothing.cu")
    with pytest.raises(SourceError, match="is no file"):
        compile_source(tmp_path)


def test_no_architecture(source: Path) -> None:
    with pytest.raises(SourceError, match="write it like sm_90"):
        compile_source(source, arch="sm_90;touch evil")


def test_no_compiler(source: Path, no_nvcc: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "find_nvrtc", lambda: ())
    with pytest.raises(ToolNotFoundError, match="install the package nvidia-cuda-nvcc"):
        compile_source(source, arch="sm_86")
    with pytest.raises(ToolNotFoundError, match="nvidia-cuda-nvrtc-cu12"):
        compile_source(source, arch="sm_70")


@pytest.fixture
def only_this(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "toolkit_folders", lambda: iter(()))
    monkeypatch.setattr(discovery, "_package_folders", lambda: iter(()))


def test_a_compiler_that_hangs(source: Path, tmp_path: Path, only_this: None) -> None:
    fake = tool(tmp_path / "bin" / "nvcc", "time.sleep(600)", known="'sm_80'")
    settings = CompileSettings(nvcc=fake, timeout_seconds=1.0)
    with pytest.raises(
        ToolTimeoutError, match=r"k\.cu did not compile for sm_80 within 1 s; tool-timeout-seconds"
    ):
        compile_source(source, arch="sm_80", settings=settings)
    with pytest.raises(CancelledError):
        compile_source(source, arch="sm_80", settings=settings, cancelled=lambda: True)


def test_a_compiler_that_makes_nothing(source: Path, tmp_path: Path, only_this: None) -> None:
    fake = tool(tmp_path / "bin" / "nvcc", "sys.exit(0)", known="'sm_80'")
    with pytest.raises(SourceError, match="it gave no reason"):
        compile_source(source, arch="sm_80", settings=CompileSettings(nvcc=fake))


def test_only_the_first_errors_are_shown(source: Path, tmp_path: Path, only_this: None) -> None:
    body = "[sys.stderr.write(f'k.cu({i}): error: number {i}\\n') for i in range(9)]; sys.exit(2)"
    fake = tool(tmp_path / "bin" / "nvcc", body, known="'sm_80'")
    with pytest.raises(SourceError, match=r"number 0; .*number 1; .*number 2; correct it, or its flags"):
        compile_source(source, arch="sm_80", settings=CompileSettings(nvcc=fake))


@pytest.mark.parametrize(
    ("asked", "command", "taken"),
    [
        (None, ("sm_80", "sm_90a", "sm_90"), "sm_90a"),
        (None, ("sm_120", "sm_90a"), "sm_120"),
        ("sm_90", ("sm_80", "sm_90a"), "sm_90a"),  # a GPU calls itself sm_90
        ("sm_86", ("sm_80", "sm_90a"), "sm_86"),
    ],
)
def test_which_architecture_of_a_build_is_taken(
    asked: str | None, command: tuple[str, ...], taken: str
) -> None:
    reduced = reduce_command([f"-gencode=arch=compute_80,code={one}" for one in command], Path("/"))
    assert compiling._target(asked, reduced, []) == taken


def test_this_machines_gpu_comes_before_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "machine_arch", lambda: "sm_89")
    said: list[Problem] = []
    assert compiling._target(None, reduce_command([], Path("/")), said) == "sm_89"
    assert "sm_89, this machine's GPU" in said[0].message
