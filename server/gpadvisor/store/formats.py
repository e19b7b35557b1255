# SPDX-License-Identifier: Apache-2.0
"""The bytes of a profile, its format by the first of them, and a sentence for files that are none."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Final

from gpadvisor.errors import ProfileFormatError
from gpadvisor.files import read_file
from gpadvisor.store.ncu import container
from gpadvisor.store.paths import COLLECTION_MAGIC


class ProfileKind(Enum):
    """The profile formats that can be read."""

    NCU = "Nsight Compute report"
    SNAPSHOT = "gpadvisor snapshot"


_COLLECT: Final = "give an Nsight Compute report (ncu -o report ./app) or a .gpadvisor snapshot"
_ELF_MACHINE_CUDA: Final = 190
_HOST_ELF: Final = (
    "is an ELF file of the host, not a profile; profile it, or extract its cubins with cuobjdump -xelf all"
)
_FAT_BINARY: Final = (
    "is a fat binary, not a profile; extract its cubins with cuobjdump -xelf all, "
    "or, where it holds PTX alone, build it for an architecture (-arch=sm_90)"
)
_PTX: Final = (
    "is PTX, which is no machine code yet; give the cubin that ptxas -arch=sm_90 -lineinfo makes of it"
)
_FOREIGN: Final = (
    (b"SQLite format 3\x00", f"is an SQLite database, such as Nsight Systems exports; {_COLLECT}"),
    (b"\x1f\x8b", "is a gzip file; unpack it with gunzip and give the report inside"),
    (b"BZh", "is a bzip2 file; unpack it with bunzip2 and give the report inside"),
    (b"\xfd7zXZ\x00", "is an xz file; unpack it with unxz and give the report inside"),
    (b"HPCRUN", "is a measurement of HPCToolkit; run hpcprof and give 'gpadvisor import' its database"),
    (COLLECTION_MAGIC, "is one process's part of a collection; name the file or its directory on disk"),
    (b"CUPS", f"is a raw CUPTI sampling file, which is not read; {_COLLECT}"),
    (b"Nsight", f"is an Nsight Systems report, which holds no PC samples; {_COLLECT}"),
    (b"NVDA", f"is a file of another NVIDIA tool; {_COLLECT}"),
    (b"\x50\xed\x55\xba", _FAT_BINARY),
    (b"version https://git-lfs", "is a Git LFS pointer, not the file itself; fetch it with git lfs pull"),
)


def kind_of(data: bytes) -> ProfileKind:
    """The format of a file, or ProfileFormatError with what it is instead."""
    if data[:4] == container.MAGIC or container.is_compressed(data):
        return ProfileKind.NCU
    if data[:2] == b"PK" and data[2:4] in {b"\x03\x04", b"\x05\x06"}:
        return ProfileKind.SNAPSHOT
    raise ProfileFormatError(f"the file {_what(data)}")


def _what(data: bytes) -> str:
    if not data:
        return f"is empty; {_COLLECT}"
    if data[:4] == b"\x7fELF":
        cuda = int.from_bytes(data[18:20], "little") == _ELF_MACHINE_CUDA
        return "is a cubin, not a profile; 'gpadvisor advise' takes it without one" if cuda else _HOST_ELF
    for magic, sentence in _FOREIGN:
        if data.startswith(magic):
            return sentence
    if len(data) < 16 and container.MAGIC.startswith(data[:4]):
        return "is cut short inside its first bytes; copy or collect it again"
    head = data[:4096]
    if not any(byte < 9 or 13 < byte < 32 for byte in head):
        if b"\n.version " in head and b"\n.target " in head:
            return _PTX
        return f"is text, not a profile (exported CSV has no machine code); {_COLLECT}"
    return f"is of no known profile format; {_COLLECT}"


def read_bytes(path: Path) -> bytes:
    """The bytes of a regular file of bounded size."""
    try:
        if not path.is_file():
            text = (
                "is a directory" if path.is_dir() else "does not exist" if not path.exists() else "is no file"
            )
            raise ProfileFormatError(f"{path} {text}; name an Nsight Compute report or a .gpadvisor snapshot")
        size = path.stat().st_size
        if size > container.MAX_REPORT_BYTES:
            raise ProfileFormatError(
                f"{path} has {size} bytes, more than the {container.MAX_REPORT_BYTES} that are read;"
                " collect fewer kernels into one report (ncu --launch-count)"
            )
        return read_file(path, max_bytes=container.MAX_REPORT_BYTES)
    except OSError as error:
        raise ProfileFormatError(f"{path} cannot be read: {error.strerror or error}") from error
