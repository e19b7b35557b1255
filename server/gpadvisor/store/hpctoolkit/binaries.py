# SPDX-License-Identifier: Apache-2.0
"""The GPU binaries beside the measurements: from an offset in the file to a section and a PC."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.cubin import Cubin, read_cubin
from gpadvisor.cubin.elf import ElfImage
from gpadvisor.errors import CubinError, ProfileFormatError
from gpadvisor.files import read_file

_SUFFIX: Final = ".gpubin"
_MAX_BYTES: Final = 1 << 30
_ALL_BYTES: Final = 2 << 30
_TEXT: Final = ".text."
_CUDA: Final = 190
_OTHERS: Final = {224: "an AMD GPU", 205: "an Intel GPU"}
"""Machines of ELF headers."""


@dataclass(frozen=True, slots=True, eq=False)
class GpuBinary:
    """A binary for an NVIDIA GPU."""

    data: bytes
    cubin: Cubin
    starts: tuple[int, ...]  # offsets of its code sections in the file
    sizes: tuple[int, ...]
    names: tuple[str, ...]

    def place(self, offset: int) -> tuple[str, int] | None:
        """The section that an offset of the file lies in, and the PC there."""
        index = bisect_right(self.starts, offset) - 1
        if index < 0 or offset - self.starts[index] >= self.sizes[index]:
            return None
        return self.names[index], offset - self.starts[index]


def is_gpu_module(name: str) -> bool:
    """Whether a module of the database is code of a GPU."""
    return name.endswith(_SUFFIX)


def read_binaries(folder: Path, modules: Iterable[str]) -> tuple[Mapping[str, GpuBinary], Mapping[str, str]]:
    """Binaries by module, and why others are not used.

    Args:
        folder: of the binaries, or that of the measurements.
        modules: as the database names them.

    Raises:
        ProfileFormatError: the folder has none of them.
    """
    if not folder.is_dir():
        raise ProfileFormatError(f"{folder} is no folder; name that of the measurements, or its gpubins")
    binaries: dict[str, GpuBinary] = {}
    unused: dict[str, str] = {}
    needed = list(modules)
    remaining_bytes = _ALL_BYTES
    for module in needed:
        name = Path(module).name
        path = next((path for path in (folder / name, folder / "gpubins" / name) if path.is_file()), None)
        if path is None:
            unused[module] = f"{name} is not in {folder}"
            continue
        try:
            data = read_file(path, max_bytes=min(_MAX_BYTES, remaining_bytes))
            remaining_bytes -= len(data)
            binaries[module] = _binary(data, name)
        except (OSError, CubinError) as error:
            unused[module] = f"{name} cannot be used: {error}"
    if needed and not binaries and all(why.endswith(str(folder)) for why in unused.values()):
        raise ProfileFormatError(
            f"{folder} has none of the {len(needed)} GPU binaries of the database ({Path(needed[0]).name});"
            " name the folder gpubins of the measurements that the database was made from"
        )
    return binaries, unused


def _binary(data: bytes, name: str) -> GpuBinary:
    machine = int.from_bytes(data[18:20], "little") if data[:4] == b"\x7fELF" else 0
    if machine != _CUDA:
        target = _OTHERS.get(machine, "no GPU that is known here")
        raise CubinError(f"it is for {target}, and what its warps wait for is told of NVIDIA's code only")
    digest = Path(name).name.removesuffix(_SUFFIX)
    actual = hashlib.md5(data, usedforsecurity=False).hexdigest()
    if len(digest) == len(actual) and digest != actual:
        raise CubinError(f"its content has the MD5 sum {actual}, not that of its name: it is damaged")
    sections = sorted(
        (header.offset, header.size, header.name.removeprefix(_TEXT))
        for header in ElfImage(data).sections
        if header.name.startswith(_TEXT)
    )
    starts, sizes, names = zip(*sections, strict=True) if sections else ((), (), ())
    return GpuBinary(data, read_cubin(data), starts, sizes, names)
