# SPDX-License-Identifier: Apache-2.0
"""What sums up foreign snapshots in a child process: paths in, one snapshot out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import duckdb

from gpadvisor.errors import GpadvisorError, ProfileFormatError, UsageError
from gpadvisor.store.ranks.manifests import Told
from gpadvisor.store.ranks.members import By, Member, chosen_by, with_ranks
from gpadvisor.store.ranks.rank_file import RankFile
from gpadvisor.store.ranks.reading import Reading, engine, look, read_all, why
from gpadvisor.store.ranks.result import summed

RESULT: Final = "sum.gpadvisor"


def answer(request: bytes) -> bytes:
    """Sum up ``files`` (pairs of path and name) ``by`` something into a file of ``folder`` (JSON).

    The answer has the ``bad`` files with why, the numbers of profiles and kernels, and whether ranks were
    ``numbered`` by the ends of names, which ``number`` allows; or the ``class`` and ``message`` of an error.
    With ``keep_going`` bad files are left out, else nothing is written.
    """
    parameters = json.loads(request)
    try:
        reply = _sum(parameters)
    except GpadvisorError as error:
        reply = {"class": type(error).__name__, "message": str(error)}
    except (MemoryError, duckdb.OutOfMemoryException):
        reply = {"class": "ProfileError", "message": "the sums need more memory than they may use"}
    return json.dumps(reply).encode()


def _sum(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Sum up; once more without the bad ones, which have no number among the ranks, where some are."""
    files, bad = parameters["files"], dict[str, str]()
    while True:
        with engine(Path(parameters["folder"]), int(parameters["memory_bytes"])) as connection:
            unreadable, members, kernels, numbered = _tried(parameters, files, connection)
        bad |= unreadable
        files = [pair for pair in files if pair[1] not in unreadable]
        if not unreadable or not parameters["keep_going"] or not files:
            return {"bad": bad, "profiles": members, "kernels": kernels, "numbered": numbered}


def _tried(
    parameters: Mapping[str, Any], files: Sequence[Sequence[str]], connection: Any
) -> tuple[dict[str, str], int, int, bool]:
    """The bad files, or the numbers of profiles and kernels of a sum that was written, and ``numbered``."""
    folder = Path(parameters["folder"])
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
    if parameters["merge"] and single is not None:
        raise UsageError(f"{single.name} is the profile of one rank and no partial sum; leave --merge away")
    sources, members, numbered = _ordered(sources, number=parameters.get("number", True))
    by = chosen_by(members, None if parameters["by"] is None else By(parameters["by"]))
    order = {member: index for index, member in enumerate(members)}
    reading = Reading(connection, folder, order, cells=bool(parameters.get("cells")), told=told)
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
