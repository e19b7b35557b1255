# SPDX-License-Identifier: Apache-2.0
"""How CMake and Bazel name a unit, and that nothing which they name is run or read without bounds."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpadvisor.toolchain.compile_options import CompileCommand, reduce_command
from gpadvisor.toolchain.databases.clang import as_nvcc, is_clang, is_hip
from gpadvisor.toolchain.databases.database import find_command
from gpadvisor.toolchain.databases.folders import databases, preset_folders


@pytest.fixture
def source(tmp_path: Path) -> Path:
    place = tmp_path / "app" / "src" / "k.cu"
    place.parent.mkdir(parents=True)
    place.touch()
    return place


def _write(folder: Path, entry: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "compile_commands.json"
    path.write_text(json.dumps([entry]))
    return path


def _found(source: Path) -> CompileCommand:
    command, wrong = find_command(source)
    assert wrong is None
    assert command is not None
    return command


@pytest.mark.parametrize(
    "folder",
    ["", "build", "out", "cmake-build-release", "cmake-build-my-profile", "build/Release", "out/build/x64"],
)
def test_folders_that_builds_are_made_in(source: Path, folder: str) -> None:
    project = source.parent.parent
    database = _write(
        project / folder, {"directory": str(project), "file": "src/k.cu", "command": "nvcc -DN"}
    )
    assert _found(source).database == database


def test_of_several_build_folders_the_newest_leads(source: Path) -> None:
    project = source.parent.parent
    for index, name in enumerate(("cmake-build-new", "cmake-build-old")):
        entry = {"directory": "..", "file": "src/k.cu", "arguments": ["nvcc", f"-D{name[12:]}"]}
        os.utime(_write(project / name, entry), (1e9 - index, 1e9 - index))
    assert _found(source).options == ("--define-macro=new",)


def _presets(folder: Path, name: str, *presets: object, include: Sequence[str] = ()) -> None:
    document = {"version": 6, "configurePresets": list(presets), "include": list(include)}
    (folder / name).write_text(json.dumps(document))


def test_presets_name_build_folders(tmp_path: Path) -> None:
    project = tmp_path / "app"
    project.mkdir()
    _presets(
        project,
        "CMakePresets.json",
        {"name": "base", "hidden": True, "binaryDir": "${sourceParentDir}/${sourceDirName}-${presetName}"},
        {"name": "fast", "inherits": ["none", "base"]},
        {"name": "here", "binaryDir": "bin/${generator}", "generator": "Ninja"},
        {"name": "elsewhere", "binaryDir": "$penv{HOME}/x"},
        {"name": "unknown", "binaryDir": "${hostSystemName}/x"},
        {"name": "none"},
        {"name": 3},
        include=["more/CMakePresets.json", "CMakePresets.json"],
    )
    (project / "more").mkdir()
    _presets(project / "more", "CMakePresets.json", {"name": "late", "inherits": "fast"})
    assert preset_folders(project) == [
        tmp_path / "app-fast",
        project / "bin" / "Ninja",
        tmp_path / "app-late",
    ]


def test_a_preset_leads_to_its_database(source: Path) -> None:
    project = source.parent.parent
    _presets(
        project, "CMakeUserPresets.json", {"name": "p", "binaryDir": "${sourceDir}/deep/er/${presetName}"}
    )
    database = _write(project / "deep" / "er" / "p", {"file": str(source), "command": "nvcc -c k.cu"})
    assert _found(source).database == database


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        '{"configurePresets": {"name": 1}}',
        '{"configurePresets": [{"name": "a", "inherits": "a"}]}',
        json.dumps({"configurePresets": [{"name": n, "inherits": ["a", "b"] * 9999} for n in "ab"]}),
        '{"configurePresets": [{"name": "a", "binaryDir": "x\\u0000y"}]}',
        '{"include": ["CMakePresets.json", "\\u0000", "/dev/zero", 4]}',
    ],
)
def test_hostile_presets_end_soon_and_name_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "CMakePresets.json").write_text(text)
    assert list(databases(tmp_path)) == []


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("clang++ -x cuda k.cu", True),
        ("/usr/bin/clang++-17 --cuda-gpu-arch=sm_80 k.cu", True),
        ("ccache /opt/llvm/bin/clang++ -c k.cu", True),
        ("external/wrapper/cc -xcuda --offload-arch=sm_80 k.cu", True),
        ("nvcc -ccbin clang++ -x cu k.cu", False),
        ("ccache nvcc -c k.cu", False),
    ],
)
def test_clang_is_told_from_nvcc(command: str, expected: bool) -> None:
    assert is_clang(shlex.split(command)) is expected


def test_clangs_options_in_nvccs_words(tmp_path: Path) -> None:
    text = (
        "-xcuda --cuda-gpu-arch=sm_80 --offload-arch=sm_90 --cuda-path=/usr/local/cuda -std=gnu++2a -O "
        "-Ofast -ffast-math -fcuda-flush-denormals-to-zero -fgpu-rdc -ffp-contract=off "
        "-Xcuda-ptxas --maxrregcount=64 -Xclang -load -Xclang evil.so -Xarch_device -DDEVICE "
        "-Xarch_host -DHOST -mllvm -inline -march=native -iquote . -isystem sys -idirafter late "
        "-DN=1 -c k.cu -o k.o"
    )
    command = reduce_command(as_nvcc(shlex.split(text)), tmp_path)
    assert command.architectures == ("sm_80", "sm_90")
    assert command.refused == ()
    assert command.options == (
        "--std=c++20",
        "--optimize=1",
        "--optimize=3",
        "--use_fast_math",
        "--use_fast_math",
        "--ftz=true",
        "--relocatable-device-code=true",
        "--fmad=false",
        "--ptxas-options=--maxrregcount=64",
        "--define-macro=DEVICE",
        "--include-path=.",
        "--system-include=sys",
        "--system-include=late",
        "--define-macro=N=1",
    )


def test_a_unit_of_clang_says_so(source: Path) -> None:
    _write(
        source.parent, {"file": "k.cu", "arguments": ["clang++", "-xcuda", "--cuda-gpu-arch=sm_75", "k.cu"]}
    )
    command = _found(source)
    assert command.architectures == ("sm_75",)
    assert "by clang" in command.notes[0]


def test_a_unit_for_amd_gpus_is_refused_with_the_reason(source: Path) -> None:
    _write(source.parent, {"file": "k.cu", "command": "/opt/rocm/bin/hipcc --offload-arch=gfx90a -c k.cu"})
    command, wrong = find_command(source)
    assert command is None
    assert "AMD GPUs (hipcc)" in (wrong or "")
    assert is_hip(["clang++", "-x", "hip", "k.cu"])


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A Bazel workspace after a build: links into an output base."""
    root = tmp_path / "cache" / "execroot" / "_main"
    (root / "bazel-out" / "k8-opt" / "bin" / "gen").mkdir(parents=True)
    (root / "external" / "used").mkdir(parents=True)
    (tmp_path / "cache" / "external" / "fetched").mkdir(parents=True)
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (workspace / "bazel-ws").symlink_to(root)
    return workspace


@pytest.mark.parametrize(
    "directory", ["__EXEC_ROOT__", "/proc/self/cwd", "/gone/sandbox/7/execroot/_main", None]
)
def test_paths_of_bazels_execution_root(workspace: Path, directory: str | None) -> None:
    source = workspace / "k.cu"
    source.touch()
    options = (
        "-iquote . -iquote bazel-out/k8-opt/bin -isystem external/used -Iexternal/fetched -Iexternal/none"
    )
    entry = {"file": "k.cu", "arguments": ["nvcc", "-x", "cu", *options.split()]}
    _write(workspace, entry if directory is None else entry | {"directory": directory})
    command = _found(source)
    root = (workspace / "bazel-ws").resolve()
    assert command.directory == workspace
    assert command.options == (
        "--include-path=.",
        f"--include-path={root}/bazel-out/k8-opt/bin",
        f"--system-include={root}/external/used",
        f"--include-path={root.parent.parent}/external/fetched",
        "--include-path=external/none",
    )
    assert "external/none" in command.notes[0]


def test_links_that_the_workspace_has_are_used_as_they_are(workspace: Path) -> None:
    (workspace / "external").symlink_to(workspace / "bazel-ws" / "external")
    (workspace / "k.cu").touch()
    _write(workspace, {"file": "k.cu", "arguments": ["nvcc", "-isystem", "external/used"]})
    command = _found(workspace / "k.cu")
    assert (command.options, command.notes) == (("--system-include=external/used",), ())


def test_hostile_links_of_a_workspace(tmp_path: Path) -> None:
    (tmp_path / "bazel-a").symlink_to(tmp_path / "bazel-b")
    (tmp_path / "bazel-b").symlink_to(tmp_path / "bazel-a")
    (tmp_path / "k.cu").touch()
    (tmp_path / "loop.cu").symlink_to(tmp_path / "loop.cu")
    entries = [
        {"file": "k\0.cu", "command": "nvcc"},
        {"file": "loop.cu", "command": "nvcc"},
        {"file": "k.cu", "command": ""},
        {"file": "k.cu", "directory": "x\0", "command": "nvcc -Iexternal/a"},
    ]
    (tmp_path / "compile_commands.json").write_text(json.dumps(entries))
    assert _found(tmp_path / "k.cu").options == ("--include-path=external/a",)


def test_response_files_are_bounded_in_number(tmp_path: Path) -> None:
    (tmp_path / "one.rsp").write_text("-DN")
    words = ["@one.rsp"] * 1000 + ["--options-file", ",".join(["one.rsp"] * 1000), "-DLAST"]
    options = reduce_command(words, tmp_path).options
    assert len(options) < 100
    assert options[-1] == "--define-macro=LAST"
