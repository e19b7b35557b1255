# SPDX-License-Identifier: Apache-2.0
"""What is told in fewer words: kernels like others, and launches in place of better ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpadvisor.model.figures import gain
from gpadvisor.model.program import is_launched_by_library
from gpadvisor.report.entries import Family, NumberedSuggestion
from gpadvisor.report.folding import SMALL_SHARE

LARGE_SHARE: Final = 0.1
"""A kernel with as much of the time is named, whatever was found in it."""


def alike_groups(families: Sequence[Family]) -> list[list[Family]]:
    """Kernels of which all that was found is told of others, by finding, where they take time."""
    groups: dict[tuple[int, ...], list[Family]] = {}
    for family in families:
        if family.elsewhere and not family.entries:
            groups.setdefault(family.elsewhere, []).append(family)
    return [group for group in groups.values() if (share := share_of(group)) is None or share >= SMALL_SHARE]


def share_of(group: Sequence[Family]) -> float | None:
    """Of the time, of all of them; None where it is not known of one."""
    shares = [family.share for family in group if family.share is not None]
    return sum(shares) if len(shares) == len(group) else None


def apart_from(families: Sequence[Family], groups: Sequence[Sequence[Family]]) -> list[Family]:
    """Those that are in no group."""
    ids = {id(family) for group in groups for family in group}
    return [family for family in families if id(family) not in ids]


def is_named(family: Family, groups: Sequence[Sequence[Family]]) -> bool:
    """Whether a kernel without a block has a line, however many others there are.

    One does that takes much of the time, or that kernels of a group are told to be the same as.
    """
    large = (family.share or 0.0) >= LARGE_SHARE or family.saved >= SMALL_SHARE
    return large or any(entry.number in group[0].elsewhere for group in groups for entry in family.entries)


def is_listed(family: Family) -> bool:
    """Whether a kernel without a block has a line where there is room: by its time, else by who wrote it."""
    if family.share is not None:
        return family.share >= SMALL_SHARE
    return bool(family.entries) or not is_launched_by_library(family.head.name)


def own_changes(family: Family) -> list[NumberedSuggestion]:
    """The suggestions of a kernel without other launches in place of one that gives more."""
    return [entry for entry in family.entries if _better(family, entry) is None]


def other_launches(family: Family, better: NumberedSuggestion) -> list[str]:
    """The other launches in place of one: ``1.5x (1.3-1.6)  Launch 2560 blocks instead of 64. (GPA301)``."""
    suggestions = [entry.suggestion for entry in family.entries if _better(family, entry) is better]
    return [
        f"{'' if suggestion.speedup is None else gain(suggestion.speedup) + '  '}"
        f"{suggestion.cure or suggestion.advice} ({suggestion.code})"
        for suggestion in suggestions
    ]


def _better(family: Family, entry: NumberedSuggestion) -> NumberedSuggestion | None:
    code = entry.suggestion.instead_of
    same = (
        candidate
        for candidate in family.entries
        if candidate.kernel is entry.kernel and candidate.suggestion.code == code
    )
    return next(same, None) if code else None
