# SPDX-License-Identifier: Apache-2.0
"""Trees of calling contexts as JSON: Proton's (Triton's profiler), and what hatchet reads as a literal.

A list of nodes, each with a ``frame``, ``metrics`` of its own and ``children``; Proton adds what it ran on.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gpadvisor.errors import ProfileFormatError
from gpadvisor.files import read_file
from gpadvisor.model.contexts import MeasuredContexts, MeasuredPlace, PlaceKind, formula_names

_MAX_BYTES: Final = 512 << 20
_INCLUSIVE: Final = " (inc)"
_OWN: Final = "_"  # begins what hatchet notes for itself
_DEVICE: Final = "device_type"
_PYTHON: Final = re.compile(r"(?P<file>.+):(?P<function>[^:@]+)@(?P<line>\d{1,9})")


def read_hatchet(path: Path) -> MeasuredContexts:
    """Read a tree.

    Raises:
        ProfileFormatError: it is none.
    """
    try:
        document: Any = json.loads(read_file(path, max_bytes=_MAX_BYTES))
        return _contexts([node for node in document if isinstance(node, dict) and "frame" in node])
    except OSError as error:
        raise ProfileFormatError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ProfileFormatError(
            f"{path} is no tree of contexts as Proton and hatchet write them"
            f" ({type(error).__name__}: {error}); proton.finalize() writes one"
        ) from error


def _contexts(roots: list[dict[str, Any]]) -> MeasuredContexts:
    if not roots:
        raise ValueError("no node has a frame")
    places: list[MeasuredPlace] = []
    measured: list[Mapping[str, float]] = []
    names: dict[str, None] = {}
    pending = [(root, -1) for root in reversed(roots)]
    while pending:
        node, parent = pending.pop()
        values = _values(node.get("metrics") or {})
        names.update(dict.fromkeys(values))
        places.append(_place(node, parent))
        measured.append(values)
        children = node.get("children") or ()
        pending += [(child, len(places) - 1) for child in reversed(children)]
    return MeasuredContexts(
        metrics=formula_names(names),
        units=tuple(names),
        places=tuple(places),
        own=tuple(tuple(values.get(name, 0.0) for name in names) for values in measured),
    )


def _values(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Numbers of the node itself; what is below it has its own."""
    values = {
        str(name): float(value)
        for name, value in metrics.items()
        if isinstance(value, int | float) and not str(name).endswith(_INCLUSIVE) and not name.startswith(_OWN)
    }
    if not all(0 <= value < math.inf for value in values.values()):
        raise ValueError("a metric is below zero or no number")
    return values


def _place(node: Mapping[str, Any], parent: int) -> MeasuredPlace:
    frame = node["frame"]
    name = str(frame.get("name") or node.get("name") or "unknown")
    kind = PlaceKind.KERNEL if _DEVICE in (node.get("metrics") or {}) else PlaceKind.FUNCTION
    python = _PYTHON.fullmatch(name)
    if python is not None:
        return MeasuredPlace(parent, kind, python["function"], python["file"], int(python["line"]))
    file, line = frame.get("file"), frame.get("line")
    has_line = isinstance(file, str) and type(line) is int and line > 0
    return MeasuredPlace(parent, kind, name, file if has_line else "", line if has_line else 0)
