# SPDX-License-Identifier: Apache-2.0
"""Compile commands, reduced to what shapes device code and runs nothing foreign."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from gpadvisor.toolchain.compile_options import reduce_command
from gpadvisor.toolchain.databases.database import find_command

HERE = Path("/somewhere")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("-Ia -I b --include-path c -I=d", ["path=a", "path=b", "path=c", "path=d"]),
        ("-isystem x -isystemy --system-include=z", ["system:x", "system:y", "system:z"]),
    ],
)
def test_include_paths_in_every_spelling(text: str, options: list[str]) -> None:
    found = reduce_command(shlex.split(text), HERE).options
    short = [o.replace("--include-path=", "path=").replace("--system-include=", "system:") for o in found]
    assert short == options


def test_what_shapes_device_code_is_kept() -> None:
    text = (
        "-DN=4 -D M -UQ -std=c++17 --std c++20 -O3 --use_fast_math -use_fast_math --expt-relaxed-constexpr "
        "-maxrregcount=64 --maxrregcount 32 -include pre.h -Xptxas -O1,-dlcm=cg --fmad=false -ftz=true "
        "-rdc=true -dc --extended-lambda -G -diag-suppress=177 -w"
    )
    assert reduce_command(shlex.split(text), HERE).options == (
        "--define-macro=N=4",
        "--define-macro=M",
        "--undefine-macro=Q",
        "--std=c++17",
        "--std=c++20",
        "--optimize=3",
        "--use_fast_math",
        "--use_fast_math",
        "--expt-relaxed-constexpr",
        "--maxrregcount=64",
        "--maxrregcount=32",
        "--pre-include=pre.h",
        "--ptxas-options=-O1,-dlcm=cg",
        "--fmad=false",
        "--ftz=true",
        "--relocatable-device-code=true",
        "--relocatable-device-code=true",
        "--extended-lambda",
        "--device-debug",
        "--diag-suppress=177",
        "--disable-warnings",
    )


def test_what_is_of_the_host_or_writes_files_is_dropped() -> None:
    text = (
        "-c k.cu -o k.o -M -MD -MT k.o -MF k.d -x cu -fPIC -Wall -Werror all-warnings --threads 4 -lcudart "
        "-L/lib -Xlinker -rpath --keep --keep-dir x --time t.csv -odir y -pthread -forward-unknown-to-linker "
        "-Xptxas --output-file=/etc/x,-v -Xfatbin -compress-all other.o -idp /x -ldir /y --run --dryrun"
    )
    command = reduce_command(shlex.split(text), HERE)
    assert command.options == ("--ptxas-options=-v",)
    assert command.refused == ()


@pytest.mark.parametrize(
    "text",
    [
        "-ccbin /tmp/evil",
        "--compiler-bindir=/tmp/evil",
        "-Xcompiler -fplugin=/tmp/evil.so",
        "-Xcompiler=-B/tmp/evil",
        "--compiler-options -wrapper,/tmp/evil",
        "-D@options",
        "-D -fplugin=/tmp/evil.so",
        "-U@options",
        "'-std=$(touch /tmp/evil)'",
        "'-maxrregcount=1;touch evil'",
    ],
)
def test_what_may_run_foreign_code_is_refused_and_named(text: str) -> None:
    command = reduce_command(shlex.split(text), HERE)
    assert command.options == ()
    assert len(command.refused) == 1


def test_folders_and_definitions_may_have_any_name() -> None:
    """No shell gets them."""
    text = "'-DX=$(touch /tmp/evil)' '-DF(a, ...)=a\\b' '-I`touch /tmp/evil`' -isystem@options"
    assert reduce_command(shlex.split(text), HERE).options == (
        "--define-macro=X=$(touch /tmp/evil)",
        "--define-macro=F(a, ...)=a\\b",
        "--include-path=`touch /tmp/evil`",
        "--system-include=@options",
    )


def test_a_host_compiler_may_be_named_with_trust_and_what_a_shell_expands_never() -> None:
    words = ["-ccbin", "/opt/g++", "-Xcompiler=-B/opt", "-std=$(touch /tmp/evil)", "-ccbin=`touch evil`"]
    command = reduce_command(words, HERE, trusted=True)
    assert command.options == ("--compiler-bindir=/opt/g++", "--compiler-options=-B/opt")
    assert len(command.refused) == 2


@pytest.mark.parametrize(
    ("text", "architectures"),
    [
        ("-arch=sm_80", ["sm_80"]),
        ("-arch sm_90a", ["sm_90a"]),
        ("--gpu-architecture=compute_75", ["sm_75"]),
        ("-gencode arch=compute_80,code=sm_86", ["sm_86"]),
        ("-gencode=arch=compute_80,code=[compute_80,sm_80]", ["sm_80"]),
        ("'-gencode=arch=compute_70,code=[sm_70]' -gencode=arch=compute_90,code=compute_90", ["sm_70"]),
        ("-arch=compute_80 -code=sm_86,sm_89", ["sm_86", "sm_89"]),
        ("--cuda-gpu-arch=sm_75 --offload-arch=sm_75", ["sm_75"]),
        ("-arch=native", []),
        ("-arch=all-major", []),
        ("-arch=80", ["sm_80"]),
    ],
)  # fmt: skip
def test_architectures(text: str, architectures: list[str]) -> None:
    assert list(reduce_command(shlex.split(text), HERE).architectures) == architectures


def test_response_files_pass_the_same_list(tmp_path: Path) -> None:
    (tmp_path / "includes.rsp").write_text('-Ione -isystem "two words" -ccbin /tmp/evil')
    (tmp_path / "more.rsp").write_text("-DLATE=1 @includes.rsp")
    words = ["--options-file", "includes.rsp", "-optf=more.rsp", "@none.rsp", "-DLAST"]
    command = reduce_command(words, tmp_path)
    assert command.options == (
        "--include-path=one",
        "--system-include=two words",
        "--define-macro=LATE=1",
        "--define-macro=LAST",
    )
    assert command.refused == ("-ccbin",)


def write_database(folder: Path, *entries: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "compile_commands.json"
    path.write_text(json.dumps(list(entries)))
    return path


def test_the_nearest_database_that_names_the_source(tmp_path: Path) -> None:
    source = tmp_path / "project" / "src" / "k.cu"
    source.parent.mkdir(parents=True)
    source.touch()
    far = {"directory": str(tmp_path), "file": "project/src/k.cu", "arguments": ["nvcc", "-DFAR"]}
    write_database(tmp_path, far)
    other = {"directory": str(tmp_path), "file": "other.cu", "command": "nvcc -DOTHER"}
    near = {"directory": "..", "file": "src/k.cu", "command": "nvcc '-DNEAR=a b' -c src/k.cu"}
    database = write_database(tmp_path / "project" / "build", "junk", {"file": 3}, other, near)
    command, wrong = find_command(source)
    assert wrong is None
    assert command is not None
    assert command.options == ("--define-macro=NEAR=a b",)
    assert command.database == database
    database.unlink()
    command, _ = find_command(source)
    assert command is not None
    assert command.options == ("--define-macro=FAR",)


def test_the_program_of_a_command_is_not_an_option(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    write_database(tmp_path, {"directory": str(tmp_path), "file": "k.cu", "arguments": ["-Devil", "-DN"]})
    command, _ = find_command(source)
    assert command is not None
    assert command.options == ("--define-macro=N",)


@pytest.mark.parametrize("text", ["", "{", "{}", "[" * 100_000, "\ud800".encode("utf-8", "surrogatepass")])
def test_a_damaged_database_is_said(tmp_path: Path, text: str | bytes) -> None:
    path = tmp_path / "compile_commands.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    command, wrong = find_command(tmp_path / "k.cu")
    assert command is None
    assert wrong is not None
    assert "compile_commands.json cannot be read" in wrong


def test_an_entry_that_cannot_be_split_is_passed_over(tmp_path: Path) -> None:
    bad = {"directory": str(tmp_path), "file": "k.cu", "command": "nvcc 'open"}
    write_database(tmp_path, bad)
    assert find_command(tmp_path / "k.cu") == (None, None)


@pytest.mark.parametrize("value", ["X=\0", "X=\ud800"])
def test_a_value_that_no_program_can_be_given_is_refused(value: str) -> None:
    """A JSON file can name it."""
    command = reduce_command(["-D", value, "-D", "Y=\udcff", "-I", f"a{value}"], Path())
    assert command.options == ("--define-macro=Y=\udcff",)
    assert command.refused == ("-D", "-I")


@pytest.mark.parametrize("option", ["-arch=sm_{}", "-gencode=arch=compute_{0},code=sm_{0}", "-arch={}"])
def test_architectures_that_none_can_be_are_passed_over(option: str) -> None:
    assert reduce_command([option.format("9" * 5000)], Path()).architectures == ()
