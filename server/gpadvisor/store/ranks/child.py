# SPDX-License-Identifier: Apache-2.0
"""What sums up foreign snapshots in a child process: paths in, one snapshot out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import duckdb

from gpadvisor.errors import GpadvisorError, ProfileError, ProfileFormatError, UsageError
from gpadvisor.sandbox.codec import failure, from_bytes, to_bytes
from gpadvisor.store.ranks.manifests import Told
from gpadvisor.store.ranks.members import Member, chosen_by, with_ranks
from gpadvisor.store.ranks.rank_file import RankFile
from gpadvisor.store.ranks.reading import Reading, engine, look, read_all, why
from gpadvisor.store.ranks.request import SumAnswer, SumRequest
from gpadvisor.store.ranks.result import summed

RESULT: Final = "sum.gpadvisor"


def answer(request: bytes) -> bytes:
    """Sum up as a ``SumRequest`` says into a file of its folder: a ``SumAnswer``, or a ``Failure``."""
    try:
        return to_bytes(_sum(from_bytes(request, SumRequest)))
    except GpadvisorError as error:
        return to_bytes(failure(error))
    except (MemoryError, duckdb.OutOfMemoryException):
        return to_bytes(failure(ProfileError("the sums need more memory than they may use")))


def _sum(request: SumRequest) -> SumAnswer:
    """Sum up; once more without the bad ones, which have no number among the ranks, where some are."""
    files, bad = request.files, dict[str, str]()
    while True:
        with engine(Path(request.folder), request.memory_bytes) as connection:
            unreadable, members, kernels, numbered = _tried(request, files, connection)
        bad |= unreadable
        files = tuple(pair for pair in files if pair[1] not in unreadable)
        if not unreadable or not request.keep_going or not files:
            return SumAnswer(bad=bad, profiles=members, kernels=kernels, numbered=numbered)


def _tried(
    request: SumRequest, files: Sequence[tuple[str, str]], connection: Any
) -> tuple[dict[str, str], int, int, bool]:
    """The bad files, or the numbers of profiles and kernels of a sum that was written, and ``numbered``."""
    folder = Path(request.folder)
    bad: dict[str, str] = {}
    sources: list[RankFile] = []
    told = Told()
    for path, name in files:
        try:
            sources.append(look(Path(path), name, connection, folder, told))
        except (ProfileFormatError, OSError, duckdb.Error, KeyError, TypeError, ValueError) as error:
            bad[name] = why(error)
    if bad:
        return bad, 0, 0, False
    single = next((source for source in sources if source.kept is None), None)
    if request.merge and single is not None:
        raise UsageError(f"{single.name} is the profile of one rank and no partial sum; leave --merge away")
    sources, members, numbered = _ordered(sources, number=request.number)
    by = chosen_by(members, request.by)
    order = {member: index for index, member in enumerate(members)}
    reading = Reading(connection, folder, order, cells=request.cells, told=told)
    read_all(reading, sources)
    if reading.bad:
        return reading.bad, 0, 0, numbered
    if not reading.kernels.found:
        raise ProfileFormatError("none of the profiles has a launch that did not fail")
    (folder / RESULT).write_bytes(summed(reading, members, by))
    return {}, len(members), len(reading.kernels.found), numbered


def _ordered(sources: Sequence[RankFile], *, number: bool) -> tuple[list[RankFile], list[Member], bool]:
    """The sources with the ranks of their names, all members in order, and whether names' ends are ranks."""
    profiled = [source.members[0] for source in sources if source.kept is None]
    single = number and all(file.kept is None for file in sources)
    ranked = dict(zip(profiled, with_ranks(profiled), strict=True)) if single else {}
    files = [
        replace(rank_file, members=tuple(ranked.get(member, member) for member in rank_file.members))
        for rank_file in sources
    ]
    numbered = any(member.rank != new.rank for member, new in ranked.items())
    return files, sorted(member for source in files for member in source.members), numbered
