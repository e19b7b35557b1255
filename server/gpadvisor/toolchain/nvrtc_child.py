# SPDX-License-Identifier: Apache-2.0
"""The child process that calls NVRTC: a compiler that crashes or never ends must not take its caller along.

It writes the cubin to the file that the request names.
"""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.files import read_file
from gpadvisor.sandbox.codec import from_bytes, to_bytes
from gpadvisor.sandbox.held import Folders, hold

_SOURCE_BYTES_MAX: Final = 64 << 20


class NvrtcLibrary:
    """The few functions of the NVRTC library that are needed; the same in every version since 11.2."""

    def __init__(self, library: str) -> None:
        """Load a library."""
        self._library = ctypes.CDLL(library)

    def version(self) -> tuple[int, int]:
        """Major and minor version."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def architectures(self) -> list[int]:
        """The numbers of the architectures that it makes code for."""
        count = ctypes.c_int()
        self._library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        numbers = (ctypes.c_int * max(count.value, 1))()
        self._library.nvrtcGetSupportedArchs(numbers)
        return list(numbers)[: count.value]

    def compile(
        self, source: bytes, name: bytes, options: list[bytes], instances: list[bytes]
    ) -> tuple[str, bytes]:
        """Log and cubin of one compilation; the latter is empty when it failed."""
        program = ctypes.c_void_p()
        status = self._library.nvrtcCreateProgram(ctypes.byref(program), source, name, 0, None, None)
        if status:
            return "the program cannot be created", b""
        try:
            for instance in instances:
                self._library.nvrtcAddNameExpression(program, instance)
            words = (ctypes.c_char_p * len(options))(*options)
            status = self._library.nvrtcCompileProgram(program, len(options), words)
            log = self._take("nvrtcGetProgramLog", program).rstrip(b"\0").decode("utf-8", "replace")
            return log, self._take("nvrtcGetCUBIN", program) if not status else b""
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _take(self, function: str, program: ctypes.c_void_p) -> bytes:
        """What a pair of functions, one for the size and one for the bytes, gives."""
        size = ctypes.c_size_t()
        self._library[f"{function}Size"](program, ctypes.byref(size))
        text = ctypes.create_string_buffer(max(size.value, 1))
        self._library[function](program, text)
        return text.raw[: size.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class NvrtcRequest:
    """What is compiled, and by which copy of the library."""

    library: str
    source: str
    options: tuple[str, ...]
    names: tuple[str, ...]  # templates with arguments that code is made of
    output: str  # the file that gets the cubin
    held: Folders | None  # that alone are read and written


@dataclass(frozen=True, slots=True, kw_only=True)
class NvrtcAnswer:
    """What the library says of itself and of the source."""

    version: tuple[int, int]
    architectures: tuple[int, ...]
    log: str


def _answer(request: NvrtcRequest) -> NvrtcAnswer:
    """Do what a request asks for."""
    nvrtc = NvrtcLibrary(request.library)
    version, architectures = nvrtc.version(), nvrtc.architectures()
    if request.held is not None:
        hold(request.held)
    source = read_file(request.source, max_bytes=_SOURCE_BYTES_MAX)
    options, instances = ([word.encode() for word in words] for words in (request.options, request.names))
    log, cubin = nvrtc.compile(source, request.source.encode(), options, instances)
    if cubin:
        Path(request.output).write_bytes(cubin)
    return NvrtcAnswer(version=version, architectures=tuple(architectures), log=log[: 1 << 16])


def answer(request: bytes) -> bytes:
    """What NVRTC says to a request."""
    # What holds a thread does not hold the one that writes the answer.
    with ThreadPoolExecutor(1) as threads:
        return to_bytes(threads.submit(_answer, from_bytes(request, NvrtcRequest)).result())
