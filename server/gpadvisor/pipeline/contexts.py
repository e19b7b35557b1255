# SPDX-License-Identifier: Apache-2.0
"""Calling contexts that another profiler measured, read in a child process with limits."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

from gpadvisor.errors import ProfileFormatError, ToolError
from gpadvisor.model.contexts import MeasuredContexts
from gpadvisor.sandbox.children import call
from gpadvisor.sandbox.codec import Failure, from_answer, to_bytes

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
        answer = call(
            _READER,
            to_bytes(str(path.absolute())),
            timeout_seconds=_SECONDS,
            memory_bytes=_MEMORY_BYTES,
            output_bytes=_OUTPUT_BYTES,
        )
        contexts = from_answer(answer, MeasuredContexts)
        if isinstance(contexts, Failure):
            raise ProfileFormatError(contexts.message)
        return _checked(contexts)
    except (ToolError, ValueError) as error:
        raise ProfileFormatError(
            f"the process that read {path} failed ({error}); it is damaged or too large"
        ) from error


def _checked(contexts: MeasuredContexts) -> MeasuredContexts:
    if any(not -1 <= place.parent < index for index, place in enumerate(contexts.places)):
        raise ValueError("a place before the one around it")
    widths = {len(row) for row in contexts.own}
    if len(contexts.own) != len(contexts.places) or not widths <= {len(contexts.metrics)}:
        raise ValueError("rows of another length")
    if any(not 0 <= value < math.inf for row in contexts.own for value in row):
        raise ValueError("costs that nothing has")
    return contexts
