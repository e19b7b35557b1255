# SPDX-License-Identifier: Apache-2.0
"""What a compiler may read and write where it is held to some folders: those, and its own parts."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import gpadvisor
from gpadvisor.errors import ToolNotFoundError
from gpadvisor.files import home
from gpadvisor.sandbox.held import Folders, can_hold
from gpadvisor.toolchain.compile_job import Job
from gpadvisor.toolchain.discovery import package_roots, toolkit_folders

_SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store"),
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"),
)
_HOST_COMPILERS: Final = ("gcc", "g++", "cc", "c++")


def held_to(job: Job, compiler: Path) -> Folders | None:
    """The folders of a compilation; None where it is not held.

    Raises:
        ToolNotFoundError: the kernel cannot hold it.
    """
    if not job.settings.within:
        return None
    if not can_hold():
        raise ToolNotFoundError(
            "the kernel of this machine cannot hold a compiler to the open folders (that takes Landlock, "
            "Linux 5.13); compile the source yourself, and ask about the cubin"
        )
    programs = [compiler, *(Path(path) for name in _HOST_COMPILERS if (path := shutil.which(name)))]
    brought = [
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path(gpadvisor.__file__).parent,
        *package_roots("nvidia"),
        *map(_top, (folder / "nvcc" for folder in toolkit_folders())),
        *(_top(place) for program in programs for place in (program, program.resolve())),
    ]
    readable = (*_SYSTEM, *_names(brought), *_names(job.settings.within))
    return Folders(readable=readable, writable=(str(job.scratch),))


def _top(program: Path) -> Path:
    """The folder that a program was installed in, as far as that is for programs alone."""
    top, home_folder = program.parent.parent, home() or Path("/")
    return program.parent if top in {home_folder, *home_folder.parents} else top


def _names(folders: Iterable[Path]) -> list[str]:
    return list(dict.fromkeys(map(str, folders)))
