# SPDX-License-Identifier: Apache-2.0
"""Calling contexts as another profiler measured them: a tree of places, and what each cost itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gpadvisor.model.kind import Kind

_NO_NAME: Final = re.compile(r"[^A-Za-z0-9]+")


class PlaceKind(Kind):
    """What a place is."""

    HOST = "host"
    PYTHON = "python"
    COPY = "copy"  # or a memset: what else than a kernel a device does
    FUNCTION = "function"
    INLINED = "inlined"
    KERNEL = "kernel"
    LOOP = "loop"
    LINE = "line"


@dataclass(frozen=True, slots=True)
class MeasuredPlace:
    """A place of the tree; ``parent`` is the index of one before it, -1 where nothing is around."""

    parent: int
    kind: PlaceKind
    name: str
    file: str = ""
    line: int = 0
    symbol: str = ""  # of a kernel its mangled name, where the name is another one
    module: str = ""  # the binary of a function of the host, where that is known
    address: int = 0  # in it; 0 where it is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredContexts:
    """The tree of a run."""

    metrics: tuple[str, ...]  # names that formulas can have
    units: tuple[str, ...]  # what each counts, in the profiler's words
    places: tuple[MeasuredPlace, ...]
    own: tuple[tuple[float, ...], ...]  # by place and metric, without what is below


def formula_names(metrics: Iterable[str]) -> tuple[str, ...]:
    """Names that formulas can have, each another one."""
    names: dict[str, None] = {}
    for metric in metrics:
        name = _NO_NAME.sub("_", metric).strip("_") or "value"
        first = name = name if name[0].isalpha() else f"m_{name}"
        number = 1
        while name in names:
            number += 1
            name = f"{first}_{number}"
        names[name] = None
    return tuple(names)
