# SPDX-License-Identifier: Apache-2.0
"""Read a foreign profile in a child process with limits, so that no file can take the caller down."""

from __future__ import annotations

import contextlib
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpadvisor.errors import (
    CancelledError,
    ProfileError,
    ProfileFormatError,
    ProfileMismatchError,
    ToolError,
    ToolNotFoundError,
    ToolTimeoutError,
)
from gpadvisor.files import scratch_folder
from gpadvisor.sandbox.children import call, meanwhile
from gpadvisor.sandbox.codec import Failure, from_answer, to_bytes
from gpadvisor.store.child import BLOBS, COLUMNS, NO_ROOM, ReadProfile, ReadRequest

if TYPE_CHECKING:
    from gpadvisor.model.profile import Profile
    from gpadvisor.store.parts import Parts

_ERRORS: Final = {error.__name__: error for error in (ProfileError, ProfileFormatError, ProfileMismatchError)}
_READER: Final = "gpadvisor.store.child:answer"
_OUTPUT_BYTES: Final = 1 << 30


@contextlib.contextmanager
def being_read(
    path: Path,
    *,
    timeout_seconds: float,
    memory_bytes: int,
    cancelled: Callable[[], bool] | None = None,
    gpubins: Path | None = None,
) -> Iterator[Callable[[], Profile]]:
    """A profile of any format, read by a child process: what is yielded waits for it.

    Args:
        path: the file; a database of HPCToolkit is read with the folder of its GPU binaries.
        timeout_seconds: wall-clock limit of the child, which is also its limit of processor time.
        memory_bytes: limit of the child's address space, where the platform has one.
        cancelled: asked now and then; when true, the child is stopped and CancelledError raised.
        gpubins: that folder.

    Raises:
        ProfileFormatError: the file is no profile, or the child died, hung or needed too much memory.
    """
    with scratch_folder() as folder:
        request = ReadRequest(
            path=str(path.absolute()),
            gpubins=None if gpubins is None else str(gpubins.absolute()),
            folder=str(folder),
        )

        def ask(ended: Callable[[], bool]) -> bytes:
            return call(
                _READER,
                to_bytes(request),
                timeout_seconds=timeout_seconds,
                memory_bytes=memory_bytes,
                output_bytes=_OUTPUT_BYTES,
                cancelled=lambda: ended() or (cancelled is not None and cancelled()),
                directory=folder,
            )

        with meanwhile(ask) as answer:
            yield lambda: _profile(path, folder, answer, memory_bytes)


def _profile(path: Path, folder: Path, answer: Callable[[], bytes], memory_bytes: int) -> Profile:
    try:
        reply = from_answer(answer(), ReadProfile)
        if isinstance(reply, Failure):
            raise _error(path, reply, memory_bytes)
        from gpadvisor.store.parts import put_together  # noqa: PLC0415 imported while the child runs

        return put_together(_parts(folder, reply))
    except CancelledError as error:
        raise CancelledError("reading the profile was stopped as asked") from error
    except ToolTimeoutError as error:
        raise ProfileFormatError(
            f"reading {path} took longer than its time limit and was stopped ({error});"
            " the file is damaged or very large: collect fewer kernels (ncu --launch-count)"
        ) from error
    except ToolNotFoundError as error:
        raise ProfileError(
            f"no process could be started to read {path}: {error}; free memory and repeat"
        ) from error
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise _died(path, "gave no sensible answer", memory_bytes) from error
    except ToolError as error:
        raise _died(path, str(error), memory_bytes) from error


def _parts(folder: Path, answer: ReadProfile) -> Parts:
    import numpy as np  # noqa: PLC0415 the child runs while numpy is imported

    from gpadvisor.store.parts import TABLES, Parts  # noqa: PLC0415 the child runs while numpy is imported

    with np.load(folder / COLUMNS, allow_pickle=False) as columns:
        tables = {
            table: {name: columns[f"{table}.{name}"] for name in names} for table, names in TABLES.items()
        }
    blobs: dict[str, dict[str, bytes]] = {"binaries": {}, "disassembly": {}, "sources": {}}
    with (folder / BLOBS).open("rb") as file:
        for kind, key, size in answer.blobs:
            blobs[kind][key] = file.read(size)
    return Parts(document=answer.document, tables=tables, blobs=blobs)


def _error(path: Path, failure: Failure, memory_bytes: int) -> ProfileError:
    if failure.error in _ERRORS:
        return _ERRORS[failure.error](failure.message)
    if failure.error == NO_ROOM:
        return ProfileError(
            f"{path} cannot be read, since {tempfile.gettempdir()} cannot hold its parts ({failure.message});"
            " make room there, or name another folder in TMPDIR"
        )
    if failure.error == "MemoryError":
        return _too_large(path, memory_bytes)
    return ProfileFormatError(
        f"{path} has content that the reader does not expect ({failure.message}); collect it again"
    )


def _too_large(path: Path, memory_bytes: int) -> ProfileFormatError:
    return ProfileFormatError(
        f"reading {path} needs more than the {memory_bytes / (1 << 30):g} GiB it may use;"
        " collect fewer kernels into one report (ncu --launch-count)"
    )


def _died(path: Path, text: str, memory_bytes: int) -> ProfileFormatError:
    return ProfileFormatError(
        f"the process that read {path} failed: {text} (it may use {memory_bytes / (1 << 30):g} GiB);"
        " the file is damaged or too large for that: copy it again, or collect fewer kernels"
    )
