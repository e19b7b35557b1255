# SPDX-License-Identifier: Apache-2.0
"""Where a compiler flag goes in the build system of a project: build files are read, never run.

nvcc takes options from ``NVCC_APPEND_FLAGS``, so one build with a flag needs no change to any file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.files import read_file
from gpadvisor.report.words import clean

_MAX_BYTES: Final = 1 << 20
_TARGET: Final = re.compile(
    r"\b(?:cuda_)?add_(?:executable|library)\s*\(\s*([A-Za-z0-9_.+-]{1,80})([^)]{0,20000})\)?", re.IGNORECASE
)
_CMAKE_FLAGS: Final = re.compile(r"^\s*set\s*\(\s*CMAKE_CUDA_FLAGS\b", re.IGNORECASE | re.MULTILINE)
_CACHED_SOURCE: Final = re.compile(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(/[^\n]{1,4000})$", re.MULTILINE)
_MAKE_FLAGS: Final = re.compile(
    r"^\s*(?:export\s+)?(NVCC_?FLAGS|CUDA_?FLAGS|CU_?FLAGS)\s*[:+?]?=", re.IGNORECASE | re.MULTILINE
)
_MAKE_NVCC: Final = re.compile(r"^\t.*(?:nvcc|\$[({]NVCC[)}]).*$", re.IGNORECASE | re.MULTILINE)
_CUDA_RULE: Final = re.compile(
    r"\bcuda_(?:library|binary|test|objects)\s*\(\s*name\s*=\s*\"([A-Za-z0-9_.+/-]{1,80})\""
)
_NVCC_LIST: Final = re.compile(r"[\"']nvcc[\"']\s*:\s*\[")
_EXTENSION: Final = re.compile(r"\bCUDAExtension\s*\(")
_GENERATED_MAKE: Final = "# CMAKE generated file"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildChange:
    """What to do for a flag."""

    command: str  # once, and the build stays as it is
    path: Path  # for good: the file, the line where there is one, and what to write
    line: int | None
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the flag is for."""

    flag: str
    application: Path  # or the source, if that is what is known
    source: Path | None = None

    @property
    def appended(self) -> str:
        """For the environment of a build."""
        return f"NVCC_APPEND_FLAGS={self.flag}"


def find_change(folders: Iterable[Path], wish: Wanted) -> BuildChange | None:
    """The change for the first build system found; None where none is known."""
    for folder in folders:
        for name, change in _BUILDS:
            text = read_build_file(folder / name)
            build_change = None if text is None else change(folder / name, text, wish)
            if build_change is not None:
                return build_change
    return None


def read_build_file(path: Path) -> str | None:
    """A file's text; None where there is none, or a huge one."""
    try:
        return read_file(path, max_bytes=_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def _cmake_build(path: Path, text: str, wish: Wanted) -> BuildChange | None:
    """A build folder: its cache says where the project is."""
    match = _CACHED_SOURCE.search(text)
    if match is None:
        return None
    project, application_folder = Path(match[1]), wish.application.absolute().parent
    inside = (
        application_folder.relative_to(path.parent)
        if application_folder.is_relative_to(path.parent)
        else Path()
    )
    for lists in (project / inside / "CMakeLists.txt", project / "CMakeLists.txt"):
        listed = read_build_file(lists)
        if listed is not None:
            return _cmake(lists, listed, wish, build=path.parent)
    return None


def _cmake(path: Path, text: str, wish: Wanted, build: Path | None = None) -> BuildChange:
    """The target that compiles the source or is the application, else the variable with the flags."""
    folder = "build" if build is None else shlex.quote(str(build))
    command = f"{wish.appended} cmake --build {clean(folder)} --clean-first"
    targets = list(_TARGET.finditer(text))
    if wish.source is not None:
        word = re.compile(rf"(?<![\w.]){re.escape(wish.source.name)}(?![\w.])")
        targets = [match for match in targets if word.search(match[2])]
    target = next((candidate for candidate in targets if candidate[1] == wish.application.stem), None)
    if target is None and (wish.source is not None or len(targets) == 1):
        target = next(iter(targets), None)
    flags = _CMAKE_FLAGS.search(text)
    if target is None and flags is not None:
        line = _line(text, flags.end())
        return BuildChange(
            command=command, path=path, line=line, words=f"add {wish.flag} to CMAKE_CUDA_FLAGS"
        )
    if target is None and wish.source is not None:
        words = f'string(APPEND CMAKE_CUDA_FLAGS " {wish.flag}")'
    else:
        name = clean(wish.application.stem if target is None else target[1])
        words = f"target_compile_options({name} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:{wish.flag}>)"
    return BuildChange(command=command, path=path, line=None, words=words)


def _meson(path: Path, _text: str, wish: Wanted) -> BuildChange:
    return BuildChange(
        command=f"meson configure build -Dcuda_args={wish.flag} && meson compile -C build",
        path=path,
        line=None,
        words=f"add_project_arguments('{wish.flag}', language : 'cuda')",
    )


def _bazel(path: Path, text: str, wish: Wanted) -> BuildChange | None:
    rule = _CUDA_RULE.search(text)
    if rule is None:
        return None
    return BuildChange(
        command=f"bazel build --@rules_cuda//cuda:copts={wish.flag} //...",
        path=path,
        line=_line(text, rule.start()),
        words=f'copts = ["{wish.flag}"] in {rule[0].partition("(")[0]}(name = "{rule[1]}"), '
        "where rules_cuda compiles it with nvcc",
    )


def _bazel_workspace(path: Path, text: str, wish: Wanted) -> BuildChange | None:
    """The top of a workspace whose packages were not recognised."""
    if "cuda" not in text:
        return None
    return BuildChange(
        command=f"bazel build --@rules_cuda//cuda:copts={wish.flag} //...",
        path=path.parent / ".bazelrc",
        line=None,
        words=f"build --@rules_cuda//cuda:copts={wish.flag} "
        f"(without rules_cuda: build --action_env={wish.appended})",
    )


def _setuptools(path: Path, text: str, wish: Wanted) -> BuildChange | None:
    listed, extension = _NVCC_LIST.search(text), _EXTENSION.search(text)
    if listed is not None:
        line, words = _line(text, listed.end()), f"'{wish.flag}' in the list of 'nvcc'"
    elif extension is not None:
        line = _line(text, extension.start())
        words = f"extra_compile_args={{'nvcc': ['{wish.flag}']}} for CUDAExtension"
    else:
        return None
    install = "python -m pip install --no-build-isolation --no-deps --force-reinstall"
    return BuildChange(
        command=f"{wish.appended} {install} {clean(shlex.quote(str(path.parent)))}",
        path=path,
        line=line,
        words=words,
    )


def _make(path: Path, text: str, wish: Wanted) -> BuildChange | None:
    flags, rule = _MAKE_FLAGS.search(text), _MAKE_NVCC.search(text)
    if text.startswith(_GENERATED_MAKE):
        return None
    if flags is not None:
        line, words = _line(text, flags.end()), f"add {wish.flag} to {flags[1]}"
    elif rule is not None:
        line, words = _line(text, rule.end()), f"add {wish.flag} to the options of nvcc"
    else:
        return None
    command = f"{wish.appended} make -B -C {clean(shlex.quote(str(path.parent)))}"
    return BuildChange(command=command, path=path, line=line, words=words)


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


_Build = Callable[[Path, str, Wanted], BuildChange | None]
_BUILDS: Final[tuple[tuple[str, _Build], ...]] = (
    ("CMakeCache.txt", _cmake_build),
    ("CMakeLists.txt", _cmake),
    ("BUILD.bazel", _bazel),
    ("BUILD", _bazel),
    ("MODULE.bazel", _bazel_workspace),
    ("WORKSPACE", _bazel_workspace),
    ("meson.build", _meson),
    ("setup.py", _setuptools),
    ("GNUmakefile", _make),
    ("makefile", _make),
    ("Makefile", _make),
)
