# SPDX-License-Identifier: Apache-2.0
"""A source that does not compile as it is, reduced to its device code: headers found, host code left out.

A header that no include folder has is taken from the project, else from the wheels, else an empty one
stands in for it. What then does not compile is cut where only the host runs it (``source.host_parts``);
an error in device code ends the attempt. NVRTC, which takes no host code at all, gets sources without
host functions and stand-ins for the headers of the C and C++ libraries.
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final

from gpadvisor.errors import SourceError
from gpadvisor.model.compiler_message import CompilerMessage
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.source.host_parts import HostParts
from gpadvisor.toolchain.compile_job import Compiled, Job
from gpadvisor.toolchain.compiler_messages import CompileError
from gpadvisor.toolchain.discovery import package_roots
from gpadvisor.toolchain.host_headers import BROUGHT_BY_NVCC, HOST_HEADERS
from gpadvisor.toolchain.project_headers import ProjectHeaders, included, project_folder, reached, read_text
from gpadvisor.toolchain.stand_ins import begin_as

FOR_NVRTC: Final = "--device-as-default-execution-space"
"""An option that nvcc does not have."""
ROUNDS: Final = 40
"""Attempts; most are cheap, as a missing header ends one at once."""
_HEADERS_SHOWN: Final = 4
_DEPTH: Final = 8  # of folders below which stand-ins lie, for names that begin with ../
# Options by what a compiler says where they are missing; none changes code that compiles without.
_ASKED_FOR: Final = {
    "--expt-relaxed-constexpr": "--expt-relaxed-constexpr",
    "--extended-lambda": "--extended-lambda",
    "requires separate compilation mode": "--relocatable-device-code=true",
    "Unresolved extern": "--relocatable-device-code=true",
    'identifier "concept" is undefined': "--std=c++20",
    "required runtime APIs are not declared": "--pre-include=cuda_device_runtime_api.h",
}
# Headers of libraries that host code calls, and what device code gets through them.
_LIBRARY: Final = re.compile(r"(cublas|cusparse|cufft|cusolver|cudnn|cutensor)\w*\.h")
# Callbacks of cuFFT by the letter of the value that they load or store.
_FFT_VALUES: Final = {
    "C": "cufftComplex",
    "Z": "cufftDoubleComplex",
    "R": "cufftReal",
    "D": "cufftDoubleReal",
}
# Types of cuBLAS that classes have members of, whose templates launch kernels, and of cuFFT's device code.
_TYPES: Final = {
    "cufft": "typedef int cufftHandle, cufftResult, cufftType;\n"
    "typedef float cufftReal;\ntypedef double cufftDoubleReal;\n"
    "typedef cuComplex cufftComplex;\ntypedef cuDoubleComplex cufftDoubleComplex;\n"
    + "".join(
        f"typedef {value} (*cufftCallbackLoad{letter})(void *, size_t, void *, void *);\n"
        f"typedef void (*cufftCallbackStore{letter})(void *, size_t, {value}, void *, void *);\n"
        for letter, value in _FFT_VALUES.items()
    ),
    "cublas": "typedef struct cublasContext *cublasHandle_t;\n"
    "typedef struct cublasLtContext *cublasLtHandle_t;\n"
    "typedef int cublasStatus_t, cublasMath_t, cublasOperation_t, cublasComputeType_t, cublasGemmAlgo_t;\n",
}
_THROUGH_LIBRARIES: Final = "".join(
    f"#include <{name}>\n" for name in ("cuComplex.h", "cuda_bf16.h", "cuda_fp16.h", "library_types.h")
)


def compile_reduced(job: Job, first: CompileError, attempt: Callable[[Job], Compiled]) -> Compiled:
    """Compile what is left of a source without what stood in the way.

    Raises:
        CompileError: the device code itself does not compile, or needs a header that is not here.
    """
    reduction = _Reduction(job)
    error = first
    for _ in range(ROUNDS):
        if time.monotonic() >= job.deadline or not reduction.mend(error):
            break
        try:
            compiled = attempt(reduction.job())
        except CompileError as again:
            error = again
        else:
            return replace(compiled, problems=(*compiled.problems, *reduction.problems()))
    raise reduction.verdict(first, error)


class _Reduction:
    """What was done so far."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._attempts = 0
        self._options: list[str] = []  # behind those of the command
        self._parts: dict[Path, HostParts] = {}
        self._absent: dict[str, CompilerMessage] = {}  # headers for which an empty one stands in
        self._found: dict[str, Path] = {}  # headers of the project and the folders they were found below
        self._names: tuple[str, ...] = ()
        self._by_nvrtc = False
        self._headers = ProjectHeaders(project_folder(job.original, job.settings.within))

    def mend(self, error: CompileError) -> bool:
        """Do something about each error; False where one is in device code."""
        if not self._by_nvrtc and error.by_nvrtc:
            self._by_nvrtc = True
            self._options.append(FOR_NVRTC)
            self._cut_host_functions()
            return True
        if missing := [message for message in error.messages if message.missing_header]:
            return all([self._supply(header) for header in missing])  # noqa: C419  # each of them
        if options := self._asked_for(error):
            self._options += options
            return True
        if self._names and any(
            message.file is not None and "__nv_name_map" in message.file for message in error.messages
        ):
            self._names = ()  # some of them depend on what is known in a function only
            return True
        return self._cut(error.messages)

    def job(self) -> Job:
        """The next attempt: the source as it is now, in a folder of its own."""
        self._attempts += 1
        folder = self._job.folder / f"attempt-{self._attempts}"
        folder.mkdir()
        texts = {path: parts.device_text for path, parts in self._parts.items()}
        text, options = self._job.text, list(self._job.options)
        if texts:
            tree = folder / "text"
            if texts.keys() - {self._job.source}:  # those that lead to a changed header change with it
                texts = {**self._reached, self._job.source: self._source_text, **texts}
            paths = {path: _write(tree, path, body, self._headers.project) for path, body in texts.items()}
            text = paths.get(self._job.source, text)
            options = [*(f"--include-path={place}" for place in self._mirrored(tree)), *options]
        if text != self._job.source:
            options.insert(0, f"--include-path={self._job.source.parent}")
        if self._by_nvrtc:
            brought = [f"--pre-include={self._host_headers / name}" for name in BROUGHT_BY_NVCC]
            options = [f"--include-path={self._host_headers}", *brought, *options]
        return replace(
            self._job,
            text=text,
            folder=folder,
            options=(*options, *self._options),
            names=self._names,
        )

    def problems(self) -> list[Problem]:
        """What was left out, and what was assumed, in a sentence each."""
        name = self._job.source.name
        lines = sum(parts.lines_cut for parts in self._parts.values())
        without = []
        if self._absent:
            without.append(f"{_list(self._absent)}, not found here")
        if lines and self._by_nvrtc:
            without.append("its host functions")
        elif lines:
            cut = "line of host code that does" if lines == 1 else "lines of host code that do"
            without.append(f"{lines} {cut} not compile")
        result = []
        if without:
            left_out = f"without {' and without '.join(without)}"
            result.append(
                Problem(ProblemCode.REDUCED_SOURCE, f"{name} was compiled {left_out}", short=left_out)
            )
        if self._found:
            folders = ", ".join(sorted({str(folder) for folder in self._found.values()}))
            result.append(
                _assumption(f"{_list(self._found)} was found in {folders}; -I or flags name it for good")
            )
        if options := [option for option in dict.fromkeys(_ASKED_FOR.values()) if option in self._options]:
            result.append(_assumption(f"{name} was compiled with {' '.join(options)}, which it needs"))
        return result

    def verdict(self, first: CompileError, latest: CompileError) -> CompileError:
        """Why it does not compile: headers that are missing, then what device code wants of them."""
        absent = tuple(self._absent.values())
        if not absent or latest is first:
            return latest
        folders = "its folder" if len(absent) == 1 else "their folders"
        # What else the compiler says is mostly of what they declare.
        return CompileError(
            f"{self._job.source.name} needs {_list(self._absent)}, which no include folder has; name "
            f"{folders} with -I FOLDER, or flags in gpadvisor.toml",
            (*absent, *latest.messages),
            by_nvrtc=latest.by_nvrtc,
        )

    def _asked_for(self, error: CompileError) -> list[str]:
        """Options that a compiler asks for and did not get yet."""
        sentence = " ".join(message.message for message in error.messages)
        needed = dict.fromkeys(option for words, option in _ASKED_FOR.items() if words in sentence)
        present = {*self._job.options, *self._options}
        names = {option.partition("=")[0] for option in present if option.startswith("--std=")}
        return [
            option for option in needed if option not in present and option.partition("=")[0] not in names
        ]

    # Headers

    def _supply(self, message: CompilerMessage) -> bool:
        """A folder with a missing header: the project's, one of the wheels', or one with an empty file."""
        name = message.missing_header or ""
        if name in self._absent or name.startswith("/"):
            return False
        folder = None if name in self._found else self._headers.folder_of(name, self._job.original)
        if folder is not None:
            self._found[name] = folder
            self._options.append(f"--include-path={folder}")
            self.__dict__.pop("_reached", None)
            if self._by_nvrtc:
                self._cut_host_functions()
            return True
        for place in _package_headers():
            if (place / name).is_file() and (option := f"--system-include={place}") not in self._options:
                self._options.append(option)
                return True
        base = self._absent_folder
        target = Path(os.path.normpath(base / name))
        if not target.is_relative_to(self._job.folder):
            return False
        self._absent[name] = message
        target.parent.mkdir(parents=True, exist_ok=True)
        if (library := _LIBRARY.fullmatch(target.name)) is not None:
            again = f"GPADVISOR_STANDS_IN_FOR_{library[1]}"  # of several headers of a library
            types = f"#ifndef {again}\n#define {again}\n{_TYPES.get(library[1], '')}#endif\n"
            target.write_text(f"#pragma once\n{_THROUGH_LIBRARIES}{types}", encoding="utf-8")
        else:
            target.write_text("#pragma once\n", encoding="utf-8")
        if (option := f"--system-include={base}") not in self._options:
            self._options.append(option)
        return True

    @cached_property
    def _absent_folder(self) -> Path:
        folder = self._job.folder.joinpath("absent", *map(str, range(_DEPTH)))
        folder.mkdir(parents=True)
        return folder

    @cached_property
    def _host_headers(self) -> Path:
        """Stand-ins for what the host's compiler would bring."""
        folder = self._job.folder / "host"
        folder.mkdir()
        for name, body in HOST_HEADERS.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"#pragma once\n{body}", encoding="utf-8")
        thrust = {name for text in (self._source_text, *self._reached.values()) for _, name in included(text)}
        for name in (path for path in thrust if path.startswith("thrust/") and ".." not in path):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("#pragma once\n", encoding="utf-8")
        return folder

    # Texts

    def _cut(self, messages: Iterable[CompilerMessage]) -> bool:
        """Leave out the host code that errors are in."""
        places: dict[Path, list[tuple[int, int | None]]] = defaultdict(list)
        for message in messages:
            if message.file is None or message.line is None:
                return False
            places[self._seen(message.file)].append((message.line, message.column))
        return bool(places) and all(
            (parts := self._parts_of(path)) is not None and parts.cut_at(errors)
            for path, errors in places.items()
        )

    def _cut_host_functions(self) -> None:
        """Cut those of the source and of all headers of the project that it reaches."""
        names = dict.fromkeys(self._names)
        for path in (self._job.source, *self._reached):
            if path not in self._parts and (parts := self._parts_of(path)) is not None:
                names.update(dict.fromkeys(parts.cut_functions()))
        self._names = tuple(names)

    def _parts_of(self, path: Path) -> HostParts | None:
        """A source or header of the project with what can be cut of it."""
        if path not in self._parts:
            text = self._source_text if path == self._job.source else self._reached.get(path)
            if text is None:
                return None
            self._parts[path] = HostParts(text)
        return self._parts[path]

    def _seen(self, file: str) -> Path:
        return Path(file) if self._job.overlay is None else self._job.overlay.seen(Path(file))

    @cached_property
    def _source_text(self) -> str:
        text = read_text(self._job.text)
        if text is None:
            raise SourceError(f"{self._job.source} cannot be read as a source")
        # A stand-in begins with a line that names the source.
        return text if self._job.text == self._job.source else text.partition("\n")[2]

    @cached_property
    def _reached(self) -> dict[Path, str]:
        project = self._headers.project if self._job.overlay is None else self._job.overlay.folder.parent
        may_read = self._job.settings.may_read
        return reached(self._job.source, self._source_text, self._folders(), project, may_read)

    def _folders(self) -> list[Path]:
        """Include folders, those of the project that were found among them."""
        values = [
            option.partition("=")[2]
            for option in (*self._job.options, *self._options)
            if option.startswith(("--include-path=", "--system-include="))
        ]
        return [Path(os.path.normpath(self._job.directory / value)) for value in values]

    def _mirrored(self, tree: Path) -> list[Path]:
        """The include folders of the project as they are seen with its changed headers."""
        project = self._headers.project
        folders = [self._job.source.parent, *self._folders()]
        places = [tree / folder.relative_to(project) for folder in folders if folder.is_relative_to(project)]
        return [place for place in dict.fromkeys(places) if place.is_dir()]


def _write(tree: Path, path: Path, text: str, project: Path) -> Path:
    """A text under the path that it has in its project."""
    relative = path.relative_to(project) if path.is_relative_to(project) else Path(path.name)
    place = tree / relative
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(begin_as(path) + text.encode("utf-8", "surrogateescape"))
    return place


def _package_headers() -> list[Path]:
    """Folders of headers in NVIDIA's wheels."""
    paths = []
    for root in package_roots("nvidia"):
        for folder in sorted(root.glob("*/include"), reverse=True):
            paths += [folder, folder / "cccl"]
    return paths


def _assumption(words: str) -> Problem:
    return Problem(ProblemCode.COMPILE_ASSUMPTION, words)


def _list(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _HEADERS_SHOWN} more" if len(listed) > _HEADERS_SHOWN else ""
    return ", ".join(listed[:_HEADERS_SHOWN]) + more
