# SPDX-License-Identifier: Apache-2.0
"""Finding CUPTI: headers and library that belong together, from the wheels or a CUDA toolkit."""

from __future__ import annotations

import contextlib
import ctypes
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.errors import ToolNotFoundError
from gpadvisor.toolchain.discovery import package_roots, toolkit_folders

_HEADER: Final = "cupti_pcsampling.h"
_API_VERSION: Final = re.compile(rb"^\s*#\s*define\s+CUPTI_API_VERSION\s+(\d+)", re.MULTILINE)
_SINCE: Final = 18  # CUDA 12.0; from CUDA 13 on the version is 130000 and more
TIED_SINCE: Final = 22  # CUDA 12.4: samples of serialized mode name their launch


@dataclass(frozen=True, slots=True, kw_only=True)
class Cupti:
    """One copy of CUPTI."""

    includes: tuple[Path, ...]  # folders with its headers and cuda.h
    library: Path | None  # libcupti.so of the same release; None: left to the loader
    api_version: int  # CUPTI_API_VERSION of the headers
    origin: str  # "wheel", "toolkit"

    @property
    def major(self) -> int:
        """The CUDA release it belongs to."""
        return self.api_version // 10_000 if self.api_version >= 130_000 else 12


def find_cupti(*, driver: int | None = None) -> Cupti:
    """The copy that fits the driver best: of its own CUDA release, else of an older one.

    Args:
        driver: CUDA version of the driver as ``driver_version`` gives it; None asks the driver.

    Raises:
        ToolNotFoundError: no headers from CUDA 12 on are installed, or only newer ones than the driver.
    """
    cuptis = tuple(_candidates())
    if not cuptis:
        raise ToolNotFoundError(
            f"the headers of CUPTI ({_HEADER} and cuda.h) were not found; {install_command()} brings them,"
            " as does a CUDA toolkit from 12.0 on with its CUPTI"
        )
    release = (driver_version() if driver is None else driver) or 0
    fitting = [cupti for cupti in cuptis if not release or cupti.major <= release // 1000]
    if not fitting:
        have = ", ".join(sorted({f"CUDA {cupti.major}" for cupti in cuptis}))
        raise ToolNotFoundError(
            f"the driver knows CUDA up to {release // 1000}.{release % 1000 // 10}, and CUPTI is here for"
            f" {have} only; {install_command(release // 1000)}, or update the driver"
        )
    if not release:
        return fitting[0]
    # Of the driver's own CUDA release, one that is not newer than it where there is a choice.
    return max(fitting, key=lambda cupti: (cupti.major, cupti.api_version // 100 <= release // 10))


def install_command(release: int | None = None) -> str:
    """What brings the headers and the library of a CUDA release; None: the newest one."""
    suffix = "" if release is None or release >= 13 else f"-cu{release}"
    return f"pip install nvidia-cuda-cupti{suffix} nvidia-cuda-runtime{suffix}"


def driver_version() -> int | None:
    """The newest CUDA version that the driver knows, such as 13000; None where there is no driver."""
    with contextlib.suppress(OSError, AttributeError):
        version = ctypes.c_int()
        if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version)) == 0:
            return version.value
    return None


def _candidates() -> Iterator[Cupti]:
    for root in package_roots("nvidia"):
        for folder in sorted(root.glob(f"cu[0-9]*/include/{_HEADER}"), reverse=True):
            yield from _examined((folder.parent,), (folder.parent.parent / "lib",), "wheel")
        old = root / "cuda_cupti"  # packages up to CUDA 12 have a folder each
        yield from _examined((old / "include", root / "cuda_runtime" / "include"), (old / "lib",), "wheel")
    for programs in toolkit_folders():
        toolkit = programs.parent
        extra = toolkit / "extras" / "CUPTI"
        yield from _examined(
            (extra / "include", toolkit / "include"),
            (extra / "lib64", toolkit / "lib64", toolkit / "lib"),
            "toolkit",
        )


def _examined(includes: tuple[Path, ...], libraries: tuple[Path, ...], origin: str) -> Iterator[Cupti]:
    folders = tuple(folder for folder in includes if folder.is_dir())
    if not all(any((folder / name).is_file() for folder in folders) for name in (_HEADER, "cuda.h")):
        return
    for folder in folders:
        try:
            match = _API_VERSION.search((folder / "cupti_version.h").read_bytes())
        except OSError:
            continue
        if match is not None and int(match[1]) >= _SINCE:
            version = int(match[1])
            name = f"libcupti.so.{version // 10_000 if version >= 130_000 else 12}"
            library = next((place / name for place in libraries if (place / name).is_file()), None)
            yield Cupti(includes=folders, library=library, api_version=version, origin=origin)
            return
