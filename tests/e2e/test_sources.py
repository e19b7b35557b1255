# SPDX-License-Identifier: Apache-2.0
"""Sources as projects have them, on the command line: flags, builds, headers, parts of others, folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpadvisor.cli import main

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.usefixtures("reads_here")]

KERNEL = "__global__ void NAME(float *a, int n) {\n    for (int i = 0; i < n; i++) a[i] = a[i] / 3.0;\n}\n"


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPADVISOR_CACHE", "")
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def database(folder: str, *entries: tuple[str, str]) -> None:
    rows = [
        {"directory": str(Path.cwd()), "file": file, "command": f"{command} -c {file}"}
        for file, command in entries
    ]
    write(f"{folder}/compile_commands.json", json.dumps(rows))


def advise(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main(["advise", *map(str, words)])
    out, err = capsys.readouterr()
    return code, out, err


def kernels(text: str) -> list[str]:
    return [kernel["name"].partition("(")[0] for kernel in json.loads(text)["kernels"]]


def test_flags_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    write("parts/type.h", "using value = float;\n")
    write(
        "k.cu",
        f'#include "type.h"\n#ifdef MINE\n{KERNEL.replace("NAME", "mine")}#endif\nstatic_assert(N == 3);\n',
    )
    words = (
        "-I",
        "parts",
        "-DMINE",
        "-std=c++17",
        "--arch",
        "sm_90",
        "--",
        "-DN=3",
        "-std=c++14",
        "--use_fast_math",
    )
    code, out, _ = advise(capsys, "k.cu", "--format", "json", *words)
    assert code == 0
    assert kernels(out) == ["mine"]
    assert '"sm_90"' in out


def test_a_flag_that_may_run_code_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write("k.cu", KERNEL)
    code, _, err = advise(capsys, "k.cu", "--", "-ccbin", "./evil")
    assert code == 2
    assert "-ccbin is not passed on" in err


def test_the_build_that_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    write(
        "k.cu",
        f"#ifdef OTHER\n{KERNEL.replace('NAME', 'other')}#else\n{KERNEL.replace('NAME', 'one')}#endif\n",
    )
    database("build", ("k.cu", "nvcc"))
    database(
        "elsewhere",
        ("k.cu", "nvcc -DOTHER -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90"),
    )
    assert kernels(advise(capsys, "k.cu", "--format", "json")[1]) == ["one"]
    document = advise(capsys, "k.cu", "-p", "elsewhere", "--format", "json")[1]
    assert kernels(document) == ["other"]
    assert "the newest of the command's architectures" in document
    assert '"sm_90"' in document
    code, _, err = advise(capsys, "k.cu", "-p", "nowhere")
    assert code == 2
    assert "nowhere has no compile_commands.json" in err


def test_a_source_that_others_include_is_compiled_in_one_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    write("part.cu", KERNEL.replace("NAME", "part").replace("float", "real"))
    write("whole.cu", f'using real = double;\n#include "part.cu"\n{KERNEL.replace("NAME", "whole")}')
    code, out, _ = advise(capsys, "part.cu", "--format", "json")
    assert code == 0
    assert kernels(out) == ["part"]
    assert "compiled as part of" in out


def test_a_header_is_compiled_in_the_source_that_a_build_names(capsys: pytest.CaptureFixture[str]) -> None:
    write("lib/part.cuh", f"template <class T>\n{KERNEL.replace('NAME', 'part').replace('float', 'T')}")
    write("a.cu", '#include "lib/part.cuh"\n#error not of the build\n')
    write("z.cpp", '#include "lib/part.cuh"\nvoid run(double *a) { part<<<1, N>>>(a, 2); }\n')
    database("build", ("z.cpp", "nvcc -x cu -DN=32"))
    code, out, _ = advise(capsys, "lib/part.cuh", "--format", "json")
    assert code == 0
    assert len(kernels(out)) == 1
    assert "z.cpp" in out


def test_cpp_files_and_python_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    write("k.cpp", KERNEL)
    write("host.cpp", "int main() {}\n")
    write("k.py", "import triton\n")
    assert kernels(advise(capsys, "k.cpp", "--format", "json")[1]) == ["NAME"]
    assert "has no CUDA code" in advise(capsys, "host.cpp")[2]
    assert "gpadvisor profile -- python" in advise(capsys, "k.py")[2]


def test_several_files_and_folders(capsys: pytest.CaptureFixture[str]) -> None:
    write("src/a.cu", KERNEL.replace("NAME", "a"))
    write("src/deep/b.cu", KERNEL.replace("NAME", "b"))
    write("src/host.cu", "int main() {}\n")
    write("c.cu", KERNEL.replace("NAME", "c"))
    code, out, err = advise(capsys, "src", "c.cu", "--format", "json")
    assert code == 0
    assert [kernels(json.dumps(one)) for one in json.loads(out)] == [["a"], ["b"], ["c"]]
    assert "host.cu" in err
    code, out, _ = advise(capsys, "src", "c.cu", "--format", "sarif")
    assert len(json.loads(out)["runs"]) == 1  # of one category
    assert len(json.loads(out)["runs"][0]["artifacts"]) == 3
    write("wrong.cu", "__global__ void w(int *a) { *a = missing; }\n")
    code, out, err = advise(capsys, "c.cu", "wrong.cu")
    assert code == 3
    assert "c.cu: 1 kernel" in out
    assert "wrong.cu:1" in err


def test_a_time_limit_names_its_setting(capsys: pytest.CaptureFixture[str]) -> None:
    write("gpadvisor.toml", "tool-timeout-seconds = 0.01\n")
    write("k.cu", KERNEL)
    code, _, err = advise(capsys, "k.cu")
    assert code == 4
    assert "k.cu did not compile for sm_" in err
    assert "tool-timeout-seconds" in err


def test_what_was_left_out_is_said_first(capsys: pytest.CaptureFixture[str]) -> None:
    write("k.cu", f"#include <gone.h>\n{KERNEL}int main() {{ return gone(); }}\n")
    out = advise(capsys, "k.cu", "--arch", "sm_80")[1]
    assert "! k.cu was compiled without gone.h, not found here" in " ".join(out.split())


def test_a_file_of_the_same_name_elsewhere_is_none_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    for folder, kind in (("a", "float"), ("b", "double")):
        write(f"{folder}/part.cu", KERNEL.replace("NAME", folder).replace("float", "real"))
        write(f"{folder}/whole.cu", f'using real = {kind};\n#include "part.cu"\n')
    out = advise(capsys, "b/part.cu", "--format", "json")[1]
    assert kernels(out) == ["b"]
    write("a/more.cu", '#include "part.cu"\n')
    Path("b/whole.cu").unlink()
    assert "real" in advise(capsys, "b/part.cu")[2]
