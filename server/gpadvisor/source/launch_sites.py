# SPDX-License-Identifier: Apache-2.0
"""Launches as a source writes them (``kernel<<<grid, block>>>(...)``), as values."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from typing import Final

from gpadvisor.source import checked

MAX_LAUNCHES: Final = 200
MAX_ARGUMENTS: Final = 200
MAX_NAMES: Final = 8
MAX_NAME: Final = 80
_MOST: Final = (1 << 64) - 1
KINDS: Final = ("pointer", "int", "long", "float", "double")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchArgument:
    """One argument in order of declaration."""

    kind: str  # "pointer", "int", "long", "float" or "double"
    value: int | float | None  # None where the source does not say it


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSite:
    """One launch; None where constants of the source do not decide it."""

    kernel: str  # its name as it is written, with namespaces
    file: int  # which of the texts that were read
    line: int
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    dynamic_shared_bytes: int | None
    arguments: tuple[LaunchArgument, ...]  # none where the type of one is not known
    unknown: tuple[str, ...]  # names that a missing number hangs on, as the source has them

    def to_json(self) -> object:
        """Plain lists in the order of the fields."""
        return astuple(self)


def launch_sites_from_json(value: object, lines: list[int]) -> tuple[LaunchSite, ...]:
    """Launches in texts with so many lines; anything that cannot be launches is a ValueError."""
    return tuple(_site(row, lines) for row in checked.rows(value, 8, MAX_LAUNCHES))


def _site(row: list[object], lines: list[int]) -> LaunchSite:
    kernel, number, line, grid, block, shared_bytes, arguments, unknown = row
    file = checked.integer(number, 0, len(lines) - 1)
    return LaunchSite(
        kernel=checked.text(kernel, MAX_NAME),
        file=file,
        line=checked.integer(line, 1, lines[file]),
        grid=_sizes(grid),
        block=_sizes(block),
        dynamic_shared_bytes=None if shared_bytes is None else checked.integer(shared_bytes, 0, _MOST),
        arguments=tuple(_argument(entry) for entry in checked.rows(arguments, 2, MAX_ARGUMENTS)),
        unknown=tuple(checked.text(name, MAX_NAME) for name in checked.items(unknown, MAX_NAMES)),
    )


def _sizes(value: object) -> tuple[int, int, int] | None:
    if value is None:
        return None
    x, y, z = (checked.integer(size, 1, (1 << 32) - 1) for size in checked.row(value, 3))
    return x, y, z


def _argument(row: list[object]) -> LaunchArgument:
    kind, value = checked.text(row[0], MAX_NAME), row[1]
    if kind not in KINDS:
        raise ValueError("no kind of argument")
    if value is None or (isinstance(value, float) and math.isfinite(value)):
        return LaunchArgument(kind=kind, value=value)
    return LaunchArgument(kind=kind, value=checked.integer(value, -_MOST, _MOST))
