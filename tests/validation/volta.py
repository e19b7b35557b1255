# SPDX-License-Identifier: Apache-2.0
"""Compiling for sm_70, which NVRTC 13 knows no more: by NVRTC 12, where its wheel is installed."""

from __future__ import annotations

import ctypes
import importlib.util
from functools import cache
from pathlib import Path

LIBRARY = Path("cuda_nvrtc", "lib", "libnvrtc.so.12")
MISSING = "sm_70 needs NVRTC 12 (pip install nvidia-cuda-nvrtc-cu12) and an nvdisasm up to 12.9 on the PATH"


@cache
def library_path() -> Path | None:
    """The library of the wheel nvidia-cuda-nvrtc-cu12."""
    spec = importlib.util.find_spec("nvidia")
    places = (spec.submodule_search_locations or ()) if spec else ()
    return next((Path(place, LIBRARY) for place in places if Path(place, LIBRARY).is_file()), None)


def compile_for_volta(
    text: str, name: str, headers: tuple[tuple[str, str], ...], include: Path | None
) -> bytes:
    """A cubin with line information.

    Raises:
        RuntimeError: the library is missing, or the text does not compile.
    """
    path = library_path()
    if path is None:
        raise RuntimeError(MISSING)
    library = ctypes.CDLL(str(path))
    texts = (ctypes.c_char_p * len(headers))(*(content.encode() for _, content in headers))
    names = (ctypes.c_char_p * len(headers))(*(header.encode() for header, _ in headers))
    program = ctypes.c_void_p()
    created = library.nvrtcCreateProgram(
        ctypes.byref(program), text.encode(), name.encode(), len(headers), texts, names
    )
    if created:
        raise RuntimeError(f"NVRTC 12 refuses {name}: error {created}")
    try:
        flags = [
            "--gpu-architecture=sm_70",
            "-lineinfo",
            *([] if include is None else [f"--include-path={include}"]),
        ]
        given = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
        if library.nvrtcCompileProgram(program, len(flags), given):
            raise RuntimeError(f"{name} does not compile for sm_70")
        size = ctypes.c_size_t()
        library.nvrtcGetCUBINSize(program, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        library.nvrtcGetCUBIN(program, cubin)
        return cubin.raw
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
