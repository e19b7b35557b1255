# SPDX-License-Identifier: Apache-2.0
"""The ledger of a folder, as the editor writes it; apart, as the analysis takes long to import."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpadvisor.errors import UsageError
from gpadvisor.files import append_whole
from gpadvisor.gate.ledger import MAX_BYTES, PredictionOutcome, appended


def append_outcomes(folder: Path, name: str, outcomes: Sequence[PredictionOutcome]) -> None:
    """Append to a ledger in a folder what it does not have.

    Raises:
        UsageError: the file is not in the folder.
        LedgerError: the file is no ledger.
        OSError: it cannot be written.
    """
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"{name} is not below {folder.name}; name a file of the folder")
    append_whole(path, lambda data: appended(data, path.name, outcomes), max_bytes=MAX_BYTES)
