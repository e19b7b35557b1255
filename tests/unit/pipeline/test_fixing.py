# SPDX-License-Identifier: Apache-2.0
"""Fixes of a file: where the source is parsed, which files get none, flags, and the sources of a header."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fix_sources import SCALE
from tests.fix_values import finding

from gpadvisor.errors import SettingsError
from gpadvisor.model.fix import LaunchFacts, apply_edits
from gpadvisor.pipeline.fixes import find as fixing
from gpadvisor.pipeline.fixes.find import find_disable, find_fixes
from gpadvisor.pipeline.fixes.flags import build_line, flag_edits, settings_file, write_flag
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings, find_settings
from gpadvisor.pipeline.sources.includers import units_of


def request_for(root: Path) -> Request:
    return Request(settings=Settings(), root=root)


def test_fixes_by_the_process_that_parses(tmp_path: Path) -> None:
    path = tmp_path / "scale.cu"
    findings = [
        finding("GPA102", 5, "scale"),
        finding("GPA302", 7, "scale"),
        finding("GPA102", 5, "scale", id="the-same"),
    ]
    found = find_fixes(
        path,
        SCALE,  # the file itself need not be there: the text may not be saved yet
        findings,
        request=request_for(tmp_path),
        launches={"scale": LaunchFacts(threads_new=512)},
    )
    assert [(fix.finding, fix.change) for fix in found] == [
        ("GPA102-5", "float_literals"),
        ("GPA302-7", "block_size"),
        ("the-same", "float_literals"),
    ]
    assert found[0].id == found[2].id
    assert {fix.file for fix in found} == {str(path)}
    fix = find_disable(path, SCALE, 5, ["GPA102"], request=request_for(tmp_path))
    assert fix is not None
    assert not fix.checkable


def test_no_fix_outside_of_the_workspace(tmp_path: Path) -> None:
    inside, outside = tmp_path / "project", tmp_path / "other"
    one = [finding("GPA102", 5, "scale")]
    request = request_for(inside)
    assert find_fixes(outside / "scale.cu", SCALE, one, request=request) == ()
    assert find_disable(outside / "scale.cu", SCALE, 5, ["GPA102"], request=request) is None
    assert find_fixes(outside / "scale.cu", SCALE, one, request=request, roots=[inside, outside])


def test_a_parser_that_fails_costs_the_fixes_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, one = tmp_path / "scale.cu", [finding("GPA102", 5, "scale")]
    text = SCALE + "// another\n"
    with monkeypatch.context() as patch:
        patch.setattr(fixing, "ask_parser", lambda *_: b"[[true]]")
        assert find_fixes(path, text, one, request=request_for(tmp_path)) == ()
    assert find_fixes(path, text, one, request=request_for(tmp_path))


def test_a_flag_is_written_into_the_settings_alone(tmp_path: Path) -> None:
    source = tmp_path / "src" / "a.cu"
    source.parent.mkdir()
    (tmp_path / "CMakeLists.txt").write_text("project(p CUDA)\nadd_executable(app\n  src/b.cu\n  src/a.cu)\n")
    (fix,) = find_fixes(source, "", [finding("GPA104", 1)], request=request_for(tmp_path))
    assert fix.file == str(tmp_path / "gpadvisor.toml")
    assert fix.creates
    assert apply_edits("", fix.edits) == 'extra-flags = ["--use_fast_math"]\n'
    assert fix.build_line == (
        "In `CMakeLists.txt`: "
        "`target_compile_options(app PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--use_fast_math>)`"
    )
    assert write_flag(source, tmp_path, "--use_fast_math") == tmp_path / "gpadvisor.toml"
    assert find_settings(source.parent).settings.extra_flags == ("--use_fast_math",)
    assert find_fixes(source, "", [finding("GPA104", 1)], request=request_for(tmp_path)) == ()
    assert (
        find_fixes(source.with_suffix(".py"), "", [finding("GPA104", 1)], request=request_for(tmp_path)) == ()
    )
    (shown,) = find_fixes(source, "", [finding("GPA901", 1)], request=request_for(tmp_path))
    assert (shown.edits, shown.flag) == ((), "-lineinfo")
    assert "shown only" in shown.title


def test_settings_in_another_file_are_not_shadowed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.gpadvisor]\ntop = 3\n")
    source = tmp_path / "a.cu"
    path, wrong = settings_file(source, tmp_path)
    assert path.name == "pyproject.toml"
    assert "by hand" in str(wrong)
    with pytest.raises(SettingsError, match="by hand"):
        write_flag(source, tmp_path, "--use_fast_math")
    (fix,) = find_fixes(source, "", [finding("GPA104", 1)], request=request_for(tmp_path))
    assert fix.edits == ()
    assert "by hand" in str(fix.build_line)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "# ours\n\ntop = 3\n[launches.k]\ngrid = [1]\n",
            '# ours\n\nextra-flags = ["-F"]\ntop = 3\n[launches.k]',
        ),
        ("extra-flags = []\n", 'extra-flags = ["-F"]\n'),
        ('extra_flags = ["-a", "]"] # why ]\n', 'extra_flags = ["-a", "]", "-F"] # why ]\n'),
        ('extra-flags = [\n  "-a",\n]\n', '"-a",\n"-F"]\n'),
        ('"extra-flags" = ["-a"]\r\n', '"extra-flags" = ["-a", "-F"]\r\n'),
        ("# only a comment", "# only a comment"),
    ],
)
def test_what_a_settings_file_says_stays(text: str, wanted: str) -> None:
    edits = flag_edits(text, "-F")
    assert edits is not None
    new = apply_edits(text, edits)
    assert wanted in new
    assert flag_edits(new, "-F") == ()


@given(
    st.dictionaries(
        st.sampled_from(["top", "arch", "note", "extra-flags", "table"]),
        st.sampled_from(["3", '"a"', '["x", "]"]', "[\n  'y', # ]\n]", '"""\n[z]\n"""', "[]"]),
        max_size=4,
    ),
    st.sampled_from(["\n", "\r\n"]),
)
def test_adding_a_flag_changes_nothing_else(entries: dict[str, str], ending: str) -> None:
    text = "".join(f"{key} = {value}\n" for key, value in entries.items()).replace("\n", ending)
    before = tomllib.loads(text)
    edits = flag_edits(text, "--flag")
    flags = before.get("extra-flags", [])
    if not isinstance(flags, list):
        assert edits is None
        return
    assert edits is not None
    after = tomllib.loads(apply_edits(text, edits))
    assert after == {**before, "extra-flags": [*flags, "--flag"]}


def test_a_settings_file_that_is_no_toml_takes_no_edit(tmp_path: Path) -> None:
    assert flag_edits("top = = 3", "-F") is None
    assert flag_edits("extra-flags = 3", "-F") is None
    path = tmp_path / "gpadvisor.toml"
    path.write_text("top = = 3")
    assert find_fixes(tmp_path / "a.cu", "", [finding("GPA104", 1)], request=request_for(tmp_path)) == ()
    assert path.read_text() == "top = = 3"


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("Makefile", "CC=gcc\nNVCCFLAGS += -O3\n", "On line 2 of `Makefile`: `add -F to NVCCFLAGS`"),
        ("Makefile", "all:\n\tnvcc a.cu\n", "On line 2 of `Makefile`: `add -F to the options of nvcc`"),
        ("meson.build", "project('p', 'cuda')", "In `meson.build`: `add_project_arguments('-F'"),
        ("setup.py", "CUDAExtension('p', ['a.cu'])", "On line 1 of `setup.py`: `extra_compile_args"),
        (
            "CMakeLists.txt",
            'set(CMAKE_CUDA_FLAGS "-O3")\n',
            "On line 1 of `CMakeLists.txt`: `add -F to CMAKE_CUDA_FLAGS`",
        ),
        ("CMakeLists.txt", "project(p)\n", "`string(APPEND CMAKE_CUDA_FLAGS"),
        ("other.txt", "", "`compile_commands.json` is generated"),
    ],
)
def test_the_line_of_the_build_system(tmp_path: Path, name: str, text: str, wanted: str) -> None:
    (tmp_path / name).write_text(text)
    assert wanted in build_line(tmp_path / "a.cu", tmp_path, "-F")


def test_sources_that_include_a_header(tmp_path: Path) -> None:
    for name, text in {
        "include/a.cuh": "#pragma once\n",
        "include/b.cuh": '#include "a.cuh"\n',
        "src/far.cu": "# include <include/b.cuh>\n",
        "include/near.cu": '#include "a.cuh"\n',
        "src/none.cu": "// #include nothing\n",
        "src/loop.h": '#include "loop.h"\n',
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    header = tmp_path / "include" / "a.cuh"
    near, far = tmp_path / "include" / "near.cu", tmp_path / "src" / "far.cu"
    assert units_of(header, tmp_path) == [near, far]
    assert units_of(header, tmp_path, [far]) == [far, near]
    assert units_of(tmp_path / "src" / "loop.h", tmp_path) == []
    assert units_of(tmp_path / "src" / "loop.h", tmp_path, [far]) == [far]
    assert units_of(far, tmp_path) == [far]
