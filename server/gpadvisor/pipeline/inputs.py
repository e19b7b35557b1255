# SPDX-License-Identifier: Apache-2.0
"""What kind of input a path is, by its first bytes, and what its content hashes to."""

from __future__ import annotations

import hashlib
import re
from enum import Enum
from pathlib import Path
from typing import Final

from gpadvisor.errors import NoDeviceCodeError, ProfileFormatError
from gpadvisor.files import open_file
from gpadvisor.pipeline.cache import file_digest
from gpadvisor.store.paths import DATABASE_FILES, collection_files, is_collection, is_database

SOURCE_SUFFIXES: Final = (".cu", ".cuh")
CPP_SUFFIXES: Final = (".cc", ".cpp", ".cxx", ".c", ".h", ".hh", ".hpp", ".hxx", ".inl")
"""Those that may hold CUDA, by what they say or by the command of their build."""
_PYTHON_SUFFIXES: Final = (".py", ".ipynb")
_CUDA: Final = re.compile(rb"\b__(?:global|device)__\b|<<<")
_LOOKED_AT: Final = 8 << 20
_ELF_MACHINE_CUDA: Final = 190


class InputKind(Enum):
    """The inputs of ``advise``."""

    PROFILE = "profile"  # an Nsight Compute report, a snapshot or a collection
    CUBIN = "cubin"
    SOURCE = "source"


def input_kind(path: Path) -> InputKind:
    """The kind of a file, or of the directory that the cupti collector leaves.

    Raises:
        ProfileFormatError: the path is no readable file and no collection, or is empty.
        NoDeviceCodeError: it is a source, and empty or without CUDA code.
    """
    try:
        if path.is_dir():
            if is_collection(path):
                return InputKind.PROFILE
            if is_database(path):
                raise ProfileFormatError(
                    f"{path} is a database of HPCToolkit: gpadvisor import {path.name} --gpubins MEASUREMENTS"
                    " makes a snapshot of it, 'gpadvisor tree' shows its contexts"
                )
            raise ProfileFormatError(
                f"{path} is a folder and no collection of gpadvisor; "
                "give a report, a snapshot, a cubin or a .cu file"
            )
        with open_file(path) as stream:
            head = stream.read(64)
    except FileNotFoundError as error:
        raise ProfileFormatError(f"{path} does not exist; check the path") from error
    except OSError as error:
        raise ProfileFormatError(f"cannot read {path}: {error.strerror}") from error
    if not head and path.suffix in SOURCE_SUFFIXES:
        raise NoDeviceCodeError(f"{path} is empty; it takes a source with a __global__ function")
    if not head:
        raise ProfileFormatError(f"{path} is empty; profile again, or copy the file again")
    if head[:4] == b"\x7fELF" and int.from_bytes(head[18:20], "little") == _ELF_MACHINE_CUDA:
        return InputKind.CUBIN
    if path.suffix in SOURCE_SUFFIXES or (path.suffix in CPP_SUFFIXES and _has_cuda(path)):
        return InputKind.SOURCE
    if path.suffix in CPP_SUFFIXES:
        raise NoDeviceCodeError(f"{path} has no CUDA code, and no build compiles it as CUDA")
    if path.suffix in _PYTHON_SUFFIXES:
        raise ProfileFormatError(
            f"{path} is a Python program, whose kernels are compiled when it runs; "
            "profile it: gpadvisor profile -- python FILE"
        )
    return InputKind.PROFILE


def _has_cuda(path: Path) -> bool:
    """Whether a C++ file has CUDA code, or its build compiles it as such."""
    with open_file(path) as stream:
        if _CUDA.search(stream.read(_LOOKED_AT)):
            return True
    from gpadvisor.toolchain.databases.database import find_command  # noqa: PLC0415  # start-up cost

    command, _ = find_command(path.resolve())
    return command is not None and command.is_cuda


def input_digest(path: Path) -> str:
    """Changes with everything that is read of an input: of a collection that is every file of it."""
    files = collection_files(path)
    if not files:
        return file_digest(path)
    digest = hashlib.sha256()
    for name, file in files:
        digest.update(f"{name} {file_digest(file)};".encode())
    return digest.hexdigest()


def input_bytes(path: Path) -> int:
    """Size of an input on the disk."""
    if is_database(path):
        return sum((path / name).stat().st_size for name in DATABASE_FILES)
    return sum(file.stat().st_size for _, file in collection_files(path) or [("", path)])
