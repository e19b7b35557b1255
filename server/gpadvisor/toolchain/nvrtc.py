# SPDX-License-Identifier: Apache-2.0
"""Compiling device-only code by the NVRTC library, from its wheel or a toolkit, in a child process."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.errors import ToolFailedError
from gpadvisor.sandbox.children import call
from gpadvisor.sandbox.codec import from_bytes, to_bytes
from gpadvisor.sandbox.held import Folders
from gpadvisor.toolchain.discovery import package_roots, toolkit_folders
from gpadvisor.toolchain.nvrtc_child import NvrtcAnswer, NvrtcRequest

_LIBRARY: Final = re.compile(r"libnvrtc\.so\.(\d+)")
# Options of nvcc that NVRTC takes too.
_KNOWN: Final = frozenset(
    (
        "--include-path",
        "--pre-include",
        "--define-macro",
        "--undefine-macro",
        "--std",
        "--maxrregcount",
        "--ptxas-options",
        "--ftz",
        "--prec-div",
        "--prec-sqrt",
        "--fmad",
        "--relocatable-device-code",
        "--diag-suppress",
        "--use_fast_math",
        "--restrict",
        "--extra-device-vectorization",
        "--device-debug",
        "--disable-warnings",
        "--device-as-default-execution-space",
    )
)


@dataclass(frozen=True, slots=True)
class Nvrtc:
    """One copy of the NVRTC library."""

    library: Path
    major: int
    headers: tuple[Path, ...]  # CUDA's own device headers, where they are beside it


@dataclass(frozen=True, slots=True)
class NvrtcResult:
    """What NVRTC made of a source."""

    cubin: bytes  # empty when it failed
    log: str
    version: str
    architectures: tuple[int, ...]
    options: tuple[str, ...]


def find_nvrtc() -> tuple[Nvrtc, ...]:
    """Every copy, the newest first."""
    nvrtcs: dict[Path, Nvrtc] = {}
    for folder in _folders():
        for path in sorted(folder.glob("libnvrtc.so.*")):
            match = _LIBRARY.fullmatch(path.name)
            if match is not None:
                headers = tuple(place for place in _header_folders(folder) if place.is_dir())
                nvrtcs.setdefault(path.resolve(), Nvrtc(path, int(match[1]), headers))
    return tuple(sorted(nvrtcs.values(), key=lambda copy: -copy.major))


def compile_by_nvrtc(
    copy: Nvrtc,
    source: Path,
    arch: str,
    options: Sequence[str],
    *,
    directory: Path,
    folder: Path,
    timeout_seconds: float,
    memory_bytes: int,
    cancelled: Callable[[], bool] | None,
    names: Sequence[str] = (),
    held: Folders | None = None,
) -> NvrtcResult:
    """Compile one source for one architecture; ``folder`` is where the cubin lies meanwhile.

    ``names`` are templates with arguments that code is made of, such as ``kernel<float, 4>``; ``held`` are
    the only folders that are read and written.

    Raises:
        ToolFailedError: the library cannot be used at all.
        ToolTimeoutError: the time limit passed.
    """
    output = folder / "nvrtc.cubin"
    output.unlink(missing_ok=True)
    words = tuple(_nvrtc_options(arch, options, source, copy))
    request = NvrtcRequest(
        library=os.fspath(copy.library),
        source=os.fspath(source),
        options=words,
        names=tuple(names),
        output=os.fspath(output),
        held=held,
    )
    answer = _ask(request, directory, timeout_seconds, memory_bytes, cancelled)
    return NvrtcResult(
        cubin=output.read_bytes() if output.exists() else b"",
        log=answer.log,
        version=".".join(map(str, answer.version)),
        architectures=answer.architectures,
        options=words,
    )


def _ask(
    request: NvrtcRequest,
    directory: Path,
    timeout_seconds: float,
    memory_bytes: int,
    cancelled: Callable[[], bool] | None,
) -> NvrtcAnswer:
    """The child's answer to a request."""
    answered = call(
        "gpadvisor.toolchain.nvrtc_child:answer",
        to_bytes(request),
        timeout_seconds=timeout_seconds,
        memory_bytes=memory_bytes,
        output_bytes=1 << 20,
        cancelled=cancelled,
        directory=directory,
    )
    try:
        return from_bytes(answered, NvrtcAnswer)
    except ValueError as error:
        raise ToolFailedError(
            f"NVRTC at {request.library} gives no answer; install nvidia-cuda-nvrtc again"
        ) from error


def _nvrtc_options(arch: str, options: Sequence[str], source: Path, copy: Nvrtc) -> Iterator[str]:
    """NVRTC's words for nvcc's."""
    yield f"--gpu-architecture={arch}"
    if "--device-debug" not in options:
        yield "-lineinfo"
    if "--disable-warnings" not in options:  # of what it prints the beginning is kept
        yield "--disable-warnings"
    for option in options:
        name, _, value = option.partition("=")
        if name == "--system-include":
            yield f"--include-path={value}"
        elif name in _KNOWN:
            yield option
    yield f"--include-path={source.parent}"
    for place in copy.headers:
        yield f"--include-path={place}"


def _folders() -> Iterator[Path]:
    """Folders that may hold the library."""
    for root in package_roots("nvidia"):
        yield from sorted(root.glob("*/lib"), reverse=True)
    for folder in toolkit_folders():
        yield folder.parent / "lib64"
        yield folder.parent / "lib"


def _header_folders(library_folder: Path) -> Iterator[Path]:
    """Where CUDA's device headers may lie beside a library."""
    top = library_folder.parent
    yield from (top / "include", top / "include" / "cccl")
    # The wheels of CUDA 12 give each part a folder of its own.
    yield top.parent / "cuda_runtime" / "include"
