# SPDX-License-Identifier: Apache-2.0
"""Read a foreign profile in a child process with limits, so that no file can take the caller down."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import gpadvisor
from gpadvisor.errors import CancelledError, ProfileError, ProfileFormatError, ProfileMismatchError
from gpadvisor.files import scratch_folder
from gpadvisor.store.child import ANSWER, BLOBS, COLUMNS, NO_ROOM

if TYPE_CHECKING:
    from gpadvisor.model.profile import Profile
    from gpadvisor.store.parts import Parts

_ERRORS: Final = {error.__name__: error for error in (ProfileError, ProfileFormatError, ProfileMismatchError)}
_POLL_SECONDS: Final = 0.05
# The child imports this very package, from where it is, and nothing from the user's environment.
_START: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1));"
    "from gpadvisor.store.child import main; sys.exit(main(sys.argv[1:]))"
)


def load_profile_isolated(
    path: Path,
    *,
    timeout_seconds: float = 300.0,
    memory_bytes: int = 8 << 30,
    cancelled: Callable[[], bool] | None = None,
) -> Profile:
    """Read a profile of any format in a child process.

    Args:
        path: the file.
        timeout_seconds: wall-clock limit of the child, which is also its limit of processor time.
        memory_bytes: limit of the child's address space, where the platform has one.
        cancelled: asked now and then; when true, the child is stopped and CancelledError raised.

    Raises:
        ProfileFormatError: the file is no profile, or the child died, hung or needed too much memory.
    """
    with being_read(
        path, timeout_seconds=timeout_seconds, memory_bytes=memory_bytes, cancelled=cancelled
    ) as profile:
        return profile()


@contextlib.contextmanager
def being_read(
    path: Path,
    *,
    timeout_seconds: float,
    memory_bytes: int,
    cancelled: Callable[[], bool] | None = None,
) -> Iterator[Callable[[], Profile]]:
    """The same for who has something to do meanwhile: what is yielded waits for the child."""
    with scratch_folder() as folder:
        deadline = time.monotonic() + timeout_seconds
        process = _started(path, folder, timeout_seconds, memory_bytes)

        def profile() -> Profile:
            code = wait_for(process, deadline, cancelled)
            if code is None:
                raise ProfileFormatError(
                    f"reading {path} took longer than {timeout_seconds:g} s and was stopped;"
                    " the file is damaged or very large: collect fewer kernels (ncu --launch-count)"
                )
            return _answer(path, folder, code, memory_bytes)

        try:
            yield profile
        finally:
            _stop(process)


def wait_for(
    process: subprocess.Popen[bytes], deadline: float, cancelled: Callable[[], bool] | None
) -> int | None:
    """The exit code of a child; None where it has not ended by the deadline."""
    while (left := deadline - time.monotonic()) > 0:
        if cancelled is not None and cancelled():
            raise CancelledError("reading the profile was stopped as asked")
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(left if cancelled is None else min(left, _POLL_SECONDS))
    return None


def _started(path: Path, folder: Path, timeout_seconds: float, memory_bytes: int) -> subprocess.Popen[bytes]:
    root = str(Path(gpadvisor.__file__).resolve().parent.parent)
    command = [sys.executable, "-I", "-c", _START, root, str(path.absolute()), str(folder)]
    command += [str(memory_bytes), str(math.ceil(timeout_seconds) + 1)]
    # Each thread of a linear algebra library reserves memory that counts against the limit.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise ProfileError(
            f"no process could be started to read {path}: {error.strerror or error}; free memory and repeat"
        ) from error


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _answer(path: Path, folder: Path, code: int, memory_bytes: int) -> Profile:
    from gpadvisor.store.parts import put_together  # noqa: PLC0415 the child runs while numpy is imported

    try:
        answer: Any = json.loads((folder / ANSWER).read_bytes())
    except (OSError, ValueError) as error:
        raise _died(path, code, memory_bytes) from error
    if "class" in answer:
        raise _error(path, str(answer["class"]), str(answer["message"]), memory_bytes)
    if code != 0:
        raise _died(path, code, memory_bytes)
    try:
        return put_together(_parts(folder, answer))
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise _died(path, code, memory_bytes) from error


def _parts(folder: Path, answer: dict[str, Any]) -> Parts:
    import numpy as np  # noqa: PLC0415 the child runs while numpy is imported

    from gpadvisor.store.parts import TABLES, Parts  # noqa: PLC0415 the child runs while numpy is imported

    with np.load(folder / COLUMNS, allow_pickle=False) as columns:
        tables = {
            table: {name: columns[f"{table}.{name}"] for name in names} for table, names in TABLES.items()
        }
    blobs: dict[str, dict[str, bytes]] = {"binaries": {}, "disassembly": {}, "sources": {}}
    with (folder / BLOBS).open("rb") as file:
        for kind, key, size in answer["blobs"]:
            blobs[kind][key] = file.read(size)
    return Parts(document=answer["document"], tables=tables, blobs=blobs)


def _error(path: Path, name: str, message: str, memory_bytes: int) -> ProfileError:
    if name in _ERRORS:
        return _ERRORS[name](message)
    if name == NO_ROOM:
        return ProfileError(
            f"{path} cannot be read, since {tempfile.gettempdir()} cannot hold its parts ({message});"
            " make room there, or name another folder in TMPDIR"
        )
    if name == "MemoryError":
        return _too_large(path, memory_bytes)
    return ProfileFormatError(
        f"{path} has content that the reader does not expect ({message}); collect it again"
    )


def _too_large(path: Path, memory_bytes: int) -> ProfileFormatError:
    return ProfileFormatError(
        f"reading {path} needs more than the {memory_bytes / (1 << 30):g} GiB it may use;"
        " collect fewer kernels into one report (ncu --launch-count)"
    )


def _died(path: Path, code: int, memory_bytes: int) -> ProfileFormatError:
    if code < 0 and -code == getattr(signal, "SIGXCPU", 0):
        what = "used up its processor time"
    elif code < 0:
        what = f"was ended by signal {-code}"
    else:
        what = f"ended with code {code}"
    return ProfileFormatError(
        f"the process that read {path} {what} (it may use {memory_bytes / (1 << 30):g} GiB);"
        " the file is damaged or too large for that: copy it again, or collect fewer kernels"
    )
