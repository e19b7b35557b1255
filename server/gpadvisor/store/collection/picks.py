# SPDX-License-Identifier: Apache-2.0
"""Which launches of a collection were asked for: the others keep their time, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.errors import ProfileFormatError
from gpadvisor.files import read_file

_FILE: Final = "picks.json"
_MAX_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Picks:
    """What was asked for; kernels by their mangled names, launches in the order in which they were made."""

    kernels: frozenset[str]
    skip: int = 0
    count: int | None = None

    @property
    def by_launch(self) -> bool:
        """Whether single launches are picked, and not all of a kernel."""
        return self.skip > 0 or self.count is not None


class Picker:
    """Goes through the launches of a collection, in the order of its processes."""

    def __init__(self, picks: Picks | None) -> None:
        self._picks = picks
        self._seen = 0

    @property
    def by_launch(self) -> bool:
        """Whether the order of launches matters."""
        return self._picks is not None and self._picks.by_launch

    def takes(self, kernel: str) -> bool:
        """Whether the next launch, which is of this kernel, was asked for."""
        if self._picks is None:
            return True
        if kernel not in self._picks.kernels:
            return False
        self._seen += 1
        after = self._seen - self._picks.skip
        return after > 0 and (self._picks.count is None or after <= self._picks.count)


def write_picks(collection: Path, picks: Picks) -> None:
    """Leave beside the files of a collection what is wanted of it."""
    document = {"kernels": sorted(picks.kernels), "skip": picks.skip, "count": picks.count}
    (collection / _FILE).write_text(json.dumps(document), encoding="utf-8")


def read_picks(collection: Path) -> Picks | None:
    """What is wanted of a collection; None where that is everything.

    Raises:
        ProfileFormatError: the file that says so is damaged.
    """
    path = collection / _FILE
    if not collection.is_dir() or path.is_symlink() or not path.is_file():
        return None
    try:
        document = json.loads(read_file(path, max_bytes=_MAX_BYTES))
        names, skip, count = document["kernels"], document["skip"], document["count"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _damaged(path, "its kernels are no list of names")
    if not _natural(skip) or not (count is None or _natural(count)):
        raise _damaged(path, "it counts launches in something else than whole numbers")
    return Picks(kernels=frozenset(names), skip=skip, count=count)


def _natural(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _damaged(path: Path, why: str) -> ProfileFormatError:
    return ProfileFormatError(f"{path} is damaged ({why}); remove it to read every launch of the collection")


__all__: Sequence[str] = ("Picker", "Picks", "read_picks", "write_picks")
