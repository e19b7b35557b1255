# SPDX-License-Identifier: Apache-2.0
"""How an application gets line information: rebuilt as it is, and the line of its build to change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.files import home
from gpadvisor.pipeline.build_files import Wanted, find_change, read_build_file
from gpadvisor.report.words import clean

FLAG: Final = "-lineinfo"
_MAX_FOLDERS: Final = 8
_STOPS: Final = (".git", ".hg")


@dataclass(frozen=True, slots=True, kw_only=True)
class LineInfoChange:
    """What to do for line information."""

    command: str  # once, and the build stays as it is
    change: str  # for good: the file and what to write in it


def line_info_change(application: Path, working_folder: Path) -> LineInfoChange:
    """The change for the build system found beside the application, or beside the current folder."""
    wish = Wanted(flag=FLAG, application=application)
    build_change = find_change(_folders(application, working_folder), wish)
    if build_change is None:
        return LineInfoChange(
            command=f"{wish.appended} nvcc ...",
            change=f"add {FLAG} to the options of nvcc; nvcc takes it from the environment variable too, "
            "whatever the build system is",
        )
    path = clean(str(build_change.path))
    where = f"in {path}" if build_change.line is None else f"on line {build_change.line} of {path}"
    return LineInfoChange(command=build_change.command, change=f"{where}: {build_change.words}")


def script_line_info(application: Path) -> str | None:
    """What a Python program has to say to its compilers for line information; None where it names none."""
    text = read_build_file(application) if application.suffix == ".py" else None
    if text is None:
        return None
    hints = [words for module, words in _PYTHON if re.search(rf"\b{module}\b", text)]
    return "; ".join(hints) or None


_PYTHON: Final = (
    ("numba", "Numba: @cuda.jit(lineinfo=True)"),
    ("triton", "Triton: it has line information unless TRITON_DISABLE_LINE_INFO is set"),
    ("cupy", f'CuPy: RawKernel(..., options=("{FLAG}",))'),
    ("cpp_extension", f'PyTorch: load(..., extra_cuda_cflags=["{FLAG}"])'),
)


def _folders(application: Path, working_folder: Path) -> Iterator[Path]:
    """Folders that may hold the build, from the application upwards, to the top of its repository."""
    paths: set[Path] = set()
    # A link, as Bazel's, is left where it is: behind it lies a cache and not the project.
    for start in (application.absolute().parent, working_folder.absolute()):
        for folder in (start, *start.parents)[:_MAX_FOLDERS]:
            if folder == folder.parent or folder == home():
                break
            if folder not in paths:
                paths.add(folder)
                yield folder
            if any((folder / name).exists() for name in _STOPS):
                break
