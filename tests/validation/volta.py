# SPDX-License-Identifier: Apache-2.0
"""sm_70, which CUDA 13 has dropped: compiled by NVRTC 12; read as sm_75, and by an nvdisasm that knows it.

::

    PYTHONPATH=build/cuda-12:build/nvdisasm-12 python -m tests.validation.volta
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.kernels import COMPILED_AS, KERNELS, ROOT, Kernel, Which, wheel_file

from gpadvisor.store.load import load_profile
from gpadvisor.toolchain.disassembly import disassemble
from gpadvisor.toolchain.discovery import Tool, find_tools

LIBRARY = Path("cuda_nvrtc", "lib", "libnvrtc.so.12")
MISSING = "compiling for sm_70 needs NVRTC 12 (pip install nvidia-cuda-nvrtc-cu12)"


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


def compile_kernel_for_volta(kernel: Kernel, which: Which) -> bytes:
    """One of our kernels, with line information."""
    path = kernel.source(which)
    return compile_for_volta(
        path.read_text(encoding="utf-8"),
        f"{COMPILED_AS}/{path.relative_to(ROOT).as_posix()}",
        kernel.own_headers(),
        wheel_file("include") if kernel.needs_headers else None,
    )


def cubins() -> Iterator[tuple[str, bytes]]:
    """Code for sm_70: of our kernels, and of the reports in ``GPADVISOR_REPORTS``."""
    for kernel in KERNELS.values() if library_path() is not None else ():
        for which in ("before", "after"):
            try:
                yield f"{kernel.name} {which}", compile_kernel_for_volta(kernel, which)
            except RuntimeError as error:
                sys.stdout.write(f"{kernel.name} {which}: {error}\n")
    folder = os.environ.get("GPADVISOR_REPORTS")
    for path in sorted(Path(folder).glob("*.ncu-rep")) if folder else ():
        profile = load_profile(path)
        volta = {kernel.binary for kernel in profile.kernels if kernel.device.arch == "sm_70"}
        for digest, cubin in profile.binaries.items():
            if digest in volta:
                yield path.stem, cubin


def compared(cubin: bytes, native: Tool, stand_in: Tool) -> tuple[int, list[str]]:
    """How many instructions there are, and those whose text is not the same, in both forms."""
    one, other = (disassemble(cubin, nvdisasm=tool.path) for tool in (native, stand_in))
    assert (one.tool, other.tool) == (str(native), str(stand_in))
    pairs = [
        pair for name, lines in one.listing.items() for pair in zip(lines, other.listing[name], strict=True)
    ]
    return len(pairs), [f"{a} as sm_70, {b} as sm_75" for a, b in pairs if a != b]


def main() -> None:
    """Print how many instructions were compared, and which differ."""
    tools = find_tools("nvdisasm")
    native = next((tool for tool in tools if tool.knows("sm_70")), None)
    stand_in = next((tool for tool in tools if not tool.knows("sm_70")), None)
    if native is None or stand_in is None:
        sys.stdout.write("sm_70 not compared: needs nvdisasm 13 and one up to 12.9 (triton 3.3.1 has one)\n")
        return
    files, instructions, differences = 0, 0, list[str]()
    for name, cubin in cubins():
        count, found = compared(cubin, native, stand_in)
        files, instructions = files + 1, instructions + count
        differences += [f"{name}: {text}" for text in found]
    sys.stdout.write(
        f"sm_70 by {native} and, taken for sm_75, by {stand_in}: {instructions:,} instructions of {files} "
        f"cubins, {len(differences)} differ\n" + "".join(f"        {text}\n" for text in differences[:20])
    )


if __name__ == "__main__":
    main()
