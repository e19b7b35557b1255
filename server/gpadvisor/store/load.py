# SPDX-License-Identifier: Apache-2.0
"""Open a profile file of any format that is understood."""

from __future__ import annotations

from pathlib import Path

from gpadvisor.errors import ProfileFormatError
from gpadvisor.files import read_file
from gpadvisor.model.profile import Profile
from gpadvisor.store.formats import ProfileKind, kind_of
from gpadvisor.store.ncu.container import MAX_REPORT_BYTES


def read_bytes(path: Path) -> bytes:
    """The bytes of a regular file of bounded size."""
    try:
        if not path.is_file():
            what = (
                "is a directory" if path.is_dir() else "does not exist" if not path.exists() else "is no file"
            )
            raise ProfileFormatError(f"{path} {what}; name an Nsight Compute report or a .gpadvisor snapshot")
        size = path.stat().st_size
        if size > MAX_REPORT_BYTES:
            raise ProfileFormatError(
                f"{path} has {size} bytes, more than the {MAX_REPORT_BYTES} that are read;"
                " collect fewer kernels into one report (ncu --launch-count)"
            )
        return read_file(path, max_bytes=MAX_REPORT_BYTES)
    except OSError as error:
        raise ProfileFormatError(f"{path} cannot be read: {error.strerror or error}") from error


def load_bytes(data: bytes) -> Profile:
    """Read a profile from memory."""
    if kind_of(data) is ProfileKind.NCU:
        # Imported here, as the cubin reader behind it is needed for reports only.
        from gpadvisor.store.ncu.profile import read_report  # noqa: PLC0415 start-up cost

        return read_report(data)
    from gpadvisor.store.snapshot import read_snapshot  # noqa: PLC0415 start-up cost

    return read_snapshot(data)


def load_profile(path: Path) -> Profile:
    """Read a profile file or a collection here; foreign ones go through ``load_profile_isolated``."""
    from gpadvisor.store.collection import is_collection, read_collection  # noqa: PLC0415 start-up cost

    collected = is_collection(path)
    data = b"" if collected else read_bytes(path)
    try:
        return read_collection(path) if collected else load_bytes(data)
    except ProfileFormatError as error:
        raise ProfileFormatError(f"{path}: {error}") from error
