# SPDX-License-Identifier: Apache-2.0
"""What kind of input a file is, by its first bytes."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Final

from gpadvisor.errors import ProfileFormatError

SOURCE_SUFFIXES: Final = (".cu", ".cuh")
_ELF_MACHINE_CUDA: Final = 190


class InputKind(Enum):
    """The inputs of ``advise``."""

    PROFILE = "profile"  # an Nsight Compute report or a snapshot
    CUBIN = "cubin"
    SOURCE = "source"


def input_kind(path: Path) -> InputKind:
    """The kind of a file.

    Raises:
        ProfileFormatError: the path is no readable file, or is empty.
    """
    try:
        if path.is_dir():
            raise ProfileFormatError(f"{path} is a folder; give a report, a snapshot, a cubin or a .cu file")
        with path.open("rb") as stream:
            head = stream.read(64)
    except FileNotFoundError as error:
        raise ProfileFormatError(f"{path} does not exist") from error
    except OSError as error:
        raise ProfileFormatError(f"cannot read {path}: {error.strerror}") from error
    if not head:
        raise ProfileFormatError(f"{path} is empty; profile again, or copy the file again")
    if head[:4] == b"\x7fELF" and int.from_bytes(head[18:20], "little") == _ELF_MACHINE_CUDA:
        return InputKind.CUBIN
    if path.suffix in SOURCE_SUFFIXES:
        return InputKind.SOURCE
    return InputKind.PROFILE
