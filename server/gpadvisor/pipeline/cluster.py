# SPDX-License-Identifier: Apache-2.0
"""Sums over ranks on a Dask cluster: a part of the files in each task, and a tree of merges.

A task is what ``aggregate --partial`` and ``--merge`` do, in a child with limits on the worker's machine.
A worker that is lost takes its parts with it: the scheduler has others make them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import gpadvisor
from gpadvisor.errors import GpadvisorError, ProfileError, UsageError
from gpadvisor.files import scratch_folder, write_atomically
from gpadvisor.pipeline.aggregate import Aggregation, refused, summed
from gpadvisor.pipeline.request import Progress
from gpadvisor.pipeline.settings import Settings
from gpadvisor.store.ranks.isolation import RankSum

_SCHEME: Final = "dask://"
_CONNECT_SECONDS: Final = 20
_MOST_FILES: Final = 500  # of a part
_PARTS_PER_THREAD: Final = 2  # so that a slow one does not hold all others
_ARITY: Final = 8  # of a merge


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What the client knows of a part, whose sums stay on the cluster."""

    bad: dict[str, str]
    profiles: int
    numbered: bool
    version: str


def aggregate_on(
    scheduler: str, inputs: Sequence[Path], target: Path, aggregation: Aggregation, progress: Progress
) -> RankSum:
    """Write one snapshot with the sums over all inputs, made on a cluster, or nothing.

    Raises:
        ProfileFormatError: a file is bad, which is named, and bad ones are not to be left out; or all are.
        UsageError: the address is none, no scheduler answers there, or the files cannot be told apart.
        ProfileError: workers were lost again and again, or are of another version.
        OSError: the target cannot be written.
    """
    files = [(str(path.absolute()), str(path)) for path in inputs]
    with _client(scheduler) as client:
        threads = max(1, sum(client.nthreads().values()))
        size = max(1, min(_MOST_FILES, -(-len(files) // (_PARTS_PER_THREAD * threads))))
        chunks = [files[start : start + size] for start in range(0, len(files), size)]
        progress(f"summing up {len(files)} profiles in {len(chunks)} parts")
        futures, parts = _parts(client, chunks, aggregation, progress)
        bad = {name: why for part in parts for name, why in part.bad.items()}
        summed_parts = [future for future, part in zip(futures, parts, strict=True) if part.profiles]
        if not summed_parts or (bad and not aggregation.keep_going):
            raise refused(bad, len(files))
        rank_sum: RankSum = client.gather(_tree(client, summed_parts, aggregation))
    rank_sum.bad.update(bad)
    if rank_sum.data is None:
        raise refused(rank_sum.bad, len(files))
    write_atomically(target, rank_sum.data)
    return rank_sum


@contextmanager
def _client(scheduler: str) -> Iterator[Any]:
    try:
        import distributed  # noqa: PLC0415 an extra, and slow
    except ImportError as error:
        raise UsageError("--scheduler needs Dask: pip install 'gpadvisor[cluster]'") from error
    address = scheduler.removeprefix(_SCHEME)
    if address == scheduler or not address:
        raise UsageError(f"'{scheduler}' is no scheduler; give its address as dask://HOST:PORT")
    try:
        connect: Any = distributed.Client
        client = connect(f"tcp://{address}", timeout=_CONNECT_SECONDS, set_as_default=False, name="gpadvisor")
    except (OSError, ValueError) as error:  # a TimeoutError is an OSError
        raise UsageError(
            f"no scheduler of Dask answers at {address} ({error}); start one: dask scheduler"
        ) from error
    with client:
        if not client.nthreads():
            raise UsageError(f"the scheduler at {address} has no worker; start some: dask worker {address}")
        try:
            yield client
        except GpadvisorError:
            raise
        except (distributed.KilledWorker, distributed.CancelledError) as error:
            raise ProfileError(
                f"workers at {address} were lost again and again ({error}); they need 200 MB for each thread"
            ) from error
        except (ImportError, AttributeError) as error:
            raise ProfileError(
                f"the workers at {address} lack gpadvisor {gpadvisor.__version__} ({error}); install it there"
            ) from error


def _parts(
    client: Any, chunks: Sequence[Sequence[tuple[str, str]]], aggregation: Aggregation, progress: Progress
) -> tuple[list[Any], list[_Part]]:
    """The parts; once more without numbers as ranks where some of them have such and others have not."""
    for number in (True, False):
        futures = [client.submit(_part, chunk, aggregation, number, pure=False) for chunk in chunks]
        submitted = [client.submit(_facts, future, pure=False) for future in futures]
        parts = _gathered(client, submitted, progress)
        version = next((part.version for part in parts if part.version != gpadvisor.__version__), None)
        if version is not None:
            raise ProfileError(f"a worker has gpadvisor {version}, this is {gpadvisor.__version__}")
        if len({part.numbered for part in parts if part.profiles}) < 2:
            break
    return futures, parts


def _gathered(client: Any, futures: Sequence[Any], progress: Progress) -> list[_Part]:
    import distributed  # noqa: PLC0415 an extra, as above

    as_completed: Any = distributed.as_completed
    for done, _ in enumerate(as_completed(futures, loop=client.loop), start=1):
        progress(f"summed up {done} of {len(futures)} parts")
    return list(client.gather(list(futures)))


def _tree(client: Any, parts: Sequence[Any], aggregation: Aggregation) -> Any:
    """Merges of parts, of these, and so on; what the last gives."""
    level = list(parts)
    while len(level) > 1:
        groups = [level[start : start + _ARITY] for start in range(0, len(level), _ARITY)]
        level = [client.submit(_merge, group, aggregation, pure=False) for group in groups]
    return level[0]


def _part(
    files: Sequence[tuple[str, str]],
    aggregation: Aggregation,
    number: bool,  # noqa: FBT001 scheduled by position
) -> RankSum:
    """The sums over some files; of a worker."""
    for_part = replace(aggregation, partial=True)
    pairs = [(Path(path), name) for path, name in files]
    return summed(pairs, for_part, Settings(), lambda _: None, number=number)


def _facts(part: RankSum) -> _Part:
    return _Part(
        bad=part.bad,
        profiles=0 if part.data is None else part.profiles,
        numbered=part.numbered,
        version=gpadvisor.__version__,
    )


def _merge(parts: Sequence[RankSum], aggregation: Aggregation) -> RankSum:
    """One sum of several; of a worker."""
    with scratch_folder() as folder:
        files = []
        for number, part in enumerate(parts):
            path = folder / f"{number}.gpadvisor"
            path.write_bytes(part.data or b"")
            files.append((path, f"part {number}"))
        for_merge = replace(aggregation, merge=True, partial=True, keep_going=False)
        return summed(files, for_merge, Settings(), lambda _: None)
