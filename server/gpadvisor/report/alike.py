# SPDX-License-Identifier: Apache-2.0
"""Kernels of which all that was found is told of others."""

from __future__ import annotations

from collections.abc import Sequence

from gpadvisor.report.entries import Family
from gpadvisor.report.folding import SMALL_SHARE


def alike_groups(others: Sequence[Family]) -> list[list[Family]]:
    """Kernels of which all that was found is told of others, by finding, where they take time."""
    groups: dict[tuple[int, ...], list[Family]] = {}
    for family in others:
        if family.elsewhere and not family.entries:
            groups.setdefault(family.elsewhere, []).append(family)
    return [group for group in groups.values() if (share := share_of(group)) is None or share >= SMALL_SHARE]


def share_of(group: Sequence[Family]) -> float | None:
    """Of the time, of all of them; None where it is not known of one."""
    known = [family.share for family in group if family.share is not None]
    return sum(known) if len(known) == len(group) else None


def apart_from(others: Sequence[Family], groups: Sequence[Sequence[Family]]) -> list[Family]:
    """Those that are in no group."""
    ids = {id(family) for group in groups for family in group}
    return [family for family in others if id(family) not in ids]
