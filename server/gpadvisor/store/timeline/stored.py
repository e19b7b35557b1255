# SPDX-License-Identifier: Apache-2.0
"""A timeline in a snapshot: its rows as tables, its names in the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.errors import NoTimelineError, ProfileFormatError
from gpadvisor.files import open_file
from gpadvisor.model.profile import Profile
from gpadvisor.model.timeline import HostPlace, KernelName, Operation, Timeline
from gpadvisor.store.parts import take_apart
from gpadvisor.store.snapshot import TIMELINE, opened, pack, write_whole
from gpadvisor.store.snapshot.parquet import decode, encode, session
from gpadvisor.store.timeline.columns import call_rows, timeline, work_rows

HEAD: Final = "timeline"
"""Its key in the manifest."""
_WORK: Final = ("start_ns", "end_ns", "device", "correlation", "kernel", "stream", "operation", "pageable")
_SHAPE: Final = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_CALLS: Final = ("start_ns", "end_ns", "thread", "correlation", "name", "place")
_COLUMNS: Final = {"timeline_work": (*_WORK, *_SHAPE), "timeline_calls": _CALLS}
_AGAIN: Final = "record it again with gpadvisor profile --timeline"


def write_with_timeline(profile: Profile, run: Timeline, path: Path) -> None:
    """Write a snapshot with the timeline of a run in it, whole or not at all."""
    head = {
        HEAD: {
            "names": list(run.names),
            "kernels": [asdict(kernel) for kernel in run.kernels],
            "places": [asdict(place) for place in run.places],
        }
    }
    work = np.column_stack([*(getattr(run.work, name) for name in _WORK), run.work.shape])
    calls = np.column_stack([getattr(run.calls, name) for name in _CALLS])
    with session() as engine:
        tables = {
            f"{name}.parquet": encode(
                engine, name, dict(zip(_COLUMNS[name], rows.T, strict=True)), _schema(name)
            )
            for name, rows in (("timeline_work", work), ("timeline_calls", calls))
        }
    write_whole(pack(take_apart(profile), head, tables), path)


def _schema(name: str) -> dict[str, str]:
    return dict.fromkeys(_COLUMNS[name], "BIGINT")


def read_stored(path: Path) -> Timeline:
    """Read the timeline of a snapshot.

    Raises:
        NoTimelineError: it has none.
        ProfileFormatError: it is no snapshot, or damaged.
    """
    with open_file(path) as stream, opened(stream, path.stat().st_size) as (archive, manifest):
        if HEAD not in manifest:
            raise NoTimelineError(f"{path} has no timeline; gpadvisor profile --timeline records one")
        try:
            data = {name: archive.read(f"{name}.parquet") for name in sorted(TIMELINE)}
        except KeyError as error:
            raise ProfileFormatError(f"{path} lacks a table of its timeline ({error}); {_AGAIN}") from error
    try:
        with session() as engine:
            tables = {name: decode(engine, name, table, _schema(name)) for name, table in data.items()}
        return _put_together(manifest[HEAD], tables)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProfileFormatError(
            f"the timeline of {path} does not fit together ({error}); {_AGAIN}"
        ) from error


def _put_together(head: Any, tables: Mapping[str, Mapping[str, NDArray[Any]]]) -> Timeline:
    names = [str(name) for name in head["names"]]
    kernels = [
        KernelName(mangled=str(kernel["mangled"]), demangled=str(kernel["demangled"]))
        for kernel in head["kernels"]
    ]
    places = [_place(place) for place in head["places"]]
    work, calls = work_rows(), call_rows()
    work.take(_rows("timeline_work", tables))
    calls.take(_rows("timeline_calls", tables))
    run = timeline(work, calls, kernels, names, places=places)
    for column, end in (
        (run.work.kernel, len(kernels)),
        (run.work.operation, len(Operation)),
        (run.calls.name, len(names)),
        (run.calls.place, len(places)),
    ):
        if len(column) and not -1 <= int(column.min()) <= int(column.max()) < end:
            raise ValueError("a row names what is not there")
    if len(run.calls.name) and int(run.calls.name.min()) < 0:
        raise ValueError("a call without a name")
    return run


def _place(row: Any) -> HostPlace:
    return HostPlace(
        function=str(row["function"]),
        file=str(row["file"]),
        line=int(row["line"]),
        is_definition=row["is_definition"] is True,
        module=str(row["module"]),
        address=int(row["address"]),
    )


def _rows(name: str, tables: Mapping[str, Mapping[str, NDArray[Any]]]) -> NDArray[np.int64]:
    columns = [tables[name][column] for column in _COLUMNS[name]]
    if any(np.ma.is_masked(column) for column in columns):
        raise ValueError("a row has a gap")
    return np.column_stack([np.asarray(column, np.int64) for column in columns])
