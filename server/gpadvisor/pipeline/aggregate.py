# SPDX-License-Identifier: Apache-2.0
"""Profiles of many ranks into one snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gpadvisor.errors import GpadvisorError, ProfileFormatError, UsageError
from gpadvisor.files import open_file, scratch_folder, write_atomically
from gpadvisor.pipeline.opening import load
from gpadvisor.pipeline.request import Progress
from gpadvisor.pipeline.settings import Settings
from gpadvisor.store.ranks.isolation import MEMORY_BYTES, PARTIAL_BYTES, RankSum, sum_isolated
from gpadvisor.store.snapshot import write_snapshot

_MOST_FILES: Final = 2_000
"""Of one child, whose memory grows with their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """What is asked of a sum."""

    by: str | None
    partial: bool
    merge: bool
    keep_going: bool
    cells: bool = False  # whether what each profile has at each place is kept


def aggregate_files(
    inputs: Sequence[Path], target: Path, aggregation: Aggregation, settings: Settings, progress: Progress
) -> RankSum:
    """Write one snapshot with the sums over all inputs, or nothing.

    Raises:
        ProfileFormatError: a file is bad, which is named, and bad ones are not to be left out; or all are.
        UsageError: the files cannot be told apart.
        OSError: the target cannot be written.
    """
    files = [(path, str(path)) for path in inputs]
    if aggregation.merge or len(files) <= _MOST_FILES:
        rank_sum = summed(files, aggregation, settings, progress)
    else:
        rank_sum = _in_parts(files, aggregation, settings, progress)
    if rank_sum.data is None:
        raise refused(rank_sum.bad, len(inputs))
    write_atomically(target, rank_sum.data)
    return rank_sum


def _in_parts(
    files: Sequence[tuple[Path, str]], aggregation: Aggregation, settings: Settings, progress: Progress
) -> RankSum:
    """As :func:`summed`, a part of the files after the other, and the sum of these."""
    try:
        return _summed_parts(files, aggregation, settings, progress, number=True)
    except UsageError:  # numbers at the ends of names tell the files of each part apart, and not of all
        return _summed_parts(files, aggregation, settings, progress, number=False)


def _summed_parts(
    files: Sequence[tuple[Path, str]],
    aggregation: Aggregation,
    settings: Settings,
    progress: Progress,
    *,
    number: bool,
) -> RankSum:
    bad: dict[str, str] = {}
    parts: list[tuple[Path, str]] = []
    numbered: set[bool] = set()
    with scratch_folder() as folder:
        for start in range(0, len(files), _MOST_FILES):
            chunk = files[start : start + _MOST_FILES]
            progress(f"profiles {start + 1:,} to {start + len(chunk):,} of {len(files):,}")
            part = summed(chunk, aggregation, settings, progress, number=number)
            bad |= part.bad
            if part.data is not None:
                numbered.add(part.numbered)
                parts.append((folder / f"{start}.gpadvisor", f"part {len(parts) + 1}"))
                parts[-1][0].write_bytes(part.data)
            elif not aggregation.keep_going:
                return part
        if len(numbered) > 1:
            raise UsageError("some of the names end in numbers of ranks, and others do not")
        if not parts:
            return RankSum(data=None, bad=bad, profiles=0, kernels=0)
        merged = summed(parts, replace(aggregation, merge=True, keep_going=False), settings, progress)
    merged.bad.update(bad)
    return replace(merged, numbered=True in numbered)


def summed(
    inputs: Sequence[tuple[Path, str]],
    aggregation: Aggregation,
    settings: Settings,
    progress: Progress,
    *,
    number: bool = True,
) -> RankSum:
    """The sums over inputs with the names by which they are told; without data where a bad one is in the way.

    Raises:
        UsageError: the files cannot be told apart.
    """
    with scratch_folder() as folder:
        files, bad = _snapshots(inputs, folder, settings, progress)
        if (bad and not aggregation.keep_going) or not files:
            return RankSum(data=None, bad=bad, profiles=0, kernels=0)
        progress(f"summing up {len(files)} profiles")
        rank_sum = sum_isolated(
            files,
            by=aggregation.by,
            merge=aggregation.merge,
            keep_going=aggregation.keep_going,
            cells=aggregation.cells,
            memory_bytes=PARTIAL_BYTES if aggregation.partial else MEMORY_BYTES,
            number=number,
        )
    rank_sum.bad.update(bad)
    return rank_sum


def _snapshots(
    inputs: Sequence[tuple[Path, str]], folder: Path, settings: Settings, progress: Progress
) -> tuple[list[tuple[Path, str]], dict[str, str]]:
    """The inputs as snapshots: reports and collections are converted, each in a child of its own."""
    files: list[tuple[Path, str]] = []
    bad: dict[str, str] = {}
    for number, (path, name) in enumerate(inputs):
        try:
            if _is_archive(path):
                files.append((path, name))
                continue
            progress(f"reading {path.name}")
            converted = folder / f"{number}.gpadvisor"
            write_snapshot(load(path, settings), converted)
            files.append((converted, name))
        except (GpadvisorError, OSError) as error:
            bad[name] = error.strerror or str(error) if isinstance(error, OSError) else str(error)
    return files, bad


def _is_archive(path: Path) -> bool:
    if path.is_dir():
        return False
    with open_file(path) as stream:
        return stream.read(2) == b"PK"


def refused(bad: Mapping[str, str], total: int) -> ProfileFormatError:
    """The error that names the first bad file and counts the others."""
    name, why = next(iter(bad.items()))
    more = f"; {len(bad) - 1:,} more of {total:,} are bad, too" if len(bad) > 1 else ""
    sentence = why if why.startswith(name) else f"{name}: {why}"
    return ProfileFormatError(f"{sentence}{more}; --keep-going leaves them out")
