# SPDX-License-Identifier: Apache-2.0
"""Launches as a source writes them (``kernel<<<grid, block>>>(...)``), as values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from gpadvisor.sandbox.codec import MaxLength

MAX_LAUNCHES: Final = 200
MAX_ARGUMENTS: Final = 200
MAX_NAMES: Final = 8
MAX_NAME: Final = 80
_MOST: Final = (1 << 64) - 1
_MOST_BLOCKS: Final = (1 << 32) - 1
KINDS: Final = ("pointer", "int", "long", "float", "double")
_Name: TypeAlias = Annotated[str, MaxLength(MAX_NAME)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchArgument:
    """One argument in order of declaration."""

    kind: str  # "pointer", "int", "long", "float" or "double"
    value: int | float | None  # None where the source does not say it


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSite:
    """One launch; None where constants of the source do not decide it."""

    kernel: _Name  # its name as it is written, with namespaces
    file: int  # which of the texts that were read
    line: int
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    dynamic_shared_bytes: int | None
    arguments: Annotated[tuple[LaunchArgument, ...], MaxLength(MAX_ARGUMENTS)]
    """None where the type of one is not known."""
    unknown: Annotated[tuple[_Name, ...], MaxLength(MAX_NAMES)]
    """Names that a missing number hangs on, as the source has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSites:
    """The launches in texts that are compiled together, in order."""

    sites: Annotated[tuple[LaunchSite, ...], MaxLength(MAX_LAUNCHES)]

    def of_texts(self, lines: Sequence[int]) -> tuple[LaunchSite, ...]:
        """They, if they can be in texts with so many lines; a ValueError otherwise."""
        for site in self.sites:
            shared, sizes = site.dynamic_shared_bytes, (*(site.grid or ()), *(site.block or ()))
            if not (0 <= site.file < len(lines) and 1 <= site.line <= lines[site.file]):
                raise ValueError("no launch of these texts")
            if not all(1 <= size <= _MOST_BLOCKS for size in sizes) or not 0 <= (shared or 0) <= _MOST:
                raise ValueError("no sizes of a launch")
            if not all(map(_possible, site.arguments)):
                raise ValueError("no argument of a launch")
        return self.sites


def _possible(argument: LaunchArgument) -> bool:
    value = argument.value or 0
    fits = abs(value) <= _MOST if isinstance(value, int) else math.isfinite(value)
    return fits and argument.kind in KINDS
