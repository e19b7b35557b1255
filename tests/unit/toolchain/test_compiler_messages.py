# SPDX-License-Identifier: Apache-2.0
"""Errors of the real compilers as values: file, line, column, words, the header that is missing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gpadvisor.model.compiler_message import CompilerMessage
from gpadvisor.toolchain import compile as compiling
from gpadvisor.toolchain import nvrtc
from gpadvisor.toolchain.compile import compile_source
from gpadvisor.toolchain.compiler_messages import CompileError, read_messages
from gpadvisor.toolchain.discovery import find_tools


@pytest.fixture(params=["nvcc", "nvrtc"])
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "nvcc" and not (find_tools("nvcc") and shutil.which("gcc")):
        pytest.skip("toolkit: neither nvcc with a host compiler")
    if request.param == "nvrtc":
        if not nvrtc.find_nvrtc():
            pytest.skip("toolkit: no NVRTC library")
        monkeypatch.setattr(compiling, "find_tools", lambda *_, **__: ())
    return str(request.param)


def errors(path: Path, text: str, *, stand_in: bool = False) -> tuple[CompilerMessage, ...]:
    path.write_text("" if stand_in else text)
    with pytest.raises(CompileError) as caught:
        compile_source(path, arch="sm_80", text=text if stand_in else None)
    sentence = str(caught.value)
    headers = [one.missing_header for one in caught.value.messages if one.missing_header]
    if headers:  # all there is to say, whoever looked for them
        assert sentence.startswith(f"{path.name} needs {headers[0]}, which no include folder has; ")
        assert " -I FOLDER" in sentence
    else:
        assert caught.value.by_nvrtc is (" for sm_80 by NVRTC " in sentence)
        assert caught.value.by_nvrtc or " for sm_80 by nvcc " in sentence
    return caught.value.messages


@pytest.mark.toolkit
@pytest.mark.usefixtures("compiler")
class TestCompilers:
    @pytest.mark.parametrize("stand_in", [False, True])
    def test_a_name_that_is_not_declared(self, tmp_path: Path, *, stand_in: bool) -> None:
        path = tmp_path / "k.cu"
        text = "__global__ void k(int *a) {\n\t*a = one +\n    two;\n}\n"
        assert errors(path, text, stand_in=stand_in) == (
            CompilerMessage(
                message='identifier "one" is undefined', file=str(path), line=2, column=7
            ),
            CompilerMessage(message='identifier "two" is undefined', file=str(path), line=3, column=5),
        )  # fmt: skip

    @pytest.mark.parametrize("more", ["", " + one"])
    def test_a_column_that_macros_have_moved(self, tmp_path: Path, compiler: str, more: str) -> None:
        path = tmp_path / "k.cu"
        found = errors(path, f"#define FAR (1 + 2)\n__global__ void k(int *a) {{ *a = FAR + one{more}; }}\n")
        assert (found[0].line, found[0].column) == (2, None if compiler == "nvcc" and more else 40)

    def test_candidates_belong_to_the_message(self, tmp_path: Path) -> None:
        text = "template <class T> __device__ T f(T);\n__global__ void k(int *a) { *a = f(1, 2); }\n"
        (one,) = errors(tmp_path / "k.cu", text)
        assert "argument types are: (int, int)" in one.message

    def test_a_header_that_is_missing(self, tmp_path: Path) -> None:
        path = tmp_path / "k.cu"
        one, _ = errors(path, '\n#include "part/no.h"\n__global__ void k() { gone(); }\n')
        assert (one.missing_header, one.file, one.line) == ("part/no.h", str(path), 2)

    def test_a_header_that_a_header_wants(self, tmp_path: Path, compiler: str) -> None:
        path = tmp_path / "k.cu"
        (tmp_path / "part.cuh").write_text("\n\n#include <no.h>\n")
        one, _ = errors(path, '#include "part.cuh"\n__global__ void k() { gone(); }\n')
        assert (one.missing_header, one.file, one.line) == ("no.h", str(tmp_path / "part.cuh"), 3)
        if compiler == "nvcc":
            assert one.included_at == (str(path), 1)

    def test_warnings_push_no_error_out(self, tmp_path: Path) -> None:
        text = "".join(
            f"__device__ int unsigned_{i}(unsigned a) {{ int unused_{i}; return a < 0; }}\n"
            for i in range(999)
        )
        found = errors(tmp_path / "k.cu", text + "__global__ void k(int *a) { *a = one; }\n")
        assert [(one.line, one.message) for one in found] == [(1000, 'identifier "one" is undefined')]

    def test_too_much_shared_memory(self, tmp_path: Path) -> None:
        text = "__global__ void k(int *a) { __shared__ int s[99999]; s[*a] = 1; *a = s[a[1]]; }\n"
        (one,) = errors(tmp_path / "k.cu", text)
        assert "too much shared data" in one.message
        assert one.file is None


def test_every_error_once_and_no_summaries() -> None:
    log = (
        "nvcc warning : odd\n"
        "nvcc fatal   : Unknown option 'x'\n"
        'k.cu(3): error #20: identifier "a" is undefined\n\n'
        'k.cu(3): error #20: identifier "a" is undefined\n\n'
        "Error limit reached.\n"
        '100 errors detected in the compilation of "k.cu".\n'
        '1 catastrophic error detected in the compilation of "k.cu".\n'
        "ptxas fatal   : Unresolved extern function 'f'\n"
        "ptxas application ptx input, line 9; error   : Unknown symbol 'g'\n"
    )  # fmt: skip
    assert [one.message for one in read_messages(log)] == [
        "Unknown option 'x'",
        'identifier "a" is undefined',
        "Unresolved extern function 'f'",
        "Unknown symbol 'g'",
    ]
