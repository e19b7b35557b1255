# SPDX-License-Identifier: Apache-2.0
"""Calling contexts that another profiler measured, read in a child process with limits."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gpadvisor.errors import ProfileFormatError, ToolError
from gpadvisor.model.contexts import MeasuredContexts, MeasuredPlace, PlaceKind
from gpadvisor.sandbox.children import call

_READER: Final = "gpadvisor.store.measured:answer"
_SECONDS: Final = 300.0
_MEMORY_BYTES: Final = 4 << 30
_OUTPUT_BYTES: Final = 1 << 30


def measured_contexts(path: Path) -> MeasuredContexts:
    """The tree of a database of HPCToolkit, or of a file of Proton or hatchet.

    Raises:
        ProfileFormatError: it is damaged, or too large for the child.
    """
    try:
        reply: Any = json.loads(
            call(
                _READER,
                json.dumps({"path": str(path.absolute())}).encode(),
                timeout_seconds=_SECONDS,
                memory_bytes=_MEMORY_BYTES,
                output_bytes=_OUTPUT_BYTES,
            )
        )
        if "message" in reply:
            raise ProfileFormatError(str(reply["message"]))
        return _checked(reply)
    except (ToolError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProfileFormatError(
            f"the process that read {path} failed ({error}); it is damaged or too large"
        ) from error


def _checked(reply: Mapping[str, Any]) -> MeasuredContexts:
    metrics = tuple(map(str, reply["metrics"]))
    places = tuple(
        MeasuredPlace(
            parent=int(place["parent"]),
            kind=PlaceKind(place["kind"]),
            name=str(place["name"]),
            file=str(place["file"]),
            line=int(place["line"]),
            symbol=str(place["symbol"]),
            module=str(place["module"]),
            address=int(place["address"]),
        )
        for place in reply["places"]
    )
    exclusive = tuple(tuple(float(value) for value in row) for row in reply["own"])
    if any(not -1 <= place.parent < index for index, place in enumerate(places)):
        raise ValueError("a place before the one around it")
    if len(exclusive) != len(places) or any(len(row) != len(metrics) for row in exclusive):
        raise ValueError("rows of another length")
    if any(not 0 <= value < math.inf for row in exclusive for value in row):
        raise ValueError("costs that nothing has")
    return MeasuredContexts(
        metrics=metrics,
        units=tuple(map(str, reply["units"])),
        places=places,
        own=exclusive,
    )
