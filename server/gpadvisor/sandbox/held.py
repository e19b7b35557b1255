# SPDX-License-Identifier: Apache-2.0
"""Programs that the kernel holds to some folders (Landlock): they read and write nowhere else.

``main`` runs in a child: it holds itself, and becomes the program.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gpadvisor.sandbox.children import python_command
from gpadvisor.sandbox.codec import from_bytes, to_bytes

_START: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1));"
    "from gpadvisor.sandbox.held import main; main(sys.argv[1], sys.argv[2:])"
)
# linux/landlock.h and prctl.h; system calls have these numbers on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_BITS: Final = (0, 13, 14, 15)  # kinds of access that versions of the interface know
_ALWAYS: Final = ("/dev/null", "/dev/urandom")


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where a program may read, and where it may read and write."""

    readable: tuple[str, ...]
    writable: tuple[str, ...]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def can_hold() -> bool:
    """Whether this kernel can."""
    return _version() > 0


def held_command(command: Sequence[str], folders: Folders) -> list[str]:
    """A command that holds itself to the folders, and becomes another one."""
    return python_command(_START, to_bytes(folders).decode(), *command)


def hold(folders: Folders) -> None:
    """Hold this thread and all that it starts; what is not there is passed over.

    Raises:
        OSError: the kernel does not.
    """
    handled = (1 << _BITS[min(_version(), len(_BITS) - 1)]) - 1
    ruleset = _call(_CREATE_RULESET, ctypes.byref(ctypes.c_uint64(handled)), 8, 0)
    rules = [(path, _READ & handled) for path in folders.readable]
    rules += [(path, handled) for path in (*folders.writable, *_ALWAYS)]
    for path, access in rules:
        try:
            folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        allowed = access if os.path.isdir(path) else access & _OF_FILES  # noqa: PTH112 as it is a string
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(_Beneath(allowed, folder)), 0)
        os.close(folder)
    if ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError("the kernel gives up no privileges")
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def main(folders: str, command: list[str]) -> None:
    """Hold this process to the folders, and become the program."""
    hold(from_bytes(folders.encode(), Folders))
    os.execv(command[0], command)  # noqa: S606 that there is no shell is the point


def _version() -> int:
    """Of the kernel's interface; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, int(ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _VERSION)))


def _call(number: int, *words: object) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    result = int(library.syscall(number, *words))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
