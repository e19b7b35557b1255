# SPDX-License-Identifier: Apache-2.0
"""Whose profile a file is: its rank and its node by the profile, else by the file's name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath
from typing import Final

from gpadvisor.errors import UsageError

_RANK: Final = re.compile(r"(?:^|[^a-z])(?:rank|proc|task|procid)[-_=.]?(\d{1,9})(?!\d)", re.IGNORECASE)
_NODE: Final = re.compile(r"(?:^|[^a-z])(?:node|host)[-_=.]?([a-z0-9-]+)", re.IGNORECASE)
_LAST: Final = re.compile(r"(\d{1,9})$")
_MOST_RANKS: Final = 1_000_000_000


class By(Enum):
    """What findings over many profiles are told by."""

    RANK = "rank"
    NODE = "node"
    NAME = "name"


@dataclass(frozen=True, slots=True, order=True)
class Member:
    """One profile among many; they are ordered by rank, then by name."""

    rank: int  # -1 where the name has none
    name: str  # of the file, as given
    node: str  # empty where not known


def member(path: str, host: str | None, rank: int | None = None) -> Member:
    """Whose profile a file is, by its name where that says the word (``app.rank17.gpadvisor``).

    Args:
        path: of the file.
        host: that the profile names, which comes before the file's name.
        rank: that the profile names, likewise.
    """
    name = PurePath(path)
    parts = [name.name, name.parent.name]
    rank_of_path = next((int(match[1]) for part in parts if (match := _RANK.search(part))), -1)
    node = next((match[1] for part in parts if (match := _NODE.search(part))), "")
    rank_is_possible = rank is not None and 0 <= rank < _MOST_RANKS
    return Member(
        rank=rank if rank is not None and rank_is_possible else rank_of_path, name=path, node=host or node
    )


def with_ranks(members: Sequence[Member]) -> list[Member]:
    """Numbers at the ends of names as ranks (``report0``), where all have one and no two the same."""
    ends = [
        _LAST.search(PurePath(file.name).name.split(".gpadvisor")[0].split(".ncu-rep")[0]) for file in members
    ]
    numbers = [int(end[1]) for end in ends if end]
    if len(set(numbers)) < len(members) or any(file.rank >= 0 for file in members):
        return list(members)
    return [
        Member(rank=number, name=file.name, node=file.node)
        for file, number in zip(members, numbers, strict=True)
    ]


def chosen_by(members: Sequence[Member], by: By | None) -> By:
    """What to tell the profiles by, after looking whether that tells them apart.

    Raises:
        UsageError: a name has no rank, two have the same, or a node is not known.
    """
    unranked = [file for file in members if file.rank < 0]
    if by is None:
        by = By.NAME if unranked else By.RANK
    if by is By.RANK and unranked:
        raise UsageError(
            f"{unranked[0].name} has no rank in its name, such as app.rank17.gpadvisor;"
            " rename it or take --by name"
        )
    nowhere = [file for file in members if not file.node]
    if by is By.NODE and nowhere:
        raise UsageError(
            f"{nowhere[0].name} names no node, neither in its profile nor in its name (node12);"
            " take --by rank"
        )
    by_key: dict[int | str, Member] = {}
    for file in members:
        key: int | str = file.rank if by is By.RANK else file.name
        if key in by_key:
            raise UsageError(
                f"{by_key[key].name} and {file.name} are both of rank {file.rank}; "
                "aggregate one run at a time, or take --by name"
                if by is By.RANK
                else f"{file.name} is given twice; name each file once"
            )
        by_key[key] = file
    return by


def stated(members: Sequence[Member], by: By) -> str:
    """How ranks and nodes were told, in words."""
    nodes = {file.node for file in members if file.node}
    from_profiles = by is not By.NAME and any(
        file.rank >= 0 and member(file.name, None).rank not in {file.rank, -1} for file in members
    )
    how = (
        "files by their names"
        if by is By.NAME
        else f"ranks by {'their profiles' if from_profiles else 'file names'}"
    )
    return f"{how}, {len(nodes)} node{'' if len(nodes) == 1 else 's'} by host names" if nodes else how
