# SPDX-License-Identifier: Apache-2.0
"""What nvcc, its shell and the host's compiler get to see of a project; the code is the same for it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.tools import tool

from gpadvisor.cubin import read_cubin, section_lines
from gpadvisor.errors import ToolNotFoundError
from gpadvisor.toolchain.compile import compile_source
from gpadvisor.toolchain.compile_job import CompileSettings
from gpadvisor.toolchain.compiler_messages import CompileError
from gpadvisor.toolchain.discovery import find_tools

pytestmark = [
    pytest.mark.toolkit,
    pytest.mark.skipif(
        not find_tools("nvcc") or not shutil.which("gcc"), reason="toolkit: neither nvcc with a host compiler"
    ),
]
SOURCE = """
#include "part.cuh"
static_assert(M == 3, "");
extern "C" __global__ void k(float *a) { a[0] = part(a[threadIdx.x]); }
"""
PART = "__device__ __forceinline__ float part(float x) { return x * x; }\n"
ODD = [
    "$({})`{}`",
    'x";{};"',
    "x';{};'",
    "x;{};",
    "x\n{}\n",
    "a b&{}&(c)|{{d}}<e>*?#~!^\\",
    "@options",
    "-x",
    "a??/b,c",
]


def files_of(cubin: bytes) -> set[str]:
    image = read_cubin(cubin)
    entries = (e for section in image.sections for e in section_lines(image, section))
    return {
        place.file
        for e in entries
        if e is not None
        for place in (e.location, *(frame.call_site for frame in e.inline))
    }


def names_of(cubin: bytes) -> list[str]:
    return [section.name for section in read_cubin(cubin).sections]


def project(tmp_path: Path, name: str) -> tuple[Path, Path]:
    """A source and a folder of headers of an odd name, and a command that names both, from such a folder."""
    folder = tmp_path / name
    headers = folder / f"{name}i"
    headers.mkdir(parents=True)
    source = folder / f"{name}.cu"
    source.write_text(SOURCE)
    (headers / "part.cuh").write_text(PART)
    words = ["nvcc", f"-DX={name}", "-DM=3", "-I", headers.name, "-isystem", f"{name}i", "-c", source.name]
    entry = {"directory": str(folder), "file": source.name, "arguments": words}
    (folder / "compile_commands.json").write_text(json.dumps([entry]))
    return source, headers


@pytest.mark.parametrize("name", ODD)
def test_nothing_of_a_name_reaches_a_shell(tmp_path: Path, name: str) -> None:
    """Of the source, its folder, a folder of headers and a definition; the lines are still theirs."""
    source, headers = project(tmp_path, name.replace("{}", "touch evil"))
    made = compile_source(source, arch="sm_80")
    assert made.compiler.startswith("nvcc")
    assert not [*tmp_path.rglob("evil"), *Path().glob("evil")]
    files = files_of(made.cubin)
    if {*'"\\\n'} & {*source.name}:  # no name that the assembler can read
        assert {Path(file).name for file in files} == {re.sub(r'["\\\n]', "_", source.name), "part.cuh"}
    else:
        assert files == {str(source), str(headers / "part.cuh")}


@pytest.mark.parametrize("name", [*ODD, "plain"])
def test_its_words_are_ours(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the names are, also plain ones."""
    told = tmp_path / "told.json"
    fake = tool(
        tmp_path / "bin" / "nvcc",
        f"import json; json.dump(sys.argv, open({str(told)!r}, 'w')); sys.exit(1)",
        known="'sm_80'",
    )
    source, _ = project(tmp_path / "seen", name)
    with pytest.raises((CompileError, ToolNotFoundError)):
        compile_source(source, arch="sm_80", settings=CompileSettings(nvcc=fake))
    assert json.loads(told.read_text())[1:] == [
        *("-cubin", "-lineinfo", "--disable-warnings", "-arch=sm_80", "-o", "nvcc.cubin"),
        *("-Xcompiler=@options", "source.cu"),
    ]


@pytest.mark.parametrize(
    "option", ["-I@words", "-isystem@words", "-iquote@words", "--pre-include=@words", "-D@words", "-U@words"]
)
def test_a_file_of_options_is_none(tmp_path: Path, option: str) -> None:
    """The host's compiler reads options from a file whose name follows an @, and loads plugins from there."""
    (tmp_path / "plugin.c").write_text(
        "#include <stdlib.h>\nint plugin_is_GPL_compatible;\n"
        f'__attribute__((constructor)) static void run(void) {{ fclose(fopen("{tmp_path}/evil", "w")); }}\n'
        "int plugin_init(void *a, void *b) { return 0; }\n".replace("stdlib", "stdio")
    )
    subprocess.run(
        ["gcc", "-include", "stdio.h", "-shared", "-fPIC", "-o", "plugin.so", "plugin.c"],
        cwd=tmp_path,
        check=True,
    )
    (tmp_path / "x.h").touch()
    (tmp_path / "words").write_text(f"x.h -fplugin={tmp_path}/plugin.so")
    source = tmp_path / "k.cu"
    source.write_text("__global__ void k() {}")
    entry = {"directory": str(tmp_path), "file": "k.cu", "command": f"nvcc {option} -c k.cu"}
    (tmp_path / "compile_commands.json").write_text(json.dumps([entry]))
    try:
        compile_source(source, arch="sm_80")
    except CompileError:
        assert option.startswith("--pre-include"), "text of a file that is no source"
    assert not (tmp_path / "evil").exists()


def test_what_only_one_file_sees_has_one_name(tmp_path: Path) -> None:
    """nvcc names it by a checksum of the path, which is the original's, also for a text that is not saved."""
    source = tmp_path / "k.cu"
    text = "namespace { __global__ void k(int *a) { a[0] = 1; } }\n"
    text += "static __global__ void s(int *a) { a[0] = 2; }\n"
    source.write_text(text + "void f(int *a) { k<<<1, 1>>>(a); s<<<1, 1>>>(a); }\n")
    settings = CompileSettings(flags=("-rdc=true",), arch="sm_80")
    made = compile_source(source, settings=settings)
    nvcc = find_tools("nvcc")[0].path
    command = [
        nvcc,
        "-cubin",
        "-lineinfo",
        "-w",
        "-arch=sm_80",
        "-rdc=true",
        source,
        "-o",
        tmp_path / "k.cubin",
    ]
    subprocess.run(command, check=True)
    unit = re.compile(r"[0-9a-f]{8}(?=_\d+_\w+_cu_)")
    units = {
        found
        for data in (made.cubin, (tmp_path / "k.cubin").read_bytes())
        for name in names_of(data)
        for found in unit.findall(name)
    }
    assert len(units) == 1, "that of the file compiled where it is"
    unsaved = compile_source(source, settings=settings, text=source.read_text())
    again = [names_of(one.cubin) for one in (made, compile_source(source, settings=settings), unsaved)]
    assert again[0] == again[1] == again[2]


def test_the_source_is_where_it_was(tmp_path: Path) -> None:
    """To __FILE__, to headers beside it and below, to itself, and to #pragma once."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "beside.h").write_text("#pragma once\n#define BESIDE 1\n")
    (tmp_path / "sub" / "below.h").write_text('#include "../beside.h"\n#define BELOW BESIDE\n')
    (tmp_path / "math.h").write_text("#error not what <math.h> means\n")
    source = tmp_path / "k.cu"
    source.write_text(
        '#pragma once\n#include <math.h>\n#include "beside.h"\n#include "sub/below.h"\n#include "k.cu"\n'
        "constexpr char here[] = __FILE__;\n"
        f'static_assert(sizeof(here) == {len(str(source)) + 1} && BELOW, "");\n'
        'static_assert(__LINE__ == 8, "");\n'
        "__global__ void k(float *a) { a[0] = 1; }\n"
    )
    assert files_of(compile_source(source, arch="sm_80").cubin) == {str(source)}


@pytest.mark.parametrize("name", ["k.cu", 'k".cu', "k.cpp"])
def test_errors_name_the_source(tmp_path: Path, name: str) -> None:
    source = tmp_path / name
    source.write_text('\n#include "a.h"\n')
    (tmp_path / "a.h").write_text("int a = 1;\n#include </none.h>\n")
    with pytest.raises(CompileError) as caught:
        compile_source(source, arch="sm_80")
    source.write_text("\n__global__ void k() { nothing(); }\n")
    with pytest.raises(CompileError) as plain:
        compile_source(source, arch="sm_80")
    shown = str(source).replace('"', "_")
    (missing, *_), (unknown, *_) = caught.value.messages, plain.value.messages
    assert (missing.missing_header, missing.included_at) == (None, None) or missing.file == str(
        tmp_path / "a.h"
    )
    assert (unknown.file, unknown.line) == (shown, 2)
    assert "gpadvisor-" not in f"{caught.value}{plain.value}"


def test_a_definition_keeps_its_quotes(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(
        'static_assert(sizeof(V) == 6 && F(3) == 4 && sizeof(W) == 4, "");\n'
        "__global__ void k(int *a) { *a = 1; }\n"
    )
    flags = ('-DV="1.0;a"', "-DF(x)=(x + 1)", r'-DW="\"$ "')
    made = compile_source(path, settings=CompileSettings(flags=flags, arch="sm_80"))
    assert made.compiler.startswith("nvcc")
    assert files_of(made.cubin) == {str(path)}
