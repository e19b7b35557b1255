# SPDX-License-Identifier: Apache-2.0
"""How an application without line information gets it: rebuilt as it is, and the line of its build to change.

Build files are read, never run. nvcc takes options from ``NVCC_APPEND_FLAGS``, so one build with line
information needs no change to any file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.report.words import clean

FLAG: Final = "-lineinfo"
_APPENDED: Final = f"NVCC_APPEND_FLAGS={FLAG}"
_MAX_BYTES: Final = 1 << 20
_MAX_FOLDERS: Final = 8
_STOPS: Final = (".git", ".hg")
_TARGET: Final = re.compile(r"\b(?:cuda_)?add_executable\s*\(\s*([A-Za-z0-9_.+-]{1,80})", re.IGNORECASE)
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
class LineInfoChange:
    """What to do for line information."""

    command: str  # once, and the build stays as it is
    change: str  # for good: the file and what to write in it


def line_info_change(application: Path, working_folder: Path) -> LineInfoChange:
    """The change for the build system found beside the application, or beside the current folder."""
    for folder in _folders(application, working_folder):
        for name, change in _BUILDS:
            text = _read(folder / name)
            found = None if text is None else change(folder / name, text, application)
            if found is not None:
                return found
    return LineInfoChange(
        command=f"{_APPENDED} nvcc ...",
        change=f"add {FLAG} to the options of nvcc; nvcc takes it from the environment variable too, "
        "whatever the build system is",
    )


def script_line_info(application: Path) -> str | None:
    """What a Python program has to say to its compilers for line information; None where it names none."""
    text = _read(application) if application.suffix == ".py" else None
    if text is None:
        return None
    said = [words for module, words in _PYTHON if re.search(rf"\b{module}\b", text)]
    return "; ".join(said) or None


_PYTHON: Final = (
    ("numba", "Numba: @cuda.jit(lineinfo=True)"),
    ("triton", "Triton: it has line information unless TRITON_DISABLE_LINE_INFO is set"),
    ("cupy", f'CuPy: RawKernel(..., options=("{FLAG}",))'),
    ("cpp_extension", f'PyTorch: load(..., extra_cuda_cflags=["{FLAG}"])'),
)


def _folders(application: Path, working_folder: Path) -> Iterator[Path]:
    """Folders that may hold the build, from the application upwards, to the top of its repository."""
    seen: set[Path] = set()
    # A link, as Bazel's, is left where it is: behind it lies a cache and not the project.
    for start in (application.absolute().parent, working_folder.absolute()):
        for folder in (start, *start.parents)[:_MAX_FOLDERS]:
            if folder == folder.parent or folder == Path.home():
                break
            if folder not in seen:
                seen.add(folder)
                yield folder
            if any((folder / name).exists() for name in _STOPS):
                break


def _read(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _cmake_build(path: Path, text: str, application: Path) -> LineInfoChange | None:
    """A build folder: its cache says where the project is."""
    found = _CACHED_SOURCE.search(text)
    if found is None:
        return None
    project, here = Path(found[1]), application.absolute().parent
    inside = here.relative_to(path.parent) if here.is_relative_to(path.parent) else Path()
    for lists in (project / inside / "CMakeLists.txt", project / "CMakeLists.txt"):
        listed = _read(lists)
        if listed is not None:
            return _cmake(lists, listed, application, build=path.parent)
    return None


def _cmake(path: Path, text: str, application: Path, build: Path | None = None) -> LineInfoChange:
    targets = _TARGET.findall(text)
    target = application.stem
    if target not in targets and len(targets) == 1:
        (target,) = targets
    folder = "build" if build is None else shlex.quote(str(build))
    return LineInfoChange(
        command=f"{_APPENDED} cmake --build {clean(folder)} --clean-first",
        change=f"in {clean(str(path))}: "
        f"target_compile_options({clean(target)} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:{FLAG}>)",
    )


def _meson(path: Path, _text: str, _application: Path) -> LineInfoChange:
    return LineInfoChange(
        command=f"meson configure build -Dcuda_args={FLAG} && meson compile -C build",
        change=f"in {clean(str(path))}: add_project_arguments('{FLAG}', language : 'cuda')",
    )


def _bazel(path: Path, text: str, _application: Path) -> LineInfoChange | None:
    rule = _CUDA_RULE.search(text)
    if rule is None:
        return None
    return LineInfoChange(
        command=f"bazel build --@rules_cuda//cuda:copts={FLAG} //...",
        change=f'on line {_line(text, rule.start())} of {clean(str(path))}: copts = ["{FLAG}"] in '
        f'{rule[0].partition("(")[0]}(name = "{rule[1]}"), where rules_cuda compiles it with nvcc',
    )


def _bazel_workspace(path: Path, text: str, _application: Path) -> LineInfoChange | None:
    """The top of a workspace whose packages were not recognised."""
    if "cuda" not in text:
        return None
    return LineInfoChange(
        command=f"bazel build --@rules_cuda//cuda:copts={FLAG} //...",
        change=f"in {clean(str(path.parent / '.bazelrc'))}: build --@rules_cuda//cuda:copts={FLAG} "
        f"(without rules_cuda: build --action_env={_APPENDED})",
    )


def _setuptools(path: Path, text: str, _application: Path) -> LineInfoChange | None:
    listed, extension = _NVCC_LIST.search(text), _EXTENSION.search(text)
    if listed is None and extension is None:
        return None
    if listed is not None:
        change = f"on line {_line(text, listed.end())} of {clean(str(path))}: '{FLAG}' in the list of 'nvcc'"
    else:
        line = _line(text, extension.start()) if extension is not None else 1
        change = (
            f"on line {line} of {clean(str(path))}: "
            f"extra_compile_args={{'nvcc': ['{FLAG}']}} for CUDAExtension"
        )
    install = "python -m pip install --no-build-isolation --no-deps --force-reinstall"
    return LineInfoChange(
        command=f"{_APPENDED} {install} {clean(shlex.quote(str(path.parent)))}", change=change
    )


def _make(path: Path, text: str, _application: Path) -> LineInfoChange | None:
    if text.startswith(_GENERATED_MAKE):
        return None
    flags, rule = _MAKE_FLAGS.search(text), _MAKE_NVCC.search(text)
    if flags is None and rule is None:
        return None
    place = f"of {clean(str(path))}"
    if flags is not None:
        change = f"on line {_line(text, flags.end())} {place}: add {FLAG} to {flags[1]}"
    else:
        change = (
            f"on line {_line(text, rule.end() if rule else 0)} {place}: add {FLAG} to the options of nvcc"
        )
    return LineInfoChange(
        command=f"{_APPENDED} make -B -C {clean(shlex.quote(str(path.parent)))}", change=change
    )


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


_Build = Callable[[Path, str, Path], LineInfoChange | None]
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
