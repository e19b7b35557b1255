# SPDX-License-Identifier: Apache-2.0
"""Open a profile file of any format that is understood."""

from __future__ import annotations

from pathlib import Path

from gpadvisor.errors import ProfileFormatError
from gpadvisor.model.profile import Profile
from gpadvisor.store.formats import ProfileKind, kind_of, read_bytes
from gpadvisor.store.paths import is_collection


def load_bytes(data: bytes) -> Profile:
    """Read a profile from memory."""
    if kind_of(data) is ProfileKind.NCU:
        # Imported here, as the cubin reader behind it is needed for reports only.
        from gpadvisor.store.ncu.profile import read_report  # noqa: PLC0415 start-up cost

        return read_report(data)
    from gpadvisor.store.snapshot import read_snapshot  # noqa: PLC0415 start-up cost

    return read_snapshot(data)


def load_profile(path: Path, gpubins: Path | None = None) -> Profile:
    """Read a profile file or a collection here; foreign ones go through ``isolation.being_read``.

    Args:
        path: of the file, or the folder.
        gpubins: the GPU binaries of a database of HPCToolkit.
    """
    if gpubins is not None:
        from gpadvisor.store.hpctoolkit.profile import read_profile  # noqa: PLC0415 start-up cost

        return read_profile(path, gpubins)
    collected = is_collection(path)
    data = b"" if collected else read_bytes(path)
    try:
        if not collected:
            return load_bytes(data)
        from gpadvisor.store.collection.profile import read_collection  # noqa: PLC0415 start-up cost

        return read_collection(path)
    except ProfileFormatError as error:
        raise ProfileFormatError(f"{path}: {error}") from error
