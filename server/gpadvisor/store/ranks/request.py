# SPDX-License-Identifier: Apache-2.0
"""What the process that sums up is asked, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

from gpadvisor.store.ranks.members import By


@dataclass(frozen=True, slots=True, kw_only=True)
class SumRequest:
    """Profiles to be added up; the sum is written into a file of the folder."""

    files: tuple[tuple[str, str], ...]  # path and name
    folder: str
    by: By | None
    merge: bool  # sums only
    keep_going: bool  # bad files are left out; else nothing is written where there is one
    cells: bool  # what each profile has at each place is kept
    memory_bytes: int
    number: bool  # whether numbers at the ends of names may be ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class SumAnswer:
    """What came of it."""

    bad: dict[str, str]  # why, by name of the file
    profiles: int
    kernels: int
    numbered: bool  # whether ranks are the numbers at the ends of names
