# SPDX-License-Identifier: Apache-2.0
"""A snapshot of one rank, or of a sum, and its tables in files of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.errors import ProfileFormatError
from gpadvisor.files import open_file
from gpadvisor.store.parts import JsonObject
from gpadvisor.store.ranks import direct
from gpadvisor.store.ranks.members import Member
from gpadvisor.store.snapshot import CELLS_TABLE, opened
from gpadvisor.store.snapshot.stored import stored

TABLES: Final = ("launches", "samples", "counts", "pc_metrics", "metrics")
"""What is added up."""
OTHERS: Final = tuple(table for table in TABLES if table != "samples")
"""Those without the samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFile:
    """One snapshot to add, or one that sums up others."""

    path: str
    name: str  # as given
    members: tuple[Member, ...]
    kept: JsonObject | None  # what a sum of others says of its kernels
    blobs: tuple[str, ...]  # members that are binaries, listings and sources
    places: bytes | None  # of the tables, for `stored`; None where they cannot be read without unpacking


def unpack(source: RankFile, tables: Sequence[str], place: Path) -> None:
    """Write tables of a snapshot into a folder.

    Raises:
        ProfileFormatError: it is damaged, or lacks one.
        OSError: it cannot be read, or they cannot be written.
    """
    place.mkdir(parents=True, exist_ok=True)
    path = Path(source.path)
    with open_file(path) as stream:
        if source.places is not None and source.kept is None:
            members = stored(stream, source.places, map(TABLES.index, tables))
            for table, data in zip(tables, members, strict=True):
                _write_over(place / f"{table}.parquet", data)
            return
        with opened(stream, path.stat().st_size) as (archive, _):
            if CELLS_TABLE in tables and f"{CELLS_TABLE}.parquet" not in archive.namelist():
                raise ProfileFormatError("it lacks what each profile has at each place; make it with --cells")
            for table in tables:
                _write_over(place / f"{table}.parquet", archive.read(f"{table}.parquet"))


def _write_over(path: Path, data: bytes) -> None:
    """Without emptying the file first, after which file systems write it to the disk at once."""
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags & ~os.O_TRUNC, 0o600)) as stream:
        stream.write(data)
        stream.truncate()


def samples(batch: Sequence[RankFile], place: Path) -> Iterator[list[str]]:
    """The samples of a few profiles at a time, in the same files."""
    for first in range(0, len(batch), direct.AT_ONCE):
        folders = []
        for slot, rank_file in enumerate(batch[first : first + direct.AT_ONCE]):
            folders.append(place / f"slot={slot}")
            unpack(rank_file, ("samples",), folders[-1])
        yield [str(folder / "samples.parquet") for folder in folders]
